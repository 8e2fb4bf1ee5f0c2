"""What the brokers of a cluster hold of a topic of logical queues (RIP-21), as they say it themselves.

Brokers are asked, and not the name server: what it tells may be old. Of a broker that does not answer the
word of a name server is taken, which stays when a broker is heard no more.

Source: apache/rocketmq rocketmq-all-5.0.0-PREVIEW, MQAdminUtils, QueryTopicLogicalQueueMappingCommand.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from replispec.administrator.rocketmq.brokers import Brokers, clusters_of_all
from replispec.administrator.rocketmq.mappings import PERM
from replispec.administrator.rocketmq.plans import (
    Asking,
    LookingAgain,
    NotAsWantedError,
    Plan,
    Reply,
    SilentError,
    answered,
    body_of,
    granted,
    header_of,
    unreadable,
)
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.rocketmq.queues import LogicalQueue, PhysicalQueue, Segment, Statement, fault_of_topic
from replispec.runtime.rocketmq.queues.forms import queues_heard, queues_of
from replispec.runtime.rocketmq.queues.model import SegmentKey
from replispec.runtime.rocketmq.queues.profiles import LOGICAL_QUEUES
from replispec.runtime.rocketmq.queues.telling import Interval, statement_of
from replispec.wire.rocketmq import constants
from replispec.wire.rocketmq.broker import GetRouteInfoRequest, TopicConfigTable, TopicRouteData
from replispec.wire.rocketmq.client import (
    GetAllTopicConfigRequest,
    GetAllTopicConfigResponse,
    GetTopicConfigRequest,
)
from replispec.wire.rocketmq.codes import LogicalQueueState as State
from replispec.wire.rocketmq.codes import RequestCode, ResponseCode, RouteFlag
from replispec.wire.rocketmq.logical_queue import LogicalQueues, QueryLogicalQueueMappingRequest
from replispec.wire.rocketmq.static_topic import TopicConfigAndQueueMapping, TopicQueueMappingDetail

QUESTIONS_AT_ONCE: Final = 256
TOPICS_AT_ONCE: Final = 800
LOOKS_MAX: Final = 3
TOLD_LOOKS_MAX: Final = 5 * constants.ANNOUNCED_EVERY_MS // constants.TOLD_PAUSE_MS
"""Looks at name servers that were not told yet: a broker tells them again so often, and after a failure."""


@dataclass(frozen=True, slots=True)
class LogicalPart:
    """What one broker holds: `writes` message queues of the topic, of which `reads` are read, or more than
    are written; segments by index, and what it registers beside them. `has_topic`: it may hold none of it and
    have the topic. `perm`: what clients may do with it there."""

    broker: str
    address: str
    has_topic: bool = False
    writes: int = 0
    queues: Mapping[int, LogicalQueue] = field(default_factory=dict)
    stated: Statement | None = None
    reads: int = 0
    perm: int = PERM

    @property
    def unmapped(self) -> Sequence[int]:
        """Its message queues that belong to no logical queue."""
        mapped = {each.queue.queue_id for each in self.segments()}
        return [number for number in range(self.writes) if number not in mapped]

    def segments(self) -> Iterator[Segment]:
        """Its segments."""
        for queue in self.queues.values():
            yield from queue.segments


@dataclass(frozen=True, slots=True)
class LogicalTopic:
    """A topic as brokers say it, by broker. `silent`: brokers that do not answer, and why; `lost`: what a
    name server tells of those."""

    name: str
    parts: Mapping[str, LogicalPart] = field(default_factory=dict)
    silent: Mapping[str, str] = field(default_factory=dict)
    lost: Mapping[int, Sequence[Segment]] = field(default_factory=dict)
    brokers: Brokers = field(default_factory=Brokers)

    @property
    def stated(self) -> Statement | None:
        """What counts of all statements that it is enabled; None: it is not."""
        said = [each.stated for each in self.parts.values() if each.stated is not None]
        return max(said, key=lambda each: each.enabled, default=None)

    @property
    def holders(self) -> Sequence[LogicalPart]:
        """The brokers that have the topic."""
        return [each for each in self.parts.values() if each.has_topic]

    @property
    def queues(self) -> Mapping[int, LogicalQueue]:
        """Its logical queues by index. What a name server tells of a broker that is lost may be older than
        what others say, who have gone on: it ends where one of those begins. What brokers say themselves is
        taken as they say it."""
        held: dict[int, list[Segment]] = {index: [] for index in self.lost}
        for part in self.parts.values():
            for index, queue in part.queues.items():
                held.setdefault(index, []).extend(queue.segments)
        return {index: self._with_lost(index, held[index]) for index in sorted(held)}

    def with_lost(self, index: int, segment: Segment | None) -> LogicalTopic:
        """With what another broker knows of a segment of one that does not answer, if anything."""
        if segment is None or segment.queue.broker_name in self.parts:
            return self
        others = [each for each in self.lost.get(index, ()) if each.key != segment.key]
        return replace(self, lost={**self.lost, index: [*others, segment]})

    def _with_lost(self, index: int, held: Sequence[Segment]) -> LogicalQueue:
        keys = {each.key for each in self.lost.get(index, ())}
        heard = LogicalQueue.heard(index, [*held, *self.lost.get(index, ())]).segments
        return LogicalQueue.of(index, [*held, *(each for each in heard if each.key in keys)])

    @property
    def gone(self) -> Mapping[int, Sequence[Interval]]:
        """The logical offsets that brokers say are gone, by index."""
        found: dict[int, list[Interval]] = {}
        for part in self.parts.values():
            for index, intervals in (part.stated.gone if part.stated is not None else {}).items():
                found.setdefault(index, []).extend(intervals)
        return found

    def perm_for(self, *brokers: str) -> int:
        """What clients are to be allowed where the topic is made: what they are at the first of these brokers
        that has it, else at any."""
        asked = (self.parts[name] for name in brokers if name in self.parts)
        return next((each.perm for each in (*asked, *self.parts.values()) if each.has_topic), PERM)

    @property
    def fault(self) -> str | None:
        """What is wrong with them."""
        return fault_of_topic(self.queues.values(), LOGICAL_QUEUES)

    def queue(self, index: int) -> LogicalQueue:
        """One of them. Raises NotAsWantedError."""
        found = self.queues.get(index)
        if found is None or not found.segments:
            raise NotAsWantedError(f"{self.name} has no logical queue {index}{self._silence()}")
        return found

    def part(self, broker: str) -> LogicalPart:
        """A broker that answers. Raises NotAsWantedError."""
        if broker in self.silent:
            raise NotAsWantedError(f"{broker}: {self.silent[broker]}")
        if broker not in self.parts:
            self.brokers.broker_set(broker)
            raise NotAsWantedError(f"{broker} has no master")
        return self.parts[broker]

    def at(self, address: str) -> LogicalPart:
        """The broker at an address. Raises NotAsWantedError."""
        for part in self.parts.values():
            if part.address == address:
                return part
        raise NotAsWantedError(f"no master is at {address}")

    def written(self, broker: str) -> int:
        """How many logical queues a broker writes."""
        return sum(each.is_writable for each in self.parts[broker].segments())

    def of_cluster(self, cluster: str) -> Sequence[LogicalPart]:
        """The brokers of a cluster, by address. Raises NotAsWantedError where one does not answer."""
        found = [self.part(name) for name in self.brokers.cluster(cluster)]
        return sorted(found, key=lambda each: each.address)

    def checked(self) -> Mapping[int, LogicalQueue]:
        """Its logical queues, if they can be. Raises NotAsWantedError."""
        if self.fault is not None:
            raise NotAsWantedError(f"the logical queues of {self.name} cannot be: {self.fault}")
        return self.queues

    def free_queue(self, broker: str, index: int) -> PhysicalQueue | None:
        """A message queue of a broker that is expired, so that it may serve again: first one of the same
        logical queue. The last segment of a queue is none: it says where the queue goes on. Nor is one that
        was never used: where it begins would tell nobody which of both uses is meant."""
        queues = self.queues
        order = sorted(queues.values(), key=lambda each: (each.index != index, each.index))
        for queue in order:
            for each in queue.segments[:-1]:
                is_used = each.physical_end > each.physical_start
                if is_used and each.state == State.EXPIRED and each.queue.broker_name == broker:
                    return each.queue
        return None

    def _silence(self) -> str:
        if not self.silent:
            return ""
        return f", as far as is known without {', '.join(sorted(self.silent))}"


@dataclass(frozen=True, slots=True)
class HeldTopics:
    """The topics of which a broker holds something of logical queues, and how many queues it leads of each
    static one. `older`: static topics of which it has, or had, older items."""

    logical: Sequence[str]
    led: Mapping[str, int]
    older: Sequence[str] = ()


def topics_at(name_servers: Sequence[str], broker: str) -> Plan[HeldTopics]:
    """What a broker holds. Raises NotAsWantedError."""
    brokers = yield from clusters_of_all(name_servers)
    address = brokers.broker_set(broker).get(constants.MASTER_ID)
    if address is None:
        raise NotAsWantedError(f"{broker} has no master")
    topics: list[str] = []
    led: dict[str, int] = {}
    older: set[str] = set()
    total = 1
    while len(topics) < total:
        (reply,) = yield [_topics_from(address, len(topics))]
        body = body_of(reply, TopicConfigTable)
        table = body.topic_config_table or {}
        topics += table
        details = body.topic_queue_mapping_detail_map or {}
        led |= {name: count for name, each in details.items() if (count := _led(each, broker))}
        older |= {name for name, each in details.items() if _has_older(each, broker)}
        # Who does not say how many there are tells all at once.
        said = header_of(reply, GetAllTopicConfigResponse).total_topic_num
        total = len(topics) if said is None or not table else said
    found: list[str] = []
    for place in range(0, len(topics), QUESTIONS_AT_ONCE):
        asked = [
            Asking(
                address,
                RequestCode.QUERY_TOPIC_LOGICAL_QUEUE_MAPPING,
                QueryLogicalQueueMappingRequest(topic=each),
            )
            for each in topics[place : place + QUESTIONS_AT_ONCE]
        ]
        replies = yield asked
        found += [each for each, reply in zip(topics[place:], replies, strict=False) if _holds(reply)]
    return HeldTopics(sorted(found), dict(sorted(led.items())), sorted(older))


def _led(mapping: TopicQueueMappingDetail, broker: str) -> int:
    """How many logical queues of a static topic go on at a broker."""
    tails = (each.items[-1] for each in (mapping.hosted_queues or {}).values() if each.items)
    return sum(each.bname == broker for each in tails)


def _has_older(mapping: TopicQueueMappingDetail, broker: str) -> bool:
    """Whether a logical queue of a static topic was at a broker, and went on elsewhere."""
    items = ([*(each.items or ())][:-1] for each in (mapping.hosted_queues or {}).values())
    return any(each.bname == broker for few in items for each in few)


def _topics_from(address: str, place: int) -> Asking:
    header = GetAllTopicConfigRequest(topic_seq=place, max_topic_num=TOPICS_AT_ONCE)
    return Asking(address, RequestCode.GET_ALL_TOPIC_CONFIG, header)


def _holds(reply: Reply) -> bool:
    try:
        return bool(_listed(reply).queues)
    except RemoteProtocolError as error:
        raise unreadable(reply, error) from error


def known(name_servers: Sequence[str], topic: str) -> Plan[LogicalTopic]:
    """What every broker holds of a topic. Who asks while a queue moves may hear of it at one broker before
    that and at another one after it, and looks again. Raises NotAsWantedError."""
    brokers = yield from clusters_of_all(name_servers)
    if not brokers.sets():
        raise NotAsWantedError("the name server knows no broker")
    for _ in range(LOOKS_MAX):
        found = yield from known_of(name_servers, brokers, topic)
        if found.fault is None:
            break
    return found


def known_of(name_servers: Sequence[str], brokers: Brokers, topic: str) -> Plan[LogicalTopic]:
    """The same of brokers that are known."""
    sets = brokers.sets()
    silent = {name: "it has no master" for name in sets if constants.MASTER_ID not in sets[name]}
    masters = {name: sets[name][constants.MASTER_ID] for name in sorted(sets) if name not in silent}
    asked: list[Asking] = []
    for address in masters.values():
        asked.append(Asking(address, RequestCode.GET_TOPIC_CONFIG, GetTopicConfigRequest(topic=topic)))
        header = QueryLogicalQueueMappingRequest(topic=topic)
        asked.append(Asking(address, RequestCode.QUERY_TOPIC_LOGICAL_QUEUE_MAPPING, header))
    replies = yield asked
    parts: dict[str, LogicalPart] = {}
    for number, name in enumerate(masters):
        try:
            parts[name] = _part(name, topic, replies[2 * number], replies[2 * number + 1])
        except SilentError as error:
            silent[name] = error.reason
    lost = yield from _lost(name_servers, topic, parts)
    return LogicalTopic(topic, parts, silent, lost, brokers)


def _part(broker: str, topic: str, config: Reply, mapping: Reply) -> LogicalPart:
    address = config.question.address
    if answered(config).header.code == ResponseCode.TOPIC_NOT_EXIST:
        return LogicalPart(broker, address)
    said = body_of(config, TopicConfigAndQueueMapping)
    if said.mapping_detail is not None:
        raise NotAsWantedError(f"{topic} is a static topic")
    writes, reads = said.write_queue_nums or 0, said.read_queue_nums or 0
    perm = PERM if said.perm is None else said.perm
    if answered(mapping).header.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED:
        return LogicalPart(broker, address, True, writes, reads=reads, perm=perm)
    try:
        queues = queues_of(_listed(mapping).queues or {}, topic)
        stated = None if said.logical_queues_enabled is None else statement_of(said.logical_queues_enabled)
    except RemoteProtocolError as error:
        raise NotAsWantedError(f"what {broker} holds of {topic} cannot be: {error}") from error
    part = LogicalPart(broker, address, True, writes, queues, stated, reads, perm)
    if any(each.queue.broker_name != broker for each in part.segments()):
        raise NotAsWantedError(f"{broker} says what others hold of {topic}")
    return part


def segments_told(reply: Reply, topic: str, index: int) -> Sequence[Segment]:
    """The segments of a logical queue in an answer to 413. Raises NotAsWantedError."""
    try:
        queue = queues_of(_listed(reply).queues or {}, topic).get(index)
    except RemoteProtocolError as error:
        raise unreadable(reply, error) from error
    return () if queue is None else queue.segments


def _listed(mapping: Reply) -> LogicalQueues:
    """The body of an answer to 413, which is `null` where nothing is held."""
    body = granted(mapping).body
    return LogicalQueues() if body in {b"", b"null"} else LogicalQueues.decode(body)


def _lost(
    name_servers: Sequence[str], topic: str, parts: Mapping[str, LogicalPart]
) -> Plan[Mapping[int, Sequence[Segment]]]:
    """What name servers tell of brokers that do not answer, of each segment what knows most of it; nothing
    where they refuse, or know nothing."""
    header = GetRouteInfoRequest(topic=topic, sys_flag=RouteFlag.LOGICAL_QUEUE)
    found: dict[int, dict[SegmentKey, Segment]] = {}
    replies = yield [Asking(each, RequestCode.GET_ROUTEINFO_BY_TOPIC, header) for each in name_servers]
    for reply in replies:
        try:
            told = queues_heard(body_of(reply, TopicRouteData).logical_queues_info or {}, topic)
        except (NotAsWantedError, RemoteProtocolError):
            continue
        for index, each in told.items():
            known = found.setdefault(index, {})
            for segment in _of_others(each.segments, parts):
                known[segment.key] = max(known.get(segment.key, segment), segment, key=_lateness)
    return {index: [*known.values()] for index, known in found.items() if known}


def _lateness(segment: Segment) -> tuple[bool, bool, bool]:
    """How much of its life is known: an end was decided later than a start, and what is expired had one."""
    return segment.is_decided, segment.is_sealed, segment.state == State.EXPIRED


def told_plain(name_servers: Sequence[str], topic: str) -> Plan[str | None]:
    """A name server that tells who asks for logical queues the plain route of a topic that is enabled; None:
    there is none. One of Apache's knows nothing of them; one of ours may hear in a moment that it is."""
    header = GetRouteInfoRequest(topic=topic, sys_flag=RouteFlag.LOGICAL_QUEUE)
    found: list[str] = []
    for _ in range(LOOKS_MAX):
        replies = yield [Asking(each, RequestCode.GET_ROUTEINFO_BY_TOPIC, header) for each in name_servers]
        found = [reply.question.address for reply in replies if _is_plain(reply)]
        if not found:
            return None
        yield LookingAgain(constants.ANNOUNCED_EVERY_MS)
    return found[0]


