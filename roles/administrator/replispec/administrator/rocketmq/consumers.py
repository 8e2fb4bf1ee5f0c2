"""How far groups of consumers have read, where topics begin and end; a group made to read on elsewhere.

Source: apache/rocketmq rocketmq-all-5.4.0, DefaultMQAdminExtImpl.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from replispec.administrator.rocketmq.brokers import route
from replispec.administrator.rocketmq.logical_resets import MovedPlace, moved_to
from replispec.administrator.rocketmq.plans import (
    Asking,
    NotAsWantedError,
    NotGrantedError,
    Plan,
    Reply,
    body_of,
    granted,
    header_of,
)
from replispec.administrator.rocketmq.static_resets import moved_over_items
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.primitives.headers import Header
from replispec.wire.rocketmq import constants
from replispec.wire.rocketmq.broker import TopicList, TopicRouteData
from replispec.wire.rocketmq.client import (
    ConsumerConnection,
    ConsumeStats,
    GetConsumerConnectionsRequest,
    GetConsumeStatsRequest,
    GetMaxOffsetRequest,
    GetMaxOffsetResponse,
    GetTopicStatsRequest,
    OffsetWrapper,
    ResetOffsetBody,
    ResetOffsetRequest,
    SearchOffsetRequest,
    SearchOffsetResponse,
    TopicOffset,
    TopicStatsTable,
    UpdateConsumerOffsetRequest,
)
from replispec.wire.rocketmq.codes import RequestCode, ResponseCode, RouteFlag
from replispec.wire.rocketmq.message_queue import MessageQueue

ValueT = TypeVar("ValueT")


class TopicQueue(NamedTuple):
    """One queue; they sort as Java's do."""

    topic: str
    broker: str
    number: int


class Holder(NamedTuple):
    """A broker that answers for a set's part of a topic: how many queues it has to read."""

    broker: str
    address: str
    queues: int


