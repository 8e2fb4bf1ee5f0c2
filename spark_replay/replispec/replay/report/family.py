"""What the report is told of a family: what its rules say, and what is known of lost messages."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from replispec.replay.judges.findings import FindingRow
from replispec.replay.report.model import LostMessage, LostSend, ReportFinding
from replispec.runtime import families
from replispec.runtime.primitives.invariants import Invariant, Verdict

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
    frames of a replay; `in_short` says in a few lines what the findings of a group come to, where the page
    does not show it otherwise.
    """

    words: Callable[[str], RuleWords | None]
    lost_messages: Callable[[Path, Sequence[LostSend]], Iterator[LostMessage]]
    in_short: Callable[[str, Sequence[ReportFinding]], Sequence[str]] = lambda *_: ()


def family_of_rules(rules: Mapping[str, Invariant], capture: str, further: str) -> ReportFamily:
    """A family whose messages are looked up nowhere. `capture`: what to do where nothing was captured of what
    a rule judges, a sentence; `further`: what else would tell, where not all of it could be judged."""

    def words(rule: str) -> RuleWords | None:
        return RuleWords(rules[rule].about, rules[rule].evaluated, needs) if rule in rules else None

    def needs(finding: FindingRow, holes: int) -> str:
        if finding.verdict is not Verdict.UNKNOWN:
            return ""
        if not finding.evaluated:
            return f"It judges {rules[finding.invariant].evaluated}: none was captured. {capture}"
        said = f"{finding.counts.get(Verdict.UNKNOWN, 0):,} of {finding.evaluated:,} could not be judged."
        return f"{said} {'The capture has holes: one without lost packets would tell.' if holes else further}"

    return ReportFamily(words, lambda *_: iter(()))


@cache
def report_families() -> tuple[ReportFamily, ...]:
    """Every family that the report has words of."""
    return tuple(families.part(ROOM, name).FAMILY for name in families.with_part(ROOM))


def words_of(rule: str) -> RuleWords:
    """The words of a rule, whichever family it is of; empty for a rule that nobody knows."""
    found = (each.words(rule) for each in report_families())
    return next((words for words in found if words is not None), RuleWords("", "", lambda *_: ""))


def lost_messages(frames: Path, sends: Sequence[LostSend]) -> Iterator[LostMessage]:
    """What lost messages were, as their acknowledgements or the frames of a replay tell it."""
    yield from (_told(each) for each in sends if each.topic)
    if others := [each for each in sends if not each.topic]:
        for family in report_families():
            yield from family.lost_messages(frames, others)


def _told(send: LostSend) -> LostMessage:
    capture, connection, direction, sequence = send.place
    return LostMessage(
        file=capture,
        group=send.group,
        epoch=send.epoch,
        offset=send.offset,
        broker=send.broker,
        acknowledged_ns=send.time_ns,
        connection=connection,
        direction=direction,
        sequence=sequence,
        topic=send.topic,
        queue=send.queue,
        queue_offset=send.offset,
    )


@dataclass(frozen=True, slots=True)
class InShort:
    """What the findings of one group of one file come to, in a few lines."""

    group: str
    file: str
    lines: Sequence[str]


def in_short(findings: Iterable[ReportFinding]) -> list[InShort]:
    """Of every group of which a family says something."""
    groups: dict[tuple[str, str], list[ReportFinding]] = defaultdict(list)
    for each in findings:
        groups[each.file, each.group].append(each)
    told = [
        InShort(group, file, family.in_short(group, own))
        for (file, group), own in sorted(groups.items())
        for family in report_families()
    ]
    return [each for each in told if each.lines]
