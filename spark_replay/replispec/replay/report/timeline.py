"""Where everything on a timeline's picture goes: numbers and texts, no markup.

One picture per broker group: a lane per master with its time in office, a lane with the SyncStateSet, a lane
per kind of event, and an axis in seconds from the first packet of the file and in UTC. Lengths are pixels
of the picture's own coordinates.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from replispec.replay.report.model import (
    MasterBand,
    Overlap,
    Switch,
    Timeline,
    TimelineEvent,
    TimelineEventKind,
)
from replispec.replay.report.wording import NS_PER_SECOND, counted, overlap_sentence, seconds, time_of_day

WIDTH = 1120
RIGHT = 48
TOP = 10
LANE = 30
AXIS = 48
TICKS_MAXIMUM = 10
# Texts are not measured, only estimated: the widest digit of the page's font at 12 px.
CHARACTER = 7.0
# That of warnings, and how far these stand behind what they are about.
CHARACTER_BOLD, LABEL_GAP = 7.4, 6.0
GUTTER_CHARACTERS = 34
GUTTER_PADDING = 24
LABEL_CHARACTERS = 60
SHADES = 6
# A picture of more is a smear and a page of many megabytes; the tables hold the rest.
LANES_MAXIMUM = 12
MARKS_MAXIMUM = 400

OVERLAPS = "two masters at once"
# So that what took a moment is seen beside minutes.
OVERLAP_MINIMUM = 4.0
LANE_NAMES = {
    TimelineEventKind.ELECTION: "elections",
    TimelineEventKind.SYNC_STATE_SET: "SyncStateSet",
    TimelineEventKind.SWITCH: "switches",
    TimelineEventKind.LOSS: "losses",
    TimelineEventKind.VIOLATION: "broken rules",
    TimelineEventKind.HOLE: "holes in the capture",
}


@dataclass(frozen=True, slots=True)
class Tick:
    """A line of the grid and the texts below it: the seconds, and the time of day in UTC."""

    x: float
    label: str
    clock: str


@dataclass(frozen=True, slots=True)
class Box:
    """Something that lasts. `label` is empty when it would not fit, `title` is shown under a pointer."""

    x: float
    width: float
    label: str
    title: str
    shade: int


@dataclass(frozen=True, slots=True)
class TimelineMark:
    """Something that happens at one moment; `label` stands to its right, empty when there is no room."""

    x: float
    kind: TimelineEventKind
    label: str
    title: str


@dataclass(frozen=True, slots=True)
class Vacancy:
    """A time without a master; its label stands behind it, at `y`: in the lane of the master that left, or in
    another master's. `title` is shown under a pointer; `label` is empty where no lane has room for it."""

    x: float
    width: float
    y: float
    label: str
    title: str


@dataclass(slots=True)
class Lane:
    """One row of the picture; `y` is its middle, `kind` names its colours."""

    name: str
    y: float
    kind: str
    boxes: list[Box] = field(default_factory=list)
    marks: list[TimelineMark] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Picture:
    """The whole picture of a timeline; `left_out` counts what was too much to draw."""

    name: str
    file: str
    width: int
    height: float
    left: float
    right: float
    bottom: float
    masters_bottom: float
    ticks: tuple[Tick, ...]
    lanes: tuple[Lane, ...]
    vacancies: tuple[Vacancy, ...]
    switches: tuple[float, ...]
    left_out: int


@dataclass(frozen=True, slots=True)
class Scale:
    """From times to pixels right of `left`; times outside the file's are drawn at its edges."""

    start_ns: int
    end_ns: int
    left: float

    def x(self, time_ns: int) -> float:
        span = max(self.end_ns - self.start_ns, 1)
        inside = min(max(time_ns, self.start_ns), self.end_ns) - self.start_ns
        return round(self.left + inside / span * (WIDTH - self.left - RIGHT), 1)


