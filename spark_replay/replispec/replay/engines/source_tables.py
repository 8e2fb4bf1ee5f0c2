"""Captures as tables that anybody may ask for: packets of a split, frames or events of a capture."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from replispec.replay.capture.files import map_split, walk
from replispec.replay.capture.records import Split, Window
from replispec.replay.engines.decoding import decode_capture
from replispec.replay.engines.source_frames import WHOLE, Share, frame_batches
from replispec.replay.engines.wanted import ALL, HIGHEST, LOWEST, Wanted
from replispec.replay.events.observe import observe
from replispec.replay.events.tables import SCHEMAS
from replispec.replay.frames.hints import Hints
from replispec.replay.frames.tables import FRAMES
from replispec.replay.tcp.flows import address_text
from replispec.replay.tcp.packets import Packets, read_packets

PACKETS: Final[pa.Schema] = pa.schema(
    [
        pa.field("capture", pa.string()),
        pa.field("record_offset", pa.int64()),
        pa.field("time_ns", pa.int64()),
        pa.field("source", pa.string()),
        pa.field("source_port", pa.int32()),
        pa.field("destination", pa.string()),
        pa.field("destination_port", pa.int32()),
        pa.field("sequence", pa.int64()),
        pa.field("acknowledgment", pa.int64()),
        pa.field("flags", pa.int32()),
        pa.field("payload_captured", pa.int64()),
        pa.field("payload_wire", pa.int64()),
        pa.field("interface", pa.int32()),
    ]
)
EVENTS_PREFIX: Final = "events."
BATCH_ROWS: Final = 8_192
_ADDRESSES: Final = ("source", "destination")
_NUMBERS: Final = tuple(field.name for field in PACKETS if pa.types.is_integer(field.type))


def schemas() -> Mapping[str, pa.Schema]:
    """What can be asked for, and its columns."""
    events = {f"{EVENTS_PREFIX}{kind.value}": schema for kind, schema in SCHEMAS.items()}
    return {"packets": PACKETS, "frames": FRAMES, **events}


def window_of(wanted: Wanted) -> Window:
    """The stretch of time outside of which no packet is wanted."""
    low, high = wanted.borders("time_ns")
    return Window(None if low == LOWEST else low, None if high == HIGHEST else high + 1)


def packet_batches(
    split: Split, name: str, columns: Sequence[str], wanted: Wanted = ALL
) -> Iterator[pa.RecordBatch]:
    """These columns of the wanted TCP packets of one split, as they stand in the file, nothing joined.

    `name`: what the rows call the capture. The headers of packets outside of the split's window are not
    looked at; texts of addresses, which cost most, are made of packets whose numbers fit.
    """
    data = map_split(split)
    packets = read_packets(data, walk(data, split)[0])
    numbers = wanted.about(_NUMBERS)
    made = [name for name in PACKETS.names if name in columns or name in wanted.columns]
    for start in range(0, len(packets), BATCH_ROWS):
        part = packets.take(np.arange(start, min(start + BATCH_ROWS, len(packets))))
        part = part.take(_fitting(part, numbers))
        if len(part):
            yield wanted.kept(_packets_batch(part, name, made)).select(list(columns))


def _fitting(packets: Packets, wanted: Wanted) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which packets fit terms about numbers."""
    fits = np.ones(len(packets), np.bool_)
    for term in wanted.terms:
        fits &= np.asarray(term.mask(pa.array(getattr(packets, term.column))))
    return fits


def _packets_batch(packets: Packets, name: str, columns: Sequence[str]) -> pa.RecordBatch:
    """These columns of packets."""
    arrays = []
    for column in columns:
        field = PACKETS.field(column)
        if column == "capture":
            arrays.append(pa.array([name] * len(packets), field.type))
        elif column in _ADDRESSES:
            high, low = (getattr(packets, f"{column}_{half}").tolist() for half in ("high", "low"))
            texts = [address_text(*pair) for pair in zip(high, low, strict=True)]
            arrays.append(pa.array(texts, field.type))
        else:
            arrays.append(pa.array(getattr(packets, column), field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema([PACKETS.field(each) for each in columns]))


def capture_batches(
    path: str, what: str, hints: Hints, columns: Sequence[str], wanted: Wanted = ALL, share: Share = WHOLE
) -> Iterator[pa.RecordBatch]:
    """These columns of the wanted frames of a share of a capture, or of one kind of its events.

    Events are told of all frames of a capture together: for them the share is the whole capture.
    """
    if what == "frames":
        for batch in frame_batches(path, hints, columns, wanted, share):
            yield from _sliced(batch)
        return
    decoded = decode_capture(path, hints)
    kinds = {f"{EVENTS_PREFIX}{kind.value}": kind for kind in SCHEMAS}
    table = observe(decoded.frames, decoded.holes, decoded.streams)[kinds[what]]
    for batch in table.combine_chunks().to_batches(max_chunksize=BATCH_ROWS):
        yield wanted.kept(batch).select(list(columns))


def _sliced(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    for start in range(0, batch.num_rows, BATCH_ROWS):
        yield batch.slice(start, BATCH_ROWS)
