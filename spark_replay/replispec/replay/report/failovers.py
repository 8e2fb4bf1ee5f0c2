"""The anatomy of a fail-over: which moments lie between the old master's last frame and its return.

Every moment is a frame (or the end of a connection) of the capture; what it does not show is left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from replispec.replay.events.observation import Observation, ObservationKind
from replispec.replay.events.rocketmq.groups import BrokerGroups
from replispec.replay.events.rocketmq.stream_events import Judged
from replispec.replay.events.rocketmq.tenures import Tenure
from replispec.replay.report.model import FailOver, Moment, MomentKind
from replispec.wire.rocketmq.codes import RequestCode

# What only a master sends, or a broker that lives.
_SIGNS = (
    ObservationKind.BATCH,
    ObservationKind.HEARTBEAT,
    ObservationKind.ANSWER,
    ObservationKind.ACKNOWLEDGED,
    ObservationKind.ALIVE,
)


def failovers(file: str, judged: Judged) -> list[FailOver]:
    """Every change of a group's master, in the order of groups and masterEpochs."""
    found = []
    for group in sorted(judged.history.tenures):
        rows = [row for row in judged.rows if row.group == group]
        tenures = sorted(judged.history.tenures[group].items())
        for (_, before), (epoch, after) in pairwise(tenures):
            if before.master != after.master:
                found.append(_Anatomy(judged.groups, rows, before, after, epoch).failover(file, group))
    return found


class _Anatomy:
    """Looks for the moments of one change among the observations of its group."""

    def __init__(
        self, groups: BrokerGroups, rows: list[Observation], before: Tenure, after: Tenure, epoch: int
    ) -> None:
        self._groups = groups
        self._rows = rows
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
        heard = [row.time_ns for row in old if row.kind in _SIGNS]
        closed = [row.time_ns for row in old if row.kind == ObservationKind.CLOSED]
        yield _moment(MomentKind.LAST_FRAME, max(heard, default=None))
        yield _moment(MomentKind.CLOSED, max(closed, default=None))
        yield _moment(MomentKind.ELECTED, elected_ns)
        told = [row.time_ns for row in self._rows if self._notifies(row)]
        yield _moment(MomentKind.NOTIFIED, min(told, default=None))
        stored = [row.time_ns for row in self._rows if self._stores(row)]
        yield _moment(MomentKind.ACCEPTED, min(stored, default=None))
        returned, report = self._return(), self._first_report()
        yield _moment(MomentKind.RETURNED, None if returned is None else returned.time_ns)
        yield _moment(MomentKind.REPORTED, None if report is None else report.time_ns)

    def _at(self, row: Observation, tenure: Tenure) -> bool:
        """Whether the row is about the broker of this tenure, by its main or replication address."""
        return row.address is not None and tenure.address == self._groups.main.get(row.address, row.address)

    def _notifies(self, row: Observation) -> bool:
        return (
            row.kind == ObservationKind.FACT
            and row.code == RequestCode.NOTIFY_BROKER_ROLE_CHANGED
            and row.master_epoch == self._epoch
            and self._at(row, self._after)
        )

    def _stores(self, row: Observation) -> bool:
        return (
            row.kind == ObservationKind.ACKNOWLEDGED
            and row.time_ns >= self._after.time_ns
            and self._at(row, self._after)
        )

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
        own = [
            row
            for row in self._rows
            if row.kind == ObservationKind.REPORT and row.connection == returned.connection
        ]
        later = [row for row in own if row.order >= returned.order]
        return min(later, key=lambda row: row.order, default=None)

    def _old_end(self) -> int | None:
        """How far the old master's log went at least: the end of what it sent, the start of what it stored.

        A master that does not know that it was replaced stores messages until it comes back as a replica.
        """
        returned = self._return()
        until_ns = self._after.time_ns if returned is None else returned.time_ns
        ends = [
            row.offset + (row.body_size or 0)
            for row in self._rows
            if row.kind in (ObservationKind.BATCH, ObservationKind.ACKNOWLEDGED)
            and row.offset is not None
            and row.time_ns <= until_ns
            and self._at(row, self._before)
        ]
        return max(ends, default=None)


def _moment(kind: MomentKind, time_ns: int | None) -> Moment | None:
    return None if time_ns is None else Moment(kind, time_ns)
