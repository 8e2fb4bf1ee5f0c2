"""What can happen next, for whole populations of states at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from replispec.explorer.composed import Composed
from replispec.explorer.conditions import Condition, fields_read
from replispec.explorer.packets import Channel, Packet, PacketKind
from replispec.explorer.places import Occasion
from replispec.explorer.tables import Column, Combinations, Mask, Numbers, Rows, Values
from replispec.explorer.turns import Outcome
from replispec.runtime.primitives.systems import Read

DELIVER = "deliver"
EXPIRE = "expire"
LOST = "lost"
LATE = "late"
ACT = "act"
# What is known of a message, by the places in its row of facts.
_TO, _SILENCE, _GIVEN_UP, _KNOWN, _IS_SILENCE, _QUESTION, _ASKER = range(7)
# Of one on a connection: its direction, the other direction, its rank, and the same with other ranks.
_WAY, _BACK, _RANK, _AHEAD, _BEHIND, _FIRST = range(7, 13)
_FACTS = 13
_ONCE, _NEWEST, _PURGES = 1, 2, 4
"""How a message leaves."""


@dataclass(frozen=True, slots=True)
class Move:
    """One kind of step: a message reaches its receiver, a wait for an answer ends, a message is lost or late,
    or an act happens.

    `slot` is the place of the message among those on their way, `act` that of the occasion. A `harm` takes
    from a budget: nobody counts on it.
    """

    kind: str
    slot: int = -1
    act: int = -1
    harm: bool = False


@dataclass(frozen=True, slots=True)
class Successors:
    """States that follow by one move: the row of the population that each follows, and the state.

    `cut` are the rows for which there was no room for the messages that the move would send.
    """

    move: Move
    parents: Numbers
    rows: Rows
    cut: Numbers


@dataclass
class Known:
    """The outcomes of one kind of turn: by the number of the combination that it reads.

    `faults` are those that have none, `edges` the numbers of what each takes together. `taken`: it was a step
    in some state, and not left out for want of room.
    """

    width: int
    combinations: Combinations
    possible: Column = field(default_factory=lambda: Column(1, 0, np.int8))
    edges: Column = field(default_factory=lambda: Column(1, -1))
    taken: Mask = field(default_factory=lambda: np.zeros(0, np.bool_))
    values: Column = field(default_factory=lambda: Column(1, -1))
    sent: Column = field(default_factory=lambda: Column(0, 0))
    ways: Column = field(default_factory=lambda: Column(0, 0, np.int8))
    faults: dict[int, str] = field(default_factory=dict)

    def take(self, numbers: Numbers) -> None:
        """These outcomes were steps."""
        size = len(self.possible.values)
        if len(self.taken) < size:
            self.taken = np.concatenate([self.taken, np.zeros(size - len(self.taken), np.bool_)])
        self.taken[numbers] = True


@dataclass(frozen=True, slots=True)
class Fault:
    """A machine had no edge for what a move brought; `parents` are rows of the population."""

    move: Move
    text: str
    parents: Numbers


class Moves:
    """The numbers of one system's values, messages and outcomes, and how its states are laid out.

    `faults` are those of the last population, one for each different turn.
    """

    def __init__(self, composed: Composed) -> None:
        self.composed = composed
        system = composed.system
        self.budgets = tuple(system.budgets)
        self.places = len(composed.places)
        self.slots_at = self.places + len(self.budgets)
        self.width = self.slots_at + system.messages_max
        self._values = [Values() for _ in composed.places]
        self._packets = Values(first=1)
        self._questions = Values(first=1)
        self._ways = Values(first=1)
        self._facts = Column(_FACTS, 0)
        self._facts.put(0, [0] * _FACTS)
        self._turns: dict[tuple[str, int], Known] = {}
        self._conditions: dict[int, Condition] = {}
        self._chances: dict[int, Condition] = {}
        self._edges = Values()
        self.faults: list[Fault] = []
        self._moves = tuple(self._all_moves())

    # States

    def start(self) -> Rows:
        """The one state in which everything begins."""
        row = np.zeros((1, self.width), np.int32)
        for place, value in enumerate(self.composed.start()):
            row[0, place] = self._values[place].number(value)
        for index, name in enumerate(self.budgets):
            row[0, self.places + index] = self.composed.system.budgets[name]
        return row

    def values_in(self, row: Numbers) -> dict[int, Any]:
        """The instances of a state, by their places."""
        return {place: self._values[place][int(row[place])] for place in range(self.places)}

    def packets_in(self, row: Numbers) -> list[Packet]:
        """The messages on their way in a state; those on a connection in their order, with no rank."""
        found: list[Packet] = [self._packets[int(number)] for number in row[self.slots_at :] if number]
        return [replace(each, rank=0) for each in sorted(found, key=lambda each: each.rank)]

    def packet_at(self, row: Numbers, slot: int) -> Packet:
        """The message in a slot."""
        found: Packet = self._packets[int(row[self.slots_at + slot])]
        return found

    def computed(self) -> tuple[int, int]:
        """How many different instances and messages were met."""
        return sum(map(len, self._values)), len(self._packets)

    def happened(self) -> set[str]:
        """The acts that happened in some state that was met."""
        return {
            self.composed.occasions[which].act.name
            for (kind, which), known in self._turns.items()
            if kind == ACT and (known.taken.any() or known.faults)
        }

    def edges(self) -> set[tuple[str, str, int]]:
        """The edges that were taken in some state that was met: party, machine, and the identity of each."""
        met = {
            int(number)
            for known in self._turns.values()
            for number in np.unique(known.edges.values[np.flatnonzero(known.taken)])
        }
        return {edge for number in met for edge in self._edges[number]}

    # Conditions

    def holds(self, read: Read, rows: Rows) -> Mask:
        """In which of these states a condition holds."""
        found = self._conditions.get(id(read))
        if found is None:
            found = self._conditions[id(read)] = Condition(
                self.composed.read_by(read),
                fields_read([read]),
                self._values,
                lambda values: self.composed.holds(read, values),
            )
        return found.of(rows)

    # Moves

    def all_from(self, rows: Rows) -> Iterator[Successors]:
        """Everything that can happen in these states, one kind of move after the other."""
        self.faults.clear()
        for move in self._moves:
            if move.kind == ACT:
                yield from self._acts(move, rows)
            elif move.kind in (DELIVER, EXPIRE):
                yield from self._deliveries(move, rows)
            else:
                yield from self._harms(move, rows)

    def _all_moves(self) -> Iterator[Move]:
        system = self.composed.system
        for slot in range(system.messages_max):
            yield Move(DELIVER, slot)
            yield Move(EXPIRE, slot)
            for kind in (LOST, LATE):
                if system.budgets.get(kind):
                    yield Move(kind, slot, harm=True)
        for index, occasion in enumerate(self.composed.occasions):
            budget = occasion.act.budget
            if not budget or system.budgets[budget]:
                yield Move(ACT, act=index, harm=bool(budget))

    def _in_slot(self, slot: int, rows: Rows) -> Numbers:
        """The states with a message in a slot that is not the same as that before it."""
        here = rows[:, self.slots_at + slot]
        stands = here > 0
        if slot:
            stands &= here != rows[:, self.slots_at + slot - 1]
        found: Numbers = np.flatnonzero(stands).astype(np.int32)
        return found

    def _deliveries(self, move: Move, rows: Rows) -> Iterator[Successors]:
        parents = self._in_slot(move.slot, rows)
        if not len(parents):
            return
        facts = self._facts.values[rows[parents, self.slots_at + move.slot]]
        chosen = ((facts[:, _IS_SILENCE] > 0) == (move.kind == EXPIRE)) & (facts[:, _RANK] == 0)
        parents, receivers = parents[chosen], facts[chosen, _TO]
        for place in range(self.places):
            here = parents[receivers == place]
            if len(here):
                yield from self._delivered(move, place, here, rows)

    def _delivered(self, move: Move, place: int, parents: Numbers, rows: Rows) -> Iterator[Successors]:
        read = self.composed.read_by_delivery(place)
        known = self._known(DELIVER, place, len(read) + 1)
        slot = self.slots_at + move.slot
        columns = [rows[parents, slot], *(rows[parents, each] for each in read)]
        numbers, fresh = known.combinations.of(columns)
        for index in fresh:
            row = rows[parents[index]]
            packet = self._packets[int(row[slot])]
            outcome = self.composed.delivered(packet, self._read(read, row))
            self._remember(known, int(numbers[index]), read, outcome)
        yield from self._followed(known, numbers, read, parents, rows, move)

    def _acts(self, move: Move, rows: Rows) -> Iterator[Successors]:
        occasion = self.composed.occasions[move.act]
        parents = np.arange(len(rows), dtype=np.int32)
        if occasion.act.budget:
            parents = parents[rows[:, self._budget(occasion.act.budget)] > 0]
        if occasion.act.quiet:
            askers = self._facts.values[rows[parents, self.slots_at :], _ASKER]
            parents = parents[~(askers == occasion.instances["self"] + 1).any(axis=1)]
        if not len(parents):
            return
        read = self.composed.read_by_act(occasion)
        parents = parents[self._chance(move.act, occasion).of(rows[parents])]
        if not len(parents):
            return
        known = self._known(ACT, move.act, len(read))
        numbers, fresh = known.combinations.of([rows[parents, each] for each in read])
        for index in fresh:
            row = rows[parents[index]]
            outcome = self.composed.done(occasion, self._read(read, row))
            self._remember(known, int(numbers[index]), read, outcome)
        yield from self._followed(known, numbers, read, parents, rows, move)

    def _chance(self, act: int, occasion: Occasion) -> Condition:
        """Whether an act may happen; often fewer values tell than it reads and changes."""
        if act not in self._chances:
            self._chances[act] = Condition(
                self.composed.read_by_condition(occasion),
                self.composed.fields_of_condition(occasion),
                self._values,
                lambda values: self.composed.may_happen(occasion, values),
            )
        return self._chances[act]

    def _budget(self, name: str) -> int:
        return self.places + self.budgets.index(name)

    def _known(self, kind: str, which: int, width: int) -> Known:
        if (kind, which) not in self._turns:
            self._turns[kind, which] = Known(width, Combinations(width))
        return self._turns[kind, which]

    def _read(self, places: list[int], row: Numbers) -> Mapping[int, Any]:
        return {place: self._values[place][int(row[place])] for place in places}

    def _remember(self, known: Known, number: int, read: list[int], outcome: Outcome) -> None:
        """Keep what came of one turn."""
        known.possible.put(number, [2 if outcome.fault else 1])
        if outcome.fault:
            known.faults[number] = outcome.fault
            known.values.put(number, [-1] * len(read))
            return
        edges = frozenset((party, name, id(edge)) for party, name, edge in outcome.edges)
        known.edges.put(number, [self._edges.number(edges)])
        known.values.put(number, [self._values[place].number(outcome.values[place]) for place in read])
        known.sent.put(number, [self._packet_number(each.packet) for each in outcome.sent])
        known.ways.put(
            number,
            [_ONCE * each.once + _NEWEST * each.newest + _PURGES * each.purges for each in outcome.sent],
        )

    def _packet_number(self, packet: Packet) -> int:
        """The number of a message, of which all facts are then known."""
        number = self._packets.number(packet)
        if number >= len(self._facts.values) or not self._facts.values[number, _KNOWN]:
            facts = [0] * _FACTS
            facts[_TO], facts[_KNOWN], facts[_ASKER] = packet.to, 1, packet.asker + 1
            facts[_FIRST] = number
            facts[_IS_SILENCE] = int(packet.kind is PacketKind.SILENCE)
            self._facts.put(number, facts)
            if packet.question is not None:
                facts[_QUESTION] = self._questions.number(packet.question)
                if packet.kind is not PacketKind.SILENCE:
                    facts[_SILENCE] = self._packet_number(packet.silence())
                if packet.kind is PacketKind.REQUEST:
                    facts[_GIVEN_UP] = self._packet_number(packet.given_up())
            self._facts.put(number, facts)
            if packet.channel is not None:
                self._rank(packet, packet.channel, facts)
        return number

    def _rank(self, packet: Packet, channel: Channel, facts: list[int]) -> None:
        """Give this message a number for each rank, each of which knows the next ones."""
        room = self.width - self.slots_at
        numbers = [self._packets.number(replace(packet, rank=rank)) for rank in range(room)]
        facts[_WAY] = self._ways.number((channel, packet.sender))
        facts[_BACK] = self._ways.number((channel, packet.to))
        for rank, number in enumerate(numbers):
            # Behind the last there is no room for anybody.
            facts[_RANK], facts[_AHEAD] = rank, numbers[max(rank - 1, 0)]
            facts[_BEHIND], facts[_FIRST] = numbers[min(rank + 1, room - 1)], numbers[0]
            self._facts.put(number, facts)

    def _followed(
        self, known: Known, numbers: Numbers, read: list[int], parents: Numbers, rows: Rows, move: Move
    ) -> Iterator[Successors]:
        """The states after the turns with these numbers."""
        for number, text in known.faults.items():
            stuck = parents[numbers == number]
            if len(stuck):
                self.faults.append(Fault(move, text, stuck))
        possible = known.possible.values[numbers, 0] == 1
        numbers, parents = numbers[possible], parents[possible]
        if not len(parents):
            return
        after = rows[parents]
        after[:, read] = known.values.values[numbers][:, : len(read)]
        if move.kind in (DELIVER, EXPIRE):
            self._arrived(after, self.slots_at + move.slot)
        else:
            occasion = self.composed.occasions[move.act]
            if occasion.act.budget:
                after[:, self._budget(occasion.act.budget)] -= 1
            if occasion.act.forgets:
                self._forget(after[:, self.slots_at :], read[0])
            if occasion.act.opens:
                self._clear(after[:, self.slots_at :], occasion)
        sent = self._rows_of(known.sent, numbers)
        ways = self._rows_of(known.ways, numbers)
        found, fits = self._with_sent(move, parents, after, sent, ways)
        known.take(numbers[fits])
        yield found

    def _rows_of(self, column: Column, numbers: Numbers) -> Numbers:
        """The rows of these numbers; of one that was never put, nothing."""
        values = column.values
        if not values.shape[1]:
            return np.zeros((len(numbers), 0), np.int32)
        inside = np.minimum(numbers, len(values) - 1)
        found: Numbers = np.where((numbers < len(values))[:, None], values[inside], 0).astype(np.int32)
        return found

    def _with_sent(
        self, move: Move, parents: Numbers, after: Rows, sent: Numbers, ways: Numbers
    ) -> tuple[Successors, Mask]:
        """The states with these messages on their way, too; those in which there is no room are left out, and
        which are not."""
        slots = after[:, self.slots_at :]
        for index in range(sent.shape[1]):
            if (ways[:, index] & _PURGES).any():
                self._purge(slots, np.where((ways[:, index] & _PURGES) > 0, sent[:, index], 0))
        for index in range(sent.shape[1]):
            is_once, is_newest = (ways[:, index] & _ONCE) > 0, (ways[:, index] & _NEWEST) > 0
            first, earlier = (self._facts.values[each, _FIRST] for each in (slots, sent[:, :index]))
            doubled = (first == sent[:, index, None]).any(axis=1)
            doubled |= (earlier == sent[:, index, None]).any(axis=1)
            sent[is_once & doubled, index] = 0
            if is_newest.any():
                asked = np.where(is_newest, sent[:, index], 0)
                self._give_up(slots, asked)
                self._give_up(sent[:, :index], asked, of=self._facts.values[asked, _TO])
            self._queue(slots, sent, index)
        together = np.concatenate([slots, sent], axis=1)
        together = -np.sort(-together, axis=1)
        room = self.width - self.slots_at
        fits: Mask = ~np.any(together[:, room:] > 0, axis=1)
        after[:, self.slots_at :] = together[:, :room]
        return Successors(move, parents[fits], after[fits], parents[~fits]), fits

    def _arrived(self, after: Rows, slot: int) -> None:
        """The message in a slot is gone; what stands behind it on its connection comes one place nearer."""
        way = self._facts.values[after[:, slot], _WAY]
        after[:, slot] = 0
        slots = after[:, self.slots_at :]
        behind = (self._facts.values[slots, _WAY] == way[:, None]) & (way > 0)[:, None]
        slots[behind] = self._facts.values[slots[behind], _AHEAD]

    def _queue(self, slots: Rows, sent: Numbers, index: int) -> None:
        """Put a message that leaves behind all that its sender said before on the same connection."""
        way = self._facts.values[sent[:, index], _WAY]
        if not way.any():
            return
        before = np.concatenate([slots, sent[:, :index]], axis=1)
        count = ((self._facts.values[before, _WAY] == way[:, None]) & (way > 0)[:, None]).sum(axis=1)
        for rank in range(int(count.max(initial=0))):
            sent[:, index] = np.where(
                count > rank, self._facts.values[sent[:, index], _BEHIND], sent[:, index]
            )

    def _purge(self, slots: Rows, ends: Numbers) -> None:
        """Nothing arrives any more at whoever sends these ends of connections."""
        back = self._facts.values[ends, _BACK]
        slots[(self._facts.values[slots, _WAY] == back[:, None]) & (back > 0)[:, None]] = 0

    def _clear(self, slots: Rows, occasion: Occasion) -> None:
        """Nothing is left of an older connection between the same two."""
        me, other = occasion.instances["self"], occasion.others[0]
        channel = Channel(occasion.act.opens, me, other)
        ways = [self._ways.number((channel, place)) for place in (me, other)]
        slots[np.isin(self._facts.values[slots, _WAY], ways)] = 0

    def _forget(self, slots: Rows, place: int) -> None:
        """Nobody waits any more for an answer to what this instance asked."""
        facts = self._facts.values[slots]
        old = (facts[:, :, _ASKER] == place + 1) & (facts[:, :, _QUESTION] > 0)
        slots[old] = self._facts.values[slots[old], _GIVEN_UP]

    def _give_up(self, slots: Rows, asked: Numbers, of: Numbers | None = None) -> None:
        """Nobody waits any more for an answer to what was asked like this before, `of` these or of all."""
        questions = self._facts.values[asked, _QUESTION]
        old = (self._facts.values[slots, _QUESTION] == questions[:, None]) & (questions > 0)[:, None]
        if of is not None:
            old &= self._facts.values[slots, _TO] == of[:, None]
        slots[old] = self._facts.values[slots[old], _GIVEN_UP]

    def _harms(self, move: Move, rows: Rows) -> Iterator[Successors]:
        """A message is lost, so that whoever waits hears nothing; or a request arrives when nobody waits."""
        parents = self._in_slot(move.slot, rows)
        parents = parents[rows[parents, self._budget(move.kind)] > 0]
        slot = self.slots_at + move.slot
        facts = self._facts.values[rows[parents, slot]]
        if move.kind == LOST:
            # Nobody can lose a silence, and a connection loses nothing but all.
            is_message = (facts[:, _IS_SILENCE] == 0) & (facts[:, _WAY] == 0)
            parents, facts = parents[is_message], facts[is_message]
        else:
            is_waited = facts[:, _GIVEN_UP] > 0
            parents, facts = parents[is_waited], facts[is_waited]
        if not len(parents):
            return
        after = rows[parents]
        after[:, slot] = 0
        after[:, self._budget(move.kind)] -= 1
        sent = facts[:, [_SILENCE]] if move.kind == LOST else facts[:, [_SILENCE, _GIVEN_UP]]
        yield self._with_sent(move, parents, after, sent, np.zeros_like(sent))[0]
