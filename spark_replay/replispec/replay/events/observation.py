"""What was seen on the wire, one row each, before anybody knows which broker group it is about.

Frames become observations connection by connection; only then are names, addresses and lives joined
(`groups.py`) and invariants judged. The rows are few and small: bodies of messages never reach them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any

import pyarrow as pa


class ObservationKind(StrEnum):
    """What an observation tells."""

    CONTROLLER = "controller"  # address speaks for the controller group `name`
    BROKER = "broker"  # broker `name` of `cluster` has `address`, `broker_id`, `ha_address`
    ALIVE = "alive"  # a heartbeat; tells what BROKER tells
    CLOSED = "closed"  # the connection that carried the heartbeats of the broker at `address` was closed
    LEADER = "leader"  # the controller at `address` calls `controller` the leader of its group `name`
    REGISTRATION = "registration"  # one step of the registration of the broker `name`
    START = "start"  # one step of the start of the broker at `address`, or of whoever has the connection
    DECISION = "decision"  # what the broker set `name` was asked, or how a controller decided it
    GRANTED = "granted"  # broker id given to the owner of the check code in `text`
    CLEANED = "cleaned"  # ids in `text` removed from `name`; without text the whole broker set
    FACT = "fact"  # what a controller said about a broker group
    ALTERATION = "alteration"  # an answered request for another SyncStateSet
    ACKNOWLEDGED = "acknowledged"  # a producer was told that its message is stored at `offset`
    EPOCHS = "epochs"  # a broker told its epochs
    OPENED = "opened"  # a replication connection seen from its first bytes
    GAP = "gap"  # bytes of a replication connection were lost here
    HANDSHAKE = "handshake"
    ANSWER = "answer"
    REPORT = "report"
    BATCH = "batch"
    HEARTBEAT = "heartbeat"
    PAIRED = "paired"  # the number of answers of one connection by verdict, in `text`
    MISPAIRED = "mispaired"  # an answer that is no plain answer to a request
    UNSEEN = "unseen"  # answers to clients of the broker at `address` may have been lost
    LATENCY = "latency"  # how long the requests of one code waited on one connection
    UNDECODABLE = "undecodable"  # a command whose fields break their types


@dataclass(slots=True)
class Observation:
    """One row. `order` is the file offset of the packet that delivered it: the order of the capture.

    Offsets are commit-log bytes, times int64 ns UTC; None is a value that the frame does not carry.
    `controller` is the address of the answering controller, `address` a broker's main address (of a
    replication connection: the master's replication address). `message` names the event that a step is,
    `content` holds its fields or what an answer claims; `opaque` joins the steps of a request and its answer.
    `version` is the one in the header of the broker that tells its address. `duration_ns` is the time from
    the request to the answer that tells the row; `durations_ns`, `unanswered`: all requests of a code.
    """

    capture: str
    kind: str
    order: int
    time_ns: int
    connection: str
    direction: int
    sequence: int
    index: int
    name: str | None = None
    cluster: str | None = None
    controller: str | None = None
    address: str | None = None
    ha_address: str | None = None
    broker_id: int | None = None
    text: str | None = None
    code: int | None = None
    named_by: str | None = None
    master: str | None = None
    master_address: str | None = None
    master_epoch: int | None = None
    sync_state_set_epoch: int | None = None
    members: list[str] | None = None
    requester: str | None = None
    accepted: bool | None = None
    designated: bool | None = None
    sync_from_last_file: bool | None = None
    async_learner: bool | None = None
    max_offset: int | None = None
    offset: int | None = None
    body_size: int | None = None
    epoch: int | None = None
    epoch_start_offset: int | None = None
    confirm_offset: int | None = None
    epochs: list[dict[str, int]] | None = None
    message: str | None = None
    content: str | None = None
    opaque: int | None = None
    version: int | None = None
    timeout_ms: int | None = None
    from_start: bool | None = None
    body_digest: int | None = None
    duration_ns: int | None = None
    durations_ns: list[int] | None = None
    unanswered: int | None = None
    group: str | None = None


_ENTRY = pa.struct([("epoch", pa.int32()), ("start_offset", pa.int64())])
_TYPES: Mapping[str, pa.DataType] = {
    "order": pa.int64(),
    "time_ns": pa.int64(),
    "direction": pa.int8(),
    "sequence": pa.int64(),
    "index": pa.int32(),
    "broker_id": pa.int64(),
    "code": pa.int32(),
    "master_epoch": pa.int32(),
    "sync_state_set_epoch": pa.int32(),
    "members": pa.list_(pa.string()),
    "accepted": pa.bool_(),
    "designated": pa.bool_(),
    "sync_from_last_file": pa.bool_(),
    "async_learner": pa.bool_(),
    "max_offset": pa.int64(),
    "offset": pa.int64(),
    "body_size": pa.int32(),
    "epoch": pa.int32(),
    "epoch_start_offset": pa.int64(),
    "confirm_offset": pa.int64(),
    "epochs": pa.list_(_ENTRY),
    "opaque": pa.int32(),
    "version": pa.int32(),
    "timeout_ms": pa.int64(),
    "from_start": pa.bool_(),
    "body_digest": pa.int64(),
    "duration_ns": pa.int64(),
    "durations_ns": pa.list_(pa.int64()),
    "unanswered": pa.int32(),
}
NAMES = tuple(field.name for field in fields(Observation))
SCHEMA = pa.schema([(name, _TYPES.get(name, pa.string())) for name in NAMES])
"""Columns of the events table: the attributes of Observation, in their order."""

SORTED_BY = ("capture", "connection", "direction", "sequence", "index", "kind")


def to_table(observations: Iterable[Observation]) -> pa.Table:
    """The observations as a table of SCHEMA, in the order given."""
    rows = list(observations)
    columns = {name: [getattr(row, name) for row in rows] for name in NAMES}
    return pa.table({name: pa.array(columns[name], SCHEMA.field(name).type) for name in NAMES}, schema=SCHEMA)


def from_table(table: pa.Table) -> list[Observation]:
    """The inverse of to_table."""
    columns: list[list[Any]] = [table.column(name).to_pylist() for name in NAMES]
    return [Observation(*values) for values in zip(*columns, strict=True)]


def capture_place(row: Observation) -> tuple[Any, ...]:
    """Where a row stands in the order of its capture: as it was seen delivered; within one direction in the
    order of the bytes.

    A connection is opened before its first frame, and a gap stands after the frame before it.
    """
    side = (row.kind == ObservationKind.GAP) - (row.kind == ObservationKind.OPENED)
    return row.capture, row.order, row.connection, row.direction, row.sequence, row.index, side


def in_capture_order(observations: Iterable[Observation]) -> list[Observation]:
    """Sorted by their places in the capture."""
    return sorted(observations, key=capture_place)
