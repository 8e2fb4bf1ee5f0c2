"""The order in which the frames of a connection were delivered to its two ends.

A frame is delivered when it and all bytes before it have arrived. A packet that came late delivers
every frame that waited for it, so the order of delivery is the running maximum of the arrivals.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Delivered:
    """Frames of whole connections in the order of delivery: first by connection, then by order."""

    frames: pa.Table
    order: Integers


def delivered(frames: pa.Table) -> Delivered:
    """Sort the frames of one capture (rows of FRAMES; all frames of each connection that occurs)."""
    if frames.num_rows == 0:
        return Delivered(frames, np.zeros(0, np.int64))
    keys = [
        ("connection", "ascending"),
        ("direction", "ascending"),
        ("sequence", "ascending"),
        ("index", "ascending"),
    ]
    frames = frames.sort_by(keys)
    names = pc.dictionary_encode(frames.column("connection").combine_chunks())
    connections: Integers = np.asarray(names.indices, np.int64)
    directions: Integers = np.asarray(frames.column("direction"), np.int64)
    arrivals: Integers = np.asarray(frames.column("record_offset"), np.int64)
    order = _running_maximum(arrivals, connections * 2 + directions)
    sequences: Integers = np.asarray(frames.column("sequence"), np.int64)
    positions = np.lexsort((sequences, directions, order, connections))
    return Delivered(frames.take(pa.array(positions)), order[positions])


def _running_maximum(values: Integers, groups: Integers) -> Integers:
    """The running maximum within each run of equal `groups`."""
    result = values.copy()
    starts = np.flatnonzero(np.diff(groups, prepend=groups[0] - 1))
    for start, stop in zip(starts, [*starts[1:], len(groups)], strict=True):
        np.maximum.accumulate(values[start:stop], out=result[start:stop])
    return result


def column(table: pa.Table, name: str) -> list[Any]:
    """A column as Python values."""
    return list(table.column(name).to_pylist())
