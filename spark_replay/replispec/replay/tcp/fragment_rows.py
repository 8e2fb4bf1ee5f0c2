"""Fragments of IP packets as columns: small enough to be gathered from all parts of a capture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from replispec.replay.capture.records import Integers
from replispec.replay.tcp.layers import BigEndian, Flags, Unsigned
from replispec.replay.tcp.network import FragmentRows


@dataclass(frozen=True, slots=True)
class Fragments:
    """Columns, one row a fragment, or a part of one that lies in one place of the file.

    `record_offset`, `time_ns`, `interface`: of its packet. `protocol`: kind of what is fragmented. It holds
    bytes [first, first + wire) of its datagram; `more`: others follow. `captured` <= `wire` of them
    are at `data_offset`. Addresses as they are on the wire, those of IPv4 in `..._low`; `family`: 4 or 6;
    `header`: what is to be said of its header's checksum.
    """

    record_offset: Integers
    time_ns: Integers
    interface: Integers
    source_high: Unsigned
    source_low: Unsigned
    destination_high: Unsigned
    destination_low: Unsigned
    protocol: Integers
    identification: Integers
    first: Integers
    more: Integers
    data_offset: Integers
    captured: Integers
    wire: Integers
    family: Integers
    header: Integers

    def __len__(self) -> int:
        return len(self.record_offset)

    def take(self, rows: Integers | Flags) -> Fragments:
        """The rows chosen by positions or by a mask."""
        return Fragments(*(getattr(self, item.name)[rows] for item in fields(self)))

    def moved(self, by: int) -> Fragments:
        """The same fragments in a capture in which their file stands `by` bytes further on."""
        return replace(self, record_offset=self.record_offset + by, data_offset=self.data_offset + by)


WIDE = ("source_high", "source_low", "destination_high", "destination_low")
KINDS = [np.uint64 if item.name in WIDE else np.int64 for item in fields(Fragments)]


def fragments_of(
    view: BigEndian, rows: FragmentRows, record_offset: Integers, time_ns: Integers, interface: Integers
) -> Fragments:
    """The columns of fragments; the last three say where and when each row's record was captured."""
    layer = rows.layer
    six = layer.family == 6
    at = layer.addresses
    high = [np.where(six, view.unsigned(at + 16 * side, 8), np.uint64(0)) for side in (0, 1)]
    narrow = [view.unsigned(at + 4 * side, 4) for side in (0, 1)]
    low = [np.where(six, view.unsigned(at + 16 * side + 8, 8), narrow[side]) for side in (0, 1)]
    return Fragments(
        record_offset[layer.row],
        time_ns[layer.row],
        interface[layer.row],
        high[0],
        low[0],
        high[1],
        low[1],
        layer.kind,
        rows.identification,
        rows.first,
        rows.more,
        layer.at,
        np.maximum(0, layer.end - layer.at),
        np.maximum(0, layer.wire_end - layer.at),
        layer.family,
        layer.header,
    )


def join_fragments(parts: Sequence[Fragments]) -> Fragments:
    """All rows in order of their records."""
    columns: list[npt.NDArray[Any]] = [
        np.concatenate([np.zeros(0, KINDS[at]), *(getattr(part, item.name) for part in parts)])
        for at, item in enumerate(fields(Fragments))
    ]
    joined = Fragments(*columns)
    return joined.take(np.argsort(joined.record_offset, kind="stable"))
