"""What became of the acknowledged messages of one broker group: which were lost, which could be compared."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from replispec.replay.events.event_tables import Numbers, Rows
from replispec.replay.judges.parts import PartFinding


@dataclass(frozen=True, slots=True)
class LossRow:
    """Acknowledged messages of one epoch that are not in the log any more; None: which one was not seen.

    `from_offset` and `to_offset` are commit-log bytes: where the first and the last lost message start.
    `places` stands for where all of them do (report/places.py); empty until it is told.
    """

    group: str
    epoch: int | None
    from_offset: int
    to_offset: int
    acknowledged: int
    file: str
    places: str = ""


@dataclass(frozen=True, slots=True)
class SendsRow:
    """The acknowledged messages of one group.

    `followed`: of them, behind which the start of every later epoch was seen. `begun_anew`: the group's life
    ended: its broker set was removed, or set up again. `named`: something captured names the broker set.
    Of those that were not followed `lost_alone` were lost all the same, and of `unsure` nothing tells for
    sure in which epoch they were acknowledged.
    """

    group: str
    file: str
    acknowledged: int
    followed: int
    begun_anew: bool
    named: bool = True
    lost_alone: int = 0
    unsure: int = 0


def _none() -> Numbers:
    return np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class LostAt:
    """Which acknowledged messages of a capture were lost: by their places among all of them, or by other
    numbers that they have, ascending. `in_doubt`: those of them that may have kept their place, while another
    message that was given it was lost."""

    each: Rows = field(default_factory=_none)
    in_doubt: Rows = field(default_factory=_none)

    def among(self, numbers: Numbers) -> LostAt:
        """Those with these numbers, by their places there."""
        each, in_doubt = (np.flatnonzero(np.isin(numbers, own)) for own in (self.each, self.in_doubt))
        return LostAt(each, in_doubt)


def lost_at(found: Iterable[PartFinding]) -> LostAt:
    """Which messages findings about several groups call lost."""
    parts = [*found]
    each, in_doubt = (
        np.sort(np.concatenate([_none(), *(np.frombuffer(own, np.int64) for own in columns)]))
        for columns in ([part.lost_at for part in parts], [part.in_doubt for part in parts])
    )
    return LostAt(each, in_doubt)


def losses_of(file: str, group: str, found: PartFinding) -> list[LossRow]:
    """The lost messages by epoch, first those of which it was not seen."""
    return [
        LossRow(group, epoch, lost.from_offset, lost.to_offset, lost.count, file)
        for epoch, lost in sorted(found.lost.items(), key=lambda each: -1 if each[0] is None else each[0])
    ]


def sends_of(file: str, group: str, found: PartFinding, *, begun_anew: bool, named: bool) -> SendsRow:
    """All of them."""
    counts = found.messages, found.followed
    return SendsRow(group, file, *counts, begun_anew, named, found.lost_alone, found.unsure)
