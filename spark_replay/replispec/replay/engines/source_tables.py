"""Captures as tables that anybody may ask for: packets of a split, frames or events of a capture."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from replispec.replay.capture.files import map_split, walk
from replispec.replay.capture.records import Split
from replispec.replay.engines.decoding import decode_capture
from replispec.replay.events.observe import observe
from replispec.replay.events.tables import SCHEMAS
from replispec.replay.frames.hints import Hints
from replispec.replay.frames.tables import FRAMES
from replispec.replay.tcp.flows import address_text
from replispec.replay.tcp.packets import read_packets

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


def schemas() -> Mapping[str, pa.Schema]:
    """What can be asked for, and its columns."""
    events = {f"{EVENTS_PREFIX}{kind.value}": schema for kind, schema in SCHEMAS.items()}
    return {"packets": PACKETS, "frames": FRAMES, **events}


def packet_batches(split: Split, name: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """These columns of the TCP packets of one split, as they stand in the file, nothing joined."""
    data = map_split(split)
    packets = read_packets(data, walk(data, split)[0])
    for start in range(0, len(packets), BATCH_ROWS):
        part = packets.take(np.arange(start, min(start + BATCH_ROWS, len(packets))))
        arrays = []
        for column in columns:
            field = PACKETS.field(column)
            if column == "capture":
                arrays.append(pa.array([name] * len(part), field.type))
            elif column in _ADDRESSES:
                high, low = (getattr(part, f"{column}_{half}").tolist() for half in ("high", "low"))
                texts = [address_text(*pair) for pair in zip(high, low, strict=True)]
                arrays.append(pa.array(texts, field.type))
            else:
                arrays.append(pa.array(getattr(part, column), field.type))
        yield pa.RecordBatch.from_arrays(arrays, schema=pa.schema([PACKETS.field(each) for each in columns]))


def capture_batches(path: str, what: str, hints: Hints, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """These columns of the frames or of one kind of event of a whole capture."""
    decoded = decode_capture(path, hints)
    if what == "frames":
        table = decoded.frames
    else:
        kinds = {f"{EVENTS_PREFIX}{kind.value}": kind for kind in SCHEMAS}
        table = observe(decoded.frames, decoded.holes, decoded.streams)[kinds[what]]
    yield from table.select(list(columns)).combine_chunks().to_batches(max_chunksize=BATCH_ROWS)
