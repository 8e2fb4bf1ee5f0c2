"""Brokers with logical queues: an administrator's requests, and what brokers and name servers then tell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from replispec.runtime.rocketmq.framing import Command
from replispec.wire.rocketmq.broker import GetRouteInfoRequest, TopicRouteData
from replispec.wire.rocketmq.client import CreateTopicRequest, GetTopicConfigRequest
from replispec.wire.rocketmq.codes import RequestCode, RouteFlag
from replispec.wire.rocketmq.constants import SINGLE_TAG, TEMPLATE_TOPIC
from replispec.wire.rocketmq.logical_queue import (
    CreateLogicalQueue,
    DeleteLogicalQueueMappingRequest,
    GoneOffsets,
    GoneOffsetsList,
    LogicalQueues,
    LogicalQueueSegment,
    LogicalQueuesEnabled,
    MigrateLogicalQueue,
    QueryLogicalQueueMappingRequest,
    ReuseLogicalQueue,
    SealLogicalQueue,
    UpdateLogicalQueueMapping,
)
from replispec.wire.rocketmq.message_queue import MessageQueue
from replispec.wire.rocketmq.static_topic import TopicConfigAndQueueMapping
from tests.broker.simulated_set import NAME_SERVER, OK, BrokerSet

Said = tuple[int, str]
"""Code and remark of an answer."""


class LogicalSet(BrokerSet):
    """A broker set of which an administrator asks for logical queues of the topic L."""

    def made(self, address: str, queues: int = 2) -> None:
        """Make the topic, as a plain one."""
        header = CreateTopicRequest("L", TEMPLATE_TOPIC, queues, queues, 6, SINGLE_TAG, 0, False)
        assert self.ask(address, RequestCode.UPDATE_AND_CREATE_TOPIC, header).header.code == OK

    def mapped(self, address: str, queues: int = 2) -> None:
        """Make it, and map each of its queues to the index of its number."""
        self.made(address, queues)
        for number in range(queues):
            assert self.map(address, number, number) == (OK, "")

    def map(self, address: str, queue: int, index: int, topic: str = "L") -> Said:
        """411."""
        body = UpdateLogicalQueueMapping(logical_queue_idx=index, queue_id=queue, topic=topic)
        return said(self.ask(address, RequestCode.UPDATE_TOPIC_LOGICAL_QUEUE_MAPPING, body=body.encode()))

    def commit(self, address: str, epoch: int, total: int, queues: int | None = None, **gone: Any) -> Said:
        """411 with `enabled`; gone: q0=(begin, end)."""
        listed = {int(name[1:]): GoneOffsetsList([GoneOffsets(*each)]) for name, each in gone.items()}
        written = total if queues is None else queues
        enabled = LogicalQueuesEnabled(epoch, listed or None, written, total)
        body = UpdateLogicalQueueMapping(enabled=enabled, logical_queue_idx=-1, queue_id=-1, topic="L")
        return said(self.ask(address, RequestCode.UPDATE_TOPIC_LOGICAL_QUEUE_MAPPING, body=body.encode()))

    def forget(self, address: str) -> Said:
        """422."""
        header = DeleteLogicalQueueMappingRequest("L")
        return said(self.ask(address, RequestCode.DELETE_TOPIC_LOGICAL_QUEUE_MAPPING, header))

    def told(self, address: str, topic: str = "L") -> dict[int, list[LogicalQueueSegment]]:
        """413."""
        header = QueryLogicalQueueMappingRequest(topic)
        answer = self.ask(address, RequestCode.QUERY_TOPIC_LOGICAL_QUEUE_MAPPING, header)
        assert answer.header.code == OK
        queues = LogicalQueues.decode(answer.body).queues or {}
        return {index: list(each.segments or ()) for index, each in queues.items()}

    def enabled(self, address: str) -> LogicalQueuesEnabled | None:
        """What is committed, as 351 tells it, asked for the mapping of a static topic or not."""
        headers = GetTopicConfigRequest("L"), GetTopicConfigRequest("L", True)
        answers = [self.ask(address, RequestCode.GET_TOPIC_CONFIG, header) for header in headers]
        plain, static = (
            TopicConfigAndQueueMapping.decode(each.body).logical_queues_enabled for each in answers
        )
        assert plain == static
        return plain

    def seal(self, address: str, queue: int, index: int) -> tuple[Said, LogicalQueueSegment | None]:
        """414."""
        body = SealLogicalQueue(index, queue, "L")
        return segment(self.ask(address, RequestCode.SEAL_TOPIC_LOGICAL_QUEUE, body=body.encode()))

    def reuse(
        self, address: str, queue: int, index: int, state: str = "WriteOnly"
    ) -> tuple[Said, LogicalQueueSegment | None]:
        """415."""
        body = ReuseLogicalQueue(index, state, queue, "L")
        return segment(self.ask(address, RequestCode.REUSE_TOPIC_LOGICAL_QUEUE, body=body.encode()))

    def create(
        self, address: str, index: int, state: str = "WriteOnly", topic: str = "L"
    ) -> tuple[Said, LogicalQueueSegment | None]:
        """416."""
        body = CreateLogicalQueue(index, state, topic)
        code = RequestCode.CREATE_MESSAGE_QUEUE_FOR_LOGICAL_QUEUE
        return segment(self.ask(address, code, body=body.encode()))

    def prepare(
        self, address: str, source: LogicalQueueSegment, target: LogicalQueueSegment
    ) -> tuple[Said, MigrateLogicalQueue | None]:
        """417."""
        return self._migrate(address, RequestCode.MIGRATE_TOPIC_LOGICAL_QUEUE_PREPARE, source, target)

    def start_at(
        self, address: str, source: LogicalQueueSegment, target: LogicalQueueSegment
    ) -> tuple[Said, MigrateLogicalQueue | None]:
        """418."""
        return self._migrate(address, RequestCode.MIGRATE_TOPIC_LOGICAL_QUEUE_COMMIT, source, target)

    def notify(self, address: str, source: LogicalQueueSegment, target: LogicalQueueSegment) -> Said:
        """419."""
        return self._migrate(address, RequestCode.MIGRATE_TOPIC_LOGICAL_QUEUE_NOTIFY, source, target)[0]

    def _migrate(
        self, address: str, code: int, source: LogicalQueueSegment, target: LogicalQueueSegment
    ) -> tuple[Said, MigrateLogicalQueue | None]:
        answer = self.ask(address, code, body=MigrateLogicalQueue(source, target).encode())
        return said(answer), MigrateLogicalQueue.decode(answer.body) if answer.body else None

    def route(self) -> TopicRouteData | None:
        """What the name server tells who knows logical queues; None where it refuses."""
        header = GetRouteInfoRequest("L", sys_flag=RouteFlag.LOGICAL_QUEUE)
        answer = self.ask(NAME_SERVER, RequestCode.GET_ROUTEINFO_BY_TOPIC, header)
        return TopicRouteData.decode(answer.body) if answer.header.code == OK else None


def said(answer: Command) -> Said:
    """Code and remark."""
    return answer.header.code, answer.header.remark or ""


def segment(answer: Command) -> tuple[Said, LogicalQueueSegment | None]:
    """Code, remark, and the segment."""
    return said(answer), LogicalQueueSegment.decode(answer.body) if answer.body else None


def short(found: LogicalQueueSegment | None) -> tuple[Any, ...]:
    """Queue, state, logical start, physical start, physical end."""
    assert found is not None
    queue = found.message_queue or MessageQueue()
    return queue.queue_id, found.state, found.logical_queue_delta, found.offset_delta, found.offset_max


def shorts(told: Mapping[int, list[LogicalQueueSegment]]) -> dict[int, list[tuple[Any, ...]]]:
    """All of them, by index."""
    return {index: [short(each) for each in segments] for index, segments in told.items()}


def elsewhere(broker: str = "broker-b", queue: int = 0, index: int = 0, **more: Any) -> LogicalQueueSegment:
    """A segment of another broker that is written and does not know where it begins."""
    made = LogicalQueueSegment(None, -1, -1, -1, index, MessageQueue(broker, queue, "L"), 0, -1, "WriteOnly")
    return replace(made, **more)


def own(queue: int = 0, index: int = 0, **more: Any) -> LogicalQueueSegment:
    """A segment of the broker that is asked, as a route tells it."""
    made = LogicalQueueSegment(None, -1, -1, 0, index, MessageQueue("broker-a", queue, "L"), 0, -1, "Normal")
    return replace(made, **more)


class LogicalSets(LogicalSet):
    """Sets broker-a, broker-b, ... of one broker each; their addresses are by name."""

    def __init__(self, names: str = "ab", **options: Any) -> None:
        super().__init__()
        self.at = {
            f"broker-{name}": self.add_broker(number, broker_name=f"broker-{name}", **options)
            for number, name in enumerate(names, 1)
        }
        self.start(*(f"broker{number}" for number in range(1, len(names) + 1)))
        for number in range(1, len(names) + 1):
            self.until(lambda number=number: self.broker(number).serves)  # type: ignore[misc]

    def migrate(
        self, one: str, two: str, source: LogicalQueueSegment, *, notifies: bool = True
    ) -> tuple[LogicalQueueSegment, LogicalQueueSegment]:
        """Move a logical queue: both segments as they are then."""
        target = self.create(two, source.logical_queue_index or 0)[1]
        assert target is not None
        prepared = self.prepare(one, source, target)[1]
        assert prepared is not None
        begun = self.start_at(two, *both(prepared))[1]
        assert begun is not None
        if notifies:
            assert self.notify(one, *both(begun))[0] == OK
        return both(begun)


def both(moved: MigrateLogicalQueue) -> tuple[LogicalQueueSegment, LogicalQueueSegment]:
    """Source and target."""
    source, target = moved.from_queue_route_data, moved.to_queue_route_data
    assert source is not None
    assert target is not None
    return source, target
