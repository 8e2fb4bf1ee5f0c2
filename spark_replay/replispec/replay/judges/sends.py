"""What became of the acknowledged messages of one broker group: which were lost, which could be compared."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from replispec.runtime.primitives.invariants import Evidence, Verdict


@dataclass(frozen=True, slots=True)
class LossRow:
    """Acknowledged messages of one epoch that are not in the log any more.

    `from_offset` and `to_offset` are commit-log bytes: where the first and the last lost message start.
    """

    group: str
    epoch: int
    from_offset: int
    to_offset: int
    acknowledged: int
    file: str


@dataclass(frozen=True, slots=True)
class SendsRow:
    """The acknowledged messages of one group.

    `followed`: of them, behind which the start of a later epoch was seen. `begun_anew`: the group's life
    ended: its broker set was removed, or set up again.
    """

    group: str
    file: str
    acknowledged: int
    followed: int
    begun_anew: bool


@dataclass(slots=True)
class Sends:
    """Counts the evaluations of acknowledged messages of one group."""

    group: str
    file: str
    acknowledged: int = 0
    followed: int = 0
    lost: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))

    def note(self, evidence: Evidence) -> None:
        """Take one evaluation."""
        event: Any = evidence.event
        self.acknowledged += event.is_message
        self.followed += event.followed
        if evidence.verdict is Verdict.VIOLATED:
            self.lost[event.epoch].append(event.offset)

    def losses(self) -> list[LossRow]:
        """The lost messages by epoch."""
        return [
            LossRow(self.group, epoch, min(offsets), max(offsets), len(offsets), self.file)
            for epoch, offsets in sorted(self.lost.items())
        ]

    def row(self, *, begun_anew: bool) -> SendsRow:
        """All of them."""
        return SendsRow(self.group, self.file, self.acknowledged, self.followed, begun_anew)
