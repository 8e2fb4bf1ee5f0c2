"""Where logs of masters got shorter: what causes tell is sure, what only the capture's order tells is open.

A connection that was captured late moves the second, and never the first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from replispec.replay.events.observation import Observation, ObservationKind
from replispec.replay.events.rocketmq.groups import BrokerGroups
from replispec.replay.events.rocketmq.log_falls import LogFalls, Tenures
from replispec.replay.events.rocketmq.runs import connections_of_brokers, runs_by_capture
from replispec.replay.events.rocketmq.runs_by_cause import runs_by_cause
from replispec.runtime.primitives.unknown import UNKNOWN


@dataclass(frozen=True, slots=True)
class Left:
    """How long a log was at the least in a later run that cut it: surely, and perhaps."""

    surely: int | None
    perhaps: int | None


class ToldFalls:
    """The logs of masters, by runs of brokers as causes tell them and as the capture shows them.

    Without a controller's word nothing tells a set that was removed and set up anew, with empty logs, from
    one whose master came back without its log: what became of all messages is open then.
    """

    def __init__(
        self,
        rows: Sequence[Observation],
        groups: BrokerGroups,
        tenures: Tenures,
        starts: Mapping[str, Mapping[int, int]],
        unseen: Mapping[str, int],
        records: Mapping[str, int],
    ) -> None:
        """As `LogFalls`; `records`: by connection how long the longest record may be."""
        brokers = connections_of_brokers(rows, groups)
        told = rows, groups, tenures, starts, unseen
        self._sure = LogFalls(*told, runs_by_cause(brokers, records))
        self._seeming = LogFalls(*told, runs_by_capture(brokers))
        seen = {row.group for row in rows if row.kind == ObservationKind.FACT}
        self._anew = self._sure.begun_again() - seen

    def ends(self) -> Iterator[SimpleNamespace]:
        """The events of the stream `logs`."""
        for sure, seeming in zip(self._sure.ends(), self._seeming.ends(), strict=True):
            if _is_shorter(seeming) and not _is_shorter(sure):
                sure.before = UNKNOWN
            yield sure

    def cut_to(self, row: Observation) -> Any:
        """Where the log ended in a later run that did not hold an acknowledged message any more, or None;
        UNKNOWN when no cause tells whether that run was later."""
        sure = self._sure.cut_to(row)
        if row.group in self._anew:
            return UNKNOWN
        return UNKNOWN if sure is None and self._seeming.cut_to(row) is not None else sure

    def left_of(self, row: Observation) -> Left:
        """How long the log of an acknowledged message was at the least in a later run."""
        if row.group in self._anew:
            return Left(None, 0)
        end, is_later = self._sure.left_of(row)
        ends = [each for each in (end, self._seeming.left_of(row)[0]) if each is not None]
        return Left(end if is_later else None, min(ends, default=None))

    def fallen_between(self, row: Observation) -> tuple[int, int] | None:
        """As `LogFalls`."""
        return self._sure.fallen_between(row)

    def is_given_again(self, row: Observation) -> bool:
        """As `LogFalls`; False where the whole set may have been set up anew, which `cut_to` tells."""
        return row.group not in self._anew and self._sure.is_given_again(row)

    def may_be_kept(self, row: Observation) -> bool:
        """As `LogFalls`."""
        return self._sure.may_be_kept(row)


def _is_shorter(event: SimpleNamespace) -> bool:
    return event.before is UNKNOWN or (event.before is not None and event.end < event.before)
