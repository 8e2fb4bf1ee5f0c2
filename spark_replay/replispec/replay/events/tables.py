"""Observations as Arrow tables: one schema a kind, whose columns are the fields of its class."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from functools import cache
from typing import Any, Final

import pyarrow as pa

from replispec.replay.events.kinds import KINDS, names_of
from replispec.replay.events.observation import Observation, ObservationKind
from replispec.replay.frames.tables import ENTRY, PULLED, RECORD

_ENTRY: Final = pa.struct([("epoch", pa.int32()), ("start_offset", pa.int64())])
_HOST: Final = pa.struct([("broker", pa.string()), ("address", pa.string())])
_LEAD: Final = pa.struct([("index", pa.int32()), ("queue_id", pa.int32())])
_SEGMENT: Final = pa.struct(
    [
        ("index", pa.int32()),
        ("generation", pa.int32()),
        ("broker", pa.string()),
        ("queue_id", pa.int32()),
        ("logical_start", pa.int64()),
        ("physical_start", pa.int64()),
        ("physical_end", pa.int64()),
        ("state", pa.string()),
    ]
)
_BATCH: Final = pa.struct(
    [
        ("base", pa.int64()),
        ("last", pa.int64()),
        ("epoch", pa.int32()),
        ("crc", pa.int64()),
        ("count", pa.int32()),
    ]
)
_LISTENER: Final = pa.struct([("id", pa.int64()), ("address", pa.string())])
_TYPES: Final[Mapping[str, pa.DataType]] = {
    "order": pa.int64(),
    "time_ns": pa.int64(),
    "direction": pa.int8(),
    "sequence": pa.int64(),
    "index": pa.int32(),
    "broker_id": pa.int64(),
    "code": pa.int32(),
    "master_epoch": pa.int32(),
    "sync_state_set_epoch": pa.int32(),
    "body_epoch": pa.int32(),
    "members": pa.list_(pa.string()),
    "accepted": pa.bool_(),
    "designated": pa.bool_(),
    "is_leader": pa.bool_(),
    "sync_from_last_file": pa.bool_(),
    "async_learner": pa.bool_(),
    "max_offset": pa.int64(),
    "offset": pa.int64(),
    "request_order": pa.int64(),
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
    "body_crc": pa.int64(),
    "records": pa.list_(RECORD),
    "born_ms": pa.int64(),
    "duration_ns": pa.int64(),
    "durations_ns": pa.list_(pa.int64()),
    "answer_codes": pa.list_(pa.int32()),
    "remarks": pa.list_(pa.string()),
    "unanswered": pa.int32(),
    "evaluated": pa.int64(),
    "member": pa.int64(),
    "term": pa.int64(),
    "is_pre": pa.bool_(),
    "log_index": pa.int64(),
    "log_term": pa.int64(),
    "commit": pa.int64(),
    "entries": pa.list_(ENTRY),
    "opened": pa.bool_(),
    "whole": pa.bool_(),
    "mapping_epoch": pa.int64(),
    "total": pa.int32(),
    "forced": pa.bool_(),
    "leads": pa.list_(_LEAD),
    "segments": pa.list_(_SEGMENT),
    "queue_id": pa.int32(),
    "queue_offset": pa.int64(),
    "logical": pa.bool_(),
    "physical": pa.bool_(),
    "asked": pa.int64(),
    "next_begin": pa.int64(),
    "min_offset": pa.int64(),
    "end_offset": pa.int64(),
    "offset_delta": pa.int64(),
    "filtered": pa.bool_(),
    "redirected": pa.bool_(),
    "carried": pa.int64(),
    "pulled": pa.list_(PULLED),
    "committed": pa.bool_(),
    "asked_code": pa.int32(),
    "hosts": pa.list_(_HOST),
    "sub_version": pa.int64(),
    "tag_code": pa.int32(),
    "tag_codes": pa.list_(pa.int32()),
    "data": pa.binary(),
    "children": pa.list_(pa.string()),
    "zxid": pa.int64(),
    "session": pa.int64(),
    "partition": pa.int32(),
    "acks": pa.int32(),
    "batches": pa.list_(_BATCH),
    "high_watermark": pa.int64(),
    "controller_id": pa.int64(),
    "controller_epoch": pa.int64(),
    "leader": pa.int64(),
    "isr": pa.list_(pa.int64()),
    "replicas": pa.list_(pa.int64()),
    "brokers": pa.list_(_LISTENER),
}
"""The types of columns that are no text."""
SCHEMAS: Final[Mapping[ObservationKind, pa.Schema]] = {
    kind: pa.schema([(name, _TYPES.get(name, pa.string())) for name in names_of(kind)]) for kind in KINDS
}
"""The columns of each kind: its place, and what it tells."""
SORTED_BY: Final = ("capture", "connection", "direction", "sequence", "index")
"""The order of the rows of each table."""

Events = Mapping[ObservationKind, pa.Table]
"""The observations of some connections: a table of every kind, some without rows."""


def to_tables(observations: Iterable[Observation]) -> Events:
    """The observations as tables, each kind in the order given."""
    rows: dict[ObservationKind, list[Observation]] = defaultdict(list)
    for row in observations:
        rows[row.kind].append(row)
    return {**no_events(), **{kind: _table(SCHEMAS[kind], each) for kind, each in rows.items()}}


def _table(schema: pa.Schema, rows: list[Observation]) -> pa.Table:
    columns = [pa.array([getattr(row, field.name) for row in rows], field.type) for field in schema]
    return pa.Table.from_arrays(columns, schema=schema)


def rows_of(
    kind: ObservationKind, table: pa.Table, joined: Mapping[str, Sequence[Any]] | None = None
) -> list[Observation]:
    """The rows of the table of one kind; `joined`: what no table has, as far as it is known."""
    nothing = [None] * table.num_rows
    columns: list[Sequence[Any]] = [
        (joined or {}).get(each.name, nothing) if each.metadata else table.column(each.name).to_pylist()
        for each in fields(KINDS[kind])
    ]
    return [KINDS[kind](*values) for values in zip(*columns, strict=True)]


@cache
def no_events() -> Events:
    """Tables without rows. They are made when they are first asked for: Arrow then looks for pandas."""
    return {kind: schema.empty_table() for kind, schema in SCHEMAS.items()}


def joined_events(parts: Iterable[tuple[ObservationKind, pa.Table]]) -> Events:
    """The tables of several parts of a capture, in the order of the whole."""
    found: dict[ObservationKind, list[pa.Table]] = defaultdict(list)
    for kind, table in parts:
        found[kind].append(table)
    empty = no_events()
    made = {kind: in_order(pa.concat_tables([empty[kind], *tables])) for kind, tables in found.items()}
    return {**empty, **made}


def in_order(table: pa.Table) -> pa.Table:
    """The table of one kind, sorted."""
    return table.sort_by([(name, "ascending") for name in SORTED_BY])