def draw(timeline: Timeline, switches: Sequence[Switch] = (), overlaps: Sequence[Overlap] = ()) -> Picture:
    """Lay one timeline out. Masters come in the order they took office, events in the order of EventKind.

    `switches` and `overlaps` are those of the same group and file: a gap in office is drawn though the old
    master's band may reach over it, because the controller replaces a master later than it fails.
    """
    masters = list(dict.fromkeys(band.master for band in timeline.bands))
    left = _gutter(masters[:LANES_MAXIMUM])
    scale = Scale(timeline.start_ns, max(timeline.end_ns, timeline.start_ns + 1), left)
    lanes: list[Lane] = []
    for shade, master in enumerate(masters[:LANES_MAXIMUM]):
        lane = _lane(lanes, _master(master), "master")
        bands = [band for band in timeline.bands if band.master == master][:MARKS_MAXIMUM]
        lane.boxes += [_band(band, scale, shade % SHADES) for band in bands]
    masters_bottom = TOP + len(lanes) * LANE
    offices = list(lanes)
    if overlaps:
        lane = _lane(lanes, OVERLAPS, "overlap")
        lane.boxes += [_overlap(overlap, scale) for overlap in overlaps[:MARKS_MAXIMUM]]
    drawn = 0
    for kind in TimelineEventKind:
        events = sorted((each for each in timeline.events if each.kind is kind), key=_when)
        if not events:
            continue
        lane = _lane(lanes, LANE_NAMES[kind], "set" if kind is TimelineEventKind.SYNC_STATE_SET else "event")
        events = events[:MARKS_MAXIMUM]
        drawn += len(events)
        if kind is TimelineEventKind.SYNC_STATE_SET:
            lane.boxes += _segments(events, scale)
        else:
            lane.marks += _marks(events, scale)
    bottom = TOP + len(lanes) * LANE
    return Picture(
        name=timeline.group,
        file=timeline.file,
        width=WIDTH,
        height=bottom + AXIS,
        left=left,
        right=WIDTH - RIGHT,
        bottom=bottom,
        masters_bottom=masters_bottom,
        ticks=tuple(ticks(scale)),
        lanes=tuple(lanes),
        vacancies=tuple(_labelled(_vacancies(timeline.bands, switches, masters, scale), offices)),
        switches=tuple(
            scale.x(each.time_ns) for each in timeline.events if each.kind is TimelineEventKind.SWITCH
        ),
        left_out=len(timeline.events) - drawn + max(len(masters) - LANES_MAXIMUM, 0),
    )


def _master(name: str) -> str:
    return f"master {name}"


def _gutter(masters: Sequence[str]) -> float:
    """The room that the names of lanes need."""
    longest = max(len(name) for name in (*map(_master, masters), OVERLAPS, *LANE_NAMES.values()))
    return min(longest, GUTTER_CHARACTERS) * CHARACTER + GUTTER_PADDING


def _when(event: TimelineEvent) -> int:
    return event.time_ns


def _lane(lanes: list[Lane], name: str, kind: str) -> Lane:
    lane = Lane(shorten(name, GUTTER_CHARACTERS), _middle(len(lanes)), kind)
    lanes.append(lane)
    return lane


def _band(band: MasterBand, scale: Scale, shade: int) -> Box:
    end_ns = scale.end_ns if band.to_ns is None else band.to_ns
    x, width = _extent(band.from_ns, end_ns, scale)
    title = f"{band.master}: master of masterEpoch {band.epoch} for {seconds(end_ns - band.from_ns)}"
    if band.to_ns is None:
        title += " and on when the capture ended"
    return Box(x, width, _fitting(f"epoch {band.epoch}", width), title, shade)


def _overlap(overlap: Overlap, scale: Scale) -> Box:
    x, width = _extent(overlap.from_ns, overlap.to_ns, scale)
    return Box(x, max(width, OVERLAP_MINIMUM), "", overlap_sentence(overlap), 0)


def _segments(events: Sequence[TimelineEvent], scale: Scale) -> list[Box]:
    """A set stands until the next one is seen."""
    boxes = []
    ends = [*(event.time_ns for event in events[1:]), scale.end_ns]
    for number, (event, end_ns) in enumerate(zip(events, ends, strict=True)):
        x, width = _extent(event.time_ns, end_ns, scale)
        title = event.detail or f"{event.label} from {seconds(event.time_ns - scale.start_ns)}"
        boxes.append(Box(x, width, _fitting(event.label, width), title, number % 2))
    return boxes


def _marks(events: Sequence[TimelineEvent], scale: Scale) -> list[TimelineMark]:
    """Marks keep their place; a label is left out when the next mark stands in its way."""
    marks = []
    places = [scale.x(event.time_ns) for event in events]
    for event, x, following in zip(events, places, [*places[1:], float(WIDTH)], strict=True):
        label = _fitting(event.label, following - x - 6)
        marks.append(TimelineMark(x, event.kind, label, event.detail or event.label))
    return marks


