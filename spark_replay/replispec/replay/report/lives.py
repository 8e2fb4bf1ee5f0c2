"""The timelines that are drawn, those of groups in trouble first, and with what below each."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from replispec.replay.report.model import Lag, Overlap, ReportModel, Switch, Timeline
from replispec.replay.report.offsets import Chart, chart
from replispec.replay.report.overview import GroupRow
from replispec.replay.report.timeline import Picture, draw

T = TypeVar("T", Switch, Overlap)
LAGS_MAXIMUM = 50
TIMELINES_MAXIMUM = 100
# Of groups in which nothing is wrong; they are folded where there are more than a reader looks through.
SOUND_MAXIMUM = 40
UNFOLDED_MAXIMUM = 3


@dataclass(frozen=True, slots=True)
class Life:
    """A group's timeline with all that is drawn of it; `folded`: nothing is wrong with it."""

    anchor: str
    number: int
    folded: bool
    picture: Picture
    chart: Chart | None
    lags: tuple[Lag, ...]


def drawn_lives(model: ReportModel, groups: Sequence[GroupRow]) -> list[Life]:
    """The timelines in the order of the overview: as many as a reader can use."""
    timelines = {(each.group, each.file): each for each in model.timelines}
    shown = [row for row in groups if (row.group, row.file) in timelines]
    sick = [row for row in shown if not row.healthy][:TIMELINES_MAXIMUM]
    sound = [row for row in shown if row.healthy][:SOUND_MAXIMUM]
    lives = []
    for number, row in enumerate([*sick, *sound], 1):
        timeline = timelines[row.group, row.file]
        picture = draw(timeline, _own(model.switches, timeline), _own(model.overlaps, timeline))
        folded = row.healthy and len(shown) > UNFOLDED_MAXIMUM
        drawn = chart(timeline, picture)
        lives.append(Life(row.anchor, number, folded, picture, drawn, timeline.lags[:LAGS_MAXIMUM]))
    return lives


def _own(told: Iterable[T], timeline: Timeline) -> list[T]:
    """What is about the group and file of a timeline."""
    return [each for each in told if (each.group, each.file) == (timeline.group, timeline.file)]
