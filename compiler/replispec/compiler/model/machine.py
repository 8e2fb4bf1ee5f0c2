"""Machines as the emitters see them: checked data with parsed and typed expressions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from replispec.compiler.model.binding import Bindings
from replispec.compiler.model.expressions import Expression
from replispec.compiler.model.message import Place, VersionRange
from replispec.compiler.model.value_types import Type


@dataclass(frozen=True, slots=True)
class StateSpec:
    """A state; `unreached` says why no edge leads to it."""

    name: str
    about: str
    place: Place
    initial: bool = False
    final: bool = False
    unreached: str = ""


@dataclass(frozen=True, slots=True)
class VariableSpec:
    """A variable with its value at the start (None: the type's zero). `durable`: it survives the process."""

    name: str
    type: Type
    about: str
    place: Place
    initial: Expression | None = None
    durable: bool = False


class LongestSpec(NamedTuple):
    """The parameter that says up to what the pauses of a timer grow, its default, and its field."""

    name: str
    default_ms: int
    field: str


@dataclass(frozen=True, slots=True)
class TimerSpec:
    """A timer that raises an event once its period is over, again and again when `periodic`.

    `period` is the parameter that says how long, `field` its field in the options of a role, or in a
    `group` of them. Whoever enters one of `states` from another state arms it, whoever leaves them cancels
    it; within them the events of `restarts` begin its period anew. With a `longest` each time that it ended
    doubles how long it lasts, up to that, until it is cancelled.
    """

    name: str
    about: str
    place: Place
    event: str
    period: str
    default_ms: int
    field: str
    group: str
    periodic: bool
    states: tuple[str, ...] = ()
    restarts: tuple[str, ...] = ()
    longest: LongestSpec | None = None


@dataclass(frozen=True, slots=True)
class Event:
    """An event; `fields` are what expressions may read of it.

    A message event lists `messages`; `sends` marks those that this side sends. A timer has its
    configuration's name and default in milliseconds.
    """

    name: str
    about: str
    place: Place
    is_peer: bool
    messages: tuple[str, ...]
    sends: bool
    fields: Mapping[str, Type]
    where: Expression | None = None
    timer: str = ""
    default_ms: int | None = None
    hidden: bool = False


@dataclass(frozen=True, slots=True)
class Guard:
    """A named condition about one event."""

    name: str
    about: str
    place: Place
    event: str
    condition: Expression
    clauses: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Transition:
    """Edges from each of `sources` on one event."""

    sources: tuple[str, ...]
    event: str
    to: str
    place: Place
    condition: Expression | None = None
    otherwise: bool = False
    do: tuple[str, ...] = ()
    arms: tuple[str, ...] = ()
    cancels: tuple[str, ...] = ()
    assign: Mapping[str, Expression] = field(default_factory=dict)
    clauses: tuple[str, ...] = ()
    blames_peer: bool = False
    tolerated: str = ""
    diverges: str = ""


Pair = tuple[str, str]
Table = dict[Pair, tuple[Transition, ...]]


@dataclass(frozen=True, slots=True)
class OverlaySpec:
    """What some releases of an implementation do differently: whole pairs, edges in order."""

    versions: VersionRange
    table: Table
    place: Place


@dataclass(frozen=True, slots=True)
class MachineSpec:
    """One machine; `table` maps (state, event) to its ordered edges.

    Judges of traffic watch it where `finding` names what they find, one evaluation being `evaluated`.
    `answers` gives the effects that answer a request, each with its code as ENUM.NAME; `bindings` says what
    events and answers are on the wire. `lets` are the names of expressions that are said more than once;
    all else holds what they stand for.
    """

    name: str
    about: str
    place: Place
    states: Mapping[str, StateSpec]
    enum: str
    variables: Mapping[str, VariableSpec]
    events: Mapping[str, Event]
    guards: Mapping[str, Guard]
    table: Table
    overlays: tuple[OverlaySpec, ...]
    instance_key: str = ""
    learns: Mapping[str, str] = field(default_factory=dict)
    finding: str = ""
    evaluated: str = ""
    answers: Mapping[str, str] = field(default_factory=dict)
    bindings: Bindings = field(default_factory=Bindings)
    lets: Mapping[str, Expression] = field(default_factory=dict, compare=False)
    timers: Mapping[str, TimerSpec] = field(default_factory=dict)

    def timing(self, edge: Transition, state: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The timers that an edge arms, and those that it cancels, where it leaves this state."""
        arms, cancels = self.implied_timing(edge, state)
        return tuple(sorted(arms.union(edge.arms))), tuple(sorted(cancels.union(edge.cancels)))

    def implied_timing(self, edge: Transition, state: str) -> tuple[set[str], set[str]]:
        """The timers that an edge from this state arms, and those that it cancels, without a word of its own:
        by the states between which it leads, and by its event."""
        arms, cancels = set[str](), set[str]()
        for each in self.timers.values():
            was, will = state in each.states, edge.to in each.states
            if will and (not was or edge.event in each.restarts):
                arms.add(each.name)
            if (was and not will) or self.states[edge.to].final:
                cancels.add(each.name)
        return arms, cancels

    @property
    def is_logged(self) -> bool:
        """Whether an instance is what its log makes of it: then its state and all variables are durable."""
        return self.bindings.log is not None

    def durable(self) -> tuple[str, ...]:
        """The variables that survive the process."""
        return tuple(name for name, each in self.variables.items() if each.durable or self.is_logged)

    def transitions(self) -> tuple[Transition, ...]:
        """Every transition once, those of overlays last, as ordered in the source."""
        tables = (self.table, *(overlay.table for overlay in self.overlays))
        found = {id(each): each for table in tables for edges in table.values() for each in edges}
        return tuple(found.values())

    def effects(self) -> dict[str, tuple[str, ...]]:
        """Every effect by name, with the events on which it is done."""
        found: dict[str, dict[str, None]] = {}
        for each in self.transitions():
            for name in each.do:
                found.setdefault(name, {})[each.event] = None
        return {name: tuple(events) for name, events in sorted(found.items())}
