"""The anatomy of a fail-over: which moments lie between the old master's last frame and its return.

Every moment is a frame (or the end of a connection) of the capture; what it does not show is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import numpy as np

from replispec.replay.events.capture_events import Columns
from replispec.replay.events.event_tables import Flags
from replispec.replay.events.observation import Observation, ObservationKind
from replispec.replay.events.rocketmq.judged_groups import GroupEvents, JudgedGroups
from replispec.replay.events.rocketmq.tenures import Tenure
from replispec.replay.report.model import FailOver
from replispec.replay.report.moments import Moment, MomentKind
from replispec.wire.rocketmq.codes import RequestCode

_STORED = (ObservationKind.BATCH, ObservationKind.ACKNOWLEDGED)
# What only a master sends.
_SENT = (*_STORED, ObservationKind.HEARTBEAT, ObservationKind.ANSWER)


def failovers(file: str, judged: JudgedGroups) -> list[FailOver]:
    """Every change of a group's master, in the order of groups and masterEpochs."""
    found = []
    for group in sorted(judged.history.tenures):
        own = judged.of_group(group)
        tenures = sorted(judged.history.tenures[group].items())
        for (_, before), (epoch, after) in pairwise(tenures):
            if before.master != after.master:
                found.append(_Anatomy(judged.main, own, before, after, epoch).failover(file, group))
    return found


class _Anatomy:
    """Looks for the moments of one change among the observations of its group."""

    def __init__(
        self, main: Mapping[str, str], own: GroupEvents, before: Tenure, after: Tenure, epoch: int
    ) -> None:
        self._main = main
        self._rows = own.rows
        self._sends = own.sends
        self._frames = own.frames
        self._before = before
        self._after = after
        self._epoch = epoch

    def failover(self, file: str, group: str) -> FailOver:
        moments = [moment for moment in self._moments() if moment is not None]
        moments.sort(key=lambda moment: moment.time_ns)
        back = self._first_report()
        end = self._old_end()
        cut = back is not None and end is not None and back.max_offset is not None and back.max_offset < end
        return FailOver(
            group=group,
            file=file,
            epoch=self._epoch,
            from_master=f"broker {self._before.master}",
            to_master=f"broker {self._after.master}",
            moments=tuple(moments),
            log_end=end,
            returned_end=None if back is None else back.max_offset,
            truncated=cut,
        )

    def _moments(self) -> Iterator[Moment | None]:
        elected_ns = self._after.time_ns
        old = [row for row in self._rows if self._at(row, self._before) and row.time_ns <= elected_ns]
        heard = [row.time_ns for row in old if row.kind == ObservationKind.ALIVE]
        for events in (self._sends, self._frames):
            times = events.numbers("time_ns").numbers
            sent = times[self._are_at(events, self._before, _SENT) & (times <= elected_ns)]
            heard += [int(sent.max())] if len(sent) else []
        closed = [row.time_ns for row in old if row.kind == ObservationKind.CLOSED]
        yield _moment(MomentKind.LAST_FRAME, max(heard, default=None))
        yield _moment(MomentKind.CLOSED, max(closed, default=None))
        yield _moment(MomentKind.ELECTED, elected_ns)
        told = [row.time_ns for row in self._rows if self._notifies(row)]
        yield _moment(MomentKind.NOTIFIED, min(told, default=None))
        times = self._sends.numbers("time_ns").numbers
        stored = times[self._are_at(self._sends, self._after, _SENT) & (times >= elected_ns)]
        yield _moment(MomentKind.ACCEPTED, min(stored.tolist(), default=None))
        returned, report = self._return(), self._first_report()
        yield _moment(MomentKind.RETURNED, None if returned is None else returned.time_ns)
        yield _moment(MomentKind.REPORTED, None if report is None else report.time_ns)

    def _at(self, row: Observation, tenure: Tenure) -> bool:
        """Whether the row is about the broker of this tenure, by its main or replication address."""
        return row.address is not None and tenure.address == self._main.get(row.address, row.address)

    def _notifies(self, row: Observation) -> bool:
        return (
            row.kind == ObservationKind.FACT
            and row.code == RequestCode.NOTIFY_BROKER_ROLE_CHANGED
            and row.master_epoch == self._epoch
            and self._at(row, self._after)
        )

    def _are_at(self, events: Columns, tenure: Tenure, kinds: Sequence[ObservationKind]) -> Flags:
        """Which events are of these kinds, and about the broker of this tenure."""
        main, addresses = self._main, events.coded("address")
        known = [each for each in addresses.values if each is not None]
        own = addresses.where(*(each for each in known if main.get(each, each) == tenure.address))
        return events.are(*kinds) & own

    def _return(self) -> Observation | None:
        """The first handshake of the old master as a replica of the new one."""
        names = (self._before.master, self._before.address)
        for row in self._rows:
            if (
                row.kind == ObservationKind.HANDSHAKE
                and row.time_ns >= self._after.time_ns
                and self._at(row, self._after)
            ):
                named = str(row.broker_id) if row.text is None else row.text
                if named in names:
                    return row
        return None

    def _first_report(self) -> Observation | None:
        """The first report of the returned master: what is left of its log after it was compared."""
        returned = self._return()
        if returned is None:
            return None
        own = self._frames.are(ObservationKind.REPORT) & self._frames.coded("connection").where(
            returned.connection
        )
        later = np.flatnonzero(own & (self._frames.numbers("order").numbers >= returned.order))
        return self._frames.row(int(later[0])) if len(later) else None

    def _old_end(self) -> int | None:
        """How far the old master's log went at least: the end of what it sent, the start of what it stored.

        A master that does not know that it was replaced stores messages until it comes back as a replica.
        """
        returned = self._return()
        until_ns = self._after.time_ns if returned is None else returned.time_ns
        ends: list[int] = []
        for events in (self._sends, self._frames):
            own = self._are_at(events, self._before, _STORED)
            rows = np.flatnonzero(own & (events.numbers("time_ns").numbers <= until_ns))
            offsets = events.numbers("offset").take(rows)
            if events is self._frames:
                offsets = offsets.plus(events.numbers("body_size").numbers[rows])
            ends += [int(offsets.numbers[offsets.absent == 0].max())] if not offsets.absent.all() else []
        return max(ends, default=None)


def _moment(kind: MomentKind, time_ns: int | None) -> Moment | None:
    return None if time_ns is None else Moment(kind, time_ns)
