"""Promises about ways through the states: what some day happens, and what never goes round in a circle."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from replispec.explorer.moves import DELIVER
from replispec.explorer.search import Broken, Search
from replispec.explorer.tables import Mask, Numbers
from replispec.runtime.primitives.systems import Property

_NEVER: Final = np.iinfo(np.int32).max


@dataclass(frozen=True, slots=True)
class Edges:
    """The edges between states that count: from, to, and the code of the move."""

    sources: Numbers
    targets: Numbers
    codes: Numbers

    def only(self, mask: Mask | npt.NDArray[np.intp]) -> Edges:
        """Those of the mask, or with these numbers, in their order."""
        return Edges(self.sources[mask], self.targets[mask], self.codes[mask])


def judge_ways(search: Search) -> list[Broken]:
    """The promises about ways that are broken. What was not explored to its end is taken to keep them."""
    found = []
    for promise in search.promises:
        if promise.shape == "eventually":
            found += _judge_eventually(search, promise)
        if promise.shape == "pauses":
            found += _judge_pauses(search, promise)
    return found


def _edges(search: Search, *, of: Collection[str] = ()) -> Edges:
    """The edges of these kinds of moves; without a kind, of all that are no harm."""
    counts = np.array([each.kind in of if of else not each.harm for each in search.all_moves()], np.bool_)
    empty = np.empty(0, np.int32)
    chosen = [
        Edges(sources, targets, codes).only(counts[codes]) for sources, targets, codes in search.graph.edges
    ] or [Edges(empty, empty, empty)]
    return Edges(
        np.concatenate([each.sources for each in chosen]),
        np.concatenate([each.targets for each in chosen]),
        np.concatenate([each.codes for each in chosen]),
    )


def _judge_eventually(search: Search, promise: Property) -> list[Broken]:
    """States in which the promise is still due, and from which no way without further harm leads to where it
    holds. Whoever takes every step that stays possible some day comes to one, or to where it holds."""
    edges = _edges(search)
    holds = search.marks(promise.name)
    stuck = ~_reaching(edges, holds | search.ends())
    due = _Due(search, promise, edges.only(~holds[edges.sources]))
    found = stuck & due.reached
    if not found.any():
        return []
    room = ", with room for so few messages" if search.moves.cut else ""
    text = f"{promise.about} From {int(found.sum()):,} states it never does{room}."
    first, *others = due.way_to(int(np.argmin(np.where(found, due.steps, _NEVER))))
    return [Broken(promise.name, first, text, follows=tuple(others))]


def _reaching(edges: Edges, able: Mask) -> Mask:
    """The states from which a way leads to one of these."""
    able = able.copy()
    while len(edges.sources):
        reaches = able[edges.targets]
        able[edges.sources[reaches]] = True
        rest = edges.only(~able[edges.sources])
        if len(rest.sources) == len(edges.sources):
            break
        edges = rest
    return able


class _Due:
    """The states in which a promise is due: where `whenever` holds, and whatever follows over these edges.

    `steps` says how many steps from the start it takes to come there with the promise due.
    """

    def __init__(self, search: Search, promise: Property, edges: Edges) -> None:
        begins = search.marks(f"{promise.name}?")
        self.steps = np.where(begins, search.depths(), _NEVER)
        self._before = np.full(search.states, -1, np.int32)
        border = begins
        while border.any():
            leaving = edges.only(border[edges.sources])
            nearer = self.steps[leaving.sources] + 1 < self.steps[leaving.targets]
            leaving = leaving.only(nearer)
            # The nearest last: of several into one state it is the one that stays.
            leaving = leaving.only(np.argsort(-self.steps[leaving.sources], kind="stable"))
            self.steps[leaving.targets] = self.steps[leaving.sources] + 1
            self._before[leaving.targets] = leaving.sources
            border = np.zeros(search.states, np.bool_)
            border[leaving.targets] = True

    @property
    def reached(self) -> Mask:
        """In which states it is due."""
        return self.steps < _NEVER

    def way_to(self, state: int) -> list[int]:
        """The states from one in which `whenever` holds to this one."""
        way = [state]
        while (state := int(self._before[state])) >= 0:
            way.append(state)
        return way[::-1]


def _judge_pauses(search: Search, promise: Property) -> list[Broken]:
    """Circles of messages alone."""
    edges = _edges(search, of=(DELIVER,))
    while len(edges.sources):
        leaves, arrives = np.zeros(search.states, np.bool_), np.zeros(search.states, np.bool_)
        leaves[edges.sources], arrives[edges.targets] = True, True
        rest = edges.only(arrives[edges.sources] & leaves[edges.targets])
        if len(rest.sources) == len(edges.sources):
            return [Broken(promise.name, int(edges.sources.min()), promise.about, circle=_circle(edges))]
        edges = rest
    return []


def _circle(edges: Edges) -> tuple[int, ...]:
    """States one after the other, from the first that is in or leads to a circle until one comes again."""
    order = np.argsort(edges.sources, kind="stable")
    sources, targets = edges.sources[order], edges.targets[order]
    state, seen = int(edges.sources.min()), dict[int, None]()
    while state not in seen:
        seen[state] = None
        state = int(targets[np.searchsorted(sources, state)])
    return (*seen, state)
