"""A logical queue: a list of segments, each of which maps logical offsets to those of a physical queue."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

from replispec.runtime.rocketmq import rules
from replispec.wire.rocketmq.codes import LogicalQueueState as State
from replispec.wire.rocketmq.constants import UNDECIDED

READABLE = frozenset({State.NORMAL, State.READ_ONLY})
WRITABLE = frozenset({State.NORMAL, State.WRITE_ONLY})


class PhysicalQueue(NamedTuple):
    """A queue of one broker, of a topic that its holder knows."""

    broker_name: str
    queue_id: int


class SegmentKey(NamedTuple):
    """What tells the segments of a logical queue apart."""

    queue: PhysicalQueue
    physical_start: int


@dataclass(frozen=True, slots=True)
class Segment:
    """From `logical_start` on, the messages of a logical queue are those of `queue` from `physical_start` on.

    Offsets count messages, ends are exclusive. Times are milliseconds of a clock.
    """

    queue: PhysicalQueue
    state: State
    logical_start: int = UNDECIDED
    physical_start: int = 0
    physical_end: int = UNDECIDED
    first_ms: int = UNDECIDED
    last_ms: int = UNDECIDED
    address: str | None = None

    @property
    def key(self) -> SegmentKey:
        """What tells it from others of its logical queue."""
        return SegmentKey(self.queue, self.physical_start)

    @property
    def is_decided(self) -> bool:
        """Whether it is known at which logical offset it begins."""
        return self.logical_start != UNDECIDED

    @property
    def is_sealed(self) -> bool:
        """Whether it has an end."""
        return self.physical_end != UNDECIDED

    @property
    def is_readable(self) -> bool:
        """Whether its messages can be read, by logical offsets."""
        return self.is_decided and self.state in READABLE

    @property
    def is_writable(self) -> bool:
        """Whether it takes messages."""
        return self.state in WRITABLE

    @property
    def logical_end(self) -> int:
        """The logical offset behind its last message; UNDECIDED while it is open."""
        return rules.segment_end(self.physical_start, self.physical_end, self.logical_start)

    @property
    def offset_delta(self) -> int:
        """What is added to physical offsets; only where it is decided."""
        return rules.offset_delta(self.physical_start, self.logical_start)

    def decided(self) -> Segment:
        """The same where it takes messages and its start is known: it is read, too."""
        is_begun = self.is_decided and self.state == State.WRITE_ONLY
        return replace(self, state=State.NORMAL) if is_begun else self

    def logical_of(self, physical: int) -> int:
        """The logical offset of a message of it; UNDECIDED where its start is."""
        return rules.logical_offset(physical, self.physical_start, self.logical_start)

    def physical_of(self, logical: int) -> int:
        """Where a message of it lies in its physical queue; only where it is decided."""
        return rules.physical_offset(logical, self.physical_start, self.logical_start)


def _place(segment: Segment) -> tuple[bool, int, bool, State, PhysicalQueue, int]:
    """Decided starts ascending, then undecided ones; of what begins alike first those without a message, then
    by state, queue and physical start."""
    start, queue = segment.logical_start, segment.queue
    has_room = segment.logical_end != start
    return not segment.is_decided, start, has_room, segment.state, queue, segment.physical_start


@dataclass(frozen=True, slots=True)
class LogicalQueue:
    """A logical queue of a topic; its segments are in order."""

    index: int
    segments: tuple[Segment, ...] = ()

    @classmethod
    def of(cls, index: int, segments: Iterable[Segment]) -> LogicalQueue:
        """One of these segments, in whatever order."""
        return cls(index, tuple(sorted(segments, key=_place)))

    @classmethod
    def heard(cls, index: int, segments: Iterable[Segment]) -> LogicalQueue:
        """One of segments that several brokers told, each when it liked: where one still looks open though
        another follows it, its seal was not heard yet, and it ends where that one begins."""
        found = cls.of(index, segments).segments
        # Not as many of both where there is none: all may be gone.
        followed = zip(found, (*found[1:], None), strict=False)
        return cls.of(index, (_ended_by(each, following) for each, following in followed))

    @property
    def is_waiting(self) -> bool:
        """Whether nobody knows where any of its segments begins."""
        return bool(self.segments) and not any(each.is_decided for each in self.segments)

    @property
    def first_readable(self) -> Segment | None:
        """The oldest segment that can be read."""
        return next((each for each in self.segments if each.is_readable), None)

    @property
    def last_readable(self) -> Segment | None:
        """The newest one."""
        return next((each for each in reversed(self.segments) if each.is_readable), None)

    @property
    def writable(self) -> Segment | None:
        """The segment that takes messages, the newest where there are two during a migration."""
        return next((each for each in reversed(self.segments) if each.is_writable), None)

    def locate(self, offset: int) -> Segment | None:
        """The segment that a logical offset belongs to, readable or not; None before the first."""
        place = rules.segment_at([each.logical_start for each in self.segments], offset)
        return None if place is None else self.segments[place]

    def next_of(self, segment: Segment) -> Segment | None:
        """The segment that follows; None after the last, and for one of another queue."""
        keys = [each.key for each in self.segments]
        place = keys.index(segment.key) + 1 if segment.key in keys else len(keys)
        return self.segments[place] if place < len(keys) else None

    def keeper_of(self, offset: int) -> Segment | None:
        """The segment at whose broker a group says that it reads on at an offset. At the border to one whose
        physical queue served before that is the one before it: the same number was said there of the earlier
        use, by whoever read all of it."""
        found = self.locate(offset)
        if found is None or offset != found.logical_start or not found.physical_start:
            return found
        return self._readable_before(found) or found

    def is_said_of(self, segment: Segment, physical: int) -> bool:
        """Whether a position that is kept of a physical queue was said of this segment, and not of an earlier
        use of the queue; where that cannot be seen, whether nothing is skipped by who goes on here."""
        if physical == segment.physical_start and physical:
            return self._readable_before(segment) is None
        return physical >= segment.physical_start

    def _readable_before(self, segment: Segment) -> Segment | None:
        earlier = (each for each in self.segments if UNDECIDED < each.logical_start < segment.logical_start)
        return next((each for each in reversed([*earlier]) if each.is_readable), None)

    def border_of(self, segment: Segment) -> int:
        """The logical offset from which on another segment holds the messages: that of the next one that is
        decided, else the end of this one; UNDECIDED while it is open."""
        following = self.next_of(segment)
        is_followed = following is not None and following.is_decided
        return following.logical_start if following and is_followed else segment.logical_end

    def sealed(self, key: SegmentKey, physical_end: int, first_kept: int) -> LogicalQueue:
        """With an end for that segment. Its messages before `first_kept` are deleted: where none is left, or
        never was, it is expired. An end that it has stays."""
        return self._changed(
            key, lambda each: each if each.is_sealed else _ended(each, physical_end, first_kept)
        )

    def expired(self, queue: PhysicalQueue, first_kept: int) -> LogicalQueue:
        """After a broker deleted the messages before `first_kept` of a physical queue."""
        return LogicalQueue(self.index, tuple(_aged(each, queue, first_kept) for each in self.segments))

    def continued(self, segment: Segment) -> LogicalQueue:
        """With one more segment. One whose physical queue it takes again, which must be expired, goes."""
        kept = (each for each in self.segments if each.queue != segment.queue or each.state != State.EXPIRED)
        return LogicalQueue.of(self.index, (*kept, segment))

    def told(self, segments: Iterable[Segment]) -> LogicalQueue:
        """With what a broker says of some of its segments, which counts more than what is known of them."""
        said = {each.key: each for each in segments}
        taken = {each.queue for each in said.values() if not each.is_sealed}
        kept = (
            each
            for each in self.segments
            if each.key not in said and not (each.queue in taken and each.state == State.EXPIRED)
        )
        return LogicalQueue.heard(self.index, (*kept, *said.values()))

    def handed_on(self, segment: Segment) -> LogicalQueue:
        """With one more segment that takes the messages. Nobody says where the one before it ends."""
        last = self.segments[-1]
        kept = (*self.segments[:-1], replace(last, state=State.READ_ONLY if last.is_decided else last.state))
        return LogicalQueue(self.index, (*kept, segment))

    def decided(self, key: SegmentKey, logical_start: int) -> LogicalQueue:
        """With a start for that segment, which is Normal from then on. A start that it has stays."""
        return self._changed(key, lambda each: each if each.is_decided else _begun(each, logical_start))

    def without(self, queue: PhysicalQueue) -> LogicalQueue:
        """After an expired physical queue was taken by another logical queue."""
        kept = (each for each in self.segments if each.queue != queue or each.state != State.EXPIRED)
        return LogicalQueue(self.index, tuple(kept))

    def _changed(self, key: SegmentKey, change: _Change) -> LogicalQueue:
        segments = (change(each) if each.key == key else each for each in self.segments)
        return LogicalQueue.of(self.index, segments)


_Change = Callable[[Segment], Segment]


def _ended(segment: Segment, physical_end: int, first_kept: int) -> Segment:
    state = State.READ_ONLY if max(segment.physical_start, first_kept) < physical_end else State.EXPIRED
    return replace(segment, physical_end=physical_end, state=state)


def _ended_by(segment: Segment, following: Segment | None) -> Segment:
    is_over = following is not None and following.is_decided and segment.is_decided
    if following is None or not is_over or segment.is_sealed:
        return segment
    end = segment.physical_of(following.logical_start)
    return replace(segment, state=State.READ_ONLY, physical_end=end)


def _aged(segment: Segment, queue: PhysicalQueue, first_kept: int) -> Segment:
    is_over = segment.state == State.READ_ONLY and first_kept >= segment.physical_end
    return replace(segment, state=State.EXPIRED) if segment.queue == queue and is_over else segment


def _begun(segment: Segment, logical_start: int) -> Segment:
    return replace(segment, logical_start=logical_start, state=State.NORMAL)
