"""The streams of events that invariants speak about, made from the observations of one capture.

Which attributes an event has is declared in spec/invariants/rocketmq/streams.yaml; an attribute whose
value was not seen is UNKNOWN. Every event carries its observation as `row`, which is its evidence.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import SimpleNamespace
from typing import Any

import numpy as np

from replispec.replay.events.capture_events import CaptureEvents
from replispec.replay.events.columns import EventTable, Rows
from replispec.replay.events.observation import Observation, ObservationKind, capture_place
from replispec.replay.events.rocketmq.confirms import confirms
from replispec.replay.events.rocketmq.facts import BY_ID
from replispec.replay.events.rocketmq.grants import grants
from replispec.replay.events.rocketmq.groups import BrokerGroups, learn_groups
from replispec.replay.events.rocketmq.leaders import leader_changes
from replispec.replay.events.rocketmq.ranges import ranges
from replispec.replay.events.rocketmq.stream_tables import (
    EpochSigns,
    Tenure,
    replication_table,
    sends_table,
    signs_of,
)
from replispec.runtime.primitives.unknown import UNKNOWN

__all__ = ["History", "Judged", "StreamEvent", "Tenure", "join"]

_ABOUT_NO_GROUP = (
    ObservationKind.CONTROLLER,
    ObservationKind.LEADER,
    ObservationKind.PAIRED,
    ObservationKind.MISPAIRED,
    ObservationKind.LATENCY,
)


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """One event: the stream that it belongs to, its kind there, and the object with its attributes."""

    stream: str
    name: str
    event: Any

    @property
    def group(self) -> str:
        """The broker group that the event is about."""
        return str(self.event.group)


@dataclass(slots=True)
class History:
    """What a capture tells of each group: who was master of which epoch, and where epochs start."""

    tenures: dict[str, dict[int, Tenure]] = field(default_factory=lambda: defaultdict(dict))
    starts: dict[str, dict[int, int]] = field(default_factory=lambda: defaultdict(dict))
    learners: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))


@dataclass
class Judged:
    """Everything that one capture's observations were joined to.

    `few` are the rows of all kinds but MANY, `listed` the events of the streams that are made of them, and
    `tables` the streams of the others, by their names.
    """

    few: list[Observation]
    groups: BrokerGroups
    history: History
    listed: list[StreamEvent]
    tables: dict[str, EventTable]
    _events: CaptureEvents

    @cached_property
    def rows(self) -> list[Observation]:
        """All rows in the order of the capture, with their groups: for who must see each."""
        places, rows = self._events.many()
        for stream in ("ha", "sends"):
            _complete(self.tables[stream], places, rows)
        return self._events.merged(places, rows)

    @property
    def events(self) -> Iterator[StreamEvent]:
        """All events, one by one: those that are listed, then those of the tables."""
        yield from self.listed
        for table in self.tables.values():
            for row in range(len(table)):
                yield StreamEvent(table.stream, table.name(row), table.shown(row))


def _complete(table: EventTable, places: Rows, rows: list[Observation]) -> None:
    """Give rows, which stand at these places, what their table knows: groups, and the epochs of messages."""
    groups, epochs = table.known["group"], table.known["epoch"]
    own = np.flatnonzero(np.isin(table.places, places))
    for at, row in zip(np.searchsorted(places, table.places[own]).tolist(), own.tolist(), strict=True):
        rows[at].group = groups.values[groups.codes[row]]
        epoch = epochs.values[epochs.codes[row]]
        rows[at].epoch = None if epoch is UNKNOWN else epoch


def join(
    observations: Sequence[Observation] | CaptureEvents,
    learners: Collection[str] = (),
    *,
    all_ack: bool = False,
) -> Judged:
    """Join the observations of one capture; `learners` are ids or addresses that the user knows as such.

    `all_ack`: the user knows that every member of the SyncStateSet acknowledges what is sent.
    Sets `group` of every observation.
    """
    events = observations if isinstance(observations, CaptureEvents) else CaptureEvents.of(observations)
    few = events.few
    groups = learn_groups(few)
    for row in few:
        if row.kind not in _ABOUT_NO_GROUP:
            row.group = groups.group(row)
    history = _history(few, learners)
    replication = replication_table(events, groups)
    sends = sends_table(events, groups, history.tenures)
    signs = signs_of(replication, sends)
    signs.add(_told(few))
    for group, epoch in signs.starts:
        history.starts[group][epoch] = signs.starts[group, epoch][1]
    listed = [
        *_facts(few, history),
        *_starts(signs, history),
        *_unseen(few, groups),
        *(
            StreamEvent("leaders", "leader_changed", event)
            for event in leader_changes(few, groups, events.end_ns)
        ),
        *(StreamEvent("grants", "granted", event) for event in grants(few, groups)),
    ]
    tables = {table.stream: table for table in (replication, sends, ranges(events, replication))}
    judged = Judged(few, groups, history, listed, tables, events)
    if all_ack:
        # Without it the rule says nothing, and there is an event for every frame.
        listed += [
            StreamEvent("confirms", "confirm", event) for event in confirms(judged.rows, all_ack=all_ack)
        ]
    return judged


def _history(rows: list[Observation], learners: Collection[str]) -> History:
    history = History()
    for row in rows:
        if row.group is None:
            continue
        history.learners[row.group].update(learners)
        if row.kind == ObservationKind.FACT and row.master is not None and row.master_epoch is not None:
            tenure = Tenure(row.master, row.master_address, row.order, row.time_ns)
            history.tenures[row.group].setdefault(row.master_epoch, tenure)
        elif row.kind == ObservationKind.HANDSHAKE and row.async_learner:
            history.learners[row.group].add(str(row.broker_id) if row.text is None else row.text)
    return history


def _told(rows: Iterable[Observation]) -> EpochSigns:
    """Where epochs start, as brokers told it when they were asked."""
    signs = EpochSigns()
    for row in rows:
        if row.kind in (ObservationKind.ANSWER, ObservationKind.EPOCHS) and row.group is not None:
            for entry in row.epochs or ():
                signs.tell(row.group, entry["epoch"], capture_place(row), entry["start_offset"])
    return signs


def _event(row: Observation, **attributes: Any) -> SimpleNamespace:
    return SimpleNamespace(row=row, group=row.group, **attributes)


# ---- facts and alterations -----------------------------------------------------------------------


def _facts(rows: list[Observation], history: History) -> Iterator[StreamEvent]:
    naming = _naming(rows)
    edits: Counter[str] = Counter()
    for row in rows:
        if row.kind == ObservationKind.CLEANED and row.text is not None:
            assert row.group is not None
            edits[row.group] += 1
        elif row.kind == ObservationKind.FACT:
            assert row.group is not None
            event = _event(
                row,
                stream=f"{row.connection} {row.direction}",
                named_by=row.named_by or naming.get(row.controller, BY_ID),
                code=row.code,
                master_epoch=row.master_epoch,
                sync_state_set_epoch=row.sync_state_set_epoch,
                master=row.master,
                members=None if row.members is None else frozenset(row.members),
                edits=edits[row.group],
                learners=frozenset(history.learners[row.group]),
            )
            yield StreamEvent("facts", "fact", event)
        elif row.kind == ObservationKind.ALTERATION:
            yield StreamEvent("alterations", "alteration", _alteration(row, history))


def _naming(rows: list[Observation]) -> dict[str | None, str]:
    """How each controller names brokers: by id or by address."""
    naming: dict[str | None, str] = {}
    for row in rows:
        if row.kind == ObservationKind.FACT and row.named_by is not None:
            naming.setdefault(row.controller, row.named_by)
    return naming


def _alteration(row: Observation, history: History) -> SimpleNamespace:
    assert row.group is not None
    epoch = row.master_epoch
    tenure = None if epoch is None else history.tenures[row.group].get(epoch)
    return _event(
        row,
        requester=row.requester,
        named_by=row.named_by,
        master_epoch=UNKNOWN if epoch is None else epoch,
        accepted=row.accepted,
        master=UNKNOWN if tenure is None else tenure.master,
    )


# ---- sends ---------------------------------------------------------------------------------------


def _starts(signs: EpochSigns, history: History) -> Iterator[StreamEvent]:
    """Known starts, for epochs without one the first accepted write as the latest possible start, and every
    epoch that has a master."""
    known = dict(signs.written)
    known |= {key: start for key, (_, start) in signs.starts.items()}
    for group, epoch in sorted(known):
        event = SimpleNamespace(row=None, group=group, epoch=epoch, start_offset=known[group, epoch])
        yield StreamEvent("sends", "epoch_started", event)
    for group in sorted(history.tenures):
        for epoch in sorted(history.tenures[group]):
            yield StreamEvent("sends", "epoch_named", SimpleNamespace(row=None, group=group, epoch=epoch))


def _unseen(rows: Iterable[Observation], groups: BrokerGroups) -> Iterator[StreamEvent]:
    """Messages that may have been acknowledged where bytes are missing."""
    for row in rows:
        if row.kind == ObservationKind.UNSEEN and groups.name_at(row.address) is not None:
            yield StreamEvent("sends", "acknowledged", _event(row, epoch=UNKNOWN, offset=UNKNOWN))
