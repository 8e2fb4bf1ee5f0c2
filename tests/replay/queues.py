"""Captures of a static topic and of logical queues, written frame by frame, and faults put into them.

Each fault says which rules it breaks and which it leaves in doubt; every other verdict stays what it is.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from replispec.runtime.primitives.commands import Body
from replispec.runtime.primitives.headers import Header
from replispec.runtime.rocketmq.rules import string_hash
from replispec.wire.rocketmq.broker import (
    BrokerData,
    GetRouteInfoRequest,
    PullMessageRequest,
    PullMessageResponse,
    RegisterBrokerBody,
    RegisterBrokerRequest,
    RegisterBrokerResponse,
    SendMessageResponse,
    SendMessageV2Request,
    TopicConfigTable,
    TopicRouteData,
)
from replispec.wire.rocketmq.client import (
    ClientHeartbeatRequest,
    ClientHeartbeatResponse,
    ConsumerData,
    GetMaxOffsetRequest,
    GetMaxOffsetResponse,
    GetMinOffsetRequest,
    GetMinOffsetResponse,
    GetTopicConfigRequest,
    GetTopicConfigResponse,
    HeartbeatData,
    QueryConsumerOffsetRequest,
    QueryConsumerOffsetResponse,
    SubscriptionData,
    UpdateConsumerOffsetRequest,
    UpdateConsumerOffsetResponse,
)
from replispec.wire.rocketmq.codes import LogMagic, ResponseCode
from replispec.wire.rocketmq.constants import MOCK_BROKER_GLOBAL, UNDECIDED
from replispec.wire.rocketmq.static_topic import (
    LogicQueueItems,
    LogicQueueMappingItem,
    TopicConfigAndQueueMapping,
    TopicQueueMappingDetail,
    TopicQueueMappingInfo,
    UpdateStaticTopicRequest,
    UpdateStaticTopicResponse,
)
from replispec.wire.rocketmq.store import LogRecord, OffsetMessageId
from tests.replay.pcap_writer import Endpoint, Packet
from tests.replay.traffic import Link, Traffic

TOPIC = "TopicS"
CLUSTER = "DefaultCluster"
NAME_SERVER: Endpoint = ("10.0.0.1", 9876)
PRODUCER, CONSUMER, ADMIN = "10.0.0.21", "10.0.0.22", "10.0.0.23"
BROKERS: dict[str, Endpoint] = {
    f"broker-{name}": (f"10.0.0.1{at}", 10911) for at, name in enumerate("abc", 1)
}
FIRST_EPOCH, SECOND_EPOCH = 1_700_000_000_000, 1_700_000_100_000
RECORD_BYTES = 200
GROUP, LATE_GROUP = "readers", "late-readers"


def item(generation: int, broker: str, queue: int, start: int) -> LogicQueueMappingItem:
    """An item of a static topic, which is open."""
    return LogicQueueMappingItem(broker, UNDECIDED, generation, start, queue, 0, UNDECIDED, UNDECIDED)


FIRST = {0: [item(0, "broker-a", 0, 0)], 1: [item(0, "broker-b", 0, 0)]}


def moved(start: int) -> dict[int, list[LogicQueueMappingItem]]:
    """The same after the first logical queue went to broker-c."""
    return {0: [*FIRST[0], item(1, "broker-c", 0, start)], 1: FIRST[1]}


@dataclass
class Stored:
    """A message in a queue of a broker."""

    broker: str
    queue: int
    queue_offset: int
    place: int

    @property
    def id(self) -> str:
        """What its producer is told."""
        host, port = BROKERS[self.broker]
        return OffsetMessageId(_packed(host), port, self.place).encode().hex().upper()

    @property
    def record(self) -> bytes:
        """As it is in the log, and in answers to pulls."""
        host, port = BROKERS[self.broker]
        return LogRecord(
            magic=LogMagic.MESSAGE_V1,
            queue_id=self.queue,
            queue_offset=self.queue_offset,
            physical_offset=self.place,
            born_ip=_packed(PRODUCER),
            store_ip=_packed(host),
            store_port=port,
            body=b"m%06d" % self.place,
            topic=TOPIC,
        ).encode()


def _packed(host: str) -> bytes:
    return ipaddress.ip_address(host).packed


@dataclass
class World:
    """Brokers with the messages of their queues, and everybody's connections."""

    traffic: Traffic = field(default_factory=Traffic)
    links: dict[tuple[str, Endpoint], Link] = field(default_factory=dict)
    queues: dict[tuple[str, int], list[Stored]] = field(default_factory=dict)
    ends: dict[str, int] = field(default_factory=dict)

    def ask(
        self,
        who: str,
        whom: Endpoint,
        header: Header,
        tells: Header | None = None,
        *,
        body: Body | bytes | None = None,
        told: Body | bytes | None = None,
        code: int = ResponseCode.SUCCESS,
        asks: int | None = None,
        within: Callable[[], None] = lambda: None,
    ) -> None:
        """A request, and its answer; `within`: what is said between them."""
        link = self.links.get((who, whom)) or self.traffic.connect(who, whom)
        self.links[who, whom] = link
        opaque = self.traffic.request(link, header, body, code=asks)
        within()
        self.traffic.answer(link, opaque, tells, told, code=code)

    def packets(self) -> list[Packet]:
        """All that was said."""
        return self.traffic.packets()

    # ---- everybody ---------------------------------------------------------------------------

    def register(self, broker: str, wrapper: TopicConfigTable | None = None) -> None:
        """A broker tells the name server who it is, and which mappings it has."""
        host, port = BROKERS[broker]
        header = RegisterBrokerRequest(
            broker, f"{host}:{port}", CLUSTER, f"{host}:{port + 1}", 0, compressed=False
        )
        body = RegisterBrokerBody([], wrapper or TopicConfigTable())
        self.ask(host, NAME_SERVER, header, RegisterBrokerResponse(), body=body)

    def route(self, who: str, data: TopicRouteData) -> None:
        """Somebody asks the name server for the route."""
        data.broker_datas = [
            BrokerData({0: f"{host}:{port}"}, name) for name, (host, port) in BROKERS.items()
        ]
        self.ask(who, NAME_SERVER, GetRouteInfoRequest(TOPIC), told=data)

    def store(self, broker: str, queue: int) -> Stored:
        """One more message."""
        own = self.queues.setdefault((broker, queue), [])
        found = Stored(broker, queue, len(own), self.ends.get(broker, 0))
        self.ends[broker] = found.place + RECORD_BYTES
        own.append(found)
        return found

    def send(
        self,
        broker: str,
        asked: int,
        stored: Stored,
        shown: int,
        flag: int = 0,
        on: str | None = None,
        tag: str = "",
    ) -> None:
        """A message that a producer is told to be at this offset of the queue that it asked for; `on`: the
        queue that it was handed on to."""
        request = SendMessageV2Request(
            producer_group="p",
            topic=TOPIC,
            default_topic="TBW102",
            default_topic_queue_nums=4,
            queue_id=asked,
            sys_flag=flag,
            born_timestamp=FIRST_EPOCH,
            flag=0,
            properties=f"TAGS\x01{tag}\x02" if tag else None,
            broker_name=broker,
        )
        told = SendMessageResponse(stored.id, asked, shown, f"id{stored.id}", forward_queue_id=on)
        self.ask(PRODUCER, BROKERS[broker], request, told, asks=310)

    # ---- static topics -----------------------------------------------------------------------

    def set_mapping(
        self,
        broker: str,
        epoch: int,
        hosted: dict[int, list[LogicQueueMappingItem]] | None = None,
        total: int = 2,
    ) -> None:
        """An administrator sets the mapping at a broker."""
        header = UpdateStaticTopicRequest(TOPIC, "TBW102", 1, 1, 6, "SINGLE_TAG", 0, order=False, force=False)
        body = replace(detail(broker, epoch, hosted or {}), total_queues=total)
        self.ask(ADMIN, BROKERS[broker], header, UpdateStaticTopicResponse(), body=body)

    def tell_mapping(self, broker: str, epoch: int, hosted: dict[int, list[LogicQueueMappingItem]]) -> None:
        """A broker tells an administrator its mapping."""
        config = TopicConfigAndQueueMapping(mapping_detail=detail(broker, epoch, hosted), topic_name=TOPIC)
        header = GetTopicConfigRequest(TOPIC, lo=True)
        self.ask(ADMIN, BROKERS[broker], header, GetTopicConfigResponse(), told=config)

    def register_infos(self, epoch: int, leads: dict[str, dict[int, int]]) -> None:
        """All brokers register what they lead, and a client asks for the route."""
        infos = {name: info(name, epoch, leads.get(name, {})) for name in BROKERS}
        for name, each in infos.items():
            self.register(name, TopicConfigTable(topic_queue_mapping_info_map={TOPIC: each}))
        self.route(CONSUMER, TopicRouteData(topic_queue_mapping_by_broker=infos))

    def pull(
        self,
        who: str,
        broker: str,
        asked: tuple[int, int],
        found: Sequence[Stored],
        following: int,
        delta: int | None,
        *,
        code: int = ResponseCode.SUCCESS,
        group: str = GROUP,
        flag: int = 0,
        wants: str | None = "*",
        version: int = 0,
        least: int = 0,
    ) -> None:
        """Somebody pulls; `delta`: None for a physical queue; `wants`: which messages, None where the
        heartbeat of this version says it; `least`: the first offset that is there."""
        queue, offset = asked
        header = PullMessageRequest(
            group, TOPIC, queue, offset, 32, flag, 0, 0, wants, version, "TAG",
            bname=MOCK_BROKER_GLOBAL if delta is not None else broker,
            lo=None if delta is not None or flag else False,
        )  # fmt: skip
        tells = PullMessageResponse(0, following, least, following, delta)
        told = b"".join(each.record for each in found) if found else None
        self.ask(who, BROKERS[broker], header, tells, told=told, code=code, asks=11)

    def heartbeat(
        self,
        broker: str,
        wants: str,
        version: int,
        *,
        group: str = GROUP,
        kind: str = "TAG",
        body: bytes | None = None,
    ) -> None:
        """A client tells a broker which messages its group wants; `body`: in place of what it says."""
        tags = [each.strip() for each in wants.split("||") if each.strip() != "*"]
        own = SubscriptionData(False, [*map(string_hash, tags)], kind, wants, version, tags, TOPIC)
        says = "CONSUME_FROM_LAST_OFFSET", "CONSUME_PASSIVELY", group, "CLUSTERING"
        said = body or HeartbeatData("client", [ConsumerData(*says, [own], False)])
        header = ClientHeartbeatRequest()
        self.ask(CONSUMER, BROKERS[broker], header, ClientHeartbeatResponse(), body=said)

    def commit(self, broker: str, queue: int, offset: int, group: str = GROUP) -> None:
        """A group says how far it has read, and is answered."""
        header = UpdateConsumerOffsetRequest(MOCK_BROKER_GLOBAL, group, TOPIC, queue, offset)
        self.ask(CONSUMER, BROKERS[broker], header, UpdateConsumerOffsetResponse())

    def position(
        self,
        broker: str,
        queue: int,
        offset: int,
        group: str = GROUP,
        who: str = CONSUMER,
        within: Callable[[], None] = lambda: None,
    ) -> None:
        """A group asks how far it has read, or a broker for it."""
        lo, name = (None, MOCK_BROKER_GLOBAL) if who == CONSUMER else (False, broker)
        header = QueryConsumerOffsetRequest(group, TOPIC, queue, bname=name, lo=lo)
        self.ask(who, BROKERS[broker], header, QueryConsumerOffsetResponse(offset), within=within)

    def end(self, broker: str, queue: int, offset: int) -> None:
        """A client asks where a queue ends."""
        header = GetMaxOffsetRequest(TOPIC, queue, bname=MOCK_BROKER_GLOBAL)
        self.ask(CONSUMER, BROKERS[broker], header, GetMaxOffsetResponse(offset))

    def least(
        self,
        broker: str,
        queue: int,
        offset: int,
        who: str = CONSUMER,
        within: Callable[[], None] = lambda: None,
    ) -> None:
        """Somebody asks where a queue begins."""
        lo, name = (None, MOCK_BROKER_GLOBAL) if who == CONSUMER else (False, broker)
        header = GetMinOffsetRequest(TOPIC, queue, name, lo=lo)
        self.ask(who, BROKERS[broker], header, GetMinOffsetResponse(offset), within=within)


