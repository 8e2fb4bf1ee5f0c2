"""What can explain that a master's confirmOffset falls, and what shows that it was beyond the log before.

Where a confirmOffset falls within an epoch, the master has begun to count a replica that is behind: one that
is connected again, or has joined the SyncStateSet. Then it is what that replica has reported. So a fall to an
offset that none of them can have reported last is a fault, whenever it was captured.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np

from replispec.replay.events.capture_events import MANY, Columns
from replispec.replay.events.event_tables import Counted, Flags, Numbers, Rows, split
from replispec.replay.events.observation import Observation, ObservationKind
from replispec.replay.events.rocketmq.facts import BY_ID

HEADERS: Final = (ObservationKind.BATCH, ObservationKind.HEARTBEAT)
SAME_MAX: Final = 64
"""Connections with the same report that are looked at; where there are more, one of them may be counted."""
Members = Mapping[str | None, Collection[str]]
"""By group all ids that a controller told to be in its SyncStateSet."""
Master = tuple[str | None, str | None]
"""A group, and the address at which a master of it accepts replicas."""
Fallen = Mapping[Master, Numbers]
"""The confirmOffsets to which those of each master fell, ascending."""


def members_told(rows: Sequence[Observation]) -> Members:
    """The members that facts tell, where they are named by their ids."""
    found: dict[str | None, set[str]] = defaultdict(set)
    for row in rows:
        if row.kind == ObservationKind.FACT and row.named_by == BY_ID:
            found[row.group].update(row.members or ())
    return found


@dataclass(frozen=True, slots=True)
class _Link:
    """One replication connection: its rows by kind in their order."""

    name: str
    master: Master
    rows: Rows
    headers: Rows
    reports: Rows


def _links(frames: Columns) -> Iterator[_Link]:
    connection, group, address = (frames.coded(name) for name in ("connection", "group", "address"))
    headers, reports = frames.are(*HEADERS), frames.are(ObservationKind.REPORT)
    for code, rows in split(connection.codes):
        master = group.values[group.codes[rows[0]]], address.values[address.codes[rows[0]]]
        yield _Link(connection.values[code], master, rows, rows[headers[rows]], rows[reports[rows]])


def _falls(link: _Link, confirms: Numbers, before: int | None = None) -> Rows:
    """The headers with a smaller confirmOffset than in the one before; `before`: in the one before all."""
    told = confirms[link.headers]
    first = told[:1] if before is None else np.array([before])
    return link.headers[told < np.concatenate([first, told])[: len(told)]]


def fallen_to(frames: Columns) -> Fallen:
    """To what the masters' confirmOffsets fell. `frames`: of replication, with their groups, of any whole
    connections."""
    confirms = frames.numbers("confirm_offset").numbers
    return fallen_of({link.master: confirms[_falls(link, confirms)]} for link in _links(frames))


@dataclass(frozen=True, slots=True)
class LinkEnds:
    """What joins the stretches of one connection: when the first frame was delivered of those that there is
    much of, and the confirmOffsets in the first header and the last one; None without any."""

    master: Master
    order: int | None
    first: int | None
    last: int | None


def link_ends(frames: Columns) -> dict[str, LinkEnds]:
    """By connection; `frames`: of replication, with their groups."""
    confirms, order = (frames.numbers(name).numbers for name in ("confirm_offset", "order"))
    many = frames.are(*MANY)
    found = {}
    for link in _links(frames):
        ends = [int(each) for each in confirms[link.headers[[0, -1]]]] if len(link.headers) else [None, None]
        frequent = link.rows[many[link.rows]]
        begun = int(order[frequent[0]]) if len(frequent) else None
        found[link.name] = LinkEnds(link.master, begun, *ends)
    return found


def fallen_between(links: Iterable[Sequence[LinkEnds]]) -> Iterator[Fallen]:
    """To what confirmOffsets fell from one stretch of a connection to the next."""
    for stretches in links:
        told = [each for each in stretches if each.first is not None]
        for before, behind in pairwise(told):
            if behind.first is not None and before.last is not None and behind.first < before.last:
                yield {behind.master: np.array([behind.first], np.int64)}


def fallen_of(parts: Iterable[Fallen]) -> Fallen:
    """The same of all parts together."""
    found: dict[Master, list[Numbers]] = defaultdict(list)
    for part in parts:
        for master, ends in part.items():
            if len(ends):
                found[master].append(ends)
    return {master: np.unique(np.concatenate(each)) for master, each in found.items()}


def of_recounts(frames: Columns, fallen: Fallen) -> Rows:
    """The frames that tell of replicas as much as all: of each connection to a master that is in `fallen` a
    header, the last report, and the first one of each end to which a confirmOffset fell."""
    reported = frames.numbers("max_offset").numbers
    found = [np.zeros(0, np.int64)]
    for link in _links(frames):
        if link.master in fallen:
            same = link.reports[np.isin(reported[link.reports], fallen[link.master])]
            firsts = same[np.unique(reported[same], return_index=True)[1]]
            found += [link.headers[:1], link.reports[-1:], firsts]
    return np.unique(np.concatenate(found))


@dataclass(slots=True)
class _Replica:
    """Who the replica on a connection is, how long the master's log was when it began, and what the replica
    reported last."""

    name: str | None = None
    is_learner: bool = False
    begun_at: int | None = None
    is_whole: bool = False
    was_served: bool = False
    last: int | None = None


class Replicas:
    """The replicas of those masters of a capture whose confirmOffsets fell."""

    def __init__(self, frames: Columns, members: Members, masters: Members, fallen: Fallen) -> None:
        """`frames`: of replication, with their groups, or those that tell as much of all (of_recounts);
        `members`: none where bytes of controllers' connections were lost; `masters`: by group the ids that
        were master of an epoch; `fallen`: of the whole capture."""
        self._on: dict[str, _Replica] = {}
        self._reporters: dict[Master, dict[int, list[str]]] = {}
        links: dict[Master, list[_Link]] = defaultdict(list)
        for link in _links(frames):
            if link.master in fallen:
                links[link.master].append(link)
        self._read(frames, links)
        for master, own in links.items():
            told = members.get(master[0], ())
            if self._all_seen(own, told, masters.get(master[0], ())):
                self._reporters[master] = self._ends(frames, own, told, fallen[master])

    def reporters(self, master: Master) -> Mapping[int, Sequence[str]] | None:
        """On which connections each end was reported to a master, of those that may be in the SyncStateSet;
        None where not all that may be counted was seen."""
        return self._reporters.get(master)

    def may_be_new(self, other: str, link: str, confirmed: int) -> bool:
        """Whether the master may have begun to count another connection when it confirmed so much.

        Not one of the same replica, opened when the log was shorter and served: a replica has one connection
        at a time. What counts of it, if it is not closed, is its last word.
        """
        each, own = self._on[other], self._on[link]
        is_before = (
            each.name == own.name
            and each.begun_at is not None
            and own.begun_at is not None
            and each.begun_at < own.begun_at
            and each.was_served
        )
        return not is_before or each.last == confirmed

    def _read(self, frames: Columns, links: Mapping[Master, Iterable[_Link]]) -> None:
        opened, gaps = frames.are(ObservationKind.OPENED), frames.are(ObservationKind.GAP)
        shakes = frames.are(ObservationKind.HANDSHAKE, ObservationKind.ANSWER)
        reported = frames.numbers("max_offset").numbers
        for link in (each for own in links.values() for each in own):
            each = self._on[link.name] = _Replica()
            each.is_whole = bool(opened[link.rows].any()) and not bool(gaps[link.rows].any())
            each.was_served = len(link.headers) > 0
            each.last = int(reported[link.reports[-1]]) if len(link.reports) else None
            for row in frames.rows(link.rows[shakes[link.rows]]):
                if row.kind == ObservationKind.ANSWER:
                    each.begun_at = row.max_offset
                else:
                    each.name = str(row.broker_id) if row.text is None else row.text
                    each.is_learner = row.async_learner is True

    def _all_seen(self, links: Sequence[_Link], members: Collection[str], masters: Collection[str]) -> bool:
        """True when the members were told, and all that they and others reported to this master was seen."""
        every = [self._on[link.name] for link in links]
        connected = {each.name for each in every}
        return (
            bool(members)
            and all(each.is_whole for each in every)
            and connected | set(masters) >= set(members)
        )

    def _ends(
        self, frames: Columns, links: Sequence[_Link], members: Collection[str], fallen: Numbers
    ) -> dict[int, list[str]]:
        """Who reported which of the ends to which the confirmOffset fell."""
        reported = frames.numbers("max_offset").numbers
        found: dict[int, list[str]] = defaultdict(list)
        for link in links:
            each = self._on[link.name]
            if not each.is_learner or each.name in members:
                for end in np.intersect1d(reported[link.reports], fallen).tolist():
                    found[end].append(link.name)
        return dict(found)


@dataclass(frozen=True, slots=True)
class Before:
    """What stands before a stretch of a connection: the confirmOffset in the last header, the last report,
    and what was reported last before that header, and since."""

    confirm: int | None = None
    last: Numbers = field(default_factory=lambda: np.zeros(0, np.int64))
    since: Numbers = field(default_factory=lambda: np.zeros(0, np.int64))


class Ahead(NamedTuple):
    """What stands behind a stretch of a connection: the next header (its epoch, whether it sent nothing, and
    its offset), whether anything but headers and reports lies before it, and of the next one that shows
    where the log ended its epoch and that place. None where there is none."""

    header: tuple[Any, bool, int] | None = None
    is_apart: bool = False
    shows: tuple[Any, int] | None = None


@dataclass(frozen=True, slots=True)
class Around:
    """What stands around a stretch of a connection."""

    before: Before = field(default_factory=Before)
    ahead: Ahead = field(default_factory=Ahead)


_ALONE: Final = Around()


class Recounts:
    """The headers of any whole replication connections of a capture, or of stretches of them, beside its
    replicas."""

    def __init__(
        self, frames: Columns, replicas: Replicas, around: Mapping[str, Around] | None = None
    ) -> None:
        """`frames`: of replication, with their groups; `around`: by connections that are here in part."""
        self._frames = frames
        self._replicas = replicas
        self._around = around or {}
        self._confirms = frames.numbers("confirm_offset").numbers
        self._reported = frames.numbers("max_offset").numbers
        self._offsets = frames.numbers("offset").numbers
        self._epochs = frames.coded("epoch")
        self._empty = frames.are(ObservationKind.HEARTBEAT)
        self._breaks = frames.are(ObservationKind.GAP, ObservationKind.HANDSHAKE, ObservationKind.ANSWER)
        self._links = [*_links(frames)]

    def explained(self) -> Flags:
        """At which headers a smaller confirmOffset than in the one before may be the report of a replica that
        is counted anew; True also where not all that may be counted was seen."""
        found = np.zeros(len(self._frames), np.bool_)
        for link in self._links:
            falls = _falls(link, self._confirms, self._of(link).before.confirm)
            if len(falls):
                reporters = self._replicas.reporters(link.master)
                found[falls] = True if reporters is None else self._may_be_counted(link, falls, reporters)
        return found

    def log_ends(self) -> Counted:
        """Where the log ended at the latest when a header was sent: a later one shows it, that sent nothing
        though the one before it had sent nothing either at that place."""
        numbers, absent = np.zeros(len(self._frames), np.int64), np.ones(len(self._frames), np.int64)
        for link in self._links:
            own, ahead = link.headers, self._of(link).ahead
            last = len(own)
            places = np.where(self._shows(link, ahead), np.arange(last), last)
            behind = np.minimum.accumulate(places[::-1])[::-1]
            inside = np.flatnonzero(behind < last)
            epochs = self._epochs.codes
            told = inside[epochs[own[inside]] == epochs[own[behind[inside]]]]
            numbers[own[told]], absent[own[told]] = self._offsets[own[behind[told]]], 0
            if ahead.shows is not None:
                left = np.flatnonzero(behind == last)
                left = left[self._epochs.where(ahead.shows[0])[own[left]]]
                numbers[own[left]], absent[own[left]] = ahead.shows[1], 0
        return Counted(numbers, absent)

    def before(self, name: str) -> Before:
        """What stands before the stretch of a connection that follows this one."""
        (link,) = (each for each in self._links if each.name == name)
        known = self._of(link).before
        reports = self._reported[link.reports]
        last = reports[-1:] if len(reports) else known.last
        if not len(link.headers):
            return Before(known.confirm, last, np.unique(np.concatenate([known.since, reports])))
        row = link.headers[-1]
        at = int(np.searchsorted(link.reports, row))
        since = [known.last if at == 0 else reports[at - 1 : at], reports[at:]]
        return Before(int(self._confirms[row]), last, np.unique(np.concatenate(since)))

    def ahead(self, name: str) -> Ahead:
        """What stands behind the stretch of a connection that this one follows."""
        (link,) = (each for each in self._links if each.name == name)
        known = self._of(link).ahead
        breaks = self._breaks[link.rows]
        if not len(link.headers):
            return known._replace(is_apart=known.is_apart or bool(breaks.any()))
        first = int(link.headers[0])
        shows = np.flatnonzero(self._shows(link, known))
        shown = known.shows
        if len(shows):
            row = int(link.headers[shows[0]])
            shown = self._epochs.values[self._epochs.codes[row]], int(self._offsets[row])
        epoch = self._epochs.values[self._epochs.codes[first]]
        header = epoch, bool(self._empty[first]), int(self._offsets[first])
        return Ahead(header, bool(breaks[link.rows < first].any()), shown)

    def _of(self, link: _Link) -> Around:
        return self._around.get(link.name, _ALONE)

    def _shows(self, link: _Link, ahead: Ahead) -> Flags:
        """Which headers show where the log ended: the next one sent nothing either at the same place."""
        own, epochs = link.headers, self._epochs.codes
        if not len(own):
            return np.zeros(0, np.bool_)
        part = np.cumsum(self._breaks[link.rows])[np.searchsorted(link.rows, own)]
        same = (part[1:] == part[:-1]) & (epochs[own[1:]] == epochs[own[:-1]])
        same &= (
            self._empty[own[1:]] & self._empty[own[:-1]] & (self._offsets[own[1:]] == self._offsets[own[:-1]])
        )
        last = int(own[-1])
        alike = self._epochs.values[epochs[last]], bool(self._empty[last]), int(self._offsets[last])
        is_apart = ahead.is_apart or bool(self._breaks[link.rows[link.rows > last]].any())
        follows = alike[1] and not is_apart and ahead.header == alike
        return np.append(same, follows) & (self._offsets[own] >= 0)

    def _may_be_counted(
        self, link: _Link, falls: Rows, reporters: Mapping[int, Sequence[str]]
    ) -> Sequence[bool]:
        return [
            len(others := reporters.get(int(self._confirms[row]), ())) > SAME_MAX
            or any(
                self._is_latest(link, row)
                if each == link.name
                else self._replicas.may_be_new(each, link.name, int(self._confirms[row]))
                for each in others
            )
            for row in falls
        ]

    def _is_latest(self, link: _Link, row: int) -> bool:
        """Whether what is confirmed is what the replica reported on this connection last, or meanwhile."""
        known = self._of(link).before
        at = int(np.searchsorted(link.headers, row))
        behind = int(np.searchsorted(link.reports, row))
        first = int(np.searchsorted(link.reports, link.headers[at - 1])) if at else 0
        own = self._reported[link.reports[max(first - 1, 0) : behind]]
        earlier = known.since if at == 0 else known.last if first == 0 else own[:0]
        return bool(np.any(np.concatenate([earlier, own]) == self._confirms[row]))
