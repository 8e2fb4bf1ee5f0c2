"""The streams of events that invariants speak about, made from the observations of one capture.

Which attributes an event has is declared in spec/invariants/rocketmq/streams.yaml; an attribute whose
value was not seen is UNKNOWN. Every event carries its observation as `row`, which is its evidence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import SimpleNamespace
from typing import Any

import numpy as np

from replispec.replay.events.capture_events import CaptureEvents, Columns
from replispec.replay.events.capture_order import in_capture_order
from replispec.replay.events.event_tables import EventTable
from replispec.replay.events.observation import Observation, ObservationKind
from replispec.replay.events.rocketmq.addresses import behind_names
from replispec.replay.events.rocketmq.confirms import confirms
from replispec.replay.events.rocketmq.facts import BY_ID
from replispec.replay.events.rocketmq.falls_in_order import Behind, LogThere
from replispec.replay.events.rocketmq.grants import grants, offers
from replispec.replay.events.rocketmq.groups import BrokerGroups, learn_groups
from replispec.replay.events.rocketmq.history import History, Named, epoch_starts, history_of
from replispec.replay.events.rocketmq.identities import Identities
from replispec.replay.events.rocketmq.judged_groups import JudgedGroups, StreamEvents
from replispec.replay.events.rocketmq.leaders import leader_changes
from replispec.replay.events.rocketmq.learners import succeeded
from replispec.replay.events.rocketmq.offices import followed
from replispec.replay.events.rocketmq.overtaking import in_causal_order
from replispec.replay.events.rocketmq.ranges import Epoch, ranges
from replispec.replay.events.rocketmq.recounts import (
    Fallen,
    Members,
    Recounts,
    Replicas,
    fallen_to,
    members_told,
)
from replispec.replay.events.rocketmq.relays import told_once
from replispec.replay.events.rocketmq.same_logs import OneLog, one_log
from replispec.replay.events.rocketmq.short_logs import Beginnings, beginnings, below
from replispec.replay.events.rocketmq.stored import Ends, cuts_of, ends_of, least_of, stored, written_again
from replispec.replay.events.rocketmq.stream_tables import (
    FRAMES,
    GivenAgain,
    ToldOn,
    longest_records,
    replication_table,
    sends_table,
    telling_of_logs,
    told_epochs,
    with_groups,
    written,
)
from replispec.replay.events.rocketmq.told_falls import ToldFalls
from replispec.replay.events.rocketmq.wholeness import Met, controllers_were_seen, host_of
from replispec.replay.events.stream_event import StreamEvent
from replispec.replay.events.tables import Events
from replispec.runtime.primitives.unknown import UNKNOWN

_HEADERS = (ObservationKind.REPORT, ObservationKind.BATCH, ObservationKind.HEARTBEAT)
_ABOUT_NO_GROUP = (
    ObservationKind.CONTROLLER,
    ObservationKind.LEADER,
    ObservationKind.MISPAIRED,
    ObservationKind.LATENCY,
)


@dataclass
class Judged(JudgedGroups):
    """Everything that one capture's events, or those of a part of it, were joined to.

    `tables` are the events of streams that there is much of, as far as they were made here.
    """

    events: CaptureEvents
    given: Given
    tables: list[EventTable]

    @classmethod
    def of(
        cls,
        events: CaptureEvents,
        rows: list[Observation],
        sends: Columns,
        frames: Columns,
        given: Given,
        listed: list[StreamEvent],
        few: list[StreamEvents],
    ) -> Judged:
        """Of what was joined, as it is called here."""
        groups = given.groups
        return cls(
            rows, sends, frames, given.history, listed, few, groups.main, groups.ended(), events, given, []
        )

    @property
    def groups(self) -> BrokerGroups:
        """The groups of the capture."""
        return self.given.groups

    @cached_property
    def replication(self) -> EventTable:
        """The stream `ha`."""
        return self.given.replication(self.frames)

    def for_machines(self, learners: Collection[str]) -> list[Observation]:
        """The rows that machines are walked over: reports only where somebody is a learner."""
        latencies = self.events.columns(ObservationKind.LATENCY)
        unanswered = latencies.rows(np.flatnonzero(latencies.numbers("unanswered").numbers))
        if not learners and not any(each.named() for each in self.history.learners.values()):
            return [*unanswered, *self.rows]
        reports = self.frames.rows(np.flatnonzero(self.frames.are(ObservationKind.REPORT)))
        return in_capture_order([*unanswered, *self.rows, *reports])


@dataclass(frozen=True, slots=True)
class Measured:
    """What all frequent events tell, and no few of them. `records`: by connection how long the longest record
    may be; `fallen`: to which ends the confirmOffsets of masters fell."""

    records: Mapping[str, int]
    fallen: Fallen


@dataclass(slots=True)
class Given:
    """What has to be known of the whole capture before any part of its frequent events can be judged.

    It is told by what is rare, and by few of the others, whatever these are many. `starts`: of epochs, also
    those that only a message tells; `begun`: where the logs of masters begin late; `again`: the messages that
    lost their place to another one; `due`: from where on log bytes are not compared with messages; `listed`:
    the events that messages are compared with; `behind`: what later messages got, on connections that are
    judged in parts.
    """

    groups: BrokerGroups
    history: History
    falls: ToldFalls
    replicas: Replicas
    starts: Mapping[str, Mapping[int, int]]
    begun: Beginnings
    one_log: OneLog
    again: GivenAgain
    due: Ends
    listed: list[StreamEvent]
    behind: Mapping[LogThere, Behind] = field(default_factory=dict)

    def replication(
        self,
        frames: Columns,
        recounts: Recounts | None = None,
        earlier: Mapping[str, ToldOn] | None = None,
    ) -> EventTable:
        """The stream `ha` of any whole connections; `frames` are theirs, with their groups. Of stretches of
        connections with what `recounts` and `earlier` tell of the others."""
        return replication_table(frames, recounts or Recounts(frames, self.replicas), earlier)

    def bodies(
        self, frames: Columns, sends: Columns, due: Ends, written_again: Iterable[Epoch]
    ) -> EventTable:
        """The stream `bodies` of whole masterEpochs, of frames and messages with their groups; `due`: from
        where on nothing is compared; `written_again`: epochs in which a place was given to other messages."""
        begun_again = {*self.history.resumed, *written_again}
        return stored(frames, sends, due, begun_again, self.one_log)

    def sends(self, sends: Columns) -> EventTable:
        """The acknowledged messages of any connections, with groups and epochs."""
        short = below(sends, self.begun)
        compared = self.history.is_compared
        return sends_table(sends, self.falls, self.again, self.starts, compared, short, self.behind)


def join(observed: Events, learners: Collection[str] = (), *, all_ack: bool = False) -> Judged:
    """Join the events of one capture; `learners` are ids or addresses that the user knows as such.

    `all_ack`: the user knows that every member of the SyncStateSet acknowledges what is sent.
    """
    events = CaptureEvents(observed)
    named = name_events(events.few)
    frames = with_groups(events.columns(*FRAMES), named.groups)
    history = history_of(named, frames, learners)
    sends = with_groups(told_once(events.columns(ObservationKind.ACKNOWLEDGED)), named.groups)
    sends = told_epochs(sends, history.offices, named.rows)
    measured = Measured(longest_records(sends), fallen_to(frames))
    joined = judged_of(events, named, frames, sends, history, measured, all_ack=all_ack)
    messages = joined.given.sends(sends)
    due = least_of([joined.given.due, cuts_of(sends, messages.known["cut_to"])])
    tables = [
        joined.replication,
        messages,
        ranges(frames),
        joined.given.bodies(frames, sends, due, written_again(sends)),
    ]
    if all_ack:
        # Without the setting the rule says nothing, and there is an event for every frame.
        tables.append(confirms_table(named.rows, frames))
    joined.tables += [each for each in tables if len(each)]
    return joined


def name_events(few: list[Observation]) -> Named:
    """What is rare in a capture, joined to its groups."""
    called = behind_names(few)
    groups = learn_groups(called)
    rows = [row if row.kind in _ABOUT_NO_GROUP else replace(row, group=groups.group(row)) for row in called]
    groups.identities = Identities(rows)
    return Named(rows, groups)


def judged_of(
    events: CaptureEvents,
    named: Named,
    frames: Columns,
    sends: Columns,
    history: History,
    measured: Measured,
    *,
    all_ack: bool,
) -> Judged:
    """Everything but what is asked of each frequent event. `frames` and `sends` may be those alone that tell
    as much as all (telling.py); messages have their epochs."""
    rows, groups = named.rows, named.groups
    starts = epoch_starts(history, written(sends))
    logs, again = telling_of_logs(sends, frames)
    every = in_capture_order([*rows, *logs])
    falls = ToldFalls(every, groups, history.tenures, history.starts, history.unseen, measured.records)
    ends = [*falls.ends()]
    epochs = [*_epochs(starts, history)]
    masters = _addresses(history)
    offices = followed(frames, groups, masters, starts, history.unseen, all_ack=all_ack)
    listed = [
        *_facts(rows, groups, history),
        *epochs,
        *(StreamEvent("offices", "followed", event) for event in offices),
        *(StreamEvent("leaders", "leader_changed", event) for event in leader_changes(rows, groups)),
        *(StreamEvent("grants", "granted", event) for event in grants(rows, groups)),
        *(StreamEvent("offers", "offered", event) for event in offers(rows, groups)),
    ]
    few = [
        StreamEvents("sends", "acknowledged", [*_unseen(rows, groups)]),
        StreamEvents("logs", "log_end", ends),
    ]
    given = Given(
        groups,
        history,
        falls,
        _replicas(frames, rows, history, measured.fallen, whole=controllers_were_seen(rows, groups)),
        starts,
        beginnings(frames, history.tenures),
        one_log(rows, history.tenures),
        GivenAgain((row, falls.may_be_kept(row)) for row in again if falls.is_given_again(row)),
        ends_of(ends, starts),
        epochs,
    )
    return Judged.of(events, rows, sends, frames, given, listed, [each for each in few if each.events])


def _replicas(
    frames: Columns, rows: list[Observation], history: History, fallen: Fallen, *, whole: bool
) -> Replicas:
    masters: Members = {
        group: {each.master for each in tenures.values()} for group, tenures in history.tenures.items()
    }
    return Replicas(frames, members_told(rows) if whole else {}, masters, fallen)


def confirms_table(rows: list[Observation], frames: Columns) -> EventTable:
    """The stream `confirms` of whole groups, whose members are known to acknowledge all that is sent."""
    every = in_capture_order([*rows, *frames.rows(np.flatnonzero(frames.are(*_HEADERS)))])
    return StreamEvents("confirms", "confirm", [*confirms(every, all_ack=True)]).table()


def _event(row: Observation, **attributes: Any) -> SimpleNamespace:
    return SimpleNamespace(row=row, group=row.group, **attributes)


# ---- facts and alterations -----------------------------------------------------------------------


def _facts(rows: list[Observation], groups: BrokerGroups, history: History) -> Iterator[StreamEvent]:
    naming = _naming(rows)
    whole = controllers_were_seen(rows, groups)
    learners = history.learners
    met = Met.of(rows)
    answering = {each.controller for each in rows if each.kind == ObservationKind.FACT} - {None}
    edits: Counter[str] = Counter()
    for row in in_causal_order(rows):
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
                address_told=_is_told(row, groups, met, answering),
                members=None if row.members is None else frozenset(row.members),
                edits=edits[row.group],
                learners=learners[row.group].among(row.members),
                succeeded=succeeded(history.tenures[row.group].items()),
                whole=whole,
            )
            yield StreamEvent("facts", "fact", event)
        elif row.kind == ObservationKind.ALTERATION:
            yield StreamEvent("alterations", "alteration", _alteration(row, history, whole=whole))


def _is_told(row: Observation, groups: BrokerGroups, met: Met, answering: Iterable[str | None]) -> Any:
    """Whether a broker said that the master's address is its own; UNKNOWN where what it says to controllers
    was not captured."""
    if row.master_address is None or groups.has_told(row.name, row.master, row.master_address):
        return True
    hosts = {host_of(row.master_address)}
    return False if all(met.whole(hosts, each or "") for each in answering) else UNKNOWN


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


# ---- sends ---------------------------------------------------------------------------------------


def _epochs(starts: Mapping[str, Mapping[int, int]], history: History) -> Iterator[StreamEvent]:
    """Where epochs start, and of which that was not seen."""
    for name in sorted(starts):
        for epoch in sorted(starts[name]):
            event = SimpleNamespace(row=None, group=name, epoch=epoch, start_offset=starts[name][epoch])
            yield StreamEvent("sends", "epoch_started", event)
    for name, epoch in sorted(history.unseen.items()):
        if epoch >= 0:
            yield StreamEvent("sends", "epoch_unseen", SimpleNamespace(row=None, group=name, epoch=epoch))
    for name, epochs in sorted(history.left_out.items()):
        for epoch in sorted(epochs):
            yield StreamEvent("sends", "epoch_left_out", SimpleNamespace(row=None, group=name, epoch=epoch))


def _unseen(rows: Iterable[Observation], groups: BrokerGroups) -> Iterator[SimpleNamespace]:
    """Messages that may have been acknowledged where bytes are missing."""
    for row in rows:
        if row.kind == ObservationKind.UNSEEN and groups.name_at(row.address) is not None:
            event = _event(row, epoch=UNKNOWN, offset=UNKNOWN, cut_to=None, given_again=False)
            event.is_message = event.followed = event.in_doubt = False
            yield event


def _addresses(history: History) -> dict[str, dict[int, str | None]]:
    """By group and epoch the master's main address."""
    return {
        name: {epoch: tenure.address for epoch, tenure in tenures.items()}
        for name, tenures in history.tenures.items()
    }
