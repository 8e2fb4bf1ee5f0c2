"""The streams that a busy capture has much of as columns: see stream_events.py for what they hold."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from types import SimpleNamespace
from typing import Any, Final

from replispec.replay.events.event_tables import EventTable, table_of
from replispec.replay.events.observation import Observation, ObservationKind
from replispec.replay.events.rocketmq.stream_events import StreamEvent
from replispec.runtime.primitives.unknown import UNKNOWN
from replispec.wire.rocketmq.ha import HaEpochEntry

FRAMES: Final = frozenset(
    (
        ObservationKind.OPENED,
        ObservationKind.GAP,
        ObservationKind.HANDSHAKE,
        ObservationKind.ANSWER,
        ObservationKind.REPORT,
        ObservationKind.BATCH,
        ObservationKind.HEARTBEAT,
    )
)
_MANY: Final = {
    "ha": frozenset(FRAMES),
    "ranges": frozenset(("range",)),
    "confirms": frozenset(("confirm",)),
    "logs": frozenset(("log_end",)),
    "sends": frozenset((ObservationKind.ACKNOWLEDGED,)),
}
"""Kinds of events by stream that there is much of. The others of a stream come before all of them."""
_OFFSETS: Final = (
    "offset",
    "body_size",
    "max_offset",
    "confirm_offset",
    "epoch_start_offset",
    "size",
    "digest",
    "first_digest",
    "covered",
    "end",
    "before",
    "acknowledged",
    "rank",
)
"""Attributes that are numbers of their own; those of few values are codes."""
_OF_FRAMES: Final = (
    "connection",
    "direction",
    "group",
    "address",
    "message",
    "sync_from_last_file",
    "async_learner",
    "broker_id",
    "max_offset",
    "offset",
    "body_size",
    "epoch",
    "epoch_start_offset",
    "confirm_offset",
)


def in_columns(events: Iterable[StreamEvent]) -> tuple[list[StreamEvent], list[EventTable]]:
    """The events that there is little of, and a table of each stream that there is much of."""
    listed: list[StreamEvent] = []
    many: dict[str, list[tuple[str, Any]]] = defaultdict(list)
    for each in events:
        if each.name in _MANY.get(each.stream, ()):
            many[each.stream].append((each.name, each.event))
        else:
            listed.append(each)
    return listed, [_table(stream, each) for stream, each in many.items()]


def _table(stream: str, events: Sequence[tuple[str, Any]]) -> EventTable:
    return table_of(stream, events, _OFFSETS, lambda place: events[place][1].row)


def frames_of(rows: Iterable[Observation]) -> EventTable:
    """The frames of all replication connections, as the machines of both ends ask for them."""
    own = [row for row in rows if row.kind in FRAMES]
    return table_of("frames", [(row.kind.value, _frame(row)) for row in own], _OFFSETS, own.__getitem__)


def _frame(row: Observation) -> SimpleNamespace:
    """The fields of a frame; the epochs of an answer with a hole were not seen."""
    entries: Any = UNKNOWN
    if row.epochs is not None:
        entries = tuple(HaEpochEntry(each["epoch"], each["start_offset"]) for each in row.epochs)
    return SimpleNamespace(entries=entries, **{name: getattr(row, name) for name in _OF_FRAMES})
