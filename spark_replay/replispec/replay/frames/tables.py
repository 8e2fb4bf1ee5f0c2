"""The tables of a decoded capture: frames, holes and streams, as Arrow columns.

FRAMES: one row a frame. Positions and sizes are bytes, times int64 ns UTC, `direction` 0 from the
first endpoint of the connection to the second and 1 back, `index` counts the frames of a direction
from 0. `complete`: every byte was captured; `from_start`: the direction was seen from its SYN and
without a gap before this frame. `record_offset`: file offset of the packet that completed it.
`acknowledged`: the TCP number that the packet with its last known byte acknowledges, 32 bits, -1 for none.
HOLES: one row a stretch [start, end) of bytes that were on the wire and are not in the capture.
STREAMS: one row a direction; bytes of foreign and legacy streams are neither decoded nor undecoded.
`first_number`: the TCP sequence number of position 0; `accepted`: it sends who accepted the connection;
`frames`: how many it has.
Rows are sorted by capture, connection, direction, sequence, index.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import chain as flatten
from typing import Any

import numpy as np
import pyarrow as pa

from replispec.replay.capture.records import Integers
from replispec.replay.frames.family import MessageColumns, decoded_kinds, frames_families
from replispec.replay.frames.framing import Decoded
from replispec.replay.frames.prefaces import preface_size
from replispec.replay.tcp.directions import Direction
from replispec.replay.tcp.space import extents, extents_of_all

COMMON_FIELDS = [
    pa.field("capture", pa.string()),
    pa.field("connection", pa.string()),
    pa.field("direction", pa.int8()),
]
PLACE_FIELDS = [
    *COMMON_FIELDS,
    pa.field("sequence", pa.int64()),
    pa.field("index", pa.int32()),
    pa.field("time_ns", pa.int64()),
    pa.field("record_offset", pa.int64()),
    pa.field("acknowledged", pa.int64()),
    pa.field("source", pa.string()),
    pa.field("destination", pa.string()),
    pa.field("protocol", pa.string()),
    pa.field("size", pa.int64()),
    pa.field("complete", pa.bool_()),
    pa.field("from_start", pa.bool_()),
]
PLACE_NAMES = [field.name for field in PLACE_FIELDS]
RECORD: pa.DataType = pa.struct([pa.field("offset", pa.int64()), pa.field("crc", pa.int64())])
ENTRY: pa.DataType = pa.struct(
    [pa.field("index", pa.int64()), pa.field("term", pa.int64()), pa.field("digest", pa.int64())]
)
PULLED: pa.DataType = pa.struct(
    [
        pa.field("queue_id", pa.int32()),
        pa.field("queue_offset", pa.int64()),
        pa.field("address", pa.string()),
        pa.field("offset", pa.int64()),
        pa.field("crc", pa.int64()),
    ]
)
BODY_FIELDS = [
    pa.field("body_size", pa.int32()),
    pa.field("json_body", pa.binary()),
    pa.field("body_digest", pa.int64()),
    pa.field("records", pa.list_(RECORD)),
    pa.field("body", pa.binary()),
]
HELD_FIELDS = [
    pa.field("entries", pa.list_(ENTRY)),
    pa.field("pulled", pa.list_(PULLED)),
]
MESSAGE_COLUMNS = [columns for family in frames_families() for columns in family.columns]
FRAMES: pa.Schema = pa.schema(
    [
        *PLACE_FIELDS,
        *(field for columns in MESSAGE_COLUMNS for field in columns.fields),
        *BODY_FIELDS,
        *HELD_FIELDS,
    ]
)
HOLES: pa.Schema = pa.schema(
    [
        *COMMON_FIELDS,
        pa.field("start", pa.int64()),
        pa.field("end", pa.int64()),
        pa.field("kind", pa.string()),
    ]
)
STREAMS: pa.Schema = pa.schema(
    [
        *COMMON_FIELDS,
        pa.field("source", pa.string()),
        pa.field("destination", pa.string()),
        pa.field("protocol", pa.string()),
        pa.field("from_start", pa.bool_()),
        pa.field("bytes_payload", pa.int64()),
        pa.field("bytes_decoded", pa.int64()),
        pa.field("bytes_undecoded", pa.int64()),
        pa.field("first_time_ns", pa.int64()),
        pa.field("last_time_ns", pa.int64()),
        pa.field("closed", pa.bool_()),
        pa.field("first_number", pa.int64()),
        pa.field("accepted", pa.bool_()),
        pa.field("frames", pa.int64()),
    ]
)
# The order of the rows of each table.
FRAMES_ORDER = ("capture", "connection", "direction", "sequence", "index")
HOLES_ORDER = ("capture", "connection", "direction", "start")
STREAMS_ORDER = ("capture", "connection", "direction")


def frames_batch(
    capture: str, directions: Sequence[Decoded], wanted: Collection[str] = FRAMES.names
) -> pa.RecordBatch:
    """The frames of some directions, in the given order, as one batch of FRAMES.

    `wanted`: the columns of the batch, which then stand in the order of FRAMES; what messages and bodies say
    is turned into columns only when it is among them.
    """
    schema = pa.schema([field for field in FRAMES if field.name in wanted])
    filled = [decoded for decoded in directions if decoded.positions]
    if not filled:
        return pa.RecordBatch.from_pylist([], schema)
    counts = np.array([len(decoded.positions) for decoded in filled], np.int64)
    found = dict(zip(PLACE_NAMES, _places(capture, filled, counts), strict=True))
    for columns in MESSAGE_COLUMNS:
        names = [field.name for field in columns.fields]
        if any(name in wanted for name in names):
            found |= zip(names, _messages(columns, filled, counts), strict=True)
    of_bodies = ("body_sizes", "json_bodies", "digests", "records", "bodies")
    for name, field in zip(of_bodies, BODY_FIELDS, strict=True):
        if field.name in wanted:
            values = _values(filled, name)
            found[field.name] = _records(values) if name == "records" else pa.array(values, field.type)
    for field in HELD_FIELDS:
        if field.name in wanted:
            found[field.name] = _held(filled, field, int(counts.sum()))
    return pa.RecordBatch.from_arrays([found[name] for name in schema.names], schema=schema)


def _values(filled: Iterable[Decoded], name: str) -> list[Any]:
    """One column of `Frames`, direction after direction."""
    return list(flatten.from_iterable(getattr(decoded.frames, name) for decoded in filled))


def _records(rows: Sequence[Sequence[tuple[int, int]] | None]) -> pa.Array:
    """The column `records`; a null row stays null."""
    flat = np.array(list(flatten.from_iterable(row for row in rows if row)), np.int64).reshape(-1, 2)
    columns = [pa.array(flat[:, at]) for at in range(len(RECORD))]
    held = pa.StructArray.from_arrays(columns, fields=list(RECORD))
    return pa.ListArray.from_arrays(_ends(rows), held, type=pa.list_(RECORD))


def _held(filled: Sequence[Decoded], column: pa.Field, count: int) -> pa.Array:
    """A column of what bodies hold: next to no frame has any."""
    if not any(column.name in decoded.frames.held for decoded in filled):
        return pa.nulls(count, column.type)
    rows: list[Sequence[tuple[Any, ...]] | None] = [None] * count
    first = 0
    for decoded in filled:
        for at, held in decoded.frames.held.get(column.name, {}).items():
            rows[first + at] = held
        first += len(decoded.positions)
    kind = column.type.value_type
    flat = list(flatten.from_iterable(row for row in rows if row))
    columns = zip(*flat, strict=True) if flat else [()] * len(kind)
    arrays = [pa.array(values, field.type) for values, field in zip(columns, kind, strict=True)]
    held_by_all = pa.StructArray.from_arrays(arrays, fields=list(kind))
    return pa.ListArray.from_arrays(_ends(rows), held_by_all, type=column.type)


def _ends(rows: Sequence[Sequence[Any] | None]) -> pa.Array:
    """Where the lists of rows end in a column of all; a null row stays null."""
    ends = np.zeros(len(rows) + 1, np.int32)
    np.cumsum([len(row or ()) for row in rows], out=ends[1:])
    return pa.array(ends, mask=np.array([*(row is None for row in rows), False], np.bool_))


def _messages(columns: MessageColumns, filled: Sequence[Decoded], counts: Integers) -> list[pa.Array]:
    """What the messages of some kinds say, null for frames of others."""
    own = [decoded.kind in columns.kinds for decoded in filled]
    if not any(own):
        return [pa.nulls(int(counts.sum()), field.type) for field in columns.fields]
    mine = [decoded for decoded, is_own in zip(filled, own, strict=True) if is_own]
    arrays = list(columns.arrays(_values(mine, "messages"), _values(mine, "encodings")))
    if all(own):
        return arrays
    chosen = np.repeat(np.array(own, np.bool_), counts)
    rows = pa.array(np.cumsum(chosen) - 1, mask=~chosen)
    return [array.take(rows) for array in arrays]


def _places(capture: str, filled: Sequence[Decoded], counts: Integers) -> list[pa.Array]:
    """The columns that say where a frame is."""
    row = pa.array(np.repeat(np.arange(len(filled)), counts))
    start, size = (np.array(_values(filled, name), np.int64) for name in ("positions", "sizes"))
    known = extents_of_all([decoded.stretch for decoded in filled])
    unbroken = np.repeat([decoded.unbroken_until for decoded in filled], counts)

    def spread(values: Iterable[object], kind: pa.DataType) -> pa.Array:
        return pa.array(list(values), kind).take(row)

    return [
        spread([capture] * len(filled), pa.string()),
        spread((decoded.direction.connection for decoded in filled), pa.string()),
        spread((decoded.direction.number for decoded in filled), pa.int8()),
        pa.array(start),
        pa.array(_indexes(filled, counts)),
        pa.array(known.time_ns),
        pa.array(known.record_offset),
        pa.array(known.acknowledged),
        spread((decoded.direction.source for decoded in filled), pa.string()),
        spread((decoded.direction.destination for decoded in filled), pa.string()),
        spread((decoded.kind for decoded in filled), pa.string()),
        pa.array(size),
        pa.array(known.known == size),
        pa.array(start <= unbroken),
    ]


def _indexes(filled: Sequence[Decoded], counts: Integers) -> Integers:
    """The number of each frame in its direction, frames of chains counted."""
    first = np.cumsum(counts) - counts
    index = np.arange(int(counts.sum())) - np.repeat(first, counts)
    for decoded, begin, count in zip(filled, first.tolist(), counts.tolist(), strict=True):
        for before, chain in decoded.chains:
            index[begin + before : begin + count] += chain.frames
    return index.astype(np.int32)


def holes_table(capture: str, directions: Iterable[Decoded]) -> pa.Table:
    """The holes of the directions, in the given order, as HOLES."""
    rows = [
        (capture, decoded.direction.connection, decoded.direction.number, hole.start, hole.end, hole.kind)
        for decoded in directions
        for hole in decoded.direction.holes
    ]
    return _table(rows, HOLES)


def streams_table(capture: str, directions: Iterable[Decoded]) -> pa.Table:
    """One row a direction as STREAMS."""
    rows = []
    for decoded in directions:
        direction = decoded.direction
        payload, read, missed = _stream_bytes(decoded)
        start_lost = bool(direction.holes) and direction.holes[0].start == 0
        rows.append(
            (
                capture,
                direction.connection,
                direction.number,
                direction.source,
                direction.destination,
                decoded.kind,
                direction.from_syn and not start_lost,
                payload,
                read,
                missed,
                direction.first_time_ns,
                direction.last_time_ns,
                direction.closed,
                direction.first_number,
                _accepted(direction),
                len(decoded.positions) + sum(chain.frames for _, chain in decoded.chains),
            )
        )
    return _table(rows, STREAMS)


def _accepted(direction: Direction) -> bool:
    """Whether it sends who accepted the connection; unseen, whoever has the lower port, as systems choose
    high ones for those who open."""
    if direction.initiator is not None:
        return not direction.initiator
    ports = (direction.source_port, direction.destination_port)
    return ports[0] < ports[1] or (ports[0] == ports[1] and direction.number == 0)


def _bytes_in_frames(decoded: Decoded) -> int:
    """Captured bytes of the frames of a direction."""
    frames = decoded.frames
    if not frames.positions:
        return 0
    if decoded.space.run_end(frames.positions[0]) >= frames.positions[-1] + frames.sizes[-1]:
        return sum(frames.sizes)
    return int(extents(*decoded.stretch).known.sum())


def _stream_bytes(decoded: Decoded) -> tuple[int, int, int]:
    """Captured payload bytes of a direction, each counted once: all, in frames, in no frame."""
    pieces = decoded.space.pieces
    payload = int((pieces.end - pieces.start).sum()) + decoded.direction.bytes_early
    if decoded.kind not in decoded_kinds():
        return payload, 0, 0
    read = _bytes_in_frames(decoded) + sum(chain.end - chain.start for _, chain in decoded.chains)
    read += preface_size(decoded)
    return payload, read, payload - read


def _table(rows: Sequence[tuple[Any, ...]], schema: pa.Schema) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else ([] for _ in schema)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)
