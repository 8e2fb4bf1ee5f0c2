"""Breadth first over all states of a system: the first broken promise is one of the nearest."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from replispec.explorer.moves import DELIVER, Move, Moves
from replispec.explorer.tables import Mask, Numbers, Rows
from replispec.explorer.visited import Hashes, Visited
from replispec.runtime.primitives.systems import Property

POPULATION: Final = 100_000
"""States that are taken one step further at a time."""
_ODD: Final = np.uint64(0x9E3779B97F4A7C15)
_MIX: Final = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


def hashes_of(rows: Rows) -> Hashes:
    """64 bits for each state: two of 10 million share theirs with a chance of three in a million."""
    found = np.zeros(len(rows), np.uint64)
    with np.errstate(over="ignore"):
        for column in range(rows.shape[1]):
            mixed = found ^ (rows[:, column].astype(np.uint64) + _ODD * np.uint64(column + 1))
            mixed = (mixed ^ (mixed >> np.uint64(30))) * _MIX[0]
            mixed = (mixed ^ (mixed >> np.uint64(27))) * _MIX[1]
            found = mixed ^ (mixed >> np.uint64(31))
    return found


@dataclass(frozen=True, slots=True)
class Broken:
    """A promise that is broken in a state with this number, by a `move` from it that has no outcome, by what
    `follows`, state by state, or by a `circle` of states that begins there."""

    promise: str
    state: int
    text: str
    move: Move | None = None
    circle: tuple[int, ...] = ()
    follows: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Waypoint:
    """A state on a way: its number, itself, and the move that led to it (None: the start)."""

    number: int
    row: Numbers
    move: Move | None = None


@dataclass
class Graph:
    """All states that were reached, in the order in which they were: by whom, by which move, how far on.

    `edges` are (from, to) by what is no harm, `arrivals` by messages that arrive, population by population.
    They are kept when a promise asks for them.
    """

    parents: list[Numbers] = field(default_factory=list)
    moves: list[Numbers] = field(default_factory=list)
    edges: list[tuple[Numbers, Numbers]] = field(default_factory=list)
    arrivals: list[tuple[Numbers, Numbers]] = field(default_factory=list)
    depths: list[int] = field(default_factory=list)


@dataclass
class Search:
    """One exploration. `finished`: every state within the bounds was reached. `cut`: how many steps had no
    room for the messages that they would send. `now_s` is a clock."""

    moves: Moves
    states_max: int
    seconds_max: float
    now_s: Callable[[], float]
    said: Callable[[int, int, int], None] = lambda _depth, _states, _waiting: None
    graph: Graph = field(default_factory=Graph)
    states: int = 0
    seconds: float = 0.0
    finished: bool = False
    broken: list[Broken] = field(default_factory=list)
    outside: int = 0
    cut: int = 0
    _codes: dict[Move, int] = field(default_factory=dict)
    _visited: Visited = field(default_factory=Visited)
    _marks: dict[str, list[Mask]] = field(default_factory=dict)
    _ends: list[Mask] = field(default_factory=list)
    _began_s: float = 0.0
    _is_cut: bool = False

    @property
    def promises(self) -> tuple[Property, ...]:
        """What is promised."""
        return self.moves.composed.system.properties

    def run(self, *, to_the_end: bool = False) -> None:
        """Explore until a promise is broken, or (`to_the_end`) all is reached or a bound is met."""
        self._began_s = self.now_s()
        rows = self.moves.start()
        self._visited.add(hashes_of(rows), np.zeros(1, np.int32))
        self.graph.parents.append(np.full(1, -1, np.int32))
        self.graph.moves.append(np.full(1, -1, np.int32))
        self.states, first, depth = 1, 0, 0
        self._judge(rows, 0)
        while len(rows) and (to_the_end or not self.broken):
            if self._is_over():
                break
            self.said(depth, self.states, len(rows))
            self.graph.depths.append(self.states)
            rows, first = self._deeper(rows, first)
            depth += 1
        self.finished = not len(rows) and not self._is_cut
        self.seconds = self.now_s() - self._began_s

    def _is_over(self) -> bool:
        """Whether the search has met a bound."""
        self.seconds = self.now_s() - self._began_s
        return self.states > self.states_max or self.seconds > self.seconds_max

    def _deeper(self, rows: Rows, first: int) -> tuple[Rows, int]:
        """All states that follow these and were not reached before; `first` is the first one's number."""
        begins, found = self.states, []
        for at in range(0, len(rows), POPULATION):
            # A step can multiply the states: the bound is asked for before each population, not each step.
            self._is_cut = bool(at) and self._is_over()
            if self._is_cut:
                break
            found.append(self._population(rows[at : at + POPULATION], first + at))
        return np.concatenate(found), begins

    def _population(self, rows: Rows, first: int) -> Rows:
        inside = self._inside(rows)
        self._ends.append(~inside)
        self.outside += int(len(rows) - inside.sum())
        chosen = np.flatnonzero(inside).astype(np.int32)
        rows = rows[chosen]
        after = list(self.moves.all_from(rows))
        self.cut += sum(len(each.cut) for each in after)
        faults = tuple(self.moves.faults)
        found = rows[:0]
        if after:
            codes = [
                np.full(len(each.parents), self._codes.setdefault(each.move, len(self._codes)), np.int32)
                for each in after
            ]
            parents = chosen[np.concatenate([each.parents for each in after])] + np.int32(first)
            found = self._reached(
                np.concatenate([each.rows for each in after]), parents, np.concatenate(codes)
            )
        for fault in faults:
            if all(fault.text != each.text for each in self.broken):
                state = int(chosen[fault.parents[0]]) + first
                self.broken.append(Broken("every_event_has_an_edge", state, fault.text, fault.move))
        return found

    def _inside(self, rows: Rows) -> Mask:
        within = self.moves.composed.system.within
        if within is None:
            return np.ones(len(rows), np.bool_)
        return self.moves.holds(within, rows)

    def _reached(self, rows: Rows, parents: Numbers, codes: Numbers) -> Rows:
        """Those of these states that are new; all of them have a number then."""
        hashes, first, inverse = np.unique(hashes_of(rows), return_index=True, return_inverse=True)
        known, numbers = self._visited.find(hashes)
        # In the order in which they stand, so that two runs number them alike.
        fresh = np.sort(first[~known])
        new = rows[fresh]
        if len(fresh):
            numbers[~known] = (np.searchsorted(fresh, first[~known]) + self.states).astype(np.int32)
            self._visited.add(hashes[~known], numbers[~known])
            self.graph.parents.append(parents[fresh])
            self.graph.moves.append(codes[fresh])
            self._judge(new, self.states)
            self.states += len(fresh)
        targets = numbers[inverse.reshape(-1)]
        for shape, kept, is_asked in (
            ("eventually", self.graph.edges, lambda move: not move.harm),
            ("pauses", self.graph.arrivals, lambda move: move.kind == DELIVER),
        ):
            if any(each.shape == shape for each in self.promises):
                chosen = np.array([is_asked(move) for move in self._codes], np.bool_)[codes]
                kept.append((parents[chosen], targets[chosen]))
        return new

    def _judge(self, rows: Rows, first: int) -> None:
        """Ask every promise about new states, of which the first has this number."""
        for promise in self.promises:
            if promise.holds is None:
                continue
            holds = self.moves.holds(promise.holds, rows)
            known = any(each.promise == promise.name for each in self.broken)
            if promise.shape == "always" and not known and not holds.all():
                state = first + int(np.flatnonzero(~holds)[0])
                self.broken.append(Broken(promise.name, state, promise.about))
            if promise.shape == "eventually":
                self._marks.setdefault(promise.name, []).append(holds)
                assert promise.whenever is not None, "who promises eventually says when"
                self._marks.setdefault(f"{promise.name}?", []).append(
                    self.moves.holds(promise.whenever, rows)
                )

    # What was found

    def marks(self, name: str) -> Mask:
        """For every state, in the order of their numbers, whether a condition holds there."""
        return np.concatenate(self._marks[name])

    def ends(self) -> Mask:
        """For every state whether what follows it was left out: out of bounds, or not reached yet."""
        ends = np.concatenate(self._ends) if self._ends else np.zeros(0, np.bool_)
        return np.concatenate([ends, np.ones(self.states - len(ends), np.bool_)])

    @property
    def depth(self) -> int:
        """How many steps the states are away that were reached last."""
        levels = self.graph.depths
        # Where all was reached, nothing was found beyond the last of them.
        return len(levels) - bool(levels and levels[-1] == self.states)

    def depths(self) -> Numbers:
        """For every state how many steps the start is away."""
        # A depth is kept with the number of states that were reached before those that follow it.
        begins = np.array([0, *self.graph.depths], np.int64)
        return (np.searchsorted(begins, np.arange(self.states), side="right") - 1).astype(np.int32)

    def all_moves(self) -> tuple[Move, ...]:
        """The moves that were taken, by their codes."""
        return tuple(self._codes)

    def way_to(self, state: int) -> list[Waypoint]:
        """The shortest way from the start to a state."""
        parents, codes = np.concatenate(self.graph.parents), np.concatenate(self.graph.moves)
        numbers = [state]
        while (state := int(parents[state])) >= 0:
            numbers.append(state)
        start = Waypoint(0, self.moves.start()[0])
        return self.walked(start, numbers[::-1][1:], {each: int(codes[each]) for each in numbers})

    def way_of(self, broken: Broken) -> list[Waypoint]:
        """The way from the start to where a promise is broken, or its circle begins."""
        way = self.way_to(broken.state)
        return [*way[:-1], *self.walked(way[-1], broken.follows)]

    def walked(
        self, start: Waypoint, numbers: Sequence[int], codes: Mapping[int, int] | None = None
    ) -> list[Waypoint]:
        """The way on from a stop over states with these numbers, by their moves where these are given."""
        found = [start]
        for number in numbers:
            wanted = None if codes is None else self.all_moves()[codes[number]]
            found.append(self._next(found[-1], number, wanted))
        return found

    def _next(self, stop: Waypoint, number: int, wanted: Move | None) -> Waypoint:
        for each in self.moves.all_from(stop.row[None, :]):
            if wanted is not None and each.move != wanted:
                continue
            for row in each.rows:
                if self._number_of(row[None, :]) == number:
                    return Waypoint(number, row, each.move)
        raise AssertionError(f"state {number} does not follow")

    def _number_of(self, row: Rows) -> int:
        _, numbers = self._visited.find(hashes_of(row))
        return int(numbers[0])
