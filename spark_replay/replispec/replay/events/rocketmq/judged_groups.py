"""What some broker groups of a capture are judged by, and their story is told by, without the others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import SimpleNamespace
from typing import Any, Final

import numpy as np

from replispec.replay.events.capture_events import Columns
from replispec.replay.events.event_tables import EventTable, split, table_of
from replispec.replay.events.observation import Observation
from replispec.replay.events.rocketmq.history import History
from replispec.replay.events.stream_event import StreamEvent

_NUMBERS: Final = ("offset", "confirm_offset", "covered", "end", "before", "acknowledged", "fell_from")
"""Attributes that are numbers of their own; those of few values are codes."""


@dataclass(frozen=True, slots=True)
class StreamEvents:
    """Events of one kind of a stream that is judged by columns."""

    stream: str
    name: str
    events: Sequence[SimpleNamespace]

    def table(self) -> EventTable:
        """The events as columns."""
        each = [(self.name, event) for event in self.events]
        return table_of(self.stream, each, _NUMBERS, lambda place: self.events[place].row)

    def of(self, groups: Collection[str]) -> StreamEvents:
        """Those about some groups."""
        return StreamEvents(self.stream, self.name, [each for each in self.events if each.group in groups])


@dataclass(frozen=True, slots=True)
class GroupEvents:
    """What is about one group, in the order of the capture: rows of what is rare, and columns."""

    rows: list[Observation]
    sends: Columns
    frames: Columns


@dataclass
class JudgedGroups:
    """What is known of all groups of a capture, or of some.

    `rows` are those of all kinds but MANY, `sends` acknowledged messages, `frames` those of replication: all
    with their groups, messages with their epochs. `listed` are the events of streams that there is little of,
    `few` those of others of which only such are here as rare rows tell. `main`: main addresses of brokers by
    replication addresses; `ended`: the lives of groups that another one followed.
    """

    rows: list[Observation]
    sends: Columns
    frames: Columns
    history: History
    listed: list[StreamEvent]
    few: list[StreamEvents]
    main: Mapping[str, str]
    ended: frozenset[str]

    def of_group(self, group: str) -> GroupEvents:
        """What is about one group."""
        nothing = np.zeros(0, np.int64)
        sends, frames = (
            each.take(own.get(group, nothing))
            for each, own in zip((self.sends, self.frames), self._columns, strict=True)
        )
        return GroupEvents(self._rows.get(group, []), sends, frames)

    def of_groups(self, parts: Sequence[Collection[str]]) -> list[JudgedGroups]:
        """What is about the groups of each part, which share none. What is about no group is left out."""
        number = {group: at for at, groups in enumerate(parts) for group in groups}
        rows: list[list[Observation]] = [[] for _ in parts]
        for row in self.rows:
            if row.group in number:
                rows[number[row.group]].append(row)
        listed: list[list[StreamEvent]] = [[] for _ in parts]
        for event in self.listed:
            if event.group in number:
                listed[number[event.group]].append(event)
        return [
            JudgedGroups(
                rows[at],
                _about(self.sends, groups),
                _about(self.frames, groups),
                self.history.of(groups),
                listed[at],
                [own for each in self.few if (own := each.of(groups)).events],
                self.main,
                self.ended.intersection(groups),
            )
            for at, groups in enumerate(parts)
        ]

    @cached_property
    def _rows(self) -> Mapping[str | None, list[Observation]]:
        found: dict[str | None, list[Observation]] = defaultdict(list)
        for row in self.rows:
            found[row.group].append(row)
        return found

    @cached_property
    def _columns(self) -> list[Mapping[str, Any]]:
        columns = [each.coded("group") for each in (self.sends, self.frames)]
        return [{each.values[code]: rows for code, rows in split(each.codes)} for each in columns]


def _about(events: Columns, groups: Collection[str]) -> Columns:
    return events.take(np.flatnonzero(events.coded("group").where(*groups)))