def _vacancies(
    bands: Iterable[MasterBand], switches: Iterable[Switch], masters: Sequence[str], scale: Scale
) -> list[Vacancy]:
    """The times in which nobody was master: gaps that switches tell of, and gaps between bands."""
    gaps = {
        each.time_ns: (each.time_ns - each.gap_ns, each.from_master)
        for each in switches
        if each.gap_ns is not None and each.from_master is not None
    }
    last: MasterBand | None = None
    covered_ns = 0
    for band in sorted(bands, key=lambda each: each.from_ns)[:MARKS_MAXIMUM]:
        end_ns = scale.end_ns if band.to_ns is None else band.to_ns
        if last is not None and band.from_ns > covered_ns:
            gaps.setdefault(band.from_ns, (covered_ns, last.master))
        if last is None or end_ns > covered_ns:
            last, covered_ns = band, end_ns
    vacant = []
    for to_ns, (from_ns, master) in sorted(gaps.items()):
        x, width = _extent(from_ns, to_ns, scale)
        lane = masters.index(master) if master in masters else 0
        label = f"no master for {seconds(to_ns - from_ns)}"
        vacant.append(Vacancy(x, width, _middle(min(lane, LANES_MAXIMUM - 1)), label, label))
    return vacant


def _labelled(vacant: Sequence[Vacancy], offices: Sequence[Lane]) -> Iterator[Vacancy]:
    """The same, each label where it stands on no bar, no other vacancy and no other label; else without."""
    taken = [(lane.y, box.x, box.x + box.width) for lane in offices for box in lane.boxes]
    taken += [(lane.y, each.x, each.x + each.width) for lane in offices for each in vacant]
    for each in vacant:
        begin = each.x + each.width + LABEL_GAP
        end = begin + len(each.label) * CHARACTER_BOLD
        free = [
            y
            for y in sorted({lane.y for lane in offices}, key=lambda y: (y != each.y, abs(y - each.y), y))
            if end <= WIDTH and not any(at == y and low < end and begin < high for at, low, high in taken)
        ]
        if free:
            taken.append((free[0], begin, end))
        yield replace(each, y=free[0] if free else each.y, label=each.label if free else "")


def _middle(lane: int) -> float:
    return TOP + lane * LANE + LANE / 2


def _extent(from_ns: int, to_ns: int, scale: Scale) -> tuple[float, float]:
    x = scale.x(from_ns)
    return x, round(max(scale.x(to_ns) - x, 1.0), 1)


def _fitting(label: str, width: float) -> str:
    text = shorten(label, LABEL_CHARACTERS)
    return text if len(text) * CHARACTER + 8 <= width else ""


def shorten(text: str, characters: int) -> str:
    """The text, or its beginning and an ellipsis."""
    return text if len(text) <= characters else f"{text[: characters - 1]}…"


def ticks(scale: Scale) -> list[Tick]:
    """Round steps of 1, 2 or 5 times a power of ten seconds, at most TICKS_MAXIMUM after the first."""
    span_ns = scale.end_ns - scale.start_ns
    step_ns = next(
        step
        for power in range(20)
        for step in (10**power, 2 * 10**power, 5 * 10**power)
        if span_ns // step <= TICKS_MAXIMUM
    )
    places = range(0, span_ns + 1, step_ns)
    return [
        Tick(
            scale.x(scale.start_ns + at),
            _tick_label(at, step_ns),
            time_of_day(scale.start_ns + at, step_ns),
        )
        for at in places
    ]


def _tick_label(at_ns: int, step_ns: int) -> str:
    digits = next((digits for digits in range(10) if step_ns * 10**digits % NS_PER_SECOND == 0), 9)
    whole, rest = divmod(at_ns, NS_PER_SECOND)
    return f"{whole}.{rest:09}"[: -9 + digits or None] + " s" if digits else f"{whole} s"


def described(picture: Picture) -> str:
    """What a screen reader says of the picture."""
    bands = sum(len(lane.boxes) for lane in picture.lanes)
    marks = sum(len(lane.marks) for lane in picture.lanes)
    return f"Timeline of {picture.name}: {counted(bands, 'span')} and {counted(marks, 'mark')}"
