"""Where the curves of a group's logs go on a picture below its timeline, on the same axis of time.

Lengths are pixels of the picture's own coordinates. A curve is a staircase: an offset stands until the next
one is seen.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from replispec.replay.report.model import CurveKind, Timeline
from replispec.replay.report.timeline import AXIS, RIGHT, SHADES, TOP, WIDTH, Picture, Scale, Tick, shorten
from replispec.replay.report.wording import counted

HEIGHT = 190
LEGEND = 20
LEGEND_CHARACTERS = 100
CURVES_MAXIMUM = 12
POINTS_MAXIMUM = 1000
LEVELS_MAXIMUM = 5

MEANING = {
    CurveKind.ACKNOWLEDGED: "start of the last message acknowledged to producers",
    CurveKind.SENT: "end of the log sent to replicas",
    CurveKind.CONFIRMED: "confirmOffset told to replicas",
    CurveKind.REPORTED: "reported as stored",
}


@dataclass(frozen=True, slots=True)
class OffsetLevel:
    """A horizontal line of the grid and the text left of it."""

    y: float
    label: str


@dataclass(frozen=True, slots=True)
class Line:
    """One curve: `path` in SVG's language, made of numbers alone and never cut, and `y` of its line in the
    legend."""

    path: str
    kind: CurveKind
    shade: int
    label: str
    y: float


@dataclass(frozen=True, slots=True)
class Chart:
    """The whole picture of a group's logs; `left_out` counts the curves that were too many to draw."""

    width: int
    height: float
    left: float
    right: float
    bottom: float
    ticks: tuple[Tick, ...]
    levels: tuple[OffsetLevel, ...]
    lines: tuple[Line, ...]
    described: str
    left_out: int


def chart(timeline: Timeline, picture: Picture) -> Chart | None:
    """The curves of a timeline below its picture; None when it has none."""
    shown = timeline.curves[:CURVES_MAXIMUM]
    if not shown:
        return None
    scale = Scale(timeline.start_ns, max(timeline.end_ns, timeline.start_ns + 1), picture.left)
    top = max(max((offset for _, offset in curve.points), default=0) for curve in shown)
    owners = list(dict.fromkeys(curve.owner for curve in shown))
    bottom = TOP + HEIGHT
    return Chart(
        width=WIDTH,
        height=bottom + AXIS + LEGEND * len(shown),
        left=picture.left,
        right=WIDTH - RIGHT,
        bottom=bottom,
        ticks=picture.ticks,
        levels=tuple(_levels(max(top, 1))),
        lines=tuple(
            Line(
                path=_path(curve.points[:POINTS_MAXIMUM], scale, max(top, 1)),
                kind=curve.kind,
                shade=owners.index(curve.owner) % SHADES,
                label=f"{shorten(curve.owner, LEGEND_CHARACTERS)}: {MEANING[curve.kind]}",
                y=bottom + AXIS + LEGEND * number,
            )
            for number, curve in enumerate(shown)
        ),
        described=f"Offsets of {timeline.group}: {counted(len(shown), 'curve')}",
        left_out=len(timeline.curves) - len(shown),
    )


def _path(points: Sequence[tuple[int, int]], scale: Scale, top: int) -> str:
    steps = [f"H{scale.x(time_ns)} V{_y(offset, top)}" for time_ns, offset in points]
    start = f"M{scale.x(points[0][0])} {_y(points[0][1], top)}" if points else ""
    return " ".join([start, *steps[1:]])


def _y(offset: int, top: int) -> float:
    return round(TOP + HEIGHT - min(max(offset, 0), top) / top * HEIGHT, 1)


def _levels(top: int) -> list[OffsetLevel]:
    """Round steps of 1, 2 or 5 times a power of ten bytes, at most LEVELS_MAXIMUM above 0."""
    step = next(
        step
        for power in range(20)
        for step in (10**power, 2 * 10**power, 5 * 10**power)
        if top // step <= LEVELS_MAXIMUM
    )
    return [OffsetLevel(_y(at, top), f"{at:,} B") for at in range(0, top + 1, step)]
