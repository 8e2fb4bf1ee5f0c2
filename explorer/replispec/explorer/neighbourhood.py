"""The states around stories, with everything that can happen in each: what a page shows to whoever chooses.

All states of the stories are taken, then the nearest to any of them, up to a number of steps and of states.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

import numpy as np

from replispec.explorer.moves import ACT, Move, Moves
from replispec.explorer.search import Broken, Search, Waypoint
from replispec.explorer.stories import move_text
from replispec.explorer.tables import Numbers, Rows

STEPS: Final = 8
"""How far from a story a state may be."""
STATES: Final = 3_000
"""States of a neighbourhood beside those of the stories."""
NO_ROOM: Final = "no room for more messages on their way"


@dataclass(frozen=True, slots=True)
class NextEvent:
    """What can happen in a state: who does it, what it is, and the number of the state that follows.

    `to` is None for one that follows outside of the neighbourhood. `barred` says why nothing follows: a
    machine that has no edge, or no room for messages.
    """

    who: str
    says: str
    to: int | None = None
    barred: str = ""


@dataclass(frozen=True, slots=True)
class Tour:
    """The way of a story through the neighbourhood: states, and what happened before each but the first.

    `circle` is the place in `states` from which the last ones come again and again; `closing` is what breaks
    the promise in the last state, where that is no state of its own.
    """

    broken: Broken | None
    states: tuple[int, ...]
    says: tuple[str, ...]
    circle: int | None = None
    closing: str = ""


@dataclass
class Neighbourhood:
    """States as rows of numbers, the start first, with their choices; `outside` are those that are out of
    the system's bounds, from which nothing was explored.

    `whole`: every state that can be reached is in it. Else all within `nearest` steps of a story are, and
    `further` of those that are one step further.
    """

    moves: Moves
    rows: list[Numbers] = field(default_factory=list)
    choices: list[tuple[NextEvent, ...]] = field(default_factory=list)
    outside: set[int] = field(default_factory=set)
    tours: list[Tour] = field(default_factory=list)
    whole: bool = False
    nearest: int = 0
    further: int = 0
    _numbers: dict[bytes, int] = field(default_factory=dict)

    def number(self, row: Numbers) -> int:
        """The number of a state, which is then in the neighbourhood."""
        key = row.tobytes()
        if key not in self._numbers:
            self._numbers[key] = len(self.rows)
            self.rows.append(row)
        return self._numbers[key]

    def known(self, row: Numbers) -> int | None:
        """The number of a state that is in the neighbourhood."""
        return self._numbers.get(row.tobytes())


def neighbourhood_of(search: Search, *, steps: int = STEPS, states: int = STATES) -> Neighbourhood:
    """The states of every story of a search, or the start when no promise is broken, and those around."""
    found = Neighbourhood(search.moves)
    found.number(search.moves.start()[0])
    for broken in search.broken:
        found.tours.append(_tour(found, search, broken))
    if not found.tours:
        found.tours.append(Tour(None, (0,), ()))
    _grow(found, steps, len(found.rows) + states)
    inside = _inside(found, found.rows)
    found.outside = {number for number in range(len(found.rows)) if not inside[number]}
    found.choices = _choices(found)
    found.whole = all(each.barred or each.to is not None for listed in found.choices for each in listed)
    return found


def _tour(found: Neighbourhood, search: Search, broken: Broken) -> Tour:
    """The way of one story, of which all states are then in the neighbourhood."""
    way, circle = search.way_of(broken), None
    if broken.circle:
        circle = len(way) - 1 + broken.circle.index(broken.circle[-1])
        way += search.walked(way[-1], broken.circle[1:])[1:]
    states = tuple(found.number(stop.row) for stop in way)
    closing = ""
    if broken.move is not None:
        closing = f"{move_text(search.moves, way[-1].row, broken.move)}: {broken.text}"
    return Tour(broken, states, tuple(_says(search.moves, way)), circle, closing)


def _says(moves: Moves, way: list[Waypoint]) -> Iterator[str]:
    for before, after in pairwise(way):
        yield move_text(moves, before.row, after.move)


def _grow(found: Neighbourhood, steps: int, most: int) -> None:
    """Take in the nearest states, one step further at a time."""
    border = list(found.rows)
    for _ in range(steps):
        before = len(found.rows)
        rows = [row for row, inside in zip(border, _inside(found, border), strict=True) if inside]
        if not rows:
            return
        for each in found.moves.all_from(_together(rows)):
            for row in each.rows:
                if found.known(row) is None:
                    if len(found.rows) >= most:
                        found.further = len(found.rows) - before
                        return
                    found.number(row.copy())
        border = found.rows[before:]
        found.nearest += 1


def _together(rows: Iterable[Numbers]) -> Rows:
    stacked: Rows = np.stack(list(rows))
    return stacked


def _inside(found: Neighbourhood, rows: list[Numbers]) -> list[bool]:
    """Which states the system's own bounds let a search go on from."""
    within = found.moves.composed.system.within
    if within is None or not rows:
        return [True] * len(rows)
    return [bool(each) for each in found.moves.holds(within, _together(rows))]


def _choices(found: Neighbourhood) -> list[tuple[NextEvent, ...]]:
    """Everything that can happen in each state, by who does it."""
    inside = [number for number in range(len(found.rows)) if number not in found.outside]
    listed: list[list[NextEvent]] = [[] for _ in found.rows]
    if inside:
        for each in found.moves.all_from(_together(found.rows[number] for number in inside)):
            for parent, row in zip(each.parents, each.rows, strict=True):
                number = inside[parent]
                listed[number].append(_choice(found, number, each.move, to=found.known(row)))
            for parent in each.cut:
                listed[inside[parent]].append(_choice(found, inside[parent], each.move, barred=NO_ROOM))
        for fault in tuple(found.moves.faults):
            for parent in fault.parents:
                number = inside[parent]
                listed[number].append(_choice(found, number, fault.move, barred=f"no edge: {fault.text}"))
    return [tuple(sorted(each, key=lambda choice: choice.who)) for each in listed]


def _choice(
    found: Neighbourhood, number: int, move: Move, *, to: int | None = None, barred: str = ""
) -> NextEvent:
    row, composed = found.rows[number], found.moves.composed
    place = (
        composed.occasions[move.act].instances["self"]
        if move.kind == ACT
        else found.moves.packet_at(row, move.slot).to
    )
    return NextEvent(composed.places[place].name, move_text(found.moves, row, move), to, barred)
