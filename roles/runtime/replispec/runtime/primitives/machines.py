"""State machines as tables, and the two ways to walk them.

Generated modules hold one `Machine` each: a table from (state, class of event) to ordered edges. A
role knows its own state and walks with `step`. A judge of captured traffic may have missed the
beginning and cannot see everything; it walks with `step_all` over all states that are still
possible, and an unknown variable makes it follow both branches of a guard.

Guards and assignments are functions of (variables, event, rules). They read attributes only, so an
event may be the generated class, a decoded message or a light row. `rules` is the module of pure
algorithms (`replispec.runtime.<family>.rules`), handed in because generated code must not import it.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache
from operator import attrgetter, is_
from typing import Any, Final, Generic, TypeVar

from replispec.runtime.primitives.errors import LocalProtocolError, RemoteProtocolError
from replispec.runtime.primitives.periods import Timer
from replispec.runtime.primitives.releases import Releases
from replispec.runtime.primitives.unknown import UNKNOWN, AtLeast, UnknownRead, Unseen, covers, is_same

StateT = TypeVar("StateT", bound=enum.Enum)
VariablesT = TypeVar("VariablesT")
Guard = Callable[[Any, Any, Any], bool]
Assign = Callable[[Any, Any, Any], Any]

CONFIGURATIONS_MAX: Final = 64
"""Possible configurations that are kept apart; beyond, variables are forgotten until no more are left."""


class MachineState(enum.Enum):
    """The states of a machine, told apart by identity: an enumeration else hashes the name of a member, by a
    function of Python, whenever an edge is looked up."""

    __hash__ = object.__hash__


class Origin(enum.Enum):
    """Who makes an event happen: the other side, or this one (its own timers and files included)."""

    PEER = "peer"
    LOCAL = "local"


@dataclass(frozen=True, slots=True)
class EventKind:
    """What the specification says about one class of events.

    `messages` are the names of the messages that it stands for, received from the peer or, when
    `sends` is true, sent by this side; `where` narrows them. `timer` names the configuration value
    of a timer event, `default_ms` its default. Nothing on the wire shows a `hidden` event.
    """

    name: str
    origin: Origin
    messages: tuple[str, ...] = ()
    sends: bool = False
    where: Guard | None = None
    timer: str = ""
    default_ms: int | None = None
    hidden: bool = False


@dataclass(frozen=True, slots=True)
class Edge(Generic[StateT]):
    """One way out of a state: taken when `guard` holds (None: always).

    `do` names the effects in the order in which they are to be carried out. `assign` gives the new
    values of some variables by name, all of them from the old ones. `blames_peer` marks an edge that is taken
    because the peer broke the protocol, `tolerated` says why an implementation's deviation is let
    pass, `diverges` which known deviation is reported. `text` is the guard as the specification words it,
    where it is not a guard that has a name. `arms` and `cancels` name timers.
    """

    to: StateT
    do: tuple[str, ...] = ()
    guard: Guard | None = None
    assign: Mapping[str, Assign] = field(default_factory=dict)
    clauses: tuple[str, ...] = ()
    blames_peer: bool = False
    tolerated: str = ""
    diverges: str = ""
    text: str = ""
    arms: tuple[str, ...] = ()
    cancels: tuple[str, ...] = ()

    @property
    def condition(self) -> str:
        """The guard as the specification words it; empty when there is none."""
        return self.text or ("" if self.guard is None else f"guard.{self.guard.__name__}")


Transitions = Mapping[tuple[StateT, type], tuple[Edge[StateT], ...]]


@dataclass(frozen=True, slots=True)
class Overlay(Generic[StateT]):
    """What differs in some releases of one implementation.

    `transitions` holds all edges of every pair that differs; an empty tuple removes the pair.
    """

    releases: Releases
    transitions: Transitions[StateT]


@dataclass(frozen=True, slots=True)
class Machine(Generic[StateT, VariablesT]):
    """One machine of the specification: states, variables at the start, events, edges, overlays.

    Judges of traffic that watch it report `finding`; one evaluation is `evaluated`. The variables that
    `durable` names survive the process, and with `is_logged` so does the state.
    """

    name: str
    states: type[StateT]
    initial: StateT
    variables: VariablesT
    events: Mapping[type, EventKind]
    transitions: Transitions[StateT]
    final: frozenset[StateT] = frozenset()
    unreached: frozenset[StateT] = frozenset()
    overlays: tuple[Overlay[StateT], ...] = ()
    finding: str = ""
    evaluated: str = ""
    timers: Mapping[str, Timer] = field(default_factory=dict)
    durable: frozenset[str] = frozenset()
    is_logged: bool = False

    def armed_in(self, state: StateT) -> frozenset[str]:
        """The timers that run in a state by themselves."""
        return frozenset(name for name, each in self.timers.items() if state in each.states)

    def for_release(self, implementation: str, release: tuple[int, ...]) -> Machine[StateT, VariablesT]:
        """This machine as one release of an implementation walks it."""
        edges = dict(self.transitions)
        for overlay in self.overlays:
            if overlay.releases.holds(implementation, release):
                edges.update(overlay.transitions)
        return replace(self, transitions=edges, overlays=())

    def kind_of(self, message: str, facts: Any, rules: Any, *, sent: bool = False) -> type | None:
        """The class of the event that a message with this name is; None when it is none.

        `facts` carries the message's fields; `sent` tells messages of this side from the peer's.
        """
        for kind, info in self.events.items():
            is_one = message in info.messages and info.sends is sent
            if is_one and (info.where is None or info.where(self.variables, facts, rules)):
                return kind
        return None


@dataclass(frozen=True, slots=True)
class Step(Generic[StateT, VariablesT]):
    """The outcome of one event: the state and variables after it, the effects, the edge taken."""

    state: StateT
    variables: VariablesT
    effects: tuple[str, ...]
    edge: Edge[StateT]


def step(
    machine: Machine[StateT, VariablesT],
    state: StateT,
    variables: VariablesT,
    event: Any,
    rules: Any,
    kind: type | None = None,
) -> Step[StateT, VariablesT]:
    """Take the first edge whose guard holds.

    `kind` is the class of the event when `event` itself is a light row. Raises RemoteProtocolError
    when no edge fits an event that the peer caused, LocalProtocolError when this side caused it,
    and UnknownRead when a guard asks for an unknown value.
    """
    edge = edge_of(machine, state, variables, event, rules, kind)
    return Step(edge.to, assigned(edge.assign, variables, event, rules), edge.do, edge)


def edge_of(
    machine: Machine[StateT, VariablesT],
    state: StateT,
    variables: VariablesT,
    event: Any,
    rules: Any,
    kind: type | None = None,
) -> Edge[StateT]:
    """The edge that `step` takes. Raises like `step`."""
    kind = type(event) if kind is None else kind
    for edge in machine.transitions.get((state, kind), ()):
        if edge.guard is None or edge.guard(variables, event, rules):
            return edge
    raise _no_edge(machine, kind, state.name)


def _no_edge(machine: Machine[Any, Any], kind: type, states: str) -> Exception:
    """The error that says whose fault it is that no edge leads on."""
    info = machine.events.get(kind)
    if info is None:
        return LocalProtocolError(f"{machine.name} has no event {kind.__name__}")
    blame = RemoteProtocolError if info.origin is Origin.PEER else LocalProtocolError
    return blame(f"{machine.name}: no edge from {states} on {info.name}")


@dataclass(frozen=True, slots=True)
class Configuration(Generic[StateT, VariablesT]):
    """A state that a machine may be in, with what its variables then are."""

    state: StateT
    variables: VariablesT


@dataclass(frozen=True, slots=True)
class Way(Generic[StateT, VariablesT]):
    """One way on from a configuration: where it leads, by which edge, and whether that is certain.

    It is not when this edge's guard, or one before it, asked for what was not seen.
    """

    configuration: Configuration[StateT, VariablesT]
    edge: Edge[StateT]
    surely: bool


def everywhere(machine: Machine[StateT, Any]) -> tuple[Configuration[StateT, Any], ...]:
    """The configurations of a machine of which the beginning was not seen: every state that is
    ever entered, with every variable unknown."""
    variables = replace(machine.variables, **{each.name: UNKNOWN for each in fields(machine.variables)})
    entered = {edge.to for edges in machine.transitions.values() for edge in edges} | {machine.initial}
    return tuple(Configuration(state, variables) for state in machine.states if state in entered)


def step_all(
    machine: Machine[StateT, VariablesT],
    configurations: Sequence[Configuration[StateT, VariablesT]],
    event: Any,
    rules: Any,
    kind: type | None = None,
) -> tuple[Configuration[StateT, VariablesT], ...]:
    """All configurations in which the machine may be after one more event that was seen.

    Hidden events may have happened before it, any number of times. A guard that asks for an
    unknown value is taken as true and as false. Raises like `step` when no configuration is left.
    """
    kind = type(event) if kind is None else kind
    before = with_hidden(machine, configurations, rules)
    after = [way.configuration for one in before for way in ways(machine, one, event, kind, rules)]
    if not after:
        names = ", ".join(sorted({each.state.name for each in before}))
        raise _no_edge(machine, kind, names or "no state")
    return distinct(after)


def with_hidden(
    machine: Machine[StateT, VariablesT], start: Iterable[Configuration[StateT, VariablesT]], rules: Any
) -> tuple[Configuration[StateT, VariablesT], ...]:
    """The configurations, and those that hidden events lead to, any number of them."""
    hidden = [kind for kind, info in machine.events.items() if info.hidden]
    found = distinct(start)
    fresh = found
    while hidden and fresh:
        reached = [
            way.configuration
            for one in fresh
            for kind in hidden
            if _moves(machine, one, kind)
            for way in ways(machine, one, Unseen(), kind, rules)
        ]
        known = found
        found = distinct((*known, *reached))
        fresh = _beyond(known, found)
    return found


def _moves(machine: Machine[Any, Any], one: Configuration[Any, Any], kind: type) -> bool:
    """Whether an event that nobody saw may lead to what the configuration does not stand for already."""
    edges = machine.transitions.get((one.state, kind), ())
    names = (name for edge in edges for name in edge.assign)
    moves = any(edge.to is not one.state for edge in edges)
    return moves or any(getattr(one.variables, name) is not UNKNOWN for name in names)


def reachable(
    machine: Machine[StateT, VariablesT],
    start: Iterable[Configuration[StateT, VariablesT]],
    kinds: Sequence[type],
    rules: Any,
) -> tuple[Configuration[StateT, VariablesT], ...]:
    """The configurations, and those that unseen events of these classes lead to, any number of them.

    Numbers that such events count up are known by their lower bound alone.
    """
    found = fresh = distinct(start)
    while fresh:
        reached = [
            _grown(one, way.configuration)
            for one in fresh
            for kind in kinds
            for way in ways(machine, one, Unseen(), kind, rules)
            if way.edge.assign or way.edge.to is not one.state
        ]
        known = found
        found = distinct((*known, *reached))
        fresh = _beyond(known, found)
    return found


def _beyond(
    known: tuple[Configuration[StateT, VariablesT], ...], found: tuple[Configuration[StateT, VariablesT], ...]
) -> tuple[Configuration[StateT, VariablesT], ...]:
    """Those of `found` that `known` does not stand for; `found` begins with `known` unless it forgot some."""
    if len(known) <= len(found) and all(map(is_, known, found)):
        return found[len(known) :]
    return tuple(each for each in found if not any(_covers(other, each) for other in known))


def _grown(
    before: Configuration[StateT, VariablesT], after: Configuration[StateT, VariablesT]
) -> Configuration[StateT, VariablesT]:
    """The configuration after an event that may happen again, with AtLeast for numbers that it made grow."""
    if before.variables is after.variables:
        return after
    old_and_new = zip(_values_of(before.variables), _values_of(after.variables), strict=True)
    values = {
        name: AtLeast(new)
        for name, (old, new) in zip(_names(after.variables), old_and_new, strict=True)
        if old is not new and type(old) is int and type(new) is int and new > old
    }
    if not values:
        return after
    return replace(after, variables=replace(after.variables, **values))  # type: ignore[type-var]


def ways(
    machine: Machine[StateT, VariablesT],
    one: Configuration[StateT, VariablesT],
    event: Any,
    kind: type,
    rules: Any,
) -> list[Way[StateT, VariablesT]]:
    """Where one configuration may go; more than one place when a guard cannot be answered."""
    found: list[Way[StateT, VariablesT]] = []
    surely = True
    for edge in machine.transitions.get((one.state, kind), ()):
        try:
            holds = edge.guard is None or bool(edge.guard(one.variables, event, rules))
            answered = True
        except UnknownRead:
            holds, answered = True, False
        if holds:
            surely = surely and answered
            after = Configuration(edge.to, assigned(edge.assign, one.variables, event, rules))
            found.append(Way(after, edge, surely))
            if answered:
                break
    return found


def assigned(assign: Mapping[str, Assign], variables: VariablesT, event: Any, rules: Any) -> VariablesT:
    """The variables (a dataclass) with their new values; one that cannot be told is unknown."""
    if not assign:
        return variables
    kind: Any = type(variables)
    read, places = _layout_of(kind)
    values = list(read(variables))
    for name, function in assign.items():
        try:
            values[places[name]] = function(variables, event, rules)
        except UnknownRead:
            values[places[name]] = UNKNOWN
    after: VariablesT = kind(*values)
    return after


@cache
def _layout_of(kind: type[Any]) -> tuple[Callable[[Any], tuple[Any, ...]], Mapping[str, int]]:
    """How all variables of this class are read at once, and the place of each among them."""
    names = [each.name for each in fields(kind)]
    # With one name alone attrgetter gives no tuple.
    read = attrgetter(*names) if len(names) > 1 else lambda one: tuple(getattr(one, name) for name in names)
    return read, {name: place for place, name in enumerate(names)}


def _values_of(variables: Any) -> tuple[Any, ...]:
    """The values of all variables (a dataclass), in their order."""
    kind: Any = type(variables)
    values: tuple[Any, ...] = _layout_of(kind)[0](variables)
    return values


def forgotten(variables: VariablesT, names: Iterable[str]) -> VariablesT:
    """The variables (a dataclass) with those of these names unknown."""
    changes: dict[str, Any] = dict.fromkeys(names, UNKNOWN)
    after: VariablesT = replace(variables, **changes)  # type: ignore[type-var]  # every Variables is a dataclass
    return after


def _covers(wide: Configuration[StateT, VariablesT], narrow: Configuration[StateT, VariablesT]) -> bool:
    """True when `narrow` is one of the possibilities that `wide` stands for."""
    if wide.state is not narrow.state:
        return False
    return _cover(_values_of(wide.variables), _values_of(narrow.variables))


def _cover(wide: tuple[Any, ...], narrow: tuple[Any, ...]) -> bool:
    """Likewise of the values of all variables, most of which are the same objects."""
    for wider, narrower in zip(wide, narrow, strict=True):
        if wider is not narrower and not covers(wider, narrower):
            return False
    return True


def _differing(left: Any, right: Any) -> list[str]:
    """The names of the variables that are not the same on both sides."""
    return [name for name in _names(left) if not is_same(getattr(left, name), getattr(right, name))]


def _names(variables: Any) -> Iterable[str]:
    """The names of variables (a dataclass), without an object for each."""
    names: Mapping[str, object] = variables.__dataclass_fields__
    return names


def distinct(
    configurations: Iterable[Configuration[StateT, VariablesT]],
) -> tuple[Configuration[StateT, VariablesT], ...]:
    """Each possibility once.

    Where there are too many to keep apart, one variable after the other is forgotten in all of them,
    each time the one that costs least, so that the others stay known together.
    """
    found = _each_once(configurations)
    while len(found) > CONFIGURATIONS_MAX and (names := _that_differ(found)):
        found = _with_less(found, names)
    return found


def _each_once(
    configurations: Iterable[Configuration[StateT, VariablesT]],
) -> tuple[Configuration[StateT, VariablesT], ...]:
    """Without those that another one stands for too."""
    found: list[Configuration[StateT, VariablesT]] = []
    known: dict[StateT, list[tuple[Any, ...]]] = {}
    for one in configurations:
        values = _values_of(one.variables)
        of_state = known.setdefault(one.state, [])
        if not any(_cover(others, values) for others in of_state):
            of_state.append(values)
            found.append(one)
    return tuple(found)


def _that_differ(found: tuple[Configuration[StateT, VariablesT], ...]) -> tuple[str, ...]:
    """The variables that do not have one value throughout."""
    first = found[0].variables
    return tuple(dict.fromkeys(name for one in found for name in _differing(first, one.variables)))


def _with_less(
    found: tuple[Configuration[StateT, VariablesT], ...], names: tuple[str, ...]
) -> tuple[Configuration[StateT, VariablesT], ...]:
    """The possibilities with one of these variables unknown: the one that leaves most of those that may be
    kept apart, or, if none is enough, the fewest."""
    less = [
        _each_once(replace(one, variables=forgotten(one.variables, (name,))) for one in found)
        for name in names
    ]
    enough = [each for each in less if len(each) <= CONFIGURATIONS_MAX]
    return max(enough, key=len) if enough else min(less, key=len)
