"""A logical queue moved to another broker, on the machine logical_queue_migration.

Nothing is remembered of a run: brokers are asked what they hold, and whoever asks next goes on from there.

Source: apache/rocketmq rocketmq-all-5.0.0-PREVIEW, MigrateTopicLogicalQueueCommand.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Final

from replispec.administrator.rocketmq.logical_places import before_taken
from replispec.administrator.rocketmq.logical_returns import Overtaken, ended
from replispec.administrator.rocketmq.logical_topics import LogicalTopic, known, segments_told, told_plain
from replispec.administrator.rocketmq.plans import (
    Asking,
    NotAsWantedError,
    NotGrantedError,
    Plan,
    Reply,
    event_of,
    granted,
    header_of,
)
from replispec.runtime.primitives.bindings import Call
from replispec.runtime.primitives.headers import Header
from replispec.runtime.rocketmq.membership.machine_runner import MachineRunner, Nothing
from replispec.runtime.rocketmq.queues import LogicalQueue, PhysicalQueue, Segment
from replispec.runtime.rocketmq.queues.forms import message_of, segment_of
from replispec.runtime.rocketmq.queues.model import SegmentKey
from replispec.wire.rocketmq.client import GetMaxOffsetRequest, GetMaxOffsetResponse
from replispec.wire.rocketmq.codes import LogicalQueueState as State
from replispec.wire.rocketmq.codes import RequestCode
from replispec.wire.rocketmq.constants import SEGMENT_START_MAX, UNDECIDED
from replispec.wire.rocketmq.logical_queue import LogicalQueueSegment, QueryLogicalQueueMappingRequest
from replispec.wire.rocketmq.machines import logical_queue_migration as machine
from replispec.wire.rocketmq.machines import logical_queue_migration_wire as wire

RUNS_MAX: Final = 16
"""How many runs one command carries out: the wanted one, those that others left, and those they begin."""


@dataclass(frozen=True, slots=True)
class MovedQueue:
    """What a command came to: the logical queue as it is then, how many runs of others it finished, and what
    it ended of brokers that were passed over."""

    queue: LogicalQueue
    finished: int = 0
    ended: Sequence[Overtaken] = ()


@dataclass(frozen=True, slots=True)
class _Run:
    """One run: from a segment to a broker; there to a segment that an earlier run left, or to one that takes
    the message queue `queue_id` again. `start`: the source is gone."""

    topic: str
    index: int
    source: Segment
    target_broker: str
    target: Segment | None = None
    queue_id: int | None = None
    start: int | None = None

    def passes_over(self, found: LogicalTopic, start: int | None) -> bool:
        """Whether the source is passed over. Where who follows it may be silent, it says first who that is.
        Raises NotAsWantedError."""
        target = None if self.target is None else self.target.queue.broker_name
        if target is not None and target not in found.parts:
            if start is None:
                raise _gone(found, target)
            return False
        return self.source.queue.broker_name not in found.parts or start is not None


def moved(
    name_servers: Sequence[str],
    topic: str,
    index: int,
    target: str,
    start: int | None = None,
    *,
    ended_too: bool = False,
) -> Plan[MovedQueue]:
    """A logical queue is written at a broker, and what others left of it is finished. `start`: its source is
    gone, and this is where it goes on. `ended_too`: also one that is not written any more. Raises
    NotAsWantedError: the next run goes on from there."""
    if start is not None and start > SEGMENT_START_MAX:
        raise NotAsWantedError(f"-fd {start}: no queue goes on behind {SEGMENT_START_MAX}")
    is_there, runs, finished, passed, over = False, 0, 0, set[SegmentKey](), list[Overtaken]()
    follower: Segment | None = None
    while runs < RUNS_MAX:
        found = (yield from known(name_servers, topic)).with_lost(index, follower)
        if found.stated is None:
            raise NotAsWantedError(f"logical queues of {topic} are not enabled")
        if found.fault is not None and not over and (came := (yield from ended(found))):
            over += came
            continue
        found.checked()
        queue = found.queue(index)
        tail = _tail(queue, passed)
        left = _left(queue, target, found.parts)
        if left is None and follower is None:
            left = _unheard(queue, tail, found.parts)
        if left is None and (is_there or (tail.queue.broker_name == target and tail.is_writable)):
            return MovedQueue(queue, finished, over)
        aim = target if left is None else left.queue.broker_name
        run = _Run(topic, index, tail, aim, left)
        if run.passes_over(found, start):
            yield from _passes_over(found, index, tail, start)
            run, start = replace(run, start=start), None
        elif left is None:
            yield from _can_begin(name_servers, run, ended_too=ended_too)
        try:
            reached = yield from _carried_out(found, run)
        except _SilentFollowerError as error:
            if start is None:
                raise _gone(found, error.segment.queue.broker_name) from error
            follower = error.segment
            continue
        if left is not None and reached != left.key:
            # It is followed by another one, which is newer.
            passed.add(tail.key)
            continue
        is_there = is_there or (reached is not None and reached.queue.broker_name == target)
        runs, finished = runs + 1, finished + (left is not None)
    raise NotAsWantedError(f"others move logical queue {index} at the same time: run it again")


def _can_begin(name_servers: Sequence[str], run: _Run, *, ended_too: bool) -> Plan[None]:
    """Whether a queue moves that others left nothing of. Raises NotAsWantedError."""
    if not run.source.is_writable and not ended_too:
        raise NotAsWantedError(f"logical queue {run.index} is not written: its number was made smaller")
    yield from _can_be_followed(name_servers, run.topic)


def _can_be_followed(name_servers: Sequence[str], topic: str) -> Plan[None]:
    """Whether clients are told that there are logical queues: of one that moves those who know it as a plain
    queue, and say that they know of logical ones, would be sent away. Raises NotAsWantedError."""
    plain = yield from told_plain(name_servers, topic)
    if plain is not None:
        raise NotAsWantedError(
            f"the name server {plain} tells {topic} as a plain topic: no client of it could follow a queue"
        )


def _tail(queue: LogicalQueue, passed: Collection[SegmentKey]) -> Segment:
    """The newest segment of which the start is known. Of several without a message nobody sees which one is:
    those that were followed when they were asked are `passed`."""
    decided = [each for each in queue.segments if each.is_decided and each.key not in passed]
    if not decided:
        raise NotAsWantedError(f"nobody that answers knows where logical queue {queue.index} begins")
    return decided[-1]


def _left(queue: LogicalQueue, target: str, there: Collection[str]) -> Segment | None:
    """A segment that an earlier run, or another one, left undecided at a broker that answers: first one at
    the target."""
    left = [each for each in queue.segments if not each.is_decided and each.queue.broker_name in there]
    return min(left, key=lambda each: (each.queue.broker_name != target, each.queue), default=None)


def _unheard(queue: LogicalQueue, tail: Segment, there: Collection[str]) -> Segment | None:
    """A segment at a broker that does not answer, which may follow one that has ended: it went before any
    name server heard that it began. Who ended knows who follows."""
    if tail.is_writable or tail.queue.broker_name not in there:
        return None
    silent = (each for each in queue.segments if each.queue.broker_name not in there)
    return next((each for each in silent if not each.is_decided), None)


def _gone(found: LogicalTopic, name: str) -> NotAsWantedError:
    why = found.silent.get(name, "no name server knows it any more")
    return NotAsWantedError(
        f"{name}, which writes the queue, does not answer: {why};"
        " where it is gone for good, -fd START says at which offset the queue goes on"
    )


def _passes_over(found: LogicalTopic, index: int, tail: Segment, start: int | None) -> Plan[None]:
    """Whether a source may be passed over that is gone. Raises NotAsWantedError."""
    name = tail.queue.broker_name
    if start is None:
        raise _gone(found, name)
    if name in found.parts and not tail.is_writable:
        raise NotAsWantedError(
            f"who writes behind {name} is not known: no name server tells of brokers that are silent"
        )
    if name in found.parts:
        raise NotAsWantedError(f"{name}, which writes the queue, answers: leave out -fd")
    tail, ends = yield from _as_replicas_know(found, index, tail)
    ends = [tail.logical_start, tail.logical_end, *ends]
    if tail.is_sealed and start != tail.logical_end:
        # Whoever asks there once it is back is told that the queue goes on at its end.
        raise NotAsWantedError(f"-fd {start}: the queue ended at {tail.logical_end} there: say that")
    if start < max(ends):
        raise NotAsWantedError(f"-fd {start}: the queue is known to have had {max(ends)} messages")
    if start == tail.logical_start:
        # Of two segments that begin alike nobody could tell, once it comes back, which one was passed over.
        raise NotAsWantedError(f"-fd {start}: what {name} writes begins there; say a greater one")


def _as_replicas_know(found: LogicalTopic, index: int, tail: Segment) -> Plan[tuple[Segment, Sequence[int]]]:
    """The segment of a lost master as its replicas have it, whose log may have the seal of which no name
    server heard; and where they say that its message queue ends."""
    members = found.brokers.sets().get(tail.queue.broker_name, {}).values()
    mapping = QueryLogicalQueueMappingRequest(topic=found.name)
    code = RequestCode.QUERY_TOPIC_LOGICAL_QUEUE_MAPPING
    for reply in (yield [Asking(each, code, mapping) for each in members]) if members else ():
        try:
            told = segments_told(reply, found.name, index)
        except NotAsWantedError:
            continue
        same = (each for each in told if each.key == tail.key and each.is_sealed)
        tail = next(same, tail)
    header = GetMaxOffsetRequest(topic=found.name, queue_id=tail.queue.queue_id)
    ends: list[int] = []
    for reply in (yield [Asking(each, RequestCode.GET_MAX_OFFSET, header) for each in members]):
        try:
            end = header_of(reply, GetMaxOffsetResponse).offset or 0
        except NotAsWantedError:
            continue
        # Behind a seal the message queue may have served others.
        ends.append(tail.logical_end if tail.is_sealed else tail.logical_of(end))
    return tail, ends


def _carried_out(found: LogicalTopic, run: _Run) -> Plan[SegmentKey | None]:
    """A run, and the segment that follows its source: the first that was named; None where that one is
    something else by now. A message queue that cannot be taken again gives way to a new one. Raises
    NotAsWantedError."""
    if run.target is None:
        part = found.part(run.target_broker)
        free = found.free_queue(part.broker, run.index)
        run = run if free is None else replace(run, queue_id=free.queue_id)
    if run.queue_id is not None:
        yield from before_taken(found, PhysicalQueue(run.target_broker, run.queue_id))
        try:
            return (yield from _Moving(found, run).steps())
        except _NotTakenAgainError:
            run = replace(run, queue_id=None)
    return (yield from _Moving(found, run).steps())


class _NotTakenAgainError(Exception):
    """A broker refuses to take a message queue again."""


class _SilentFollowerError(Exception):
    """A source has ended, and whom it named does not answer."""

    def __init__(self, segment: Segment) -> None:
        super().__init__(segment)
        self.segment = segment


class _Moving:
    """One run: its methods that are named as effects of the machine carry those out. It is what only the
    administrator knows; see `local` of the machine."""

    def __init__(self, found: LogicalTopic, run: _Run) -> None:
        self._found = found
        self._run = run
        self._asked: list[Asking] = []
        self._is_passed_by = False
        self._runner = MachineRunner(machine.MACHINE, self)
        held = {each.queue.broker_name for each in found.queue(run.index).segments}
        others = held - {run.source.queue.broker_name, run.target_broker}
        self._others = [found.parts[name].address for name in sorted(others) if name in found.parts]
        self._told = iter(self._others)
        self.topic, self.index = run.topic, run.index
        self.queue_id = UNDECIDED if run.queue_id is None else run.queue_id
        self.perm = found.perm_for(run.source.queue.broker_name)

    def steps(self) -> Plan[SegmentKey | None]:
        """All steps; the segment that follows. Raises NotAsWantedError, _NotTakenAgainError."""
        run = self._run
        self._runner.take(
            machine.Begun(
                self._message(run.source),
                None if run.target is None else self._message(run.target),
                run.queue_id is not None,
                run.start is not None,
                UNDECIDED if run.start is None else run.start,
                len(self._others),
            )
        )
        while self._asked:
            asked, self._asked = self._asked, []
            for reply in (yield asked):
                self._take(reply)
            if self._is_passed_by:
                return None
        return self._target

    @property
    def _target(self) -> SegmentKey:
        """The segment that follows, as its source named it, or the administrator."""
        target = self._runner.variables.target
        assert target is not None
        return segment_of(target, self.topic, self.index).key

    def _message(self, segment: Segment) -> LogicalQueueSegment:
        return message_of(segment, self.topic, self.index)

    def _take(self, reply: Reply) -> None:
        event = event_of(reply, wire.outcome_of)
        self._runner.take(event)
        if self._runner.state is machine.State.FAILED:
            try:
                granted(reply)
            except NotGrantedError as error:
                left = self._run.target
                if left is not None and self._target != left.key:
                    # Whoever followed long ago need not be a segment of that start any more.
                    self._is_passed_by = True
                    return
                if reply.question.code == RequestCode.REUSE_TOPIC_LOGICAL_QUEUE:
                    raise _NotTakenAgainError from error
                raise

    def _ask(self, address: str, call: Call[Header]) -> None:
        self._asked.append(Asking(address, RequestCode(call.code), call.header, call.body))

    def _address(self, segment: LogicalQueueSegment | None) -> str:
        """Where the broker of a segment is."""
        return self._found.part(_broker_of(segment)).address

    # Effects of the machine

    def create_queue(self, _event: object) -> Nothing:
        """The target makes a message queue."""
        address = self._found.part(self._run.target_broker).address
        self._ask(address, wire.create_queue(self._runner.variables, self))
        return ()

    def reuse_queue(self, _event: object) -> Nothing:
        """The target takes one again."""
        address = self._found.part(self._run.target_broker).address
        self._ask(address, wire.reuse_queue(self._runner.variables, self))
        return ()

    def prepare(self, _event: object) -> Nothing:
        """The source ends, and decides."""
        self._ask(self._address(self._runner.variables.source), wire.prepare(self._runner.variables, self))
        return ()

    def commit(self, _event: object) -> Nothing:
        """The target begins: whom the source named, be it another one."""
        target = self._runner.variables.target
        if target is not None and _broker_of(target) not in self._found.parts:
            # Whether it was told that it begins, or goes on where it is passed over, is all the same.
            begun = replace(segment_of(target, self.topic, self.index), state=State.NORMAL)
            raise _SilentFollowerError(begun)
        self._ask(self._address(target), wire.commit(self._runner.variables, self))
        return ()

    def notify(self, _event: object) -> Nothing:
        """Whoever held the queue is told, one after the other."""
        if self._runner.state is machine.State.NOTIFYING_SOURCE:
            address = self._address(self._runner.variables.source)
        else:
            address = next(self._told)
        self._ask(address, wire.notify(self._runner.variables, self))
        return ()

    def report_done(self, _event: object) -> Nothing:
        """The queue has moved."""
        return ()

    def report_failed(self, _event: object) -> Nothing:
        """Why is told by the answer; see `_take`."""
        return ()


def _broker_of(segment: LogicalQueueSegment | None) -> str:
    queue = None if segment is None else segment.message_queue
    return (queue.broker_name if queue is not None else None) or ""
