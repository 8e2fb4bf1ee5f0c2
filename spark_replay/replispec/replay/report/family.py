"""What the report is told of a family: what its rules say, and what is known of lost messages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from replispec.replay.judges.findings import FindingRow
from replispec.replay.report.model import LostMessage, LostSend
from replispec.runtime import families

ROOM = "replay.report"


@dataclass(frozen=True, slots=True, eq=False)
class RuleWords:
    """What a rule says, what one evaluation of it is about, and what would let it be judged (`needs`), given
    the number of holes in the capture."""

    about: str
    evaluated: str
    needs: Callable[[FindingRow, int], str]


@dataclass(frozen=True, slots=True, eq=False)
class ReportFamily:
    """The words of one family; lies in `replispec.replay.report.<family>.family` as `FAMILY`.

    `words` gives those of a rule, None for a rule of another family; `lost_messages` looks messages up in the
    frames of a replay.
    """

    words: Callable[[str], RuleWords | None]
    lost_messages: Callable[[Path, Sequence[LostSend]], Iterator[LostMessage]]


@cache
def report_families() -> tuple[ReportFamily, ...]:
    """Every family that the report has words of."""
    return tuple(families.part(ROOM, name).FAMILY for name in families.with_part(ROOM))


def words_of(rule: str) -> RuleWords:
    """The words of a rule, whichever family it is of; empty for a rule that nobody knows."""
    found = (each.words(rule) for each in report_families())
    return next((words for words in found if words is not None), RuleWords("", "", lambda *_: ""))


def lost_messages(frames: Path, sends: Sequence[LostSend]) -> Iterator[LostMessage]:
    """What the frames of a replay tell of lost messages."""
    for each in report_families():
        yield from each.lost_messages(frames, sends)
