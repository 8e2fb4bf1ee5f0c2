"""The streams of events that invariants speak about, made from the observations of one capture.

Which attributes an event has is declared in spec/invariants/rocketmq/streams.yaml; an attribute whose
value was not seen is UNKNOWN. Every event carries its observation as `row`, which is its evidence.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

from replispec.replay.events.observation import Acknowledged, Observation, ObservationKind, in_capture_order
from replispec.replay.events.rocketmq.confirms import SetChanges, confirms
from replispec.replay.events.rocketmq.epoch_starts import (
    ToldStarts,
    Witnesses,
    epochs_taken_back,
    knows_epoch,
)
from replispec.replay.events.rocketmq.facts import BY_ID
from replispec.replay.events.rocketmq.grants import grants, offers
from replispec.replay.events.rocketmq.groups import BrokerGroups, learn_groups
from replispec.replay.events.rocketmq.leaders import leader_changes
from replispec.replay.events.rocketmq.log_falls import LogFalls
from replispec.replay.events.rocketmq.offices import filled, followed, masters_by_handshake
from replispec.replay.events.rocketmq.ranges import ranges
from replispec.replay.events.rocketmq.tenures import Tenure, epoch_of
from replispec.replay.events.rocketmq.wholeness import controllers_were_seen
from replispec.runtime.primitives.unknown import UNKNOWN

_HA = {
    ObservationKind.OPENED: (),
    ObservationKind.GAP: (),
    ObservationKind.HANDSHAKE: ("sync_from_last_file", "async_learner"),
    ObservationKind.ANSWER: ("max_offset",),
    ObservationKind.REPORT: ("max_offset",),
    ObservationKind.BATCH: ("offset", "body_size", "epoch", "epoch_start_offset", "confirm_offset"),
    ObservationKind.HEARTBEAT: ("offset", "epoch", "epoch_start_offset", "confirm_offset"),
}
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


@dataclass(slots=True)
class Judged:
    """Everything that one capture's observations were joined to."""

    rows: list[Observation]
    groups: BrokerGroups
    history: History
    events: list[StreamEvent]


def join(
    observations: Sequence[Observation], learners: Collection[str] = (), *, all_ack: bool = False
) -> Judged:
    """Join the observations of one capture; `learners` are ids or addresses that the user knows as such.

    `all_ack`: the user knows that every member of the SyncStateSet acknowledges what is sent.
    The rows are the observations with their `group`, and the `epoch` of what was acknowledged.
    """
    rows = in_capture_order(observations)
    groups = learn_groups(rows)
    rows = [row if row.kind in _ABOUT_NO_GROUP else replace(row, group=groups.group(row)) for row in rows]
    history = _history(rows, groups, learners)
    rows = [_with_epoch(row, history) if isinstance(row, Acknowledged) else row for row in rows]
    events = [
        *_facts(rows, groups, history),
        *_replication(rows),
        *_sends(rows, groups, history, all_ack=all_ack),
        *(StreamEvent("ranges", "range", event) for event in ranges(rows)),
        *(StreamEvent("leaders", "leader_changed", event) for event in leader_changes(rows, groups)),
        *(StreamEvent("grants", "granted", event) for event in grants(rows, groups)),
        *(StreamEvent("offers", "offered", event) for event in offers(rows)),
    ]
    if all_ack:
        # Without the setting the rule says nothing, and there is an event for every frame.
        events += (StreamEvent("confirms", "confirm", event) for event in confirms(rows, all_ack=all_ack))
    return Judged(rows, groups, history, events)


def _history(rows: list[Observation], groups: BrokerGroups, learners: Collection[str]) -> History:
    history = History()
    witnesses: dict[str, Witnesses] = defaultdict(Witnesses)
    taken_back = epochs_taken_back(rows)
    for row in rows:
        if row.group is None:
            continue
        history.learners[row.group].update(learners)
        if row.kind == ObservationKind.FACT and row.master is not None and row.master_epoch is not None:
            if (row.group, row.master_epoch) not in taken_back:
                tenure = Tenure(row.master, row.master_address, row.order, row.time_ns, row.named_by)
                history.tenures[row.group].setdefault(row.master_epoch, tenure)
        elif row.kind == ObservationKind.HANDSHAKE and row.async_learner:
            history.learners[row.group].add(str(row.broker_id) if row.text is None else row.text)
        else:
            witnesses[row.group].hear(row)
    for group, offices in masters_by_handshake(rows, groups).items():
        tenures = history.tenures[group]
        named = {epoch: tenure.address for epoch, tenure in tenures.items()}
        for epoch, (address, row) in filled(named, offices, witnesses[group].epochs()).items():
            tenures[epoch] = Tenure(address, address, row.order, row.time_ns)
    for group, each in witnesses.items():
        history.starts[group].update(each.believed(history.tenures[group].keys()))
    return history


def _event(row: Observation, **attributes: Any) -> SimpleNamespace:
    return SimpleNamespace(row=row, group=row.group, **attributes)


# ---- facts and alterations -----------------------------------------------------------------------


