"""The instances of a system, one event further at a time, on the very bytes that they send.

Everything here is a function of values: the same instance and the same message give the same outcome, so that
whoever searches asks once and remembers it.
"""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from replispec.explorer.packets import Packet, PacketKind
from replispec.runtime import families
from replispec.runtime.primitives.bindings import Answer, Call, Refused
from replispec.runtime.primitives.errors import LocalProtocolError, RemoteProtocolError
from replispec.runtime.primitives.machines import Configuration, Edge, step
from replispec.runtime.primitives.systems import (
    Act,
    Asks,
    Assigns,
    Meaning,
    Part,
    PartyKind,
    Raises,
    Read,
    System,
)

EVENTS_MAX = 100
"""Events of one turn: machines that raise more without a message in between never end."""


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A message that leaves; `once`: unless the same is on its way already; `newest`: what was asked by its
    code before is given up."""

    packet: Packet
    once: bool = False
    newest: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one turn: instances by their places, messages, the edges that were taken.

    `fault` says which machine had no edge; then nothing else counts.
    """

    values: Mapping[int, Any]
    sent: tuple[Outgoing, ...] = ()
    edges: tuple[tuple[str, Edge[Any]], ...] = ()
    fault: str = ""


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


class Composed:
    """A system with its rules, its places in order, and every occasion for an act."""

    def __init__(self, system: System) -> None:
        self.system = system
        has_rules = system.family in families.with_part("runtime", "rules")
        self.rules = families.part("runtime", system.family, "rules") if has_rules else None
        self.places = tuple(Spot(each, number + 1) for each in system.parties for number in range(each.count))
        self._numbers = tuple(_Number(place.number) for place in self.places)
        self._first = {each.name: self._places_of(each.name)[0] for each in system.parties}
        self.occasions = tuple(_occasions(system, self.places_of))

    def _places_of(self, party: str) -> list[int]:
        return [index for index, place in enumerate(self.places) if place.party.name == party]

    def places_of(self, party: str) -> range:
        """The places of a party's instances."""
        first = self._first[party]
        return range(first, first + self.places[first].party.count)

    def world_of(self, values: Mapping[int, Any]) -> Any:
        """The world of these instances by their places; of all others only the numbers may be read."""
        return self.world([values.get(index, number) for index, number in enumerate(self._numbers)])

    def world(self, values: Sequence[Any]) -> Any:
        """The world of these instances, one a place."""
        parts = {
            each.name: tuple(values[index] for index in self.places_of(each.name))
            for each in self.system.parties
        }
        return self.system.world(**parts)

    def start(self) -> list[Any]:
        """The instances as they begin."""
        shells = [_shell(place) for place in self.places]
        world = self.world(shells)
        return [self._begun(place, shell, world) for place, shell in zip(self.places, shells, strict=True)]

    def _begun(self, place: Spot, shell: Any, world: Any) -> Any:
        given = {"self": shell, "world": world, "rules": self.rules}
        return replace(shell, **{name: called(read, given) for name, read in place.party.begins.items()})

    def read_by_delivery(self, place: int) -> list[int]:
        """The places that are read when a message reaches this one, itself first."""
        return self._with(self.places[place].party.reads, place)

    def read_by_act(self, occasion: Occasion) -> list[int]:
        """The places that are read or changed when an act happens, that to which it happens first."""
        parties = dict.fromkeys(self.places[occasion.instances["self"]].party.reads)
        for read in _reads_of(occasion.act):
            parties |= dict.fromkeys(read.parties)
        for means in occasion.act.means:
            if isinstance(means, Assigns):
                parties |= dict.fromkeys(name for name, _ in means.values if name not in occasion.instances)
        return self._with(parties, *occasion.instances.values())

    def read_by(self, read: Read) -> list[int]:
        """The places that a condition over the whole world reads."""
        return self._with(read.parties)

    def _with(self, parties: Mapping[str, None] | Sequence[str], *places: int) -> list[int]:
        others = (index for party in parties for index in self.places_of(party))
        return list(dict.fromkeys((*places, *others)))

    def delivered(self, packet: Packet, values: Mapping[int, Any]) -> Outcome:
        """What comes of a message that reaches its receiver."""
        turn = Turn(self, values, packet.to, packet)
        return turn.outcome(turn.deliver)

    def happened(self, occasion: Occasion, values: Mapping[int, Any]) -> Outcome | None:
        """What comes of an act; None when it cannot happen now."""
        turn = Turn(self, values, occasion.instances["self"], None)
        given = {name: values[place] for name, place in occasion.instances.items()}
        if occasion.act.condition is not None and not turn.read(occasion.act.condition, given):
            return None
        return turn.outcome(lambda: turn.act(occasion))

    def holds(self, read: Read, values: Mapping[int, Any]) -> bool:
        """Whether a condition over the whole world holds."""
        return bool(called(read, {"world": self.world_of(values), "rules": self.rules}))


