"""What a name server may tell of the logical queues of a topic, and what keeps it from telling them.

Some broker may be silent, and a name server may have started after it was heard last. So nothing is concluded
from what is missing: offsets that no segment covers are gone when a broker says so, and only then.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.rocketmq.queues.model import LogicalQueue, Segment
from replispec.wire.rocketmq.constants import (
    LOGICAL_QUEUES_MAX,
    MAPPING_SEGMENTS_MAX,
    OFFSET_MAX,
    UNDECIDED,
)
from replispec.wire.rocketmq.logical_queue import GoneOffsets, GoneOffsetsList, LogicalQueuesEnabled

Interval = tuple[int, int]
"""Logical offsets, the end exclusive."""


@dataclass(frozen=True, slots=True, order=True)
class Enabled:
    """That a topic is one of logical queues: as of when, how many are written, how many there are."""

    epoch: int
    queues: int
    total: int


@dataclass(frozen=True, slots=True)
class Statement:
    """What a broker says of a topic beside its segments: that it is enabled, and which offsets are gone."""

    enabled: Enabled
    gone: Mapping[int, tuple[Interval, ...]] = field(default_factory=dict)


def statement_of(said: LogicalQueuesEnabled) -> Statement:
    """As a broker registers it. Raises RemoteProtocolError for what cannot be."""
    queues, total = said.queues or 0, said.total or 0
    epoch = UNDECIDED if said.epoch is None else said.epoch
    if epoch < 0 or not 0 <= queues <= total or not 0 < total <= LOGICAL_QUEUES_MAX:
        raise RemoteProtocolError(f"no topic has {queues} of {total} logical queues since {epoch}")
    gone = gone_of(said.gone)
    if not all(0 <= index < total for index in gone):
        raise RemoteProtocolError("offsets of no queue are gone")
    return Statement(Enabled(epoch, queues, total), gone)


def gone_of(said: Mapping[int, GoneOffsetsList] | None) -> Mapping[int, tuple[Interval, ...]]:
    """Offsets that are gone, by index. Raises RemoteProtocolError for what cannot be."""
    listed = {index: each.intervals or () for index, each in (said or {}).items()}
    if (fault := fault_of_gone(listed)) is not None:
        raise RemoteProtocolError(fault)
    return {index: tuple(map(_interval_of, each)) for index, each in listed.items()}


def fault_of_gone(gone: Mapping[int, Sequence[object]]) -> str | None:
    """Whether offsets are gone in more places than anybody reads; who would write so refuses instead."""
    is_much = len(gone) > LOGICAL_QUEUES_MAX or sum(map(len, gone.values())) > MAPPING_SEGMENTS_MAX
    return f"more than {MAPPING_SEGMENTS_MAX} intervals are gone" if is_much else None


def with_gone(
    known: Mapping[int, Sequence[Interval]], more: Mapping[int, Sequence[Interval]]
) -> Mapping[int, tuple[Interval, ...]]:
    """Both together, in as few intervals as there can be."""
    return {
        index: tuple(_joined((*known.get(index, ()), *more.get(index, ()))))
        for index in sorted(known.keys() | more.keys())
    }


def _joined(intervals: Iterable[Interval]) -> list[Interval]:
    found: list[Interval] = []
    for begin, end in sorted(each for each in intervals if each[0] < each[1]):
        if found and begin <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], end)
        else:
            found.append((begin, end))
    return found


def message_of_statement(said: Statement) -> LogicalQueuesEnabled:
    """As a broker registers it."""
    enabled, gone = said.enabled, message_of_gone(said.gone)
    return LogicalQueuesEnabled(enabled.epoch, gone, enabled.queues, enabled.total)


def message_of_gone(gone: Mapping[int, Sequence[Interval]]) -> dict[int, GoneOffsetsList] | None:
    """Likewise which offsets are gone; None for none."""
    found = {
        index: GoneOffsetsList([GoneOffsets(begin, end) for begin, end in intervals])
        for index, intervals in gone.items()
        if intervals
    }
    return found or None


def _interval_of(said: GoneOffsets) -> Interval:
    begin, end = said.begin or 0, said.end or 0
    if not 0 <= begin < end <= OFFSET_MAX:
        raise RemoteProtocolError(f"no offsets are {begin} to {end}")
    return begin, end


@dataclass(frozen=True, slots=True)
class HeardQueues:
    """What brokers together registered of a topic."""

    queues: Mapping[int, LogicalQueue]
    enabled: Enabled | None = None
    gone: Mapping[int, Sequence[Interval]] = field(default_factory=dict)
    untaken: Sequence[str] = ()
    """Brokers that say that it is enabled, of which nothing was taken."""
    lost: Collection[str] = ()
    """Of these brokers that is told which they said before they were silent."""

    @property
    def total(self) -> int:
        """How many logical queues there are, as far as is known."""
        return len(self.queues) if self.enabled is None else self.enabled.total

    @property
    def waiting(self) -> Collection[str]:
        """The brokers of which every segment waits to learn where it begins. Administrators move what is
        enabled alone, so that the topic is enabled, though such a broker may not have been told."""
        segments = [each for queue in self.queues.values() for each in queue.segments]
        begun = {each.queue.broker_name for each in segments if each.is_decided}
        return {each.queue.broker_name for each in segments} - begun

    @property
    def is_enabled(self) -> bool:
        """Whether logical queues are enabled: somebody says so, be it in a way that cannot be taken, or all
        that is known of one waits for an administrator to finish a move."""
        is_said = self.enabled is not None or bool(self.untaken)
        return is_said or any(each.is_waiting for each in self.queues.values())

    @property
    def told(self) -> Sequence[LogicalQueue]:
        """What is told when nothing lacks: no index that is not committed yet, and none of which all is
        gone."""
        known = (self.queues.get(index) for index in range(self.total))
        return [each for each in known if each is not None and each.segments]


def without_gone(queue: LogicalQueue, lost: Collection[str], gone: Sequence[Interval]) -> LogicalQueue:
    """Without the segments of brokers that are lost of which somebody says that they are gone: whoever read
    on there would wait for ever."""
    return LogicalQueue(
        queue.index,
        tuple(
            each
            for each in queue.segments
            if each.queue.broker_name not in lost or not _is_gone(queue, each, gone)
        ),
    )


def _is_gone(queue: LogicalQueue, segment: Segment, gone: Sequence[Interval]) -> bool:
    begin, end = segment.logical_start, queue.border_of(segment)
    return segment.is_decided and begin < end and _is_covered(gone, begin, end)


def lack_of(heard: HeardQueues, written: Mapping[str, int]) -> str | None:
    """What is missing, so that clients cannot be told, in a few words; None: nothing.

    `written`: how many physical queues each broker that is heard has for writing.
    """
    if not heard.total:
        return "no queue is mapped"
    lacks = (_lack_of_queue(heard, index) for index in range(heard.total))
    return next(filter(None, lacks), None) or _unmapped(heard.queues.values(), written)


def _lack_of_queue(heard: HeardQueues, index: int) -> str | None:
    queue, gone = heard.queues.get(index), heard.gone.get(index, ())
    is_written = heard.enabled is not None and index < heard.enabled.queues
    if queue is None:
        return f"nobody registered queue {index}" if is_written or not gone else None
    if is_written and queue.writable is None:
        return f"nobody registered where queue {index} is written"
    if queue.is_waiting:
        return f"nobody registered where queue {index} begins"
    decided = [each for each in queue.segments if each.is_decided]
    return _lack_of_end(decided, index, gone, heard.lost) or _lack_between(decided, index, gone)


def _lack_of_end(
    segments: Sequence[Segment], index: int, gone: Sequence[Interval], lost: Collection[str]
) -> str | None:
    """A broker that does not say where its segment ends, though others went on within it: it was passed over,
    and by whom is not known. Whom that one told is believed, and not the broker: what it holds from there on
    is of no logical offset."""
    for one, two in zip(segments, (*segments[1:], None), strict=False):
        until = None if two is None else two.logical_start
        if one.is_sealed or one.queue.broker_name in lost:
            continue
        begun = (begin if begin > one.logical_start else end for begin, end in gone)
        within = [each for each in begun if each > one.logical_start and (until is None or each < until)]
        if within:
            broker = one.queue.broker_name[:40]
            return f"{broker} was passed over at offset {min(within)} of queue {index}, and not told so yet"
    return None


def _lack_between(segments: Iterable[Segment], index: int, gone: Sequence[Interval]) -> str | None:
    """The first hole or overlap. What is open, because its broker did not say yet that it is sealed, reaches
    up to the next segment."""
    reach: int | None = 0
    for each in segments:
        start = each.logical_start
        if reach is not None and reach > start:
            return f"two brokers registered offset {start} of queue {index}"
        if reach is not None and not _is_covered(gone, reach, start):
            return f"nobody registered offset {reach} of queue {index}"
        reach = each.logical_end if each.is_sealed else None
    return None


def _is_covered(gone: Sequence[Interval], begin: int, end: int) -> bool:
    for first, last in sorted(gone):
        if first > begin:
            break
        begin = max(begin, last)
    return begin >= end


def _unmapped(queues: Iterable[LogicalQueue], written: Mapping[str, int]) -> str | None:
    """A broker with a physical queue that is written and belongs to no logical queue."""
    mapped: dict[str, set[int]] = {}
    for queue in (each.queue for one in queues for each in one.segments):
        mapped.setdefault(queue.broker_name, set()).add(queue.queue_id)
    for broker, count in written.items():
        if sum(each < count for each in mapped.get(broker, ())) < count:
            return f"a queue of {broker[:40]} is not mapped"
    return None
