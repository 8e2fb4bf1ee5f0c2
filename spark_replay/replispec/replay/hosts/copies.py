"""Which packets are copies of others: the same packet, seen at several places.

Two rows are copies when addresses, sequence and acknowledgment numbers, flags and payload are the same and
they were seen at different places. What was sent again is seen again at the same place: there the first one
is the copy of the first one elsewhere, the second one of the second.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from replispec.replay.capture.records import Integers
from replispec.replay.hosts.halves import Shape
from replispec.replay.hosts.sightings import Instance, Sightings
from replispec.replay.tcp.flows import FlowKey
from replispec.replay.tcp.layers import Flags


@dataclass(frozen=True, slots=True)
class Story:
    """The rows of Sightings as the merged capture has them: `connection` numbers the keys that are shown,
    `side` and the numbers are those of the shown key. `packet`: rows with the same number are copies of one
    packet; `alone`: this packet was seen once at each of its places."""

    connection: Integers
    side: Integers
    sequence: Integers
    acknowledgment: Integers
    packet: Integers
    alone: Flags


def story_of(rows: Sightings, instances: list[Instance], shapes: dict[int, Shape]) -> Story:
    """The rows by the names that are shown, and which of them are copies of one packet."""
    numbers: dict[FlowKey, int] = {}
    keys = [shapes[at].key if at in shapes else each.key for at, each in enumerate(instances)]
    key = np.array([numbers.setdefault(each, len(numbers)) for each in keys], np.int64)
    flipped = np.zeros(len(instances), np.int64)
    shifts = np.zeros((len(instances), 2), np.int64)
    for at, shape in shapes.items():
        flipped[at] = shape.flipped
        shifts[at] = shape.shifts
    own = shifts[rows.instance, rows.side]
    others = shifts[rows.instance, 1 - rows.side]
    connection, side = key[rows.instance], rows.side ^ flipped[rows.instance]
    sequence, acknowledgment = (rows.sequence + own) % 2**32, (rows.acknowledgment + others) % 2**32
    packet, alone = _packets(rows, (connection, side, sequence, acknowledgment))
    return Story(connection, side, sequence, acknowledgment, packet, alone)


def _packets(rows: Sightings, shown: tuple[Integers, ...]) -> tuple[Integers, Flags]:
    """`packet` and `alone` of Story."""
    count = len(rows)
    identity = _numbered([*shown, rows.flags, rows.size, rows.content, rows.trust == 0])
    # How often the same was seen at this place before, in the order of the file.
    order = np.lexsort((rows.record, rows.place, identity))
    fresh = np.ones(count, np.bool_)
    fresh[1:] = (np.diff(identity[order]) != 0) | (np.diff(rows.place[order]) != 0)
    begins = np.flatnonzero(fresh)
    run = np.cumsum(fresh) - 1
    turn = np.empty(count, np.int64)
    turn[order] = np.arange(count) - begins[run]
    sizes = np.diff(np.append(begins, count))
    most = np.zeros(int(identity.max(initial=-1)) + 1, np.int64)
    np.maximum.at(most, identity[order[begins]], sizes)
    return _numbered([identity, turn]), most[identity] == 1


def _numbered(columns: list[Integers | Flags]) -> Integers:
    """Equal rows of the columns have the same number, from 0 on."""
    count = len(columns[0])
    order = np.lexsort(columns)
    change = np.zeros(count, np.bool_)
    for column in columns:
        ordered = column[order]
        change[1:] |= ordered[1:] != ordered[:-1]
    number = np.empty(count, np.int64)
    number[order] = np.cumsum(change)
    return number