def _shell(place: Spot) -> Any:
    """An instance in the initial states of its machines."""
    parts = {
        part.name: Configuration(part.machine.initial, part.machine.variables) for part in place.party.parts
    }
    kept = dict.fromkeys(name for name in place.party.begins if name not in parts)
    return place.party.kind(number=place.number, **parts, **kept)


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


def _reads_of(act: Act) -> Iterator[Read]:
    if act.condition is not None:
        yield act.condition
    for means in act.means:
        match means:
            case Assigns(values):
                yield from values.values()
            case Raises(_, _, fields, where):
                yield from fields.values()
                yield from () if where is None else (where,)


def called(read: Read, given: Mapping[str, Any]) -> Any:
    """The value of an expression over what is given by name."""
    return read.of(*(given[name] for name in read.names))


class _Local:
    """What the machines of an instance ask of their role, answered as the system says."""

    __slots__ = ("_ask",)

    def __init__(self, ask: Callable[[str], Any]) -> None:
        self._ask = ask

    def __getattr__(self, name: str) -> Any:
        return self._ask(name)


class _Instances:
    """The one instance that a machine of a system serves, whatever it is called."""

    __slots__ = ("_local", "_variables")

    def __init__(self, variables: Any, local: _Local) -> None:
        self._variables = variables
        self._local = local

    def known(self, _instance: str, /) -> tuple[Any, _Local]:
        """What is remembered, and what only the role knows."""
        return self._variables, self._local


