"""What happened to each broker group, for people: switches of masters, and a timeline.

Everything here is told by the same observations that the invariants judge; nothing is guessed. What
the capture does not show stays out of the sentence.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from replispec.replay.events.capture_events import Columns
from replispec.replay.events.observation import Observation, ObservationKind
from replispec.replay.events.rocketmq.judged_groups import GroupEvents, JudgedGroups
from replispec.replay.events.rocketmq.tenures import Tenure
from replispec.replay.judges.findings import FindingRow
from replispec.replay.judges.sends import LossRow
from replispec.replay.report.model import MasterBand, Switch, Timeline, TimelineEvent, TimelineEventKind
from replispec.replay.report.rocketmq.log_ends import curves, lags
from replispec.replay.report.wording import seconds
from replispec.replay.tcp.pieces import WORDS
from replispec.runtime.primitives.invariants import Verdict

# A connection that was closed longer ago than this is not what made the controller elect.
CLOSED_BEFORE_NS = 3_000_000_000
# Heartbeats come every second by default; a silence shorter than this is none.
SILENT_NS = 3_000_000_000
# Marks of one kind on one timeline: more would be unreadable.
MARKS_MAX = 200


def switches(file: str, judged: JudgedGroups) -> list[Switch]:
    """Every change of a group's master, in the order of groups and masterEpochs."""
    found = []
    for group in sorted(judged.history.tenures):
        own = judged.of_group(group)
        tenures = sorted(judged.history.tenures[group].items())
        for (_, before), (epoch, after) in pairwise(tenures):
            if before.master != after.master:
                found.append(_switch(file, group, own, before, after, epoch))
    return found


def _switch(file: str, group: str, own: GroupEvents, before: Tenure, after: Tenure, epoch: int) -> Switch:
    cause, since_ns = _cause(own.rows, before, after, epoch)
    return Switch(
        group=group,
        file=file,
        time_ns=after.time_ns,
        from_master=_named(before),
        to_master=_named(after),
        epoch=epoch,
        gap_ns=None if since_ns is None else after.time_ns - since_ns,
        cause=cause,
        text=_clients(own.sends, before, after),
    )


def _named(tenure: Tenure) -> str:
    if tenure.address is None or tenure.address == tenure.master:
        return f"broker {tenure.master}"
    return f"broker {tenure.master} ({tenure.address})"


def _cause(rows: list[Observation], before: Tenure, after: Tenure, epoch: int) -> tuple[str, int | None]:
    """Why the controller elected, and since when the group had no master; ("", None) when nothing tells."""
    if any(row.kind == ObservationKind.FACT and row.designated and row.master_epoch == epoch for row in rows):
        return "an administrator asked for it", None
    own = [row for row in rows if row.address == before.address and row.time_ns <= after.time_ns]
    closed = max((row.time_ns for row in own if row.kind == ObservationKind.CLOSED), default=None)
    if closed is not None and after.time_ns - closed <= CLOSED_BEFORE_NS:
        ago = seconds(after.time_ns - closed)
        return f"the old master's connection to the controller was closed {ago} before", closed
    heard = max((row.time_ns for row in own if row.kind == ObservationKind.ALIVE), default=None)
    if heard is not None and after.time_ns - heard >= SILENT_NS:
        return f"the old master's last heartbeat was {seconds(after.time_ns - heard)} before", heard
    return "", None


def _clients(sends: Columns, before: Tenure, after: Tenure) -> str:
    """How long producers waited between the two masters; empty when the capture does not show both sides."""
    times, addresses = sends.numbers("time_ns").numbers, sends.coded("address")
    new = times[addresses.where(after.address) & (times >= after.time_ns)]
    old = times[addresses.where(before.address) & (times < after.time_ns)]
    if not len(old) or not len(new):
        return ""
    waited = seconds(int(new.min()) - int(old.max()))
    return f"Between the last message that the old master acknowledged and the new one's first: {waited}."


