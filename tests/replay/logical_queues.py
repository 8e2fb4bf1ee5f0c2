"""A capture of logical queues of RIP-21, written frame by frame: one migrates, and comes back."""

from __future__ import annotations

from collections.abc import Sequence

from replispec.wire.rocketmq.broker import (
    PullMessageRequest,
    PullMessageResponse,
    TopicConfigTable,
    TopicRouteData,
)
from replispec.wire.rocketmq.client import (
    QueryConsumerOffsetRequest,
    QueryConsumerOffsetResponse,
    UpdateConsumerOffsetRequest,
    UpdateConsumerOffsetResponse,
)
from replispec.wire.rocketmq.codes import ResponseCode, RouteFlag
from replispec.wire.rocketmq.constants import UNDECIDED
from replispec.wire.rocketmq.logical_queue import (
    LogicalQueues,
    LogicalQueueSegment,
    LogicalQueueSegments,
    MigrateLogicalQueue,
    PrepareMigrationRequest,
    PrepareMigrationResponse,
)
from replispec.wire.rocketmq.message_queue import MessageQueue
from tests.replay.queues import ADMIN, BROKERS, CONSUMER, GROUP, LATE_GROUP, TOPIC, Stored, World

FLAG = int(RouteFlag.LOGICAL_QUEUE)
NORMAL, READ_ONLY, EXPIRED, WRITE_ONLY = "Normal", "ReadOnly", "Expired", "WriteOnly"


def segment(
    index: int,
    broker: str,
    queue: int,
    start: int,
    *,
    first: int = 0,
    end: int = UNDECIDED,
    state: str = NORMAL,
) -> LogicalQueueSegment:
    """A segment; `first`: its physical start."""
    return LogicalQueueSegment(
        None, UNDECIDED, UNDECIDED, start, index, MessageQueue(broker, queue, TOPIC), first, end, state
    )


A, B = "broker-a", "broker-b"
OTHER = segment(1, B, 0, 0)
FIRST = segment(0, A, 0, 0)
SEALED = segment(0, A, 0, 0, end=3, state=READ_ONLY)
TARGET = segment(0, B, 1, UNDECIDED, state=WRITE_ONLY)
SECOND = segment(0, B, 1, 3)
SECOND_SEALED = segment(0, B, 1, 3, end=2, state=READ_ONLY)
GONE = segment(0, A, 0, 0, end=3, state=EXPIRED)
THIRD = segment(0, A, 0, 5, first=3)


def _queues(segments: Sequence[LogicalQueueSegment]) -> dict[int, LogicalQueueSegments]:
    found: dict[int, list[LogicalQueueSegment]] = {}
    for each in segments:
        found.setdefault(each.logical_queue_index or 0, []).append(each)
    return {index: LogicalQueueSegments(own) for index, own in found.items()}


def registered(world: World, broker: str, *segments: LogicalQueueSegment) -> None:
    """A broker registers its own segments."""
    queues = LogicalQueues(_queues(segments))
    world.register(broker, TopicConfigTable(logical_queues_info_map={TOPIC: queues}))


def _route(world: World, *segments: LogicalQueueSegment) -> None:
    world.route(CONSUMER, TopicRouteData(logical_queues_info=_queues(segments)))


def sent(world: World, broker: str, queue: int) -> Stored:
    """A message of who knows logical queues."""
    stored = world.store(broker, queue)
    world.send(broker, queue, stored, stored.queue_offset, FLAG)
    return stored


def pull(
    world: World,
    broker: str,
    asked: tuple[int, int],
    found: Sequence[Stored],
    *,
    elsewhere: bool = False,
    group: str = GROUP,
) -> None:
    """Somebody who knows logical queues asks for messages, or is told to ask elsewhere."""
    queue, offset = asked
    following = found[-1].queue_offset + 1 if found else offset
    header = PullMessageRequest(group, TOPIC, queue, offset, 32, FLAG, 0, 0, "*", 0, "TAG")
    tells = PullMessageResponse(0, following, 0, following, redirect="1" if elsewhere else None)
    told = b"".join(each.record for each in found) if found else None
    code = ResponseCode.PULL_RETRY_IMMEDIATELY if elsewhere else ResponseCode.SUCCESS
    world.ask(CONSUMER, BROKERS[broker], header, tells, told=told, code=code, asks=11)


def _prepared(world: World, source: LogicalQueueSegment, target: LogicalQueueSegment) -> None:
    """417: who leads seals its segment and decides the next one."""
    queue = source.message_queue
    assert queue is not None
    asks = MigrateLogicalQueue(FIRST, TARGET)
    told = MigrateLogicalQueue(source, target)
    world.ask(
        ADMIN,
        BROKERS[queue.broker_name or ""],
        PrepareMigrationRequest(),
        PrepareMigrationResponse(),
        body=asks,
        told=told,
        asks=417,
    )


def _kept(world: World, broker: str, queue: int, offset: int) -> None:
    """A group commits a position, and asks for it."""
    commit = UpdateConsumerOffsetRequest(broker, GROUP, TOPIC, queue, offset)
    world.ask(CONSUMER, BROKERS[broker], commit, UpdateConsumerOffsetResponse())
    header = QueryConsumerOffsetRequest(GROUP, TOPIC, queue, bname=broker)
    world.ask(CONSUMER, BROKERS[broker], header, QueryConsumerOffsetResponse(offset))


def logical_queues() -> World:
    """Logical queue 0 goes from broker-a to broker-b, and back when its first segment has expired; somebody
    reads it over all borders."""
    world = World()
    registered(world, A, FIRST)
    registered(world, B, OTHER)
    _route(world, FIRST, OTHER)
    old = [sent(world, A, 0) for _ in range(3)]
    sent(world, B, 0)
    pull(world, A, (0, 0), old)
    _kept(world, A, 0, 3)
    registered(world, B, OTHER, TARGET)
    _prepared(world, SEALED, SECOND)
    registered(world, A, SEALED)
    registered(world, B, OTHER, SECOND)
    _route(world, SEALED, SECOND, OTHER)
    pull(world, A, (0, 3), [], elsewhere=True)
    new = [sent(world, B, 1)]
    # A client of before sends to the queue that was left, which is told as the one that took it.
    new.append(world.store(B, 1))
    world.send(A, 0, new[-1], new[-1].queue_offset, on="1")
    pull(world, B, (1, 0), new)
    _kept(world, B, 1, 2)
    registered(world, A, GONE)
    for _ in range(2):
        pull(world, A, (0, 0), [], elsewhere=True, group=LATE_GROUP)
    _prepared(world, SECOND_SEALED, THIRD)
    registered(world, B, OTHER, SECOND_SEALED)
    registered(world, A, THIRD)
    _route(world, SECOND_SEALED, THIRD, OTHER)
    pull(world, B, (1, 2), [], elsewhere=True)
    last = [sent(world, A, 0) for _ in range(2)]
    pull(world, A, (0, 3), last)
    return world
