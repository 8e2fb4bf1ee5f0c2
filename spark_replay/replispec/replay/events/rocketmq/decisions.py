"""What a controller is asked about a broker set, and how it decides, by the bindings of the machine.

A request and its answer are a row each, joined by connection, direction and number. Only requests that name
brokers by their ids are decisions here; releases up to 5.1.0 name addresses, and whose they are no capture
shows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from replispec.replay.events.content import content_of, fields_of
from replispec.replay.events.observation import Decision, Fact
from replispec.replay.events.rocketmq.command import Command
from replispec.replay.events.rocketmq.facts import BY_ADDRESS, facts_by_name, facts_of
from replispec.runtime.primitives.bindings import Refused
from replispec.runtime.primitives.unknown import PartlySeen, UnknownRead, Unseen
from replispec.runtime.rocketmq import rules
from replispec.wire.rocketmq import controller
from replispec.wire.rocketmq.codes import RequestCode
from replispec.wire.rocketmq.machines import broker_set
from replispec.wire.rocketmq.machines import broker_set_wire as wire

NOTIFIED: Final = "notified"
"""Not an event of the machine but what it does: the notification of a role."""
QUERY: Final = RequestCode.CONTROLLER_GET_SYNC_STATE_DATA
"""Asks about several sets at once, each as if it were asked alone."""
CODES: Final = (*wire.REQUESTS, QUERY, RequestCode.NOTIFY_BROKER_ROLE_CHANGED)
_EVENTS: Final = broker_set.MACHINE.events
_CLAIMED: Final = wire.CLAIMS_OF_NOTICES["notify_brokers"]


@dataclass(frozen=True)
class _UnknownLocal:
    """What a controller remembers, and what only it knows: nothing that the wire shows. Who asks for an id
    is taken for one that has none."""

    def known(self, _instance: str) -> tuple[Any, Any]:
        """Nothing of it."""
        return Unseen(), PartlySeen(applied_address=None)


def decisions_of(command: Command) -> Iterator[Decision]:
    """The rows of a request, an answer or a notification. Raises RemoteProtocolError for broken fields."""
    asked = command.asked
    if asked == RequestCode.NOTIFY_BROKER_ROLE_CHANGED and not command.is_answer:
        claims = _CLAIMED(command.ext_fields, command.json_body or b"")
        for fact in facts_of(command):
            if fact.named_by != BY_ADDRESS:
                yield Decision(
                    *command.place,
                    code=asked,
                    address=fact.address,
                    master=fact.master,
                    master_epoch=fact.master_epoch,
                    message=NOTIFIED,
                    content=content_of(claims),
                )
        return
    asking = command.request if command.is_answer else command
    if asking is None:
        return
    for name, event in asking.once(_questions):
        row = Decision(
            *command.place,
            duration_ns=command.duration_ns,
            name=name,
            message=_EVENTS[type(event)].name,
            opaque=command.opaque,
            controller=asking.destination,
        )
        if not command.is_answer:
            yield replace(row, content=content_of(fields_of(event)))
        else:
            yield from _answered(command, event, row)


def _questions(command: Command) -> tuple[tuple[str, broker_set.Event], ...]:
    """The broker sets that a request is about, and the event that it is to each."""
    names = command.body(controller.BrokerNames) if command.code == QUERY else None
    if names is not None:
        return tuple((name, broker_set.InfoAsked()) for name in names.names or ())
    try:
        asked = wire.event_of(
            command.code, command.ext_fields, command.json_body or b"", _UnknownLocal(), rules
        )
    except (Refused, UnknownRead):
        return ()  # it lacks something, or what it is depends on what no capture shows
    if asked is None or isinstance(asked.event, broker_set.ElectionAskedByAddress):
        return ()
    return ((asked.instance, _as_apache_reads(asked.event)),)


def _as_apache_reads(event: broker_set.Event) -> broker_set.Event:
    """Apache reads no ids when living brokers may be cleaned, and removes the whole set."""
    if isinstance(event, broker_set.CleaningAsked) and event.may_clean_living:
        return replace(event, broker_ids=None)
    return event


def _answered(command: Command, event: broker_set.Event, row: Decision) -> Iterator[Decision]:
    """What the answer claims; of a refusal its code alone."""
    row = replace(row, controller=command.source, code=command.code, accepted=False)
    fields, body = command.ext_fields, command.json_body or b""
    several = command.asked == QUERY
    claims = wire.claims_of(type(event), command.code, {} if several else fields, b"" if several else body)
    if claims is None:
        yield row
    elif several:
        for fact in facts_by_name(command).get(row.name, ()):
            if fact.named_by != BY_ADDRESS:
                yield replace(row, accepted=claims.accepted, content=content_of(_claimed_by(fact)))
    else:
        yield replace(row, accepted=claims.accepted, content=content_of(claims.variables))


def _claimed_by(fact: Fact) -> dict[str, Any]:
    """The variables that one entry of the answer to a query tells."""
    told: dict[str, Any] = {
        "master_epoch": fact.master_epoch,
        "sync_state_set_epoch": fact.sync_state_set_epoch,
        "sync_state_set": None if fact.members is None else [int(each) for each in fact.members],
    }
    seen = {name: value for name, value in told.items() if value is not None}
    return {"master": None if fact.master is None else int(fact.master), **seen}
