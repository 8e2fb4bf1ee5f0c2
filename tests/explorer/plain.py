"""The same exploration without columns, one state after the other: slow, and easy to believe."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from replispec.explorer.composed import Composed
from replispec.explorer.packets import Channel, Packet, PacketKind
from replispec.explorer.places import Occasion
from replispec.explorer.tables import frozen
from replispec.explorer.turns import Outcome
from replispec.runtime.primitives.systems import Read, System


@dataclass(frozen=True)
class State:
    """Instances by place, what is left of the budgets, messages: those on a connection in their order."""

    values: tuple[Any, ...]
    budgets: tuple[tuple[str, int], ...]
    packets: tuple[Packet, ...]

    def key(self) -> Hashable:
        """What tells it from other states."""
        # A stable order, by the names of connections alone: what is said on one stays as it was said.
        packets = sorted(self.packets, key=lambda each: repr(_way(each) or each))
        return frozen(self.values), self.budgets, tuple(map(repr, packets))

    def next_ones(self) -> Iterator[Packet]:
        """The messages that may arrive now: of each connection the first to either end."""
        met = set()
        for packet in dict.fromkeys(self.packets):
            if packet.channel is None or _way(packet) not in met:
                yield packet
            met.add(_way(packet))


@dataclass(frozen=True)
class StoryStep:
    """One way on; `harm` takes from a budget, `arrives` is a message that reached whom it was for."""

    after: State
    harm: bool
    arrives: bool


class Plain:
    """All states of a system within its bounds, with their depths and the steps between them."""

    def __init__(self, system: System) -> None:
        self.composed = Composed(system)
        self.system = system
        start = State(tuple(self.composed.start()), tuple(system.budgets.items()), ())
        self.depths = {start.key(): 0}
        self.states = {start.key(): start}
        self.steps: dict[Hashable, list[tuple[Hashable, bool, bool]]] = {}
        waiting = deque([start])
        while waiting:
            state = waiting.popleft()
            if system.within is not None and not self.holds(system.within, state):
                continue
            found = self.steps[state.key()] = []
            for step in self.all_from(state):
                if len(step.after.packets) > system.messages_max:
                    continue
                key = step.after.key()
                found.append((key, step.harm, step.arrives))
                if key not in self.depths:
                    self.depths[key] = self.depths[state.key()] + 1
                    self.states[key] = step.after
                    waiting.append(step.after)

    def holds(self, read: Read, state: State) -> bool:
        """Whether a condition holds in a state."""
        return self.composed.holds(read, dict(enumerate(state.values)))

    def stuck(self, whenever: Read, holds: Read) -> set[Hashable]:
        """States in which what was due has not come, and from which no harmless way leads to it."""
        come = {key for key, state in self.states.items() if self.holds(holds, state)}
        able = self.states.keys() - self.steps.keys() | come
        grown = True
        while grown:
            more = {
                key
                for key, steps in self.steps.items()
                if key not in able and any(after in able for after, harm, _ in steps if not harm)
            }
            able |= more
            grown = bool(more)
        due = {key for key, state in self.states.items() if self.holds(whenever, state)}
        waiting = list(due - come)
        while waiting:
            after = {each for each, harm, _ in self.steps.get(waiting.pop(), ()) if not harm}
            waiting += after - due - come
            due |= after
        return due - able

    def circles(self) -> bool:
        """Whether messages alone go round in a circle."""
        left = {key: {after for after, _, arrives in steps if arrives} for key, steps in self.steps.items()}
        while True:
            rest = {key: {each for each in after if each in left} for key, after in left.items()}
            rest = {key: after for key, after in rest.items() if after}
            if rest == left:
                return bool(left)
            left = rest

    def all_from(self, state: State) -> Iterator[StoryStep]:
        """Everything that can happen."""
        for packet in state.next_ones():
            yield from self._deliver(state, packet)
            yield from self._harm(state, packet)
        for occasion in self.composed.occasions:
            yield from self._act(state, occasion)

    def _deliver(self, state: State, packet: Packet) -> Iterator[StoryStep]:
        outcome = self.composed.delivered(packet, dict(enumerate(state.values)))
        arrives = packet.kind is not PacketKind.SILENCE
        yield from self._after(without(state, packet), outcome, harm=False, arrives=arrives)

    def _harm(self, state: State, packet: Packet) -> Iterator[StoryStep]:
        left = dict(state.budgets)
        silence = [packet.silence()] if packet.question is not None else []
        if packet.channel is not None:
            return
        if left.get("lost") and packet.kind is not PacketKind.SILENCE:
            yield from self._sent(taken(without(state, packet), "lost"), silence, harm=True)
        if left.get("late") and packet.kind is PacketKind.REQUEST and packet.waited:
            given_up = [*silence, packet.given_up()]
            yield from self._sent(taken(without(state, packet), "late"), given_up, harm=True)

    def _act(self, state: State, occasion: Occasion) -> Iterator[StoryStep]:
        act, me = occasion.act, occasion.instances["self"]
        if act.budget and not dict(state.budgets)[act.budget]:
            return
        if act.quiet and any(each.asker == me for each in state.packets):
            return
        outcome = self.composed.happened(occasion, dict(enumerate(state.values)))
        if outcome is None:
            return
        if act.forgets:
            state = replace(state, packets=tuple(forgotten(state.packets, me)))
        if act.opens:
            between = Channel(act.opens, me, occasion.others[0])
            left = tuple(each for each in state.packets if each.channel != between)
            state = replace(state, packets=left)
        if act.budget:
            state = taken(state, act.budget)
        yield from self._after(state, outcome, harm=bool(act.budget), arrives=False)

    def _after(self, state: State, outcome: Outcome, *, harm: bool, arrives: bool) -> Iterator[StoryStep]:
        assert not outcome.fault, outcome.fault
        values = [outcome.values.get(place, value) for place, value in enumerate(state.values)]
        before, packets = list(state.packets), list[Packet]()
        for sent in outcome.sent:
            if sent.purges:
                to = (sent.packet.channel, sent.packet.sender)
                before = [each for each in before if (each.channel, each.to) != to]
        for sent in outcome.sent:
            if sent.once and sent.packet in (*before, *packets):
                continue
            if sent.newest:
                before = list(given_up(before, sent.packet))
                # What one turn asks of several is one question; of the same one, the last is.
                same = [each for each in packets if each.to == sent.packet.to]
                others = [each for each in packets if each.to != sent.packet.to]
                packets = [*others, *given_up(same, sent.packet)]
            packets.append(sent.packet)
        yield StoryStep(State(tuple(values), state.budgets, (*before, *packets)), harm, arrives)

    def _sent(self, state: State, packets: Sequence[Packet], *, harm: bool) -> Iterator[StoryStep]:
        yield StoryStep(replace(state, packets=(*state.packets, *packets)), harm, arrives=False)


def _way(packet: Packet) -> tuple[Channel, int] | None:
    """Which way on which connection it goes."""
    return None if packet.channel is None else (packet.channel, packet.to)


def without(state: State, packet: Packet) -> State:
    """The state without one of its messages."""
    packets = list(state.packets)
    packets.remove(packet)
    return replace(state, packets=tuple(packets))


def given_up(packets: Sequence[Packet], asked: Packet) -> Iterator[Packet]:
    """The messages when nobody waits any more for an answer to what was asked like this before."""
    for each in packets:
        if each.question != asked.question:
            yield each
        elif each.kind is PacketKind.REQUEST:
            yield each.given_up()


def taken(state: State, budget: str) -> State:
    """The state with less of a budget."""
    left = tuple((name, count - (name == budget)) for name, count in state.budgets)
    return replace(state, budgets=left)


def forgotten(packets: Sequence[Packet], place: int) -> Iterator[Packet]:
    """The messages when nobody at this place waits for answers any more."""
    for each in packets:
        if each.question is None or each.asker != place:
            yield each
        elif each.kind is PacketKind.REQUEST:
            yield each.given_up()


def broken_plainly(plain: Plain) -> set[str]:
    """The promises that are broken, by plain sets."""
    found = set()
    for promise in plain.system.properties:
        match promise.shape:
            case "always":
                assert promise.holds is not None
                is_kept = all(plain.holds(promise.holds, state) for state in plain.states.values())
            case "eventually":
                assert promise.whenever is not None
                assert promise.holds is not None
                is_kept = not plain.stuck(promise.whenever, promise.holds)
            case _:
                is_kept = not plain.circles()
        found |= set() if is_kept else {promise.name}
    return found
