"""Brokers that hold logical queues as ours do, in this process, and their name server.

They say what a topic's brokers say, and check after every change what must always be so: some segment of each
mapped queue takes messages, and never do two give offsets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from replispec.administrator.rocketmq.plans import Asking, Plan, Reply
from replispec.runtime.rocketmq.framing import Command
from replispec.runtime.rocketmq.queues import (
    LOGICAL_QUEUES,
    LogicalQueue,
    PhysicalQueue,
    Segment,
    fault_of_topic,
)
from replispec.runtime.rocketmq.queues.forms import STATE_NAMES, message_of, message_of_queues, segment_of
from replispec.runtime.rocketmq.queues.telling import Statement, message_of_statement, statement_of
from replispec.runtime.rocketmq.remoting.calls import Failure, Outcome
from replispec.wire.rocketmq.broker import BrokerData, ClusterInfo, TopicRouteData
from replispec.wire.rocketmq.client import (
    CreateTopicRequest,
    GetMaxOffsetRequest,
    GetMaxOffsetResponse,
)
from replispec.wire.rocketmq.codes import LogicalQueueState as State
from replispec.wire.rocketmq.codes import RequestCode, ResponseCode
from replispec.wire.rocketmq.logical_queue import (
    CreateLogicalQueue,
    LogicalQueueSegment,
    MigrateLogicalQueue,
    ReuseLogicalQueue,
    SealLogicalQueue,
    UpdateLogicalQueueMapping,
)
from replispec.wire.rocketmq.remoting import RemotingHeader
from replispec.wire.rocketmq.static_topic import TopicConfigAndQueueMapping

T = TypeVar("T")
TOPIC, CLUSTER, NAME_SERVER = "TopicL", "C", "10.0.0.1:9876"
CHANGES = frozenset(
    {
        RequestCode.UPDATE_AND_CREATE_TOPIC,
        RequestCode.UPDATE_TOPIC_LOGICAL_QUEUE_MAPPING,
        RequestCode.SEAL_TOPIC_LOGICAL_QUEUE,
        RequestCode.REUSE_TOPIC_LOGICAL_QUEUE,
        RequestCode.CREATE_MESSAGE_QUEUE_FOR_LOGICAL_QUEUE,
        RequestCode.MIGRATE_TOPIC_LOGICAL_QUEUE_PREPARE,
        RequestCode.MIGRATE_TOPIC_LOGICAL_QUEUE_COMMIT,
    }
)


class CutOffError(Exception):
    """The administrator ended here."""


@dataclass(slots=True)
class Broker:
    """One broker: its segments by index, where its message queues begin and end, who follows a segment."""

    name: str
    writes: int | None = None
    held: dict[int, list[Segment]] = field(default_factory=dict)
    ends: dict[int, int] = field(default_factory=dict)
    firsts: dict[int, int] = field(default_factory=dict)
    followers: dict[tuple[int, int, int], LogicalQueueSegment] = field(default_factory=dict)
    stated: Statement | None = None
    lost: list[tuple[int, int, int]] = field(default_factory=list)

    @property
    def queues(self) -> Sequence[LogicalQueue]:
        """Its part of the logical queues."""
        return [LogicalQueue.of(index, each) for index, each in sorted(self.held.items()) if each]

    def answer(self, question: Asking) -> Command:
        """What it answers."""
        body = question.body
        match question.code:
            case RequestCode.UPDATE_AND_CREATE_TOPIC:
                self.writes = CreateTopicRequest.from_ext_fields(question.fields).write_queue_nums
                return said(ResponseCode.SUCCESS)
            case RequestCode.GET_MAX_OFFSET:
                queue = GetMaxOffsetRequest.from_ext_fields(question.fields).queue_id or 0
                return said(ResponseCode.SUCCESS, header=GetMaxOffsetResponse(offset=self.end(queue)))
            case RequestCode.GET_TOPIC_CONFIG:
                return self._config()
            case RequestCode.QUERY_TOPIC_LOGICAL_QUEUE_MAPPING:
                told = message_of_queues(self.queues, TOPIC)
                return said(ResponseCode.SUCCESS, told.encode() if self.queues else b"null")
            case RequestCode.UPDATE_TOPIC_LOGICAL_QUEUE_MAPPING:
                return self._map(UpdateLogicalQueueMapping.decode(body))
            case RequestCode.DELETE_TOPIC_LOGICAL_QUEUE_MAPPING:
                count = sum(map(len, self.held.values()))
                return _no(f"still {count} message queues") if count else said(ResponseCode.SUCCESS)
            case RequestCode.SEAL_TOPIC_LOGICAL_QUEUE:
                return self._seal(SealLogicalQueue.decode(body))
            case RequestCode.REUSE_TOPIC_LOGICAL_QUEUE:
                wanted = ReuseLogicalQueue.decode(body)
                return self._take(
                    wanted.logical_queue_index or 0, wanted.message_queue_route_state, wanted.queue_id
                )
            case RequestCode.CREATE_MESSAGE_QUEUE_FOR_LOGICAL_QUEUE:
                made = CreateLogicalQueue.decode(body)
                return self._take(made.logical_queue_index or 0, made.message_queue_status, None)
            case RequestCode.MIGRATE_TOPIC_LOGICAL_QUEUE_PREPARE:
                return self._prepare(MigrateLogicalQueue.decode(body))
            case RequestCode.MIGRATE_TOPIC_LOGICAL_QUEUE_COMMIT:
                return self._commit(MigrateLogicalQueue.decode(body))
            case _:
                # No group ever said how far it read (43).
                return said(ResponseCode.SUCCESS, b"{}")

    def end(self, queue: int) -> int:
        """Where a message queue ends."""
        return self.ends.get(queue, 0)

    def send(self, queue: int, count: int) -> None:
        """It takes messages."""
        self.ends[queue] = self.end(queue) + count

    def delete(self) -> None:
        """All messages of sealed segments are old, and deleted."""
        for index, segments in self.held.items():
            for place, each in enumerate(segments):
                if each.is_sealed:
                    self.firsts[each.queue.queue_id] = each.physical_end
                if each.state == State.READ_ONLY:
                    self.held[index][place] = replace(each, state=State.EXPIRED)

    # ---- what it does ----------------------------------------------------------------------------

    def _config(self) -> Command:
        if self.writes is None:
            return said(ResponseCode.TOPIC_NOT_EXIST)
        told = TopicConfigAndQueueMapping(
            perm=6,
            read_queue_nums=self.writes,
            write_queue_nums=self.writes,
            topic_name=TOPIC,
            logical_queues_enabled=None if self.stated is None else message_of_statement(self._said()),
        )
        return said(ResponseCode.SUCCESS, told.encode())

    def _said(self) -> Statement:
        """What it registers: that the topic is enabled, and what it lost by taking message queues again."""
        assert self.stated is not None
        gone = dict(self.stated.gone)
        for index, begin, end in self.lost:
            gone[index] = (*gone.get(index, ()), (begin, end))
        return Statement(self.stated.enabled, gone)

    def _map(self, wanted: UpdateLogicalQueueMapping) -> Command:
        if self.writes is None:
            return _no("topic not exist")
        if wanted.enabled is not None:
            return self._state(statement_of(wanted.enabled))
        queue, index = wanted.queue_id or 0, wanted.logical_queue_idx or 0
        known = self._of_queue(queue)
        if index < 0:
            if known is not None and known[1].state in {State.NORMAL, State.READ_ONLY}:
                return _no("queue writable")
            if known is not None:
                self.held[known[0]].remove(known[1])
            return said(ResponseCode.SUCCESS)
        if known is not None and known[0] != index:
            return _no("duplicate logicalQueueOffset found")
        if known is None:
            self.held.setdefault(index, []).append(Segment(PhysicalQueue(self.name, queue), State.NORMAL, 0))
        return said(ResponseCode.SUCCESS)

    def _state(self, wanted: Statement) -> Command:
        if self.stated is not None and wanted.enabled < self.stated.enabled:
            return _no("an older statement")
        before = {} if self.stated is None else self.stated.gone
        gone = {**before, **{index: (*before.get(index, ()), *each) for index, each in wanted.gone.items()}}
        self.stated = Statement(wanted.enabled, gone)
        return said(ResponseCode.SUCCESS)

    def _of_queue(self, queue: int) -> tuple[int, Segment] | None:
        """The last segment that a message queue was, and its index."""
        found = [(i, each) for i, held in self.held.items() for each in held if each.queue.queue_id == queue]
        return max(found, key=lambda each: each[1].physical_start, default=None)

    def _seal(self, wanted: SealLogicalQueue) -> Command:
        index = wanted.logical_queue_index or 0
        known = self._of_queue(wanted.queue_id or 0)
        if known is None or known[0] != index:
            return _no("queue route data not found")
        return self._say(index, self._ended(index, known[1]))

    def _ended(self, index: int, segment: Segment) -> Segment:
        queue = segment.queue.queue_id
        logical = LogicalQueue.of(index, [segment])
        (ended,) = logical.sealed(segment.key, self.end(queue), self.firsts.get(queue, 0)).segments
        return self._put(index, ended)

    def _put(self, index: int, segment: Segment) -> Segment:
        held = self.held.setdefault(index, [])
        self.held[index] = [each for each in held if each.key != segment.key] + [segment]
        return segment

    def _take(self, index: int, state: str | None, queue: int | None) -> Command:
        writing = [each for each in self.held.get(index, ()) if each.is_writable]
        is_target = state == STATE_NAMES[State.WRITE_ONLY]
        if writing and writing[0].state == State.WRITE_ONLY and is_target:
            return self._say(index, writing[0])
        if writing:
            return _no("queue writable")
        if queue is not None:
            refusal = self._frees(queue)
            if refusal is not None:
                return _no(refusal)
        else:
            queue = self.writes or 0
            self.writes = queue + 1
        start, last = -1, max(self.held.get(index, ()), key=lambda each: each.logical_start, default=None)
        if not is_target:
            start = 0 if last is None else last.logical_end
        old = self._of_queue(queue)
        if old is not None:
            self.held[old[0]].remove(old[1])
            self.lost.append((old[0], old[1].logical_start, old[1].logical_end))
        made_as = State.WRITE_ONLY if is_target else State.NORMAL
        made = Segment(PhysicalQueue(self.name, queue), made_as, start, self.end(queue))
        return self._say(index, self._put(index, made))

    def _frees(self, queue: int) -> str | None:
        known = self._of_queue(queue)
        if known is not None and known[1].state != State.EXPIRED:
            return "queue writable"
        if known is not None and known[1].physical_start >= self.end(queue):
            return "the queue was taken before and never used"
        return None

    def _prepare(self, run: MigrateLogicalQueue) -> Command:
        assert run.from_queue_route_data is not None
        assert run.to_queue_route_data is not None
        index = run.from_queue_route_data.logical_queue_index or 0
        asked = segment_of(run.from_queue_route_data, TOPIC, index)
        known = next((each for each in self.held.get(index, ()) if each.key == asked.key), None)
        if known is None or not known.is_decided:
            return _no("queue route data not found")
        ended = self._ended(index, known)
        to = self.followers.setdefault(
            (index, ended.physical_start, ended.queue.queue_id),
            replace(run.to_queue_route_data, logical_queue_delta=ended.logical_end),
        )
        said_back = MigrateLogicalQueue(message_of(ended, TOPIC, index), to)
        return said(ResponseCode.SUCCESS, said_back.encode())

    def _commit(self, run: MigrateLogicalQueue) -> Command:
        assert run.from_queue_route_data is not None
        assert run.to_queue_route_data is not None
        index = run.to_queue_route_data.logical_queue_index or 0
        asked = segment_of(run.to_queue_route_data, TOPIC, index)
        known = next((each for each in self.held.get(index, ()) if each.key == asked.key), None)
        if known is None:
            return _no("queue route data not found")
        if known.is_decided and known.logical_start != asked.logical_start:
            return _no(f"the queue begins at {known.logical_start}")
        begun = (
            known
            if known.is_decided
            else replace(known, state=State.NORMAL, logical_start=asked.logical_start)
        )
        self._put(index, begun)
        body = MigrateLogicalQueue(run.from_queue_route_data, message_of(begun, TOPIC, index))
        return said(ResponseCode.SUCCESS, body.encode())

    def _say(self, index: int, segment: Segment) -> Command:
        return said(ResponseCode.SUCCESS, message_of(segment, TOPIC, index).encode())


@dataclass(slots=True)
class Cluster:
    """Brokers by name, and plans carried out among them. `cut`: before this change, counted from 0, the
    administrator ends; `late`: behind it, before he hears of it. `cut_at`: behind such a request."""

    brokers: dict[str, Broker]
    cut: int | None = None
    cut_at: RequestCode | None = None
    late: bool = False
    changes: int = 0
    silent: set[str] = field(default_factory=set)
    told: TopicRouteData | None = None
    watched: Callable[[], None] | None = None

    @classmethod
    def of(cls, *names: str) -> Cluster:
        """A cluster of brokers with these names."""
        made = cls({name: Broker(name) for name in names})
        made.watched = made.some_segment_is_written_and_one_gives_offsets
        return made

    def carried_out(self, plan: Plan[T]) -> T:
        """What a plan comes to. Raises CutOffError."""
        into: list[T] = []
        for _ in self.steps(plan, into):
            pass
        return into[0]

    def steps(self, plan: Plan[T], into: list[T]) -> Iterable[None]:
        """The same, step by step."""
        try:
            asked = next(plan)
            while True:
                replies = [Reply(each, self._outcome(each)) for each in asked]
                yield
                asked = plan.send(replies)
        except StopIteration as end:
            into.append(end.value)

    @property
    def queues(self) -> Mapping[int, LogicalQueue]:
        """The logical queues of all brokers together."""
        found: dict[int, list[Segment]] = {}
        for broker in self.brokers.values():
            for index, held in broker.held.items():
                found.setdefault(index, []).extend(held)
        return {index: LogicalQueue.of(index, each) for index, each in sorted(found.items()) if each}

    def some_segment_is_written_and_one_gives_offsets(self) -> None:
        """What must hold at any time."""
        stated = [each.stated for each in self.brokers.values() if each.stated is not None]
        written = max((each.enabled for each in stated), default=None)
        for index, queue in self.queues.items():
            heard = [each for each in queue.segments if each.queue.broker_name not in self.silent]
            normal = [each for each in heard if each.state == State.NORMAL]
            assert len(normal) <= 1, queue
            is_written = written is not None and index < written.queues
            if is_written and not self.silent:
                assert queue.writable is not None, queue

    def whole(self, count: int) -> None:
        """So many logical queues, each written once, none undecided, without a hole; enabled everywhere."""
        queues = self.queues
        assert fault_of_topic(queues.values(), LOGICAL_QUEUES) is None
        written = [index for index, each in queues.items() if each.writable is not None]
        assert written == list(range(count))
        for queue in queues.values():
            assert all(each.is_decided for each in queue.segments)
        stated = {
            each.stated.enabled if each.stated else None
            for each in self.brokers.values()
            if each.writes is not None
        }
        (one,) = stated
        assert one is not None
        assert one.queues == count

    def _outcome(self, question: Asking) -> Outcome:
        if question.address == NAME_SERVER:
            return self._name_server(question)
        broker = next(each for name, each in self.brokers.items() if address(name) == question.address)
        if broker.name in self.silent:
            return Failure("Connection refused", False)
        is_change = question.code in CHANGES
        if is_change and self.cut == self.changes and not self.late:
            raise CutOffError
        answer = broker.answer(question)
        if self.watched is not None:
            self.watched()
        if question.code == self.cut_at:
            raise CutOffError
        if is_change:
            self.changes += 1
            if self.late and self.cut == self.changes - 1:
                raise CutOffError
        return answer

    def _name_server(self, question: Asking) -> Command:
        if question.code == RequestCode.GET_ROUTEINFO_BY_TOPIC:
            body = (self.told or TopicRouteData(logical_queues_info={})).encode()
            return said(ResponseCode.SUCCESS, body)
        table = {name: BrokerData({0: address(name)}, name, CLUSTER) for name in self.brokers}
        info = ClusterInfo.from_json(
            {
                "brokerAddrTable": {name: each.to_json() for name, each in table.items()},
                "clusterAddrTable": {CLUSTER: list(self.brokers)},
            }
        )
        return said(ResponseCode.SUCCESS, info.encode())


def address(name: str) -> str:
    """Where a broker is."""
    return f"{name}:10911"


def said(
    code: int, body: bytes = b"", remark: str | None = None, header: GetMaxOffsetResponse | None = None
) -> Command:
    """An answer."""
    fields = None if header is None else header.to_ext_fields()
    return Command(RemotingHeader(code=code, remark=remark, ext_fields=fields), body)


def _no(remark: str) -> Command:
    return said(ResponseCode.SYSTEM_ERROR, remark=remark)