@dataclass(frozen=True, slots=True)
class TopicStats:
    """Where the queues of a topic begin and end."""

    queues: Mapping[TopicQueue, TopicOffset]
    put_tps: float = 0.0


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a group has read each queue."""

    queues: Mapping[TopicQueue, OffsetWrapper] = field(default_factory=dict)
    tps: float = 0.0


@dataclass(frozen=True, slots=True)
class Rollback:
    """A queue of which a group was moved: where it ends, where the group was, where the messages of the time
    are, and where the group reads on."""

    queue: TopicQueue
    ends: int
    before: int
    then: int
    now: int


def topic_stats(name_servers: Sequence[str], topic: str) -> Plan[TopicStats]:
    """Where the queues of a topic begin and end. Raises NotAsWantedError."""
    holders = yield from holders_of(name_servers, topic)
    header = GetTopicStatsRequest(topic=topic)
    replies = yield [_to(each, RequestCode.GET_TOPIC_STATS_INFO, header) for each in holders]
    found: dict[TopicQueue, TopicOffset] = {}
    tps = 0.0
    for reply in replies:
        table = body_of(reply, TopicStatsTable)
        found |= _by_queue(table.offset_table)
        tps += table.topic_put_tps or 0.0
    return TopicStats(dict(sorted(found.items())), tps)


def progress(name_servers: Sequence[str], group: str, topic: str | None) -> Plan[Progress]:
    """How far a group has read the queues of its topics, or of one. Raises NotAsWantedError."""
    retries = f"{constants.RETRY_TOPIC_PREFIX}{group}"
    holders: Sequence[Holder] = ()
    failure: NotAsWantedError | None = None
    for each in (retries, topic):
        if each is None or holders:
            continue
        try:
            holders = yield from holders_of(name_servers, each)
        except NotAsWantedError as error:
            failure = error
    if not holders:
        raise failure or NotAsWantedError(f"nobody holds a topic of the group {group}")
    header = GetConsumeStatsRequest(consumer_group=group, topic=topic)
    replies = yield [_to(each, RequestCode.GET_CONSUME_STATS, header) for each in holders]
    found: dict[TopicQueue, OffsetWrapper] = {}
    tps = 0.0
    for reply in replies:
        stats = body_of(reply, ConsumeStats)
        found |= _by_queue(stats.offset_table)
        tps += stats.consume_tps or 0.0
    return Progress(dict(sorted(found.items())), tps)


@dataclass(frozen=True, slots=True)
class GroupOverview:
    """A group: how far it is behind, and its clients, None where a broker does not tell them."""

    group: str
    progress: Progress
    clients: ConsumerConnection | None

    @property
    def behind(self) -> int:
        """Messages that it has not read."""
        queues = self.progress.queues.values()
        return sum((each.broker_offset or 0) - (each.consumer_offset or 0) for each in queues)


def groups(name_servers: Sequence[str]) -> Plan[Sequence[GroupOverview]]:
    """All groups that anybody knows of, by their topics of retries. Raises NotAsWantedError."""
    names = yield from _group_names(name_servers)
    found = []
    for name in names:
        try:
            read = yield from progress(name_servers, name, None)
        except NotAsWantedError:
            read = Progress()
        clients = yield from _clients(name_servers, name)
        found.append(GroupOverview(name, read, clients))
    return found


def _group_names(name_servers: Sequence[str]) -> Plan[Sequence[str]]:
    """Groups in the order in which a name server tells their topics."""
    (reply,) = yield [
        Asking(each, RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER) for each in name_servers[:1]
    ]
    prefix = constants.RETRY_TOPIC_PREFIX
    topics = body_of(reply, TopicList).topic_list or ()
    return [each.removeprefix(prefix) for each in topics if each.startswith(prefix)]


def _clients(name_servers: Sequence[str], group: str) -> Plan[ConsumerConnection | None]:
    try:
        holders = yield from holders_of(name_servers, f"{constants.RETRY_TOPIC_PREFIX}{group}")
    except NotAsWantedError:
        return None
    header = GetConsumerConnectionsRequest(consumer_group=group)
    (reply,) = yield [_to(each, RequestCode.GET_CONSUMER_CONNECTION_LIST, header) for each in holders[:1]]
    try:
        return body_of(reply, ConsumerConnection)
    except NotAsWantedError:
        return None


@dataclass(frozen=True, slots=True)
class Reset:
    """A group that is to read a topic on from a time, -1 for its end; `force`: even forward."""

    group: str
    topic: str
    at_ms: int
    force: bool = True


def reset(name_servers: Sequence[str], wanted: Reset) -> Plan[Mapping[TopicQueue, int] | Sequence[Rollback]]:
    """Have a group read on from a time: the new position of each queue, of brokers whose consumers were
    told; or what was moved, where a broker cannot tell them, and of topics with logical queues or a mapping.
    Raises NotAsWantedError."""
    told = yield from route(name_servers, wanted.topic, flag=RouteFlag.LOGICAL_QUEUE)
    if told.logical_queues_info is not None:
        return (yield from _moved_logically(name_servers, wanted, moved_to, constants.LOGICAL_QUEUE_BROKER))
    if told.topic_queue_mapping_by_broker:
        of = moved_over_items, constants.MOCK_BROKER_GLOBAL
        return (yield from _moved_logically(name_servers, wanted, *of))
    holders = list(_holders(told))
    header = ResetOffsetRequest(
        topic=wanted.topic,
        group=wanted.group,
        queue_id=-1,
        offset=-1,
        timestamp=wanted.at_ms,
        is_force=wanted.force,
    )
    replies = yield [_to(each, RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, header) for each in holders]
    found: dict[TopicQueue, int] = {}
    moved: list[Rollback] = []
    for holder, reply in zip(holders, replies, strict=True):
        if _has_code(reply, ResponseCode.CONSUMER_NOT_ONLINE):
            read = yield from progress(name_servers, wanted.group, wanted.topic)
            moved += yield from _moved(holder, wanted, read)
            continue
        found |= _by_queue(body_of(reply, ResetOffsetBody).offset_table)
    return moved or found


def _moved_logically(
    name_servers: Sequence[str], wanted: Reset, moving: Callable[..., Plan[Sequence[MovedPlace]]], shown: str
) -> Plan[list[Rollback]]:
    """Moved by who knows its form; `shown`: the broker that clients see."""
    of = wanted.topic, wanted.group, wanted.at_ms
    places = yield from moving(name_servers, *of, force=wanted.force)
    return [
        Rollback(
            TopicQueue(wanted.topic, shown, each.index),
            each.ends,
            max(0, each.before),
            each.then,
            max(0, each.now),
        )
        for each in places
    ]


def _moved(holder: Holder, wanted: Reset, read: Progress) -> Plan[list[Rollback]]:
    """Positions of an absent group, moved queue by queue."""
    queues = [TopicQueue(wanted.topic, holder.broker, number) for number in range(holder.queues)]
    ends = yield from _ends(holder, wanted.topic)
    asked = []
    for each in queues:
        search = SearchOffsetRequest(topic=each.topic, queue_id=each.number, timestamp=wanted.at_ms)
        asked.append(_to(holder, RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, search))
    replies: Sequence[Reply] = ()
    if wanted.at_ms >= 0:
        replies = yield asked
    targets = [header_of(each, SearchOffsetResponse).offset or 0 for each in replies] or ends
    moved = []
    for each, end, target in zip(queues, ends, targets, strict=True):
        told = read.queues.get(each)
        before = (told.consumer_offset or 0) if told is not None else 0
        now = target if wanted.force or target <= before else before
        moved.append(Rollback(each, end, before, target, now))
    changes = [each for each in moved if each.now != each.before]
    answers = yield [_to(holder, RequestCode.UPDATE_CONSUMER_OFFSET, _said(wanted, each)) for each in changes]
    for answer in answers:
        granted(answer)
    return moved


def _said(wanted: Reset, moved: Rollback) -> UpdateConsumerOffsetRequest:
    return UpdateConsumerOffsetRequest(
        consumer_group=wanted.group,
        topic=wanted.topic,
        queue_id=moved.queue.number,
        commit_offset=moved.now,
    )


def holders_of(name_servers: Sequence[str], topic: str) -> Plan[Sequence[Holder]]:
    """Who answers for a topic: of each set its master, else any member. Raises NotAsWantedError."""
    found = yield from route(name_servers, topic)
    return list(_holders(found))


def _holders(found: TopicRouteData) -> Iterable[Holder]:
    queues = {each.broker_name: each.read_queue_nums or 0 for each in found.queue_datas or ()}
    for data in found.broker_datas or ():
        addresses = data.broker_addrs or {}
        if addresses:
            address = addresses.get(constants.MASTER_ID) or addresses[min(addresses)]
            yield Holder(data.broker_name or "", address, queues.get(data.broker_name, 0))


def _to(holder: Holder, code: RequestCode, header: Header) -> Asking:
    return Asking(holder.address, code, header)


def _has_code(reply: Reply, code: int) -> bool:
    try:
        granted(reply)
    except NotGrantedError as error:
        return error.code == code
    except NotAsWantedError:
        return False
    return False


def _by_queue(table: Mapping[str, ValueT] | None) -> dict[TopicQueue, ValueT]:
    found = {}
    for text, value in (table or {}).items():
        try:
            key = MessageQueue.decode(text.encode())
        except RemoteProtocolError as error:
            raise NotAsWantedError(f"a queue cannot be read: {error}") from error
        found[TopicQueue(key.topic or "", key.broker_name or "", key.queue_id or 0)] = value
    return found


def _ends(holder: Holder, topic: str) -> Plan[list[int]]:
    replies = yield [
        _to(holder, RequestCode.GET_MAX_OFFSET, GetMaxOffsetRequest(topic, number))
        for number in range(holder.queues)
    ]
    return [header_of(each, GetMaxOffsetResponse).offset or 0 for each in replies]
