"""Promises about ways through the states: what some day happens, and what never goes round in a circle."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from replispec.explorer.moves import DELIVER
from replispec.explorer.search import Broken, Search
from replispec.explorer.tables import Mask, Numbers
from replispec.runtime.primitives.systems import Property


@dataclass(frozen=True, slots=True)
class Edges:
    """The edges between states that count: from, to, and the code of the move."""

    sources: Numbers
    targets: Numbers
    codes: Numbers

    def only(self, mask: Mask) -> Edges:
        """Those of the mask."""
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
    """States from which no way without further harm leads to where the promise holds."""
    edges = _edges(search)
    able = search.marks(promise.name) | search.ends()
    while len(edges.sources):
        reaches = able[edges.targets]
        able[edges.sources[reaches]] = True
        rest = edges.only(~able[edges.sources])
        if len(rest.sources) == len(edges.sources):
            break
        edges = rest
    stuck = np.flatnonzero(search.marks(f"{promise.name}?") & ~able)
    if not len(stuck):
        return []
    room = ", with room for so few messages" if search.moves.cut else ""
    return [
        Broken(
            promise.name, int(stuck[0]), f"{promise.about} From {len(stuck):,} states it never does{room}."
        )
    ]


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
