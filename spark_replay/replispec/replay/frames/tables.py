"""The tables of a decoded capture: frames, holes and streams, as Arrow columns.

FRAMES: one row a frame. Positions and sizes are bytes, times int64 ns UTC, `direction` 0 from the
first endpoint of the connection to the second and 1 back, `index` counts the frames of a direction
from 0. `complete`: every byte was captured; `from_start`: the direction was seen from its SYN and
without a gap before this frame. `record_offset`: file offset of the packet that completed it.
`acknowledged`: the TCP number that the packet with its last known byte acknowledges, 32 bits, -1 for none.
HOLES: one row a stretch [start, end) of bytes that were on the wire and are not in the capture.
STREAMS: one row a direction; bytes of foreign and legacy streams are neither decoded nor undecoded.
`first_number`: the TCP sequence number of position 0; `accepted`: it sends who accepted the connection.
Rows are sorted by capture, connection, direction, sequence, index.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain as flatten
from typing import Any

import numpy as np
import pyarrow as pa

from replispec.replay.frames.framing import DECODED_KINDS, Decoded
from replispec.replay.frames.rocketmq.readers import REMOTING, AnswerFixed, AnswerMessage, Message, Outcome
from replispec.replay.tcp.directions import Direction
from replispec.wire.rocketmq import ha, remoting

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
REMOTING_FIELDS = [
    pa.field("code", pa.int32()),
    pa.field("flag", pa.int32()),
    pa.field("opaque", pa.int32()),
    pa.field("language", pa.string()),
    pa.field("version", pa.int32()),
    pa.field("serialize_type", pa.int8()),
    pa.field("remark", pa.string()),
    pa.field("ext_fields", pa.map_(pa.string(), pa.string())),
]
BODY_FIELDS = [
    pa.field("body_size", pa.int32()),
    pa.field("json_body", pa.binary()),
]
HA_FIELDS = [
    pa.field("message", pa.string()),
    pa.field("state", pa.int32()),
    pa.field("sync_from_last_file", pa.bool_()),
    pa.field("async_learner", pa.bool_()),
    pa.field("broker_id", pa.int64()),
    pa.field("broker_address", pa.string()),
    pa.field("max_offset", pa.int64()),
    pa.field("last_epoch", pa.int32()),
    pa.field("epochs", pa.list_(pa.struct([("epoch", pa.int32()), ("start_offset", pa.int64())]))),
    pa.field("offset", pa.int64()),
    pa.field("epoch", pa.int32()),
    pa.field("epoch_start_offset", pa.int64()),
    pa.field("confirm_offset", pa.int64()),
    pa.field("body_digest", pa.int64()),
]
FRAMES: pa.Schema = pa.schema(
    [*PLACE_FIELDS, *REMOTING_FIELDS, *BODY_FIELDS, *HA_FIELDS, pa.field("body", pa.binary())]
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
    ]
)
# The order of the rows of each table.
FRAMES_ORDER = ("capture", "connection", "direction", "sequence", "index")
HOLES_ORDER = ("capture", "connection", "direction", "start")
STREAMS_ORDER = ("capture", "connection", "direction")

HaRow = tuple[Any, ...]


def frames_batch(capture: str, directions: Sequence[Decoded]) -> pa.RecordBatch:
    """The frames of some directions, in the given order, as one batch of FRAMES."""
    filled = [decoded for decoded in directions if decoded.positions]
    counts = np.array([len(decoded.positions) for decoded in filled], np.int64)
    outcomes = list(flatten.from_iterable(decoded.outcomes for decoded in filled))
    kinds = [decoded.kind == REMOTING for decoded in filled]
    encodings = [
        outcome[5] if own else None
        for decoded, own in zip(filled, kinds, strict=True)
        for outcome in decoded.outcomes
    ]
    arrays = [
        *_places(capture, filled, counts),
        *_remoting([row[1] for row in outcomes], encodings, kinds, counts),
        pa.array([row[2] for row in outcomes], pa.int32()),
        pa.array([row[3] for row in outcomes], pa.binary()),
        *_ha(filled),
        pa.array([row[4] for row in outcomes], pa.binary()),
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=FRAMES)


def _places(capture: str, filled: Sequence[Decoded], counts: np.ndarray[Any, Any]) -> list[pa.Array]:
    """The columns that say where a frame is."""
    sizes = [decoded.sizes for decoded in filled]
    positions = [np.array(decoded.positions, np.int64) for decoded in filled]
    extents = [decoded.extents() for decoded in filled]
    row = np.repeat(np.arange(len(filled)), counts)

    def spread(values: Iterable[object], kind: pa.DataType) -> pa.Array:
        return pa.array(list(values), kind).take(pa.array(row))

    whole = [found.known == size for found, size in zip(extents, sizes, strict=True)]
    early = [place <= decoded.unbroken_until for decoded, place in zip(filled, positions, strict=True)]
    return [
        pa.array([capture], pa.string()).take(pa.array(np.zeros(len(row), np.int64))),
        spread((decoded.direction.connection for decoded in filled), pa.string()),
        spread((decoded.direction.number for decoded in filled), pa.int8()),
        _joined(positions, np.int64),
        _joined([_indexes(decoded) for decoded in filled], np.int32),
        _joined([found.time_ns for found in extents], np.int64),
        _joined([found.record_offset for found in extents], np.int64),
        _joined([found.acknowledged for found in extents], np.int64),
        spread((decoded.direction.source for decoded in filled), pa.string()),
        spread((decoded.direction.destination for decoded in filled), pa.string()),
        spread((decoded.kind for decoded in filled), pa.string()),
        _joined(sizes, np.int64),
        _joined(whole, np.bool_),
        _joined(early, np.bool_),
    ]


def _joined(parts: Sequence[np.ndarray[Any, Any]], kind: type[Any]) -> pa.Array:
    return pa.array(np.concatenate([np.zeros(0, kind), *parts]).astype(kind))


def _indexes(decoded: Decoded) -> np.ndarray[Any, Any]:
    """The number of each frame in its direction, frames of chains counted."""
    index = np.arange(len(decoded.positions), dtype=np.int64)
    for before, chain in decoded.chains:
        index[before:] += chain.frames
    return index


def _remoting(
    messages: list[Message | None],
    encodings: list[int | None],
    kinds: list[bool],
    counts: np.ndarray[Any, Any],
) -> list[pa.Array]:
    """The columns of remoting headers, null for other frames."""
    if not all(kinds):
        mine = np.repeat(np.array(kinds, np.bool_), counts).tolist()
        rows: list[Any] = [
            message if own else _NO_HEADER for message, own in zip(messages, mine, strict=True)
        ]
    else:
        rows = messages
    return [
        pa.array([row.code for row in rows], pa.int32()),
        pa.array([row.flag for row in rows], pa.int32()),
        pa.array([row.opaque for row in rows], pa.int32()),
        pa.array([row.language for row in rows], pa.string()),
        pa.array([row.version for row in rows], pa.int32()),
        pa.array(encodings, pa.int8()),
        pa.array([row.remark for row in rows], pa.string()),
        _maps([row.ext_fields for row in rows]),
    ]


class _NoHeader:
    """Stands for the header of a frame that has none: everything is null."""

    code = flag = opaque = language = version = remark = ext_fields = None


_NO_HEADER = _NoHeader()


def _maps(rows: list[dict[str, str | None] | None]) -> pa.Array:
    """A map column; a null row stays null."""
    lengths = np.array([len(row) if row else 0 for row in rows], np.int64)
    ends = np.cumsum(lengths)
    offsets: list[int | None] = np.concatenate([[0], ends]).tolist()
    for at, row in enumerate(rows):
        if row is None:
            offsets[at] = None
    keys = list(flatten.from_iterable(row for row in rows if row))
    items = list(flatten.from_iterable(row.values() for row in rows if row))
    return pa.MapArray.from_arrays(
        pa.array(offsets, pa.int32()), pa.array(keys, pa.string()), pa.array(items, pa.string())
    )


def _ha(filled: Sequence[Decoded]) -> list[pa.Array]:
    """The columns of replication messages, null for remoting frames."""
    rows = [ha_row(outcome) for decoded in filled if decoded.kind != REMOTING for outcome in decoded.outcomes]
    if not rows:
        count = sum(len(decoded.positions) for decoded in filled)
        return [pa.nulls(count, field.type) for field in HA_FIELDS]
    place: list[int | None] = []
    known = 0
    for decoded in filled:
        count = len(decoded.positions)
        if decoded.kind == REMOTING:
            place.extend([None] * count)
        else:
            place.extend(range(known, known + count))
            known += count
    at = pa.array(place, pa.int64())
    columns = zip(*rows, strict=True)
    return [pa.array(column, field.type).take(at) for column, field in zip(columns, HA_FIELDS, strict=True)]


def ha_row(outcome: Outcome) -> HaRow:
    """The values of HA_FIELDS of one replication frame."""
    message = outcome[1]
    if message is None or isinstance(message, remoting.RemotingHeader):
        raise TypeError(f"{message!r} is no message of a replication stream")
    name = type(message).__name__.removesuffix("Fixed")
    flags: tuple[bool | None, bool | None] = (None, None)
    broker_id = address = max_offset = last_epoch = epochs = None
    transfer: tuple[int | None, ...] = (None,) * 5
    if isinstance(message, ha.HaHandshakeId | ha.HaHandshakeAddress):
        flags = (message.sync_from_last_file, message.async_learner)
        if isinstance(message, ha.HaHandshakeId):
            broker_id = message.broker_id
        else:
            address = message.address
    elif isinstance(message, ha.HaReport):
        max_offset = message.max_offset
    elif isinstance(message, AnswerMessage | AnswerFixed):
        max_offset, last_epoch = message.max_offset, message.last_epoch
        if isinstance(message, AnswerMessage):
            epochs = [{"epoch": item.epoch, "start_offset": item.start_offset} for item in message.entries]
    elif isinstance(message, ha.HaTransferHeaderFixed):
        transfer = (
            message.offset,
            message.epoch,
            message.epoch_start_offset,
            message.confirm_offset,
            outcome[5],
        )
    else:
        raise TypeError(f"{name} is not decoded")
    return (name, message.state, *flags, broker_id, address, max_offset, last_epoch, epochs, *transfer)


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
        payload, read, missed = stream_bytes(decoded)
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


def stream_bytes(decoded: Decoded) -> tuple[int, int, int]:
    """Captured payload bytes of a direction, each counted once: all, in frames, in no frame."""
    pieces = decoded.space.pieces
    payload = int((pieces.end - pieces.start).sum()) + decoded.direction.bytes_early
    if decoded.kind not in DECODED_KINDS:
        return payload, 0, 0
    read = sum(chain.end - chain.start for _, chain in decoded.chains)
    if decoded.positions:
        read += int(decoded.extents().known.sum())
    return payload, read, payload - read


def _table(rows: Sequence[tuple[Any, ...]], schema: pa.Schema) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else ([] for _ in schema)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)
