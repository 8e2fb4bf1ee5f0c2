"""Frames of a part of a capture's connections, of which only those that can be wanted are decoded.

All packets are looked at, as which senders fill in checksums is told by them together; that is a tenth of the
work. Connections are dealt out to shares by their bytes, the same way by everyone who reads a share.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from replispec.replay.engines.decoding import BATCH_FRAMES, in_order, without_collector
from replispec.replay.engines.wanted import ALL, HIGHEST, LOWEST, Relation, Wanted
from replispec.replay.frames.framing import Decoded, decode_connection
from replispec.replay.frames.hints import Hints
from replispec.replay.frames.tables import FRAMES, MESSAGE_COLUMNS, frames_batch
from replispec.replay.tcp.directions import Direction, directions
from replispec.replay.tcp.flows import FlowKey, Grouped, connection_text, endpoint_text, group
from replispec.replay.tcp.ground import standing_alone
from replispec.replay.tcp.packets import Packets
from replispec.replay.tcp.rotation import Source, open_rotation
from replispec.replay.tcp.sides import read_connections


@dataclass(frozen=True, slots=True)
class Share:
    """The connections of one of `of` parts of a capture."""

    number: int = 0
    of: int = 1


WHOLE: Final = Share()
Flags = npt.NDArray[np.bool_]


@dataclass(slots=True)
class Read:
    """What was read for a table: packets that were looked into, directions that were decoded, their bytes of
    payload, frames in them."""

    packets: int = 0
    directions: int = 0
    payload_bytes: int = 0
    frames: int = 0

    def add(self, decoded: Decoded) -> None:
        """One more direction."""
        pieces = decoded.space.pieces
        self.directions += 1
        self.payload_bytes += int((pieces.end - pieces.start).sum())
        self.frames += len(decoded.positions)


def frame_batches(
    source: Source,
    hints: Hints,
    columns: Collection[str] = FRAMES.names,
    wanted: Wanted = ALL,
    share: Share = WHOLE,
    read: Read | None = None,
) -> Iterator[pa.RecordBatch]:
    """The wanted frames of one share of a capture, in the order of FRAMES, with these columns in their order.

    `read` is told what was read for them. Raises CaptureError, OSError: see open_rotation.
    """
    made = {*columns, *wanted.columns}
    read = Read() if read is None else read
    with open_rotation(source) as capture, without_collector():
        packets = _packets_of(standing_alone(capture.data, capture.packets()), wanted, share)
        read.packets += len(packets)
        waiting: list[Decoded] = []
        rows = 0
        for incarnation in in_order(read_connections(capture.data, packets)):
            found = decode_connection(
                capture.data, directions(incarnation), hints, chosen=lambda *own: _is_wanted(wanted, *own)
            )
            for decoded in found:
                read.add(decoded)
                waiting.append(decoded)
                rows += len(decoded.positions)
            if rows >= BATCH_FRAMES:
                yield wanted.kept(frames_batch(capture.name, waiting, made)).select(list(columns))
                waiting, rows = [], 0
        yield wanted.kept(frames_batch(capture.name, waiting, made)).select(list(columns))


def _packets_of(packets: Packets, wanted: Wanted, share: Share) -> Packets:
    """The packets of the connections of a share that can have wanted frames."""
    grouped = group(packets)
    if not grouped.keys:
        return packets
    sizes = np.add.reduceat(grouped.packets.payload_captured, grouped.borders[:-1])
    chosen = _dealt(sizes.tolist(), share) & _in_time(grouped, *wanted.borders("time_ns"))
    about = wanted.about(("source", "destination", "direction", "connection"))
    if about.terms:
        chosen &= np.array([_may_have(about, key) for key in grouped.keys])
    if chosen.all():
        return packets
    kept = grouped.packets.take(chosen[grouped.flow])
    return kept.take(np.argsort(kept.record_offset, kind="stable"))


def _dealt(sizes: list[int], share: Share) -> Flags:
    """Which flows a share gets: the largest that is left goes to who has least."""
    owner = np.zeros(len(sizes), np.int64)
    loads = [(0, number) for number in range(share.of)]
    for at in sorted(range(len(sizes)), key=lambda at: (-sizes[at], at)):
        load, number = heapq.heappop(loads)
        owner[at] = number
        heapq.heappush(loads, (load + sizes[at], number))
    mine: Flags = owner == share.number
    return mine


def _in_time(grouped: Grouped, low: int, high: int) -> Flags:
    """Which flows were alive in [low, high]: a frame has the time of one of its packets."""
    if (low, high) == (LOWEST, HIGHEST):
        return np.ones(len(grouped.keys), np.bool_)
    first = np.minimum.reduceat(grouped.packets.time_ns, grouped.borders[:-1])
    last = np.maximum.reduceat(grouped.packets.time_ns, grouped.borders[:-1])
    alive: Flags = (first <= high) & (last >= low)
    return alive


def _may_have(wanted: Wanted, key: FlowKey) -> bool:
    """Whether one of the directions between two endpoints can be wanted."""
    ends = [endpoint_text(end) for end in key]
    pair = _pair(connection_text(key, 1))
    for term in wanted.about(("connection",)).terms:
        is_named = term.relation in (Relation.EQUAL, Relation.ONE_OF) and not term.negated
        if is_named and pair not in map(_pair, term.values):
            return False
    return any(
        wanted.may_be({"source": ends[number], "destination": ends[1 - number], "direction": number})
        for number in (0, 1)
    )


def _pair(connection: str) -> str:
    """The endpoints in the name of a connection, without the number that tells it from others of theirs."""
    return connection.rpartition("#")[0]


def _is_wanted(wanted: Wanted, direction: Direction, kind: str) -> bool:
    """Whether a direction of this kind can have wanted frames."""
    known = {
        "source": direction.source,
        "destination": direction.destination,
        "direction": direction.number,
        "connection": direction.connection,
        "protocol": kind,
    }
    # What the messages of other kinds say is null here.
    others = [field.name for each in MESSAGE_COLUMNS if kind not in each.kinds for field in each.fields]
    return wanted.may_be(known) and not wanted.needs(others)
