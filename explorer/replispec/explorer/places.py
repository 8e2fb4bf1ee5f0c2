"""The instances of a system in their places, and what may happen around them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from replispec.explorer.errors import ExplorationError
from replispec.runtime import families
from replispec.runtime.primitives.errors import ProtocolError
from replispec.runtime.primitives.machines import Configuration
from replispec.runtime.primitives.systems import Act, Part, PartyKind, Read, System


@dataclass(frozen=True, slots=True)
class Spot:
    """One instance: its party and its number from 1."""

    party: PartyKind
    number: int

    @property
    def name(self) -> str:
        """What people call it."""
        return self.party.name if self.party.count == 1 else f"{self.party.name} {self.number}"


@dataclass(frozen=True, slots=True)
class Occasion:
    """An act with the instances that it would happen to: name -> place."""

    act: Act
    instances: Mapping[str, int]

    @property
    def others(self) -> tuple[int, ...]:
        """The places of those that it names beside the one to which it happens."""
        return tuple(place for name, place in self.instances.items() if name != "self")


@dataclass(frozen=True, slots=True)
class Numbered:
    """An instance of which no more than its number may be read."""

    number: int


class Placement:
    """A system with its rules, its places in order, and every occasion for an act."""

    def __init__(self, system: System) -> None:
        self.system = system
        has_rules = system.family in families.with_part("runtime", "rules")
        self.rules = families.part("runtime", system.family, "rules") if has_rules else None
        self.places = tuple(Spot(each, number + 1) for each in system.parties for number in range(each.count))
        self.connections = {each.name: each for each in system.connections}
        self._first = {each.name: self._places_of(each.name)[0] for each in system.parties}
        self._of = {each.name: self.places_of(each.name) for each in system.parties}
        self._strangers = tuple(Numbered(place.number) for place in self.places)
        self.occasions = tuple(_occasions(system, self.places_of))
        self._beginnings = tuple(self._started())

    def _places_of(self, party: str) -> list[int]:
        return [index for index, place in enumerate(self.places) if place.party.name == party]

    def places_of(self, party: str) -> range:
        """The places of a party's instances."""
        first = self._first[party]
        return range(first, first + self.places[first].party.count)

    def world(self, values: Mapping[int, Any]) -> Any:
        """The world of these instances by their places; of others nothing but the number may be read."""
        known = [values.get(index, stranger) for index, stranger in enumerate(self._strangers)]
        parts = {name: tuple(known[places.start : places.stop]) for name, places in self._of.items()}
        return self.system.world(**parts)

    def start(self) -> list[Any]:
        """The instances as they begin."""
        return list(self._beginnings)

    def after_a_crash(self, place: int, before: Any) -> Any:
        """An instance that ended: it has what is durable, and its machines are to begin."""
        party = self.places[place].party
        kept = {name: getattr(before, name) for name in party.durable}
        logged = {part.name: getattr(before, part.name) for part in party.parts if part.machine.is_logged}
        return replace(self._beginnings[place], **kept, **logged)

    def begun_again(self, place: int, now: Any, before: Any, value: Callable[[Read], Any]) -> Any:
        """An instance whose machines begin from what it has `now`, and from what is durable of theirs."""
        party = self.places[place].party
        begun: dict[str, Any] = {}
        for part in party.parts:
            if not (part.peers or part.machine.is_logged):
                read = party.begins.get(part.name)
                start = initial(part) if read is None else value(read)
                held = getattr(before, part.name).variables
                durable = {name: getattr(held, name) for name in part.machine.durable}
                begun[part.name] = replace(start, variables=replace(start.variables, **durable))
        return _with_armed(replace(now, **begun), party)

    def _started(self) -> list[Any]:
        shells = [self._shell(place) for place in self.places]
        world = self.world(dict(enumerate(shells)))
        return [self._begun(place, shell, world) for place, shell in zip(self.places, shells, strict=True)]

    def _begun(self, place: Spot, shell: Any, world: Any) -> Any:
        """The instance with what it keeps, by which its machines then begin."""
        parts = {part.name: not part.peers for part in place.party.parts}
        for is_machine in (False, True):
            given = {"self": shell, "world": world, "rules": self.rules}
            begins = {
                name: told(f"the start of {name} of {place.name}", read, given)
                for name, read in place.party.begins.items()
                if (name in parts) == is_machine and parts.get(name, True)
            }
            shell = replace(shell, **begins)
        return _with_armed(shell, place.party)

    def _shell(self, place: Spot) -> Any:
        """An instance in the initial states of its machines, without a connection."""
        parts: dict[str, Any] = {}
        for part in place.party.parts:
            parts[part.name] = initial(part)
            if part.peers:
                parts[part.name] = (ended(part),) * len(self.places_of(part.peers))
        dialled = [each.name for each in self.system.connections if each.dials.party == place.party.name]
        kept: dict[str, Any] = dict.fromkeys(name for name in place.party.begins if name not in parts)
        if place.party.timers:
            kept["armed"] = frozenset()
        return place.party.kind(number=place.number, **parts, **kept, **dict.fromkeys(dialled, 0))


def initial(part: Part) -> Configuration[Any, Any]:
    """A machine as it begins where the system says nothing else."""
    return Configuration(part.machine.initial, part.machine.variables)


def ended(part: Part) -> Configuration[Any, Any]:
    """A machine of which there is no connection: it remembers nothing."""
    state = next(state for state in part.machine.states if state in part.machine.final)
    return Configuration(state, part.machine.variables)


def called(read: Read, given: Mapping[str, Any]) -> Any:
    """The value of an expression over what is given by name."""
    return read.of(*(given[name] for name in read.names))


def told(what: str, read: Read, given: Mapping[str, Any]) -> Any:
    """As `called`. Raises ExplorationError, which says of what, where there is no value."""
    try:
        return called(read, given)
    except ProtocolError as error:
        raise no_value(what, error) from None


def no_value(what: str, error: ProtocolError) -> ExplorationError:
    """What the system itself asks for has no value, so that nothing can be said of what it promises."""
    return ExplorationError(f"{what} has no value: {error}: ask first whether it has one")


def _with_armed(instance: Any, party: PartyKind) -> Any:
    """The instance with the timers armed that run in the states in which its machines are."""
    if not party.timers:
        return instance
    running = (
        f"{part.name}.{name}"
        for part in party.parts
        if not part.peers
        for name in part.machine.armed_in(getattr(instance, part.name).state)
    )
    return replace(instance, armed=frozenset(running).intersection(party.timers))


def _occasions(system: System, places_of: Callable[[str], range]) -> Iterator[Occasion]:
    """Every act with every choice of different instances."""
    for act in system.acts:
        chosen = [{"self": place} for place in places_of(act.party)]
        for name, party in act.each.items():
            chosen = [
                {**each, name: place}
                for each in chosen
                for place in places_of(party)
                if place not in each.values()
            ]
        yield from (Occasion(act, each) for each in chosen)


@cache
def parameters_of(function: Callable[..., Any]) -> tuple[str, ...]:
    """The names of a function's parameters."""
    return tuple(inspect.signature(function).parameters)
