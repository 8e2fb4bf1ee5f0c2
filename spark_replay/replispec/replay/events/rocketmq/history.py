"""What a capture tells of each broker set: its masters, their epochs, and where these start."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from replispec.replay.events.capture_events import Columns
from replispec.replay.events.observation import Observation, ObservationKind
from replispec.replay.events.rocketmq.earlier_ends import EarlierEnds, Words, words_of
from replispec.replay.events.rocketmq.epoch_starts import Witnesses, epochs_taken_back
from replispec.replay.events.rocketmq.facts import BY_ID
from replispec.replay.events.rocketmq.groups import BrokerGroups
from replispec.replay.events.rocketmq.learners import Learners
from replispec.replay.events.rocketmq.offices import filled, masters_by_handshake
from replispec.replay.events.rocketmq.runs import main_address
from replispec.replay.events.rocketmq.stream_tables import (
    witnesses_of,
)
from replispec.replay.events.rocketmq.tenures import Offices, Present, Tenure
from replispec.wire.rocketmq.codes import RequestCode


@dataclass(slots=True)
class History:
    """What a capture tells of each group: who was master of which epoch, and where epochs start.

    `latest`: the latest place where an epoch may start of which nothing tells it for sure; `unseen`: the
    latest such epoch, -1 when there is none; `left_out`: epochs of which a later log has nothing; `resumed`:
    epochs of groups in which the master started again.
    """

    tenures: dict[str, dict[int, Tenure]] = field(default_factory=lambda: defaultdict(dict))
    starts: dict[str, dict[int, int]] = field(default_factory=lambda: defaultdict(dict))
    latest: dict[str, Mapping[int, int]] = field(default_factory=dict)
    unseen: dict[str, int] = field(default_factory=dict)
    left_out: dict[str, Collection[int]] = field(default_factory=dict)
    resumed: set[tuple[str, int]] = field(default_factory=set)
    learners: dict[str, Learners] = field(default_factory=lambda: defaultdict(Learners))
    offices: dict[str, Offices] = field(default_factory=dict)

    def of(self, groups: Iterable[str]) -> History:
        """The masters of some groups, and where their epochs start."""
        found = History()
        for group in groups:
            if group in self.tenures:
                found.tenures[group] = self.tenures[group]
            if group in self.starts:
                found.starts[group] = self.starts[group]
        return found

    def is_compared(self, group: str, epoch: int) -> bool:
        """Whether the histories of all later logs tell what became of messages of this epoch."""
        return self.unseen.get(group, -1) <= epoch and epoch not in self.left_out.get(group, ())


@dataclass(frozen=True, slots=True)
class Named:
    """What is rare in a capture, in its order, each with its group, and what it tells of groups."""

    rows: list[Observation]
    groups: BrokerGroups


def history_of(named: Named, frames: Columns, learners: Collection[str]) -> History:
    """The history of every group; `frames` are those of replication, or those that tell as much of it."""
    rows, groups = named.rows, named.groups
    history = History()
    witnesses: dict[str, Witnesses] = defaultdict(Witnesses)
    taken_back = epochs_taken_back(rows)
    for row in rows:
        if row.group is None:
            continue
        history.learners[row.group].given.update(learners)
        history.learners[row.group].hear(row)
        if row.kind == ObservationKind.FACT and row.master is not None and row.master_epoch is not None:
            if (row.group, row.master_epoch) not in taken_back:
                tenure = Tenure(row.master, row.master_address, row.order, row.time_ns, row.named_by)
                history.tenures[row.group].setdefault(row.master_epoch, tenure)
                # Before releases that give ids the first registration made somebody master.
                is_registration = (row.code, row.named_by) == (RequestCode.CONTROLLER_REGISTER_BROKER, BY_ID)
                if is_registration and witnesses[row.group].registered(row):
                    history.resumed.add((row.group, row.master_epoch))
        elif groups.is_told(row):
            witnesses[row.group].hear(row)
    transfers = [row for row in witnesses_of(frames) if groups.is_told(row)]
    for row in transfers:
        witnesses[str(row.group)].hear(row)
    told = [row for row in rows if groups.is_told(row)]
    words = words_of(told, transfers, frames, groups)
    claims = masters_by_handshake(told, groups)
    for group, offices in claims.items():
        tenures = history.tenures[group]
        masters = {epoch: tenure.address for epoch, tenure in tenures.items()}
        for epoch, (address, row) in filled(masters, offices, witnesses[group].epochs()).items():
            tenures[epoch] = Tenure(address, address, row.order, row.time_ns)
    present = _present(told, groups, taken_back)
    for group in {*witnesses, *history.tenures}:
        each = witnesses[group]
        known = history.tenures[group].keys()
        each.earlier(_earlier(group, history.tenures[group], words, groups))
        history.starts[group].update(each.believed(known))
        history.latest[group] = each.moved()
        history.unseen[group] = each.unseen(known)
        history.left_out[group] = each.left_out(known)
        history.offices[group] = Offices(
            history.tenures[group],
            {epoch: address for epoch, (address, _) in claims.get(group, {}).items()},
            history.starts[group],
            each.epochs(),
            present[group],
            partial(groups.identities.perhaps, group),
        )
    return history


def _earlier(
    group: str, tenures: Mapping[int, Tenure], words: Mapping[str, Words], groups: BrokerGroups
) -> dict[int, EarlierEnds]:
    """What the master of each epoch had said of its log before."""
    return {
        epoch: words[group].before(epoch, tenures, groups.identities.perhaps(group, tenure.address))
        for epoch, tenure in tenures.items()
        if group in words and tenure.address is not None
    }


def _present(
    rows: Iterable[Observation], groups: BrokerGroups, taken_back: Collection[tuple[str | None, int]]
) -> dict[str, list[Present]]:
    """Who spoke of the present epoch of each group: controllers, brokers of their own one, and masters that
    list theirs."""
    found: dict[str, list[Present]] = defaultdict(list)
    for row in rows:
        if row.group is None:
            continue
        own = found[row.group]
        if row.kind == ObservationKind.FACT and row.master is not None and row.master_epoch is not None:
            if (row.group, row.master_epoch) not in taken_back:
                own.append(Present(row.order, row.master_epoch))
        elif row.kind == ObservationKind.ALIVE and row.epoch is not None:
            own.append(Present(row.order, row.epoch, row.address, row.max_offset))
        elif row.kind == ObservationKind.ANSWER and row.epochs:
            told = Present(row.order, row.epochs[-1]["epoch"])
            own.append(told)
            own.append(replace(told, speaker=main_address(groups, row), log_end=row.max_offset))
    return found


def epoch_starts(history: History, stored: Mapping[str, Mapping[int, int]]) -> dict[str, dict[int, int]]:
    """Known starts, and for epochs without one the latest possible start: its first accepted write, or what a
    master told that had started again.

    Where an epoch has accepted writes before the start that was told, its master had started again too, and
    the history learns that nothing tells the first start.
    """
    found: dict[str, dict[int, int]] = {}
    for name in stored.keys() | history.starts.keys():
        own, told = stored.get(name, {}), history.starts.get(name, {})
        latest = history.latest.get(name, {})
        found[name] = {
            epoch: min(each[epoch] for each in (own, told, latest) if epoch in each)
            for epoch in {*own, *told, *latest}
        }
        early = [epoch for epoch in own.keys() & told.keys() if own[epoch] < told[epoch]]
        history.unseen[name] = max([history.unseen.get(name, -1), *early])
    return found
