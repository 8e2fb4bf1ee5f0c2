"""What can explain that a master's confirmOffset falls, and what shows that it was beyond the log before.

Where a confirmOffset falls within an epoch, the master has begun to count a replica that is behind: one that
is connected again, or has joined the SyncStateSet. Then it is what that replica has reported. So a fall to an
offset that none of them can have reported last is a fault, whenever it was captured.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from replispec.replay.events.capture_events import Columns
from replispec.replay.events.event_tables import Counted, Flags, Rows, split
from replispec.replay.events.observation import Observation, ObservationKind
from replispec.replay.events.rocketmq.facts import BY_ID

HEADERS: Final = (ObservationKind.BATCH, ObservationKind.HEARTBEAT)
SAME_MAX: Final = 64
"""Connections with the same report that are looked at; where there are more, one of them may be counted."""
Members = Mapping[str | None, Collection[str]]
"""By group all ids that a controller told to be in its SyncStateSet."""


def members_told(rows: Sequence[Observation]) -> Members:
    """The members that facts tell, where they are named by their ids."""
    found: dict[str | None, set[str]] = defaultdict(set)
    for row in rows:
        if row.kind == ObservationKind.FACT and row.named_by == BY_ID:
            found[row.group].update(row.members or ())
    return found


@dataclass(slots=True)
class _Link:
    """One replication connection: its rows by kind in their order, who the replica is, and how long the
    master's log was when it began."""

    rows: Rows
    headers: Rows
    reports: Rows
    replica: str | None = None
    is_learner: bool = False
    begun_at: int | None = None
    is_whole: bool = False


class Recounts:
    """The replication connections of a capture, by the master that accepted them."""

    def __init__(self, frames: Columns, members: Members, masters: Members, *, whole: bool) -> None:
        """`frames`: of replication, with their groups; `masters`: by group the ids that were master of an
        epoch; `whole`: no bytes of controllers' connections were lost."""
        self._frames = frames
        self._members = members if whole else {}
        self._masters = masters
        self._confirms = frames.numbers("confirm_offset").numbers
        self._reported = frames.numbers("max_offset").numbers
        self._offsets = frames.numbers("offset").numbers
        self._links: dict[tuple[str | None, str | None], list[_Link]] = defaultdict(list)
        self._read_links()

    def explained(self) -> Flags:
        """At which headers a smaller confirmOffset than in the one before may be the report of a replica that
        is counted anew; True also where not all that may be counted was seen."""
        found = np.zeros(len(self._frames), np.bool_)
        for (group, _), links in self._links.items():
            falls = [(link, self._falls(link)) for link in links]
            if not any(len(own) for _, own in falls):
                continue
            is_seen = self._all_seen(group, links)
            reporters = self._reporters(group, links) if is_seen else {}
            for link, own in falls:
                found[own] = True if not is_seen else self._may_be_counted(link, own, reporters)
        return found

    def log_ends(self) -> Counted:
        """Where the log ended at the latest when a header was sent: a later one shows it, that sent nothing
        though the one before it had sent nothing either at that place."""
        numbers, absent = np.zeros(len(self._frames), np.int64), np.ones(len(self._frames), np.int64)
        epochs = self._frames.coded("epoch").codes
        empty = self._frames.are(ObservationKind.HEARTBEAT)
        breaks = self._frames.are(ObservationKind.GAP, ObservationKind.HANDSHAKE, ObservationKind.ANSWER)
        for link in (each for links in self._links.values() for each in links):
            own = link.headers
            part = np.cumsum(breaks[link.rows])[np.searchsorted(link.rows, own)]
            same = (part[1:] == part[:-1]) & (epochs[own[1:]] == epochs[own[:-1]])
            same &= empty[own[1:]] & empty[own[:-1]] & (self._offsets[own[1:]] == self._offsets[own[:-1]])
            shows = np.append(same, False) & (self._offsets[own] >= 0)
            last = len(own)
            places = np.where(shows, np.arange(last), last)
            behind = np.minimum.accumulate(places[::-1])[::-1]
            told = np.flatnonzero(behind < last)
            told = told[epochs[own[told]] == epochs[own[behind[told]]]]
            numbers[own[told]], absent[own[told]] = self._offsets[own[behind[told]]], 0
        return Counted(numbers, absent)

    def _read_links(self) -> None:
        frames = self._frames
        connection, group, address = (frames.coded(name) for name in ("connection", "group", "address"))
        headers, reports = frames.are(*HEADERS), frames.are(ObservationKind.REPORT)
        opened, gaps = frames.are(ObservationKind.OPENED), frames.are(ObservationKind.GAP)
        shakes = frames.are(ObservationKind.HANDSHAKE, ObservationKind.ANSWER)
        for _, rows in split(connection.codes):
            link = _Link(rows, rows[headers[rows]], rows[reports[rows]])
            link.is_whole = bool(opened[rows].any()) and not bool(gaps[rows].any())
            for row in frames.rows(rows[shakes[rows]]):
                if row.kind == ObservationKind.ANSWER:
                    link.begun_at = row.max_offset
                else:
                    link.replica = str(row.broker_id) if row.text is None else row.text
                    link.is_learner = row.async_learner is True
            key = group.values[group.codes[rows[0]]], address.values[address.codes[rows[0]]]
            self._links[key].append(link)

    def _falls(self, link: _Link) -> Rows:
        told = self._confirms[link.headers]
        return link.headers[1:][told[1:] < told[:-1]]

    def _all_seen(self, group: str | None, links: Sequence[_Link]) -> bool:
        """True when the members were told, and all that they and others reported to this master was seen."""
        members = self._members.get(group)
        connected = {link.replica for link in links if link.is_whole}
        return (
            bool(members)
            and all(link.is_whole for link in links)
            and connected | set(self._masters.get(group, ())) >= set(members or ())
        )

    def _reporters(self, group: str | None, links: Sequence[_Link]) -> Mapping[int, list[_Link]]:
        """Who reported which end, of those that may be in the SyncStateSet."""
        found: dict[int, list[_Link]] = defaultdict(list)
        members = self._members.get(group, ())
        for link in links:
            if not link.is_learner or link.replica in members:
                for end in np.unique(self._reported[link.reports]).tolist():
                    found[end].append(link)
        return found

    def _may_be_counted(
        self, link: _Link, falls: Rows, reporters: Mapping[int, Sequence[_Link]]
    ) -> Sequence[bool]:
        return [
            len(others := reporters.get(int(self._confirms[row]), ())) > SAME_MAX
            or any(
                self._is_latest(link, row) if each is link else self._may_be_new(each, link, row)
                for each in others
            )
            for row in falls
        ]

    def _is_latest(self, link: _Link, row: int) -> bool:
        """Whether what is confirmed is what the replica reported on this connection last, or meanwhile."""
        before = link.headers[np.searchsorted(link.headers, row) - 1]
        first, behind = np.searchsorted(link.reports, (before, row))
        own = self._reported[link.reports[max(first - 1, 0) : behind]]
        return bool(np.any(own == self._confirms[row]))

    def _may_be_new(self, other: _Link, link: _Link, row: int) -> bool:
        """Whether the master may have begun to count another connection between the two headers.

        Not one of the same replica, opened when the log was shorter and served: a replica has one connection
        at a time. What counts of it, if it is not closed, is its last word.
        """
        is_before = (
            other.replica == link.replica
            and other.begun_at is not None
            and link.begun_at is not None
            and other.begun_at < link.begun_at
            and len(other.headers) > 0
        )
        return not is_before or int(self._reported[other.reports[-1]]) == int(self._confirms[row])