def detail(
    broker: str, epoch: int, hosted: dict[int, list[LogicQueueMappingItem]]
) -> TopicQueueMappingDetail:
    """A mapping as a broker keeps it."""
    own = {index: LogicQueueItems(list(items)) for index, items in hosted.items()}
    return TopicQueueMappingDetail(broker, {}, False, epoch, own, "__global__", TOPIC, 2)


def info(broker: str, epoch: int, leads: dict[int, int]) -> TopicQueueMappingInfo:
    """A mapping as a broker registers it."""
    return TopicQueueMappingInfo(broker, leads, False, epoch, "__global__", TOPIC, 2)


def static_topic() -> World:
    """Two logical queues; the first one moves from broker-a to broker-c below a producer and a consumer, and
    another group reads it from the beginning."""
    world = World()
    for name in BROKERS:
        world.register(name)
    for name, hosted in (("broker-a", {0: FIRST[0]}), ("broker-b", {1: FIRST[1]}), ("broker-c", {})):
        world.set_mapping(name, FIRST_EPOCH, hosted)
    world.register_infos(FIRST_EPOCH, {"broker-a": {0: 0}, "broker-b": {1: 0}})
    old = [world.store("broker-a", 0) for _ in range(3)]
    for each in old:
        world.send("broker-a", 0, each, each.queue_offset)
    others = [world.store("broker-b", 0) for _ in range(2)]
    for each in others:
        world.send("broker-b", 1, each, each.queue_offset)
    world.pull(CONSUMER, "broker-a", (0, 0), old, 3, 0)
    world.pull(CONSUMER, "broker-b", (1, 0), others, 2, 0)
    world.least("broker-b", 1, 0)
    world.pull(CONSUMER, "broker-b", (1, 0), others, 2, 0, group=LATE_GROUP)
    world.commit("broker-a", 0, 3)
    world.position("broker-a", 0, 3)
    _moves(world)
    world.register_infos(SECOND_EPOCH, {"broker-c": {0: 0}, "broker-b": {1: 0}})
    new = [*world.queues["broker-c", 0], world.store("broker-c", 0)]
    world.send("broker-c", 0, new[1], 10_001)
    _reads_on(world, old, new)
    return world


