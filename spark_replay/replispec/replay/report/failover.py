"""Where the moments of a fail-over go on a picture: one lane a moment, a bar from the moment before it.

Lengths are pixels of the picture's own coordinates.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from replispec.replay.report.model import FailOver
from replispec.replay.report.moments import Moment, MomentKind
from replispec.replay.report.timeline import AXIS, CHARACTER, LANE, RIGHT, TOP, WIDTH, Scale, Tick, ticks
from replispec.replay.report.wording import MOMENTS, NS_PER_SECOND, seconds

GUTTER = max(map(len, MOMENTS.values())) * CHARACTER + 24
# A change that took no time at all still needs an axis (ns).
SPAN_MINIMUM = NS_PER_SECOND // 1000


@dataclass(frozen=True, slots=True)
class FailoverStep:
    """One moment: `waited_ns` since the one before it, `since_ns` since the first one.

    `label_x` is where the duration stands, ending there when `label_ends`.
    """

    kind: MomentKind
    name: str
    time_ns: int
    waited_ns: int
    since_ns: int
    y: float
    x: float
    width: float
    label: str
    label_x: float
    label_ends: bool


@dataclass(frozen=True, slots=True)
class Anatomy:
    """The whole picture of a fail-over, and the rows of its table."""

    failover: FailOver
    width: int
    height: float
    left: float
    right: float
    bottom: float
    ticks: tuple[Tick, ...]
    steps: tuple[FailoverStep, ...]
    described: str


def anatomy(failover: FailOver) -> Anatomy:
    """Lay one fail-over out; it has at least one moment, its election."""
    moments = failover.moments
    start_ns, end_ns = moments[0].time_ns, moments[-1].time_ns
    scale = Scale(start_ns, max(end_ns, start_ns + SPAN_MINIMUM), GUTTER)
    bottom = TOP + len(moments) * LANE
    return Anatomy(
        failover=failover,
        width=WIDTH,
        height=bottom + AXIS,
        left=GUTTER,
        right=WIDTH - RIGHT,
        bottom=bottom,
        ticks=tuple(ticks(scale)),
        steps=tuple(_steps(moments, scale)),
        described=f"{failover.group}, masterEpoch {failover.epoch}: {seconds(end_ns - start_ns)}"
        f" from {MOMENTS[moments[0].kind]} to {MOMENTS[moments[-1].kind]}",
    )


def _steps(moments: Sequence[Moment], scale: Scale) -> list[FailoverStep]:
    steps = []
    for number, (before, moment) in enumerate(zip([moments[0], *moments], moments, strict=False)):
        x, end = scale.x(before.time_ns), scale.x(moment.time_ns)
        label = "" if not number else seconds(moment.time_ns - before.time_ns)
        room = end + 12 + len(label) * CHARACTER <= WIDTH
        steps.append(
            FailoverStep(
                kind=moment.kind,
                name=MOMENTS[moment.kind],
                time_ns=moment.time_ns,
                waited_ns=moment.time_ns - before.time_ns,
                since_ns=moment.time_ns - moments[0].time_ns,
                y=TOP + number * LANE + LANE / 2,
                x=x,
                width=round(max(end - x, 2.0), 1),
                label=label,
                label_x=end + 12 if room else x - 8,
                label_ends=not room,
            )
        )
    return steps
