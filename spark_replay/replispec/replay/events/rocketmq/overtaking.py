"""Facts of one connection in an order in which they may have become true: answers may overtake each other."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from replispec.replay.events.observation import Observation, ObservationKind

_Place = tuple[str, int, int, int]
OVERTAKEN_MAX: Final = 64
"""How many facts of its stream one may be moved ahead of: more that wait at once leave it where it is."""


def in_causal_order(rows: Sequence[Observation]) -> list[Observation]:
    """The rows, where a fact with an epoch that fell stands before answers that came ahead of it, as far back
    as to where it was asked for. Facts alone change places, each with one of its own stream."""
    asked = _asked(rows)
    found = list(rows)
    slots: dict[tuple[str, int, str | None], list[int]] = defaultdict(list)
    for at, row in enumerate(rows):
        if row.kind == ObservationKind.FACT:
            slots[row.connection, row.direction, row.group].append(at)
    for places in slots.values():
        moved: list[Observation] = []
        for at in places:
            row = rows[at]
            to = len(moved)
            first = max(0, to - OVERTAKEN_MAX)
            since = asked.get(_place(row), row.order)
            while to > first and since < moved[to - 1].order and _falls(moved[to - 1], row):
                to -= 1
            moved.insert(to, row)
        for at, row in zip(places, moved, strict=True):
            found[at] = row
    return found


def _asked(rows: Sequence[Observation]) -> dict[_Place, int]:
    """Where the request stands that an answer about a broker set answers, by the place of the answer."""
    waiting: dict[tuple[str, int, int | None], int] = {}
    found: dict[_Place, int] = {}
    for row in rows:
        if row.kind == ObservationKind.DECISION and row.code is None:
            waiting[row.connection, 1 - row.direction, row.opaque] = row.order
        elif row.kind == ObservationKind.DECISION and row.opaque is not None:
            since = waiting.get((row.connection, row.direction, row.opaque), row.order)
            found[_place(row)] = since
    return found


def _place(row: Observation) -> _Place:
    return row.connection, row.direction, row.sequence, row.index


def _falls(before: Observation, after: Observation) -> bool:
    pairs = (
        (before.master_epoch, after.master_epoch),
        (before.sync_state_set_epoch, after.sync_state_set_epoch),
    )
    return any(one is not None and other is not None and other < one for one, other in pairs)
