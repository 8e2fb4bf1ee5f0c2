"""What a step goes on with stands above it: variables, connections, services, instances, requests.

A case that names what is not there is refused when its file is read, not in the middle of a run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from replispec.conformance.durations import CASE_S, PLAYED_CASE_S
from replispec.conformance.family import Family
from replispec.conformance.model import (
    Answered,
    Bring,
    Case,
    CaseError,
    CasePlace,
    CaseStep,
    End,
    Fate,
    Listen,
    Others,
    Raw,
    Reserve,
    RuleChange,
    Sent,
    Serve,
    Wait,
)
from replispec.conformance.sendable import check_answer, check_bytes
from replispec.conformance.steps import matcherless
from replispec.conformance.values import UnknownVariable, names_in


def check_order(case: Case, family: Family) -> None:
    """Every name is known where it is used; what is sent holds no comparison and has bytes.

    Raises CaseError.
    """
    known = _Known(family, variables=set(family.variables()))
    for step in (*case.prepared, *case.steps, *case.afterwards):
        known.take(step)
    _check_waits(case, family)


def _check_waits(case: Case, family: Family) -> None:
    """A case that lasts longer than a case may blames its subject for it. Raises CaseError."""
    limit_s = PLAYED_CASE_S if family.kind(case.kind).played else CASE_S
    waited_s = 0.0
    for step in (*case.prepared, *case.steps):
        waited_s += _waits_s(step)
        if waited_s >= limit_s:
            raise CaseError(step.place, f"up to here the case waits {waited_s:g} s: it has {limit_s:g} s")


def _waits_s(step: CaseStep) -> float:
    """How long a step takes whatever the subject does."""
    waits_s = step.action.seconds if isinstance(step.action, Wait) else 0.0
    is_silent = bool(step.expect) and all(each.silence for each in step.expect)
    return waits_s + (step.within_s if is_silent else 0.0)


@dataclass(slots=True)
class _Known:
    """What the steps so far have made."""

    family: Family
    variables: set[str]
    connections: set[str] = field(default_factory=set)
    services: set[str] = field(default_factory=set)
    instances: set[str] = field(default_factory=set)
    asking: set[str] = field(default_factory=set)  # where a step wants a request of the subject

    def take(self, step: CaseStep) -> None:
        """Check one step and note what it makes. Raises CaseError."""
        action = step.action
        self._connection(step)
        self._made(action)
        for name in _mentioned(step):
            if name not in self.variables:
                raise CaseError(step.place, f"${name} is not saved by a step before")
        self._there(step)
        if isinstance(action, Sent | Raw):
            if not matcherless(action):
                raise CaseError(step.place, "a tag compares what came; it cannot be sent")
            check_bytes(action, step.place, self.family)
        for each in _answers(action):
            check_answer(each, step.place, self.family)
        for outcome in step.expect:
            self.variables.update(outcome.save)
            if outcome.command is not None:
                self.asking.add(step.on)

    def _made(self, action: object) -> None:
        match action:
            case Listen():
                self.variables.add(action.name)
            case Serve():
                self.variables.add(action.name)
                self.services.add(action.name)
            case Reserve():
                self.variables.update(action.names)
            case Others():
                self.variables.update(action.names)
            case Bring():
                self.instances.add(action.name)
                self.variables |= {action.name, *(f"{action.name}_{each}" for each in action.purposes)}
            case _:
                pass

    def _there(self, step: CaseStep) -> None:
        """Who is told, ended or answered is there."""
        match step.action:
            case Fate(name=name) if not name.startswith("$"):
                self._expect(name, self.instances, step.place, "starts")
            case RuleChange(name=name):
                self._expect(name, self.services, step.place, "serves")
            case Others(of=of):
                for name in of:
                    self._expect(name, self.variables, step.place, "starts or reserves")
            case Answered():
                self._expect(step.on, self.asking, step.place, "takes a request over")
            case _:
                pass

    def _expect(self, name: str, there: set[str], place: CasePlace, does: str) -> None:
        if name not in there:
            raise CaseError(place, f"no step before {does} {name!r}")

    def _connection(self, step: CaseStep) -> None:
        """What is closed or only listened to was opened, used or set up before."""
        action, known = step.action, self.connections
        named = action.name if isinstance(action, End) else step.on if action is None else None
        if named is not None and named not in known:
            raise CaseError(step.place, f"no step before uses the connection {named!r}")
        if isinstance(action, Listen | Serve):
            known.add(action.name)
        elif not isinstance(action, End | Wait):
            known.add(step.on)


def _answers(action: object) -> Iterator[Answered]:
    if isinstance(action, Answered):
        yield action
    elif isinstance(action, Serve | RuleChange):
        rules: Mapping[str, object] = action.rules
        yield from (each for each in rules.values() if isinstance(each, Answered))


def _mentioned(step: CaseStep) -> list[str]:
    try:
        return list(names_in([step.action, *step.expect]))
    except UnknownVariable as fault:
        raise CaseError(step.place, str(fault)) from None
