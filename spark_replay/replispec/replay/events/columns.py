"""Tables of hot kinds, made from columns of frames without an object a row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from replispec.replay.events.observation import Observation, ObservationKind
from replispec.replay.events.tables import SCHEMAS
from replispec.replay.pairing.delivery import Delivered, Integers

Observed = tuple[list[Observation], list[tuple[ObservationKind, pa.Table]]]
"""Observations one by one, and of frequent kinds by tables."""


def table_of(kind: ObservationKind, columns: Mapping[str, Any], count: int) -> pa.Table:
    """A table of the kind: arrays of `count` values by name; a column that is not given is null."""
    arrays = [
        _array(columns[field.name], field.type) if field.name in columns else pa.nulls(count, field.type)
        for field in SCHEMAS[kind]
    ]
    return pa.Table.from_arrays(arrays, schema=SCHEMAS[kind])


def _array(values: Any, kind: pa.DataType) -> Any:
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values if values.type == kind else values.cast(kind)
    return pa.array(values, kind)


def places(frames: Delivered, at: Integers) -> dict[str, Any]:
    """The columns that say where the frames at some places are."""
    return {
        "capture": repeated(frames.capture, len(at)),
        "order": frames.order[at],
        "time_ns": frames.integers("time_ns", at),
        "connection": named(pa.array(frames.connections, pa.string()), frames.connection[at]),
        "direction": frames.direction[at],
        "sequence": frames.integers("sequence", at),
        "index": frames.integers("index", at),
    }


def repeated(text: str, count: int) -> pa.Array:
    """A column that says the same in every row."""
    return named(pa.array([text], pa.string()), np.zeros(count, np.int64))


def named(names: pa.Array, codes: Integers) -> pa.Array:
    """A column of names by their numbers."""
    return names.take(pa.array(codes))