def untold(name_servers: Sequence[str], topic: str) -> Plan[str | None]:
    """Waits until every name server tells who asks for logical queues those of a topic that was just enabled,
    so that whatever comes next finds them; a name server that does not, at last, and why. None: all do."""
    header = GetRouteInfoRequest(topic=topic, sys_flag=RouteFlag.LOGICAL_QUEUE)
    lacks: dict[str, str] = {}
    for _ in range(TOLD_LOOKS_MAX):
        replies = yield [Asking(each, RequestCode.GET_ROUTEINFO_BY_TOPIC, header) for each in name_servers]
        found = {each.question.address: _untold(each) for each in replies}
        lacks = {address: lack for address, lack in found.items() if lack is not None}
        if not lacks:
            return None
        yield LookingAgain(constants.TOLD_PAUSE_MS)
    return "; ".join(f"{address} {lack}" for address, lack in lacks.items())


def _untold(reply: Reply) -> str | None:
    try:
        told = body_of(reply, TopicRouteData)
    except NotAsWantedError as error:
        return error.reason
    return None if told.logical_queues_info is not None else "tells it as a plain topic"


def _is_plain(reply: Reply) -> bool:
    try:
        told = body_of(reply, TopicRouteData)
    except (NotAsWantedError, RemoteProtocolError):
        return False
    return told.logical_queues_info is None


def _of_others(segments: Iterable[Segment], parts: Mapping[str, LogicalPart]) -> Sequence[Segment]:
    return [each for each in segments if each.queue.broker_name not in parts]
