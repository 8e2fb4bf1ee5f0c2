"""Promises about ways through the states: what some day happens, and what never goes round in a circle."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np

from replispec.explorer.search import Broken, Search
from replispec.explorer.tables import Mask, Numbers
from replispec.runtime.primitives.systems import Property

_NEVER: Final = np.iinfo(np.int32).max


@dataclass(frozen=True, slots=True)
class Edges:
    """Edges between states, from and to, as they were found: population by population."""

    parts: Sequence[tuple[Numbers, Numbers]]

    def where(self, chosen: Callable[[Numbers, Numbers], Mask]) -> Edges:
        """Those that are chosen, in their order. No part is larger than a population's: all in one would
        need as much memory again."""
        masks = ((part, chosen(*part)) for part in self.parts)
        return Edges([(sources[mask], targets[mask]) for (sources, targets), mask in masks if mask.any()])

    def __len__(self) -> int:
        return sum(len(sources) for sources, _ in self.parts)

    def together(self) -> tuple[Numbers, Numbers]:
        """All of them, from and to."""
        nothing = [(np.empty(0, np.int32),) * 2]
        sources, targets = zip(*(self.parts or nothing), strict=True)
        return np.concatenate(sources), np.concatenate(targets)


def judge_ways(search: Search) -> list[Broken]:
    """The promises about ways that are broken. What was not explored to its end is taken to keep them."""
    found = []
    for promise in search.promises:
        if promise.shape == "eventually":
            found += _judge_eventually(search, promise)
        if promise.shape == "pauses":
            found += _judge_pauses(search, promise)
    return found


def _judge_eventually(search: Search, promise: Property) -> list[Broken]:
    """States in which the promise is still due, and from which no way without further harm leads to where it
    holds. Whoever takes every step that stays possible some day comes to one, or to where it holds."""
    edges = Edges(search.graph.edges)
    holds = search.marks(promise.name)
    stuck = ~_reaching(edges, holds | search.ends())
    if not stuck.any():
        return []
    due = _Due(search, promise, edges.where(lambda sources, _: ~holds[sources]))
    found = stuck & due.reached
    if not found.any():
        return []
    room = ", with room for so few messages" if search.cut else ""
    text = f"{promise.about} From {int(found.sum()):,} states it never does{room}."
    first, *others = due.way_to(int(np.argmin(np.where(found, due.steps, _NEVER))))
    return [Broken(promise.name, first, text, follows=tuple(others))]


def _reaching(edges: Edges, able: Mask) -> Mask:
    """The states from which a way leads to one of these."""
    able = able.copy()
    count = len(edges) + 1
    while len(edges) < count:
        count = len(edges)
        left: list[tuple[Numbers, Numbers]] = []
        # What was found last first: most ways lead on, and are known at once.
        for sources, targets in reversed(edges.parts):
            able[sources[able[targets]]] = True
            rest = ~able[sources]
            if rest.any():
                left.append((sources[rest], targets[rest]))
        edges = Edges(left[::-1])
    return able


def _leaving(border: Mask, sources: Numbers, _targets: Numbers) -> Mask:
    return border[sources]


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
            sources, targets = edges.where(partial(_leaving, border)).together()
            nearer = self.steps[sources] + 1 < self.steps[targets]
            sources, targets = sources[nearer], targets[nearer]
            # The nearest last: of several into one state it is the one that stays.
            order = np.argsort(-self.steps[sources], kind="stable")
            sources, targets = sources[order], targets[order]
            self.steps[targets] = self.steps[sources] + 1
            self._before[targets] = sources
            border = np.zeros(search.states, np.bool_)
            border[targets] = True

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
    sources, targets = Edges(search.graph.arrivals).together()
    while len(sources):
        leaves, arrives = np.zeros(search.states, np.bool_), np.zeros(search.states, np.bool_)
        leaves[sources], arrives[targets] = True, True
        rest = arrives[sources] & leaves[targets]
        if rest.all():
            return [Broken(promise.name, int(sources.min()), promise.about, circle=_circle(sources, targets))]
        sources, targets = sources[rest], targets[rest]
    return []


def _circle(sources: Numbers, targets: Numbers) -> tuple[int, ...]:
    """States one after the other, from the first that is in or leads to a circle until one comes again."""
    order = np.argsort(sources, kind="stable")
    sources, targets = sources[order], targets[order]
    state, seen = int(sources.min()), dict[int, None]()
    while state not in seen:
        seen[state] = None
        state = int(targets[np.searchsorted(sources, state)])
    return (*seen, state)