def _facts(rows: list[Observation], groups: BrokerGroups, history: History) -> Iterator[StreamEvent]:
    naming = _naming(rows)
    whole = controllers_were_seen(rows, groups)
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
                body_epoch=row.body_epoch,
                master=row.master,
                master_address=row.master_address,
                address_told=groups.has_told(row.name, row.master, row.master_address),
                members=None if row.members is None else frozenset(row.members),
                edits=edits[row.group],
                learners=frozenset(history.learners[row.group]),
                whole=whole,
            )
            yield StreamEvent("facts", "fact", event)
        elif row.kind == ObservationKind.ALTERATION:
            yield StreamEvent("alterations", "alteration", _alteration(row, history, whole=whole))


def _naming(rows: list[Observation]) -> dict[str | None, str]:
    """How each controller names brokers: by id or by address."""
    naming: dict[str | None, str] = {}
    for row in rows:
        if row.kind == ObservationKind.FACT and row.named_by is not None:
            naming.setdefault(row.controller, row.named_by)
    return naming


def _alteration(row: Observation, history: History, *, whole: bool) -> SimpleNamespace:
    assert row.group is not None
    epoch = row.master_epoch
    tenure = None if epoch is None else history.tenures[row.group].get(epoch)
    return _event(
        row,
        requester=row.requester,
        named_by=row.named_by,
        master_epoch=UNKNOWN if epoch is None else epoch,
        accepted=row.accepted,
        master=UNKNOWN if tenure is None else tenure.name(row.named_by),
        whole=whole,
    )


# ---- replication ---------------------------------------------------------------------------------


def _replication(rows: list[Observation]) -> Iterator[StreamEvent]:
    known: dict[str, set[int]] = defaultdict(set)
    told: dict[str, ToldStarts] = defaultdict(ToldStarts)
    changes = SetChanges(rows)
    for row in rows:
        kind = ObservationKind(row.kind)
        if kind not in _HA:
            continue
        starts = known[row.connection]
        starts.update(entry["start_offset"] for entry in row.epochs or ())
        attributes = {name: getattr(row, name) for name in _HA[kind]}
        if kind == ObservationKind.HANDSHAKE:
            attributes["by_id"] = row.broker_id is not None
        elif kind == ObservationKind.ANSWER:
            told[row.connection].answered(row)
        elif kind in (ObservationKind.BATCH, ObservationKind.HEARTBEAT):
            attributes["settled"] = changes.none_near(row)
            before = told[row.connection].header(row)
            if knows_epoch(row):
                assert row.epoch_start_offset is not None
                starts.add(row.epoch_start_offset)
            if kind == ObservationKind.BATCH:
                attributes |= before | {"known_starts": sorted(starts)}
        yield StreamEvent("ha", kind.value, _event(row, connection=row.connection, **attributes))


# ---- sends ---------------------------------------------------------------------------------------


def _sends(
    rows: list[Observation], groups: BrokerGroups, history: History, *, all_ack: bool
) -> Iterator[StreamEvent]:
    acknowledged = [row for row in rows if row.kind == ObservationKind.ACKNOWLEDGED]
    written: dict[str, dict[int, Observation]] = defaultdict(dict)
    for row in acknowledged:
        assert row.group is not None
        assert row.offset is not None
        if row.epoch is not None:
            first = written[row.group].setdefault(row.epoch, row)
            if first.offset is not None and row.offset < first.offset:
                written[row.group][row.epoch] = row
    starts = {
        name: _epoch_starts(history.starts[name], written[name])
        for name in sorted(written.keys() | history.starts.keys())
    }
    for name, known in starts.items():
        for epoch in sorted(known):
            event = SimpleNamespace(row=None, group=name, epoch=epoch, start_offset=known[epoch])
            yield StreamEvent("sends", "epoch_started", event)
    masters = {
        name: {epoch: tenure.address for epoch, tenure in tenures.items()}
        for name, tenures in history.tenures.items()
    }
    for event in followed(rows, groups, masters, starts, all_ack=all_ack):
        yield StreamEvent("offices", "followed", event)
    falls = LogFalls(rows, groups, history.tenures)
    yield from (StreamEvent("logs", "log_end", event) for event in falls.ends())
    for name in sorted(history.tenures):
        for epoch in sorted(history.tenures[name]):
            event = SimpleNamespace(row=None, group=name, epoch=epoch)
            yield StreamEvent("sends", "epoch_named", event)
    for row in acknowledged:
        assert row.group is not None
        event = _event(
            row,
            epoch=UNKNOWN if row.epoch is None else row.epoch,
            offset=row.offset,
            cut_to=falls.cut_to(row),
            given_again=falls.is_given_again(row),
            is_message=True,
            followed=row.epoch is not None and max(starts[row.group]) > row.epoch,
        )
        yield StreamEvent("sends", "acknowledged", event)
    for row in rows:
        if row.kind == ObservationKind.UNSEEN and groups.name_at(row.address) is not None:
            event = _event(row, epoch=UNKNOWN, offset=UNKNOWN, cut_to=None, given_again=False)
            event.is_message = event.followed = False
            yield StreamEvent("sends", "acknowledged", event)


def _with_epoch(row: Acknowledged, history: History) -> Acknowledged:
    assert row.group is not None
    epoch = epoch_of(row, history.tenures[row.group], history.starts[row.group])
    return replace(row, epoch=None if epoch is UNKNOWN else epoch)


def _epoch_starts(starts: dict[int, int], written: dict[int, Observation]) -> dict[int, int]:
    """Known starts, and for epochs without one the first accepted write as the latest possible start."""
    known = dict(starts)
    for epoch, row in written.items():
        assert row.offset is not None
        known.setdefault(epoch, row.offset)
    return known
