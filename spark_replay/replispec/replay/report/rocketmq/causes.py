"""Why acknowledged messages were lost, as far as the capture tells, and what would have kept them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from replispec.replay.events.capture_events import Columns
from replispec.replay.events.observation import Observation, ObservationKind
from replispec.replay.events.rocketmq.judged_groups import JudgedGroups
from replispec.replay.events.rocketmq.tenures import Tenure
from replispec.replay.judges.sends import LossRow
from replispec.replay.report.model import LossCause
from replispec.replay.report.wording import utc

ALL_ACK = (
    "Run every broker with allAckInSyncStateSet=true: a producer is then answered only when every member of"
    " the SyncStateSet has the message, and a master that was replaced can acknowledge no more."
)
MORE_MEMBERS = (
    "With minInSyncReplicas=2 as well, a master whose replicas have left the SyncStateSet refuses messages"
    " instead of keeping them alone."
)
CLEAN_ELECTION = (
    "Run every controller with enableElectUncleanMaster=false: only a member of the SyncStateSet then becomes"
    " master."
)
FLUSH = (
    "Run the brokers with flushDiskType=SYNC_FLUSH: what was acknowledged is then on the disk, and a machine"
    " that crashes comes back with it."
)
CONFIGURED = (
    "allAckInSyncStateSet was said to be set: make sure that every broker of the group has it, also after a"
    " restart."
)
CUT_UNSEEN = (
    "Later messages of the same connection got smaller places: the log was cut behind them. In which"
    " masterEpoch that was, and why, the capture does not tell."
)
CAPTURE_CONTROLLER = "Capture the controllers' port too: only their answers tell who was in the SyncStateSet."


def loss_causes(
    file: str, judged: JudgedGroups, losses: Sequence[LossRow], lost: Columns, *, all_ack: bool = False
) -> list[LossCause]:
    """One cause for each loss, in their order. `lost`: the messages that were; `all_ack` as in
    stream_events.join."""
    return [_Cause(judged, loss, lost, all_ack=all_ack).told(file) for loss in losses]


class _Cause:
    """What is known around one loss."""

    def __init__(self, judged: JudgedGroups, loss: LossRow, lost: Columns, *, all_ack: bool) -> None:
        self._loss = loss
        own = lost.coded("group").where(loss.group) & lost.coded("epoch").where(loss.epoch)
        self._lost_ns = lost.numbers("time_ns").numbers[own]
        self._all_ack = all_ack
        self._own = judged.of_group(loss.group)
        self._main = judged.main
        self._tenures = judged.history.tenures[loss.group]
        starts = judged.history.starts[loss.group]
        later = [
            (start, epoch) for epoch, start in starts.items() if loss.epoch is not None and epoch > loss.epoch
        ]
        self._start: int | None
        self._epoch: int | None
        self._start, self._epoch = min(later, default=(None, None))

    def told(self, file: str) -> LossCause:
        """The sentences: what happened, then what would help."""
        said, advice = self._election()
        said = [*said, *self._overlap()]
        return LossCause(self._loss.group, file, self._loss.epoch, tuple(said), tuple(advice))

    def _election(self) -> tuple[list[str], list[str]]:
        loss, start = self._loss, self._start
        if loss.epoch is None:
            return [CUT_UNSEEN], [CAPTURE_CONTROLLER]
        if start is None or start > loss.from_offset:
            said = (
                f"No later epoch starts before them: the master of masterEpoch {loss.epoch} lost them itself"
            )
            return [f"{said}, as a machine does that crashes before its log is on the disk."], [
                FLUSH,
                ALL_ACK,
            ]
        new = self._tenures.get(self._epoch or 0)
        who = f"the master of masterEpoch {self._epoch}" if new is None else f"broker {new.master}"
        said = f"masterEpoch {self._epoch} starts at offset {start:,}, where the log of {who} ended"
        said += "; what had been acknowledged reached further: "
        if loss.acknowledged == 1:
            said += f"the lost message begins at offset {loss.to_offset:,}."
        else:
            said += f"the lost messages begin at offsets {loss.from_offset:,} to {loss.to_offset:,}."
        members = None if new is None else self._members_before(new)
        if new is None or members is None:
            return [said, f"Whether {who} was in the SyncStateSet was not captured."], [CAPTURE_CONTROLLER]
        shown = "{" + ", ".join(members) + "}"
        if new.master not in members:
            outside = f"It became master though it was outside the SyncStateSet {shown}."
            return [said, outside], [CLEAN_ELECTION, ALL_ACK]
        inside = f"It was rightly elected, as a member of the SyncStateSet {shown}: the master before it had"
        inside += " acknowledged messages that not every member had."
        helps = [CONFIGURED] if self._all_ack else [ALL_ACK, MORE_MEMBERS]
        return [said, inside, *self._last_report(new)], helps

    def _members_before(self, new: Tenure) -> list[str] | None:
        """The last SyncStateSet that was told before the new master was; None when none was."""
        known = None
        for row in self._own.rows:
            if row.kind != ObservationKind.FACT or row.members is None or row.order >= new.order:
                continue
            if row.master_epoch is None or row.master_epoch <= (self._loss.epoch or 0):
                known = sorted(row.members)
        return known

    def _last_report(self, new: Tenure) -> Iterator[str]:
        """How far the new master said that its log was, while it was a replica."""
        own = {
            row.connection
            for row in self._own.rows
            if row.kind == ObservationKind.HANDSHAKE and self._name(row) in (new.master, new.address)
        }
        frames = self._own.frames
        told = frames.are(ObservationKind.REPORT) & frames.coded("connection").where(*own)
        reports = np.flatnonzero(told & (frames.numbers("time_ns").numbers <= new.time_ns))
        if len(reports):
            last = frames.row(int(reports[-1]))
            if last.max_offset is not None:
                yield f"Its last report as a replica, at {utc(last.time_ns)}, was offset {last.max_offset:,}."

    @staticmethod
    def _name(row: Observation) -> str:
        return str(row.broker_id) if row.text is None else row.text

    def _overlap(self) -> Iterator[str]:
        """How many of the lost messages were acknowledged when the new master had been told already."""
        new = self._tenures.get(self._epoch or 0)
        if new is None:
            return
        late = int((self._lost_ns > new.time_ns).sum())
        if late:
            yield (
                f"{late:,} of them {'was' if late == 1 else 'were'} acknowledged"
                f" by the old master after broker {new.master} had become master at {utc(new.time_ns)}."
            )
