"""All broker groups of a replay on one screen, those that are in trouble first.

Lengths are pixels of each strip's own coordinates.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from replispec.replay.pairing.pairs import EVERYTHING
from replispec.replay.report.model import ReportFinding, ReportModel, Timeline, TimelineEventKind, Verdict

STRIP_WIDTH = 240
STRIP_HEIGHT = 14
# More bands or marks than pixels tell nothing.
STRIP_PARTS_MAXIMUM = 120


@dataclass(frozen=True, slots=True)
class StripPart:
    """A time in office (`kind` "master", a colour each) or a mark ("loss", "violation", "hole")."""

    kind: str
    x: float
    width: float
    shade: int = 0


@dataclass(frozen=True, slots=True)
class GroupRow:
    """One group of one file: its anchor on the page, its worst verdict, and figures.

    `unjudged`: evaluations that nothing could decide. `strip` is empty where no timeline is.
    """

    anchor: str
    group: str
    file: str
    verdict: Verdict
    lost: int
    violated: int
    unjudged: int
    changes: int
    strip: tuple[StripPart, ...]

    @property
    def healthy(self) -> bool:
        """Whether nothing about it needs a reader."""
        return not self.lost and self.verdict is Verdict.OK


Key = tuple[str, str]
"""Group and file."""


def overview(model: ReportModel) -> tuple[GroupRow, ...]:
    """A row for each group with a timeline or a finding of its own: losses first, then worse verdicts."""
    findings: dict[Key, list[ReportFinding]] = defaultdict(list)
    for finding in model.findings:
        findings[finding.group, finding.file].append(finding)
    lost: Counter[Key] = Counter()
    for loss in model.losses:
        lost[loss.group, loss.file] += loss.acknowledged
    changes = Counter((each.group, each.file) for each in model.switches)
    lives = {(each.group, each.file): each for each in model.timelines}
    keys = [key for key in findings if key[0] != EVERYTHING] + [key for key in lives if key not in findings]
    rows = [_row(key, findings[key], lost[key], changes[key], lives.get(key)) for key in keys]
    rows.sort(key=lambda row: (-row.lost, -row.verdict.rank, row.group, row.file))
    return tuple(_anchored(rows))


def _row(
    key: Key, findings: Iterable[ReportFinding], lost: int, changes: int, life: Timeline | None
) -> GroupRow:
    judged = [finding for finding in findings if not finding.idle]
    worst = max((finding.verdict for finding in judged), key=lambda each: each.rank, default=Verdict.UNKNOWN)
    return GroupRow(
        anchor="",
        group=key[0],
        file=key[1],
        verdict=worst,
        lost=lost,
        violated=sum(finding.verdict is Verdict.VIOLATED for finding in judged),
        unjudged=sum(finding.unknown for finding in judged),
        changes=changes,
        strip=() if life is None else _strip(life),
    )


def _anchored(rows: Iterable[GroupRow]) -> Iterable[GroupRow]:
    for number, row in enumerate(rows, 1):
        yield GroupRow(
            f"group-{number}", row.group, row.file, row.verdict, row.lost, row.violated, row.unjudged,
            row.changes, row.strip,
        )  # fmt: skip


def _strip(life: Timeline) -> tuple[StripPart, ...]:
    span_ns = max(life.end_ns - life.start_ns, 1)

    def x(time_ns: int) -> float:
        inside = min(max(time_ns - life.start_ns, 0), span_ns)
        return round(inside / span_ns * STRIP_WIDTH, 1)

    masters = list(dict.fromkeys(band.master for band in life.bands))
    parts = [
        StripPart(
            "master",
            x(band.from_ns),
            round(max(x(life.end_ns if band.to_ns is None else band.to_ns) - x(band.from_ns), 1.0), 1),
            masters.index(band.master) % 6,
        )
        for band in life.bands[:STRIP_PARTS_MAXIMUM]
    ]
    told = (TimelineEventKind.HOLE, TimelineEventKind.VIOLATION, TimelineEventKind.LOSS)
    for kind in told:
        places = {x(event.time_ns) for event in life.events if event.kind is kind}
        parts += [
            StripPart(kind.value, min(place, STRIP_WIDTH - 3.0), 3.0)
            for place in sorted(places)[:STRIP_PARTS_MAXIMUM]
        ]
    return tuple(parts)
