"""Broker sets that one part of a capture judges: what is rare about them is told to no other part.

Rules and machines that ask about all of a broker set walk it here, and its story is told here. Two sets that
one broker's start has to do with are one part's. What is handed from round to round lies there as bytes, for
whoever reads the rest makes nothing of it.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pickle import dumps, loads
from typing import Final

import numpy as np

from replispec.replay.engines.results import CaptureResult, Options
from replispec.replay.engines.rocketmq.told import told_of
from replispec.replay.events.capture_events import Columns
from replispec.replay.events.event_tables import Rows
from replispec.replay.events.group_names import is_named
from replispec.replay.events.rocketmq.judged_groups import JudgedGroups
from replispec.replay.events.rocketmq.telling import numbers_of
from replispec.replay.judges.findings import FindingRow
from replispec.replay.judges.parts import PartFinding, PartFindings
from replispec.replay.judges.rocketmq.judge import conclude, with_pairs
from replispec.replay.machines.group_walks import GroupWalk, together
from replispec.replay.report.model import Answers, Latency, Overlap
from replispec.replay.report.summary import CaptureRow

_PROTOCOL: Final = 5
_BY_GROUP: Final = ("losses", "sends", "switches", "timelines", "failovers", "lost", "causes")
"""What is told of a capture by groups, in their order; findings have an order of their own."""


@dataclass(frozen=True, slots=True)
class BrokerSets:
    """The groups of each part: `pieces` has what is rare about them and the walks of their machines, `parts`
    the part of each that something rare is about."""

    pieces: Sequence[bytes] = ()
    parts: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, own: JudgedGroups, walks: Sequence[GroupWalk], count: int) -> BrokerSets:
        """In so many parts, by the number of rows: the largest first, each where there is least."""
        parts = _parts_of(own, walks, count)
        # What is frequent is told later, when it is known which of it tells the story.
        nothing = np.zeros(0, np.int64)
        own = replace(own, sends=own.sends.take(nothing), frames=own.frames.take(nothing))
        groups: list[list[str]] = [[] for _ in range(count)]
        for group, at in parts.items():
            groups[at].append(group)
        walked: list[list[GroupWalk]] = [[] for _ in range(count)]
        for each in walks:
            for at in {parts[group] for group in each.groups}:
                walked[at].append(each)
        pieces = zip(own.of_groups(groups), walked, strict=True)
        return cls([dumps(piece, _PROTOCOL) for piece in pieces], parts)

    def part_of(self, group: str | None) -> int:
        """Who judges a group, also one of which only frequent events tell."""
        named = group or ""
        return self.parts.get(named, zlib.crc32(named.encode()) % len(self.pieces))

    def rows_of(self, events: Columns) -> list[Rows]:
        """The rows of each part, of events with their groups."""
        group = events.coded("group")
        owners = np.array([self.part_of(each) for each in group.values], np.int64)[group.codes]
        return [np.flatnonzero(owners == at) for at in range(len(self.pieces))]


def _parts_of(own: JudgedGroups, walks: Sequence[GroupWalk], count: int) -> dict[str, int]:
    every_group = {row.group for row in own.rows if row.group is not None}
    every_group |= {event.group for event in own.listed} | {*own.history.tenures}
    every_group |= {event.group for each in own.few for event in each.events}
    # A row that no name is on is walked with its broker's, not with what it is counted under.
    weights = Counter(row.group for row in own.rows if row.group is not None and is_named(row.group))
    one_by_one = [frozenset((group,)) for group in every_group]
    joined = together(walks)
    apart = set(chain.from_iterable(joined))
    every = [*joined, *(each for each in one_by_one if not each <= apart)]
    found: dict[str, int] = {}
    load = [0] * count
    for groups in sorted(every, key=lambda each: (-sum(weights[group] for group in each), sorted(each))):
        least = min(range(count), key=load.__getitem__)
        load[least] += 1 + sum(weights[group] for group in groups)
        found |= dict.fromkeys(sorted(groups), least)
    return found


@dataclass(frozen=True, slots=True)
class SetsPiece:
    """All that one part is told of its groups; `found`: what parts of connections came to about them."""

    capture: CaptureRow
    options: Options
    rare: bytes
    sends: Columns
    frames: Columns
    found: PartFindings

    def judged(self) -> CaptureResult:
        """What is told of the groups."""
        own, walks = loads(self.rare)
        own = replace(own, sends=self.sends, frames=self.frames)
        judgement = conclude(self.capture.file, own, walks, self.found)
        judgement.lost = judgement.lost.among(numbers_of(self.sends))
        return told_of(self.capture, judgement, self.options)


def pieces_of(
    sets: BrokerSets,
    capture: CaptureRow,
    options: Options,
    sends: Columns,
    frames: Columns,
    found: PartFindings,
) -> list[SetsPiece]:
    """The piece of each part. `sends` and `frames` are those that tell as much as all, with groups and
    epochs; `found`: what parts of connections came to."""
    own: list[PartFindings] = [{} for _ in sets.pieces]
    for (group, rule), finding in found.items():
        own[sets.part_of(group)][group, rule] = finding
    parts = zip(sets.pieces, sets.rows_of(sends), sets.rows_of(frames), own, strict=True)
    return [
        SetsPiece(capture, options, rare, sends.take(sent), frames.take(carried), findings)
        for rare, sent, carried, findings in parts
    ]


@dataclass(slots=True)
class Ending:
    """What is told of a capture beside its groups, and at last all of it."""

    capture: CaptureRow
    pairs: PartFinding
    latencies: list[Latency]
    answers: list[Answers]
    overlaps: list[Overlap]
    queues: list[FindingRow]
    result: CaptureResult | None = None

    def add(self, told: Sequence[CaptureResult]) -> None:
        """What is told of all groups."""
        result = CaptureResult(
            self.capture, latencies=self.latencies, overlaps=self.overlaps, answers=self.answers
        )
        for each in told:
            result.add(each)
        result.findings = with_pairs(self.capture.file, [*result.findings, *self.queues], self.pairs)
        for name in _BY_GROUP:
            getattr(result, name).sort(key=lambda row: row.group)
        self.result = result