class Turn:
    """One message or one act, with all that follows of it within one instance."""

    def __init__(self, composed: Composed, values: Mapping[int, Any], me: int, packet: Packet | None) -> None:
        self._composed = composed
        self._values = dict(values)
        self._me = me
        self._packet = packet
        self._party = composed.places[me].party
        self._local = _Local(self._known)
        self._waiting: deque[tuple[Part, Any]] = deque()
        self._sent: list[Outgoing] = []
        self._edges: list[tuple[str, Edge[Any]]] = []

    def outcome(self, does: Callable[[], None]) -> Outcome:
        """What came of `does`, and of the events that it raised."""
        try:
            does()
            self._run()
        except (LocalProtocolError, RemoteProtocolError) as error:
            return Outcome({}, fault=f"{self._composed.places[self._me].name}: {error}")
        return Outcome(self._values, tuple(self._sent), tuple(self._edges))

    def read(self, read: Read, given: Mapping[str, Any]) -> Any:
        """The value of an expression of this party."""
        known = {
            "self": self._values[self._me],
            "world": self._composed.world_of(self._values),
            "rules": self._composed.rules,
            "local": self._local,
        }
        return called(read, {**known, **given})

    def _known(self, name: str) -> Any:
        return self.read(self._party.local[name], {})

    # A message

    def deliver(self) -> None:
        """Hand the message to every machine of the receiver that reads it."""
        assert self._packet is not None, "only a message is delivered"
        served = False
        for part in self._party.parts:
            if part.wire is None:
                continue
            if part.serves:
                served = self._serve(part, self._packet) or served
            else:
                self._hear(part, self._packet)
        if self._packet.kind is PacketKind.REQUEST and not served:
            raise LocalProtocolError(f"{self._party.name} serves no {self._packet.name}")

    def _serve(self, part: Part, packet: Packet) -> bool:
        """Whether this machine answers the request; it then has its event, or a refusal is sent."""
        if packet.kind is not PacketKind.REQUEST:
            return False
        configuration = getattr(self._values[self._me], part.name)
        instances = _Instances(configuration.variables, self._local)
        try:
            given = (packet.ext_fields(), packet.body, instances, self._composed.rules)
            asked = part.wire.event_of(packet.code, *given)
        except Refused as refusal:
            self._answer(refusal.answer)
            return True
        if asked is None:
            return False
        self._waiting.append((part, asked.event))
        return True

    def _hear(self, part: Part, packet: Packet) -> None:
        """Raise the event that a notice or an answer is to a machine that answers nobody."""
        if packet.kind in (PacketKind.NOTICE, PacketKind.REQUEST):
            event = part.wire.event_of(packet.code, packet.ext_fields(), packet.body)
        elif hasattr(part.wire, "outcome_of"):
            code = packet.code if packet.kind is PacketKind.ANSWER else None
            event = part.wire.outcome_of(packet.asked, code, packet.ext_fields(), packet.body)
        else:
            return
        if event is not None:
            self._waiting.append((part, event))

    def _answer(self, answer: Answer) -> None:
        packet = self._packet
        if packet is not None and packet.kind is PacketKind.REQUEST and packet.waited:
            self._sent.append(Outgoing(packet.answered(answer, packet.name)))

    # An act

    def act(self, occasion: Occasion) -> None:
        """Do what the act does: new values first, by which the event is made, and then the effects."""
        for means in occasion.act.means:
            given = {name: self._values[place] for name, place in occasion.instances.items()}
            self._mean(means, None, given, occasion.instances)
        self._run()
        for effect in occasion.act.does:
            self._effect(effect, None, None)

    # Events and effects

    def _run(self) -> None:
        taken = 0
        while self._waiting:
            taken += 1
            if taken > EVENTS_MAX:
                raise LocalProtocolError(f"more than {EVENTS_MAX} events follow of one")
            self._step(*self._waiting.popleft())

    def _step(self, part: Part, event: Any) -> None:
        before = getattr(self._values[self._me], part.name)
        after = step(part.machine, before.state, before.variables, event, self._composed.rules)
        self._edges.append((part.name, after.edge))
        configuration = Configuration(after.state, after.variables)
        self._values[self._me] = replace(self._values[self._me], **{part.name: configuration})
        for effect in after.effects:
            self._effect(effect, part, event)

    def _effect(self, effect: str, part: Part | None, event: Any) -> None:
        if part is not None and part.serves and effect in part.wire.ANSWERS:
            variables = getattr(self._values[self._me], part.name).variables
            answer = part.wire.answer_of(effect, part.instance, variables, event, self._local)
            self._answer(answer)
            return
        if part is not None and part.serves and effect in getattr(part.wire, "NOTES", ()):
            return
        for means in self._party.effects[effect]:
            self._mean(means, part, {"event": event}, {"self": self._me}, effect)

    def _mean(
        self,
        means: Meaning,
        part: Part | None,
        given: Mapping[str, Any],
        instances: Mapping[str, int],
        effect: str = "",
    ) -> None:
        match means:
            case Asks():
                self._ask(means, part, given, effect)
            case Raises(name, kind, fields, where):
                if where is None or self.read(where, given):
                    event = kind(**{each: self.read(read, given) for each, read in fields.items()})
                    self._waiting.append((self._part(name), event))
            case Assigns(values):
                found = {key: self.read(read, given) for key, read in values.items()}
                for (instance, name), value in found.items():
                    place = (
                        instances[instance]
                        if instance in instances
                        else self._composed.places_of(instance)[0]
                    )
                    self._values[place] = replace(self._values[place], **{name: value})

    def _ask(self, means: Asks, part: Part | None, given: Mapping[str, Any], effect: str) -> None:
        me = self._values[self._me]
        if means.says is None:
            assert part is not None, "a notice is said by the machine whose effect it is"
            notice = part.wire.notice_of(effect, part.instance, getattr(me, part.name).variables)
            code, fields, body = notice.code, tuple(notice.ext_fields.items()), notice.body
            name = effect
        else:
            said = self._said(means.says, given)
            code, fields, body = said.code, tuple(said.header.to_ext_fields().items()), said.body
            name = type(said.header).__name__
            if means.sent is not None:
                part_name, kind_sent = means.sent
                self._waiting.append((self._part(part_name), kind_sent(said.header)))
        kind = PacketKind.NOTICE if means.is_notice else PacketKind.REQUEST
        for place in self._composed.places_of(means.party):
            told = {"to": self._values.get(place) or _Number(self._composed.places[place].number)}
            if means.where is None or self.read(means.where, {**given, **told}):
                packet = Packet(
                    kind, place, self._me, int(code), name, fields, body, waited=not means.is_notice
                )
                self._sent.append(Outgoing(packet, means.once, means.newest))

    def _said(self, says: Callable[..., Any], given: Mapping[str, Any]) -> Call[Any]:
        """What is sent, made of what its function reads."""
        variables = self._variables_of(says)
        known = {"variables": variables, "local": self._local, "rules": self._composed.rules, **given}
        said: Call[Any] = says(**{name: known[name.lstrip("_")] for name in parameters_of(says)})
        return said

    def _part(self, name: str) -> Part:
        return next(each for each in self._party.parts if each.name == name)

    def _variables_of(self, says: Callable[..., Any]) -> Any:
        """The variables of the machine whose message it is; None for one that the party has not."""
        for part in self._party.parts:
            if part.wire is not None and part.wire.__name__ == says.__module__:
                return getattr(self._values[self._me], part.name).variables
        return None


@dataclass(frozen=True, slots=True)
class _Number:
    """An instance of which no more than its number may be read."""

    number: int = field(default=0)


@cache
def parameters_of(function: Callable[..., Any]) -> tuple[str, ...]:
    """The names of a function's parameters."""
    return tuple(inspect.signature(function).parameters)
