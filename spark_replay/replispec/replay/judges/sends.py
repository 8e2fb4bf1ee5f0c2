"""What became of the acknowledged messages of one broker group: which were lost, which could be compared."""

from __future__ import annotations

from dataclasses import dataclass

from replispec.replay.judges.parts import PartFinding


@dataclass(frozen=True, slots=True)
class LossRow:
    """Acknowledged messages of one epoch that are not in the log any more; None: which one was not seen.

    `from_offset` and `to_offset` are commit-log bytes: where the first and the last lost message start.
    """

    group: str
    epoch: int | None
    from_offset: int
    to_offset: int
    acknowledged: int
    file: str


@dataclass(frozen=True, slots=True)
class SendsRow:
    """The acknowledged messages of one group.

    `followed`: of them, behind which the start of every later epoch was seen. `begun_anew`: the group's life
    ended: its broker set was removed, or set up again. `named`: something captured names the broker set.
    """

    group: str
    file: str
    acknowledged: int
    followed: int
    begun_anew: bool
    named: bool = True


def losses_of(file: str, group: str, found: PartFinding) -> list[LossRow]:
    """The lost messages by epoch, first those of which it was not seen."""
    return [
        LossRow(group, epoch, lost.from_offset, lost.to_offset, lost.count, file)
        for epoch, lost in sorted(found.lost.items(), key=lambda each: -1 if each[0] is None else each[0])
    ]


def sends_of(file: str, group: str, found: PartFinding, *, begun_anew: bool, named: bool) -> SendsRow:
    """All of them."""
    return SendsRow(group, file, found.messages, found.followed, begun_anew, named)
