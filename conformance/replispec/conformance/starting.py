"""The subject of a run as an adapter brings it to life, with what it needs beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import trio

from replispec.conformance.adapter_requests import AdapterRefused
from replispec.conformance.adapters import START_S, Adapter, Starting
from replispec.conformance.family import SubjectKind
from replispec.conformance.judged import JudgedSubject
from replispec.conformance.model import TARGET
from replispec.conformance.probe import NoSubject, probe
from replispec.conformance.received import ReceivedAnswer

CLUSTER, SET = "suite-cluster", "suite-set"
_CONTROLLER, _NAME_SERVER = "controller", "name_server"
_AGAIN_S = 0.25


async def brought_up(adapter: Adapter, subject: JudgedSubject) -> JudgedSubject:
    """The subject with the addresses of what was started for it, once it serves.

    Raises NoSubject when the adapter cannot have it, AdapterFault.
    """
    kind = subject.kind
    lacking = [each for each in kind.started if each not in adapter.described.roles]
    if lacking:
        raise NoSubject(f"the adapter brings no {_shown(lacking[0])} to life, which kind {kind.name} needs")
    if kind.played:
        return replace(subject, adapter=adapter)
    known = {"set": SET, **subject.known} if len(kind.started) > 1 else subject.known
    starting = replace(subject, known=known, adapter=adapter)
    try:
        addresses = await _started(adapter, kind, str(known.get("set", "")))
    except AdapterRefused as refused:
        raise NoSubject(f"the adapter does not start the subject: {refused}") from None
    brought = replace(starting, addresses={**addresses, **subject.addresses})
    await _serving(brought)
    return brought


async def _started(adapter: Adapter, kind: SubjectKind, set_name: str) -> Mapping[str, str]:
    """What every role of the kind listens at, by the names that cases have for addresses."""
    found: dict[str, str] = {}
    for role in kind.started:
        is_subject = role == kind.started[-1]
        living = await adapter.start(
            Starting(
                name=role.replace("_", "-"),
                role=role,
                cluster=CLUSTER,
                set=set_name,
                controllers=tuple(found[each] for each in [_CONTROLLER] if each in found),
                name_servers=tuple(found[each] for each in [_NAME_SERVER.replace("_", "")] if each in found),
                purposes=tuple(dict.fromkeys(("remoting", kind.listens if is_subject else "remoting"))),
            )
        )
        found[role.replace("_", "")] = living.listening["remoting"]
        if is_subject:
            found[TARGET] = living.listening[kind.listens]
    return found


async def _serving(subject: JudgedSubject) -> None:
    """Wait until the subject answers what its kind asks first, and refuses it no longer. Raises NoSubject."""
    until_s = trio.current_time() + START_S * max(subject.patience, 1.0)
    success = subject.family.vocabulary.response_code(subject.kind.success, subject.release)
    while True:
        try:
            first = await probe(subject, subject.addresses[TARGET])
        except NoSubject:
            if trio.current_time() > until_s:
                raise
        else:
            if not isinstance(first, ReceivedAnswer) or first.code == success:
                return
            if trio.current_time() > until_s:
                code = subject.family.vocabulary.response_name(first.code, subject.release)
                raise NoSubject(
                    f"the {_shown(subject.kind.name)} that was started answers {code} all the time"
                )
        await trio.sleep(_AGAIN_S)


def _shown(role: str) -> str:
    return role.replace("_", " ")
