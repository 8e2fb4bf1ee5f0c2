"""Which segments the logical queues of one topic have, by all mappings that a capture holds.

Static topics name them by their generation, logical queues of RIP-21 by their physical place. A segment
counts where its logical start is decided; where mappings contradict each other it is unknown.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from replispec.replay.events.queue_observations import Mapped
from replispec.replay.events.rocketmq.mappings import LOGICAL
from replispec.runtime.rocketmq.queues.forms import STATE_NAMES
from replispec.wire.rocketmq.codes import LogicalQueueState
from replispec.wire.rocketmq.constants import UNDECIDED

EXPIRED: Final = STATE_NAMES[LogicalQueueState.EXPIRED]


class Segment(NamedTuple):
    """A segment whose logical start is decided. `end`: physical and exclusive, None while it is open."""

    start: int
    broker: str
    queue_id: int
    physical_start: int
    end: int | None

    @property
    def delta(self) -> int:
        """Logical less physical offsets."""
        return self.start - self.physical_start

    @property
    def place(self) -> str:
        """Where it is, as findings say it."""
        return f"{self.broker}/{self.queue_id}"

    @property
    def logical_end(self) -> int | None:
        """Its logical end, if it is sealed."""
        return None if self.end is None else self.end + self.delta


@dataclass(frozen=True, slots=True)
class Held:
    """A segment, and the logical queue that it is of."""

    index: int
    segment: Segment

    def has(self, offset: int, *, at_end: bool = False) -> bool:
        """Whether it has a physical offset that it begins before; `at_end`: its end is one of them."""
        return self.segment.end is None or offset < self.segment.end + at_end


@dataclass(frozen=True, slots=True)
class Said:
    """One segment as a mapping says it: what names it, where it is, and what it is, None where its start is
    undecided. `order`: generation, or logical start."""

    index: int
    name: str
    at: str
    segment: Segment | None
    end: int | None
    order: int
    state: str | None


def segments_in(row: Mapped) -> Iterator[Said]:
    """The segments in a row that are said whole."""
    for each in row.segments or ():
        if None in (each["index"], each["broker"], each["queue_id"], each["physical_start"]):
            continue
        place = each["broker"], each["queue_id"], each["physical_start"]
        generation = each["generation"]
        if row.form == LOGICAL:
            name = f"{place[0]}/{place[1]} from {place[2]}"
        elif generation is None:
            continue
        else:
            name = str(generation)
        end = None if each["physical_end"] in (None, UNDECIDED) else each["physical_end"]
        start = each["logical_start"]
        known = None if start in (None, UNDECIDED) else Segment(start, *place, end)
        order = start or 0 if generation is None else generation
        at = f"{place[0]}/{place[1]}"
        yield Said(each["index"], name, at, known, end, order, each["state"])


@dataclass(slots=True)
class Chain:
    """The segments of one logical queue, by ascending starts; `starts` are these. `disputed`: the least start
    of a segment of which mappings contradict each other, from where on none of them tells anything."""

    segments: list[Segment] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    disputed: int | None = None

    @classmethod
    def of(cls, said: Iterable[tuple[str, Segment]]) -> Chain:
        """Of all that is said, by what names a segment; its end is known where anybody says it."""
        known: dict[tuple[Any, ...], Segment] = {}
        named: dict[str, set[tuple[Any, ...]]] = defaultdict(set)
        for name, each in said:
            key = each[:-1]
            named[name].add(key)
            before = known.get(key)
            known[key] = each if before is None or before.end is None else before
        segments = sorted(known.values(), key=lambda each: each.start)
        disputed = [key[0] for keys in named.values() if len(keys) > 1 for key in keys]
        return cls(segments, [each.start for each in segments], min(disputed, default=None))

    def at(self, offset: int) -> list[Segment]:
        """The segments that may have a logical offset: one, unless mappings contradict each other."""
        begun = bisect_right(self.starts, offset)
        if not begun or (self.disputed is not None and offset >= self.disputed):
            return []
        first = self.segments[begun - 1].start
        return [each for each in self.segments[:begun] if each.start == first]

    def following(self, segment: Segment) -> int | None:
        """Where the next segment begins; None behind the last one that is known."""
        at = bisect_right(self.starts, segment.start)
        return self.starts[at] if at < len(self.starts) else None

    def ended(self, segment: Segment) -> Segment:
        """A segment with an end: where nobody says it, it is nowhere behind the start of the next one."""
        following = self.following(segment)
        if segment.end is not None or following is None:
            return segment
        return segment._replace(end=following - segment.delta)


class Topic:
    """What all mappings of one topic come to. `rows`: those that hold, in the order of the capture."""

    def __init__(self, rows: Sequence[Mapped]) -> None:
        self.rows = rows
        self.form = LOGICAL if any(each.form == LOGICAL for each in rows) else rows[0].form
        self._expired = {
            (each.index, each.segment)
            for row in rows
            for each in segments_in(row)
            if each.state == EXPIRED and each.segment is not None
        }
        said: dict[int, list[tuple[str, Segment]]] = defaultdict(list)
        physical: dict[tuple[str, int], set[tuple[int, Segment]]] = defaultdict(set)
        for row in rows:
            for each in segments_in(row):
                if each.segment is not None:
                    said[each.index].append((each.name, each.segment))
        self.chains: Mapping[int, Chain] = {index: Chain.of(own) for index, own in said.items()}
        for index, chain in self.chains.items():
            for segment in chain.segments:
                physical[segment.broker, segment.queue_id].add((index, chain.ended(segment)))
        self._physical = physical

    def holding(self, index: int, offset: int) -> Segment | None:
        """The segment that has a logical offset, where it is one."""
        found = self.chains[index].at(offset) if index in self.chains else []
        return found[0] if len(found) == 1 else None

    def is_disputed(self, index: int) -> bool:
        """Whether mappings contradict each other about a logical queue."""
        chain = self.chains.get(index, Chain())
        return chain.disputed is not None or len({*chain.starts}) < len(chain.starts)

    def segments(self, index: int) -> list[Segment]:
        """The segments of a logical queue, by ascending starts."""
        return self.chains[index].segments if index in self.chains else []

    def border(self, index: int, segment: Segment) -> int | None:
        """Where the segment after one begins; None where none is known."""
        return self.chains[index].following(segment)

    def is_expired(self, held: Held) -> bool:
        """Whether anybody says that the messages of a segment are gone."""
        return (held.index, held.segment) in self._expired

    def held(self, broker: str, queue_id: int, offset: int) -> Held | None:
        """The segment that a physical offset lies in or behind; None where none is known, or several are."""
        begun = [
            Held(index, each)
            for index, each in self._physical.get((broker, queue_id), ())
            if each.physical_start <= offset
        ]
        last = max((each.segment.physical_start for each in begun), default=0)
        found = [each for each in begun if each.segment.physical_start == last]
        return found[0] if len(found) == 1 else None

    def logical(
        self, broker: str, queue_id: int, offset: int, *, at_end: bool = False
    ) -> tuple[int, int] | None:
        """Index and logical offset of a physical one; None where no segment is known that has it, or several
        are. `at_end`: the end of a segment is one of its offsets."""
        held = self.held(broker, queue_id, offset)
        if held is None or not held.has(offset, at_end=at_end):
            return None
        return held.index, offset + held.segment.delta