def _moves(world: World) -> None:
    undecided, decided = moved(UNDECIDED), moved(10_000)
    world.set_mapping("broker-c", SECOND_EPOCH, {0: undecided[0]})
    world.send("broker-c", 0, world.store("broker-c", 0), UNDECIDED)
    world.set_mapping("broker-a", SECOND_EPOCH, {0: undecided[0]})
    world.set_mapping("broker-c", SECOND_EPOCH, {0: decided[0]})
    world.set_mapping("broker-b", SECOND_EPOCH, {1: decided[1]})
    world.tell_mapping("broker-c", SECOND_EPOCH, {0: decided[0]})


def _reads_on(world: World, old: Sequence[Stored], new: Sequence[Stored]) -> None:
    leader = BROKERS["broker-c"][0]
    world.pull(leader, "broker-a", (0, 3), [], 3, None, code=ResponseCode.PULL_NOT_FOUND)
    world.pull(CONSUMER, "broker-c", (0, 3), [], 10_000, 0, code=ResponseCode.PULL_RETRY_IMMEDIATELY)
    world.pull(CONSUMER, "broker-c", (0, 10_000), new, 10_002, 10_000)
    world.end("broker-c", 0, 10_002)
    world.commit("broker-c", 0, 10_002)
    world.pull(leader, "broker-a", (0, 0), old, 3, None, group=LATE_GROUP)
    world.pull(CONSUMER, "broker-c", (0, 0), old, 3, 0, group=LATE_GROUP)
    world.commit("broker-c", 0, 3, LATE_GROUP)
    kept = partial(world.position, "broker-a", 0, 3, LATE_GROUP, leader)
    world.position("broker-c", 0, 3, LATE_GROUP, within=kept)
    world.least("broker-c", 0, 0, within=partial(world.least, "broker-a", 0, 0, leader))
    infos = {
        name: info(name, SECOND_EPOCH, leads)
        for name, leads in (("broker-a", {}), ("broker-b", {1: 0}), ("broker-c", {0: 0}))
    }
    world.route(CONSUMER, TopicRouteData(topic_queue_mapping_by_broker=infos))
