"""Decoding a capture in this process: the reference that the other engine must equal row by row."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import pyarrow as pa

from replispec.replay.capture.records import ALL_TIME, CaptureWarning, Window
from replispec.replay.frames.framing import Decoded, decode_connection
from replispec.replay.frames.hints import Hints
from replispec.replay.frames.tables import FRAMES, HOLES, STREAMS, frames_batch, holes_table, streams_table
from replispec.replay.tcp.directions import directions
from replispec.replay.tcp.flows import Incarnation, connection_text
from replispec.replay.tcp.ground import NO_WIRE, Wire, lay_ground, standing, survey, wire
from replispec.replay.tcp.remarks import Remarks
from replispec.replay.tcp.rotation import Source, open_rotation
from replispec.replay.tcp.sides import read_connections

# Frames are turned into columns when so many have come together; what they were decoded from is let go.
BATCH_FRAMES = 4_000


@dataclass(frozen=True, slots=True)
class DecodedCapture:
    """The tables FRAMES, HOLES and STREAMS of one capture, sorted, what was read around, and what the
    packets of the capture are."""

    frames: pa.Table
    holes: pa.Table
    streams: pa.Table
    warnings: tuple[CaptureWarning, ...]
    wire: Wire = NO_WIRE


def decode_capture(
    source: Source,
    hints: Hints | None = None,
    tell: Callable[[int, int], None] | None = None,
    window: Window = ALL_TIME,
) -> DecodedCapture:
    """Decode one capture, in one file or several. Raises CaptureError, OSError: see open_rotation.

    `tell` is told after each connection how many bytes of payload are decoded, and of how many. Packets
    outside of the window are passed over.
    """
    with open_rotation(source, window) as capture:
        read, data = capture.packets(), capture.data
        ground = lay_ground(data, [survey(read)])
        packets = standing(read, ground.joined, ground.fillers)
        about = wire(ground, [packets.remarks])
        warnings = (*capture.warnings, *remarked(capture.name, about.remarks))
        found = in_order(read_connections(data, packets))
        decoded = (
            part
            for incarnation in (found if tell is None else _telling(found, tell))
            for part in decode_connection(data, directions(incarnation), hints or Hints())
        )
        with without_collector():
            return replace(_tables(capture.name, decoded), warnings=warnings, wire=about)


def _telling(found: Sequence[Incarnation], tell: Callable[[int, int], None]) -> Iterator[Incarnation]:
    sizes = [
        sum(int((side.pieces.end - side.pieces.start).sum()) for side in each.sides if side is not None)
        for each in found
    ]
    done, total = 0, sum(sizes)
    for incarnation, size in zip(found, sizes, strict=True):
        yield incarnation
        done += size
        tell(done, total)


@contextmanager
def without_collector() -> Iterator[None]:
    """Keep the cyclic garbage collector off: it would walk the live headers again and again, a third
    of the whole time, and nothing here refers back to what refers to it.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def in_order(found: Sequence[Incarnation]) -> list[Incarnation]:
    """Connections in the order of the rows of the tables."""
    return sorted(found, key=lambda item: connection_text(item.key, item.number))


def remarked(name: str, remarks: Remarks) -> list[CaptureWarning]:
    """The remarks on the packets of a capture as warnings."""
    unread = remarks.unread()
    said = dict.fromkeys([*remarks.texts(), *unread])
    return [CaptureWarning(name, 0, text, unread=text in unread) for text in said]


def _tables(name: str, decoded: Iterator[Decoded]) -> DecodedCapture:
    frames: list[pa.RecordBatch] = []
    holes: list[pa.Table] = []
    streams: list[pa.Table] = []
    waiting: list[Decoded] = []

    def flush() -> None:
        frames.append(frames_batch(name, waiting))
        holes.append(holes_table(name, waiting))
        streams.append(streams_table(name, waiting))
        waiting.clear()

    rows = 0
    for part in decoded:
        waiting.append(part)
        rows += len(part.positions)
        if rows >= BATCH_FRAMES:
            flush()
            rows = 0
    flush()
    return DecodedCapture(
        pa.Table.from_batches(frames, FRAMES),
        pa.concat_tables([HOLES.empty_table(), *holes]),
        pa.concat_tables([STREAMS.empty_table(), *streams]),
        (),
    )
