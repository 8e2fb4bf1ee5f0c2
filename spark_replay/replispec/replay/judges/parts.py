"""Findings of parts of a capture, which add up to those of the whole in any order.

A part is any events that a rule judges without the others: one connection's, or any of those that are
judged by what the whole capture tells. What a part comes to is small: counts, the first evidence of each
verdict, and the losses of each epoch.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from replispec.replay.events.event_tables import Numbers, Rows
from replispec.runtime.primitives.invariants import EVIDENCE_MAX, Verdict, worst

Place = tuple[Any, ...]
"""Where an evaluation stands in the order of its stream; no two of one rule share one."""


@dataclass(frozen=True, slots=True)
class Proof:
    """One frame that proves a finding: when and where it was seen, and what it says."""

    time_ns: int
    connection: str
    direction: int
    sequence: int
    text: str
    verdict: str = ""


@dataclass(frozen=True, slots=True)
class PlacedProofs:
    """What proves one evaluation that was not ok."""

    verdict: Verdict
    place: Place
    proofs: tuple[Proof, ...]


@dataclass(frozen=True, slots=True)
class LostRange:
    """Acknowledged messages that were lost: the least and the greatest start, in bytes of the commit log."""

    from_offset: int
    to_offset: int
    count: int

    def __add__(self, other: LostRange) -> LostRange:
        first, last = min(self.from_offset, other.from_offset), max(self.to_offset, other.to_offset)
        return LostRange(first, last, self.count + other.count)


def _numbers() -> array[int]:
    """Numbers in eight bytes each: many messages may be lost."""
    return array("q")


@dataclass(slots=True)
class PartFinding:
    """What one rule says about one group in a part of a capture.

    Of the rule about acknowledged messages: `lost` are losses by epoch, of None where it was not seen,
    `messages` all of them, `followed` those behind which the start of a later epoch was seen; of the others
    `lost_alone` were lost all the same, and of `unsure` nothing tells the epoch for sure. `lost_at`: which
    were lost, each by its place in its table; `in_doubt`: those of them that may have kept their place, while
    another message that was given it was lost.
    """

    counts: Counter[Verdict] = field(default_factory=Counter)
    kept: list[PlacedProofs] = field(default_factory=list)
    lost: dict[int | None, LostRange] = field(default_factory=dict)
    messages: int = 0
    followed: int = 0
    lost_alone: int = 0
    unsure: int = 0
    lost_at: array[int] = field(default_factory=_numbers)
    in_doubt: array[int] = field(default_factory=_numbers)

    @property
    def verdict(self) -> Verdict:
        """The verdict of all evaluations; unknown when there was none."""
        return worst(verdict for verdict, count in self.counts.items() if count)

    @property
    def proofs(self) -> tuple[Proof, ...]:
        """The frames that prove it, those of the worst verdict first."""
        return tuple(proof for each in self.kept for proof in each.proofs)

    def count(self, verdict: Verdict, number: int = 1) -> None:
        """So many evaluations came to this verdict."""
        if number:
            self.counts[verdict] += number

    def keep(self, found: Iterable[PlacedProofs]) -> None:
        """More evidence; what is kept is that of the worst verdicts, and of these the first."""
        self.kept = sorted((*self.kept, *found), key=_heaviest_first)[:EVIDENCE_MAX]

    def lose(self, epoch: int | None, lost: LostRange) -> None:
        """More losses of an epoch."""
        self.lost[epoch] = self.lost[epoch] + lost if epoch in self.lost else lost

    def lose_at(self, places: Rows, in_doubt: Rows) -> None:
        """More places of messages that were lost, and which of them are in doubt."""
        self.lost_at.frombytes(places.astype(np.int64).tobytes())
        self.in_doubt.frombytes(in_doubt.astype(np.int64).tobytes())

    def renumber(self, numbers: Numbers) -> None:
        """Name lost messages by numbers that they have in the whole capture: `numbers[place]`."""
        lost, in_doubt = (numbers[np.frombuffer(each, np.int64)] for each in (self.lost_at, self.in_doubt))
        self.lost_at, self.in_doubt = _numbers(), _numbers()
        self.lose_at(lost, in_doubt)

    def add(self, other: PartFinding) -> None:
        """What the same rule says about the same group in another part."""
        self.counts += other.counts
        self.keep(other.kept)
        self.messages += other.messages
        self.followed += other.followed
        self.lost_alone += other.lost_alone
        self.unsure += other.unsure
        for epoch, lost in other.lost.items():
            self.lose(epoch, lost)
        self.lost_at.extend(other.lost_at)
        self.in_doubt.extend(other.in_doubt)


def _heaviest_first(each: PlacedProofs) -> tuple[int, Place]:
    return -each.verdict.rank, each.place


PartFindings = dict[tuple[str, str], PartFinding]
"""Findings by group and id of the rule."""


def add_up(parts: Iterable[PartFindings]) -> PartFindings:
    """The findings of all parts together; their order does not matter."""
    whole: PartFindings = {}
    for part in parts:
        for key, found in part.items():
            whole.setdefault(key, PartFinding()).add(found)
    return whole
