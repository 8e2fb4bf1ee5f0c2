"""A watcher's walk as a fold over columns of events: every state that is still possible, event by event."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Final

from replispec.replay.machines.shapes import Structure
from replispec.replay.machines.steps import MachineFinding
from replispec.replay.machines.walks import JudgedStep, Possible, Walk
from replispec.runtime.primitives.machines import Configuration

BEGINNING: Final = "opened"
"""The kind of event with which an instance is seen from its beginning."""
FORGOTTEN: Final = "forgotten"
"""The attribute of an event before which anything may have happened."""

Possibilities = tuple[Possible, ...]


@dataclass(frozen=True, slots=True)
class WalkedConnection:
    """What the machines of both ends come to on one connection, by (group, id of the machine's finding).

    `place`: where its first frame stands in the capture.
    """

    place: tuple[Any, ...]
    findings: dict[tuple[str, str], MachineFinding]


class WalkFold:
    """The steps of one machine, by a walk that nobody else uses; `sent` are the kinds of events that its own
    side sends.

    Events have a `message`, the attributes that the machine asks for, and whether what was known is
    FORGOTTEN. What a step comes to is None when the event is none of the machine's.
    """

    def __init__(self, walk: Walk, sent: frozenset[str]) -> None:
        self._walk = walk
        self._sent = sent
        self._numbers = {id(each): number for number, each in enumerate(self._walk.machines)}
        self._variables = type(walk.machine.variables)
        self._names = [each.name for each in fields(walk.machine.variables)]

    @property
    def anything(self) -> Possibilities:
        """Where the machine may be when nothing of it was seen."""
        self._walk.forget()
        return tuple(self._walk.possible)

    def apart(self, state: Possibilities) -> tuple[Structure, list[tuple[str, Any]]]:
        """Which releases may be the one and in which states they may be; the variables of each of them."""
        structure = tuple(
            (self._numbers[id(one.machine)], tuple(each.state for each in one.configurations))
            for one in state
        )
        values = [
            (name, getattr(each.variables, name))
            for one in state
            for each in one.configurations
            for name in self._names
        ]
        return structure, values

    def together(self, structure: Structure, values: Sequence[Any]) -> Possibilities:
        """The inverse."""
        remaining = iter(values)
        return tuple(
            Possible(
                self._walk.machines[number],
                tuple(
                    Configuration(state, self._variables(*(next(remaining) for _ in self._names)))
                    for state in states
                ),
            )
            for number, states in structure
        )

    def step(self, state: Possibilities, name: str, event: Any) -> tuple[JudgedStep | None, Possibilities]:
        """Judge one event and take it."""
        walk = self._walk
        walk.possible = [Possible(one.machine, one.configurations) for one in state]
        judged: JudgedStep | None = None
        if name == BEGINNING:
            walk.begin()
        else:
            if event.forgotten:
                walk.forget()
            kind = walk.kind_of(event.message or "", event, sent=name in self._sent)
            if kind is not None:
                judged = walk.step(kind, event)
        return judged, tuple(walk.possible)