def timelines(
    judged: JudgedGroups,
    span_ns: tuple[int, int],
    file: str,
    findings: list[FindingRow],
    losses: list[LossRow],
    lost: Columns,
) -> list[Timeline]:
    """One timeline per group that had a master or a SyncStateSet. `span_ns`: first and last packet; `lost`:
    the messages that were lost."""
    found = []
    for group in sorted(
        {row.group for row in judged.rows if row.kind == ObservationKind.FACT and row.group is not None}
    ):
        own = judged.of_group(group)
        tenures = sorted(judged.history.tenures[group].items())
        events = [
            *_elections(tenures),
            *_sets(own.rows),
            *_lost(lost, [loss for loss in losses if loss.group == group]),
            *_violations(finding for finding in findings if finding.group == group),
            *_holes(own.rows),
        ]
        events.sort(key=lambda event: event.time_ns)
        found.append(
            Timeline(
                group,
                file,
                *span_ns,
                bands=tuple(_bands(tenures)),
                events=tuple(events),
                curves=curves(own, span_ns),
                lags=lags(own),
            )
        )
    return found


def _bands(tenures: list[tuple[int, Tenure]]) -> Iterator[MasterBand]:
    ends = [*(tenure.time_ns for _, tenure in tenures[1:]), None]
    for (epoch, tenure), end_ns in zip(tenures, ends, strict=False):
        yield MasterBand(tenure.time_ns, end_ns, f"broker {tenure.master}", epoch)


def _elections(tenures: list[tuple[int, Tenure]]) -> Iterator[TimelineEvent]:
    previous: Tenure | None = None
    for epoch, tenure in tenures:
        kind = (
            TimelineEventKind.ELECTION
            if previous is None or previous.master == tenure.master
            else TimelineEventKind.SWITCH
        )
        yield TimelineEvent(
            tenure.time_ns, kind, f"epoch {epoch}", f"{_named(tenure)} is master of epoch {epoch}"
        )
        previous = tenure


def _sets(rows: list[Observation]) -> Iterator[TimelineEvent]:
    """Each SyncStateSet when it was first told."""
    told: set[tuple[int | None, tuple[str, ...]]] = set()
    for row in rows:
        if row.kind != ObservationKind.FACT or row.members is None:
            continue
        members = tuple(sorted(row.members))
        if (row.sync_state_set_epoch, members) not in told and len(told) < MARKS_MAX:
            told.add((row.sync_state_set_epoch, members))
            text = "{" + ", ".join(members) + "}"
            detail = f"SyncStateSet {text} with syncStateSetEpoch {row.sync_state_set_epoch}"
            yield TimelineEvent(row.time_ns, TimelineEventKind.SYNC_STATE_SET, text, detail)


def _lost(sends: Columns, losses: list[LossRow]) -> Iterator[TimelineEvent]:
    times, group, epoch = sends.numbers("time_ns").numbers, sends.coded("group"), sends.coded("epoch")
    for loss in losses:
        lost = times[group.where(loss.group) & epoch.where(loss.epoch)]
        if len(lost):
            text = f"{loss.acknowledged} lost"
            owner = "an epoch that was not seen" if loss.epoch is None else f"epoch {loss.epoch}"
            detail = f"the first of {loss.acknowledged} acknowledged messages of {owner} that were lost"
            yield TimelineEvent(int(lost.min()), TimelineEventKind.LOSS, text, detail)


def _violations(findings: Iterator[FindingRow]) -> Iterator[TimelineEvent]:
    for finding in findings:
        if finding.verdict is Verdict.VIOLATED and finding.proofs:
            first = finding.proofs[0]
            yield TimelineEvent(first.time_ns, TimelineEventKind.VIOLATION, finding.invariant, first.text)


def _holes(rows: list[Observation]) -> Iterator[TimelineEvent]:
    """Where bytes of the group's connections are missing, each at the frame before them."""
    lost = [row for row in rows if row.kind in (ObservationKind.UNSEEN, ObservationKind.GAP)]
    for row in lost[:MARKS_MAX]:
        begun = row.kind == ObservationKind.UNSEEN or row.index >= 0
        what = "bytes are missing" if begun else "the beginning was not captured"
        why = f", {WORDS[row.text]}" if row.text in WORDS else ""
        where = f"at byte {row.sequence} of direction {row.direction} of {row.connection}"
        yield TimelineEvent(row.time_ns, TimelineEventKind.HOLE, "", f"{what} {where}{why}")
