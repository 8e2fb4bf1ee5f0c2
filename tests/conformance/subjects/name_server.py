"""A name server in a few lines, and wrong ones: each overrides one choice of the good one."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from replispec.runtime.rocketmq.framing import Command
from replispec.wire.rocketmq.broker import (
    BrokerData,
    BrokerNameList,
    ClusterBrokerData,
    ClusterInfo,
    DataVersion,
    GetRouteInfoRequest,
    QueryDataVersionRequest,
    QueryDataVersionResponse,
    QueueData,
    RegisterBrokerBody,
    RegisterBrokerRequest,
    RegisterBrokerResponse,
    TopicConfig,
    TopicList,
    TopicRouteData,
    UnregisterBrokerRequest,
)
from replispec.wire.rocketmq.codes import RequestCode, ResponseCode, RouteFlag
from replispec.wire.rocketmq.controller import BrokerHeartbeatRequest, Properties, Property
from replispec.wire.rocketmq.logical_queue import LogicalQueueSegments
from replispec.wire.rocketmq.static_topic import DeleteTopicRouteRequest
from tests.conformance.subjects.answering import Answering
from tests.conformance.subjects.mapped import Mapped
from tests.conformance.subjects.records import Answer, Channel, Effect, Refused

MASTER = 0
PATIENCE_MS = 120_000


@dataclass
class Broker:
    """What a broker said of itself when it registered last."""

    said: RegisterBrokerRequest
    topics: dict[str, TopicConfig]
    version: DataVersion
    channel: Channel
    heard_s: float
    is_whole: bool = True
    """Nothing of what it said was forgotten."""

    @property
    def number(self) -> int:
        """Its id; 0 is the master's."""
        return self.said.broker_id or MASTER

    @property
    def lasts_s(self) -> float:
        """How long it may be silent."""
        return (self.said.heartbeat_timeout_millis or PATIENCE_MS) / 1000


class GoodNameServer(Answering):
    """A name server that does it right. Brokers are told apart by their addresses."""

    mapped: type[Mapped] = Mapped

    def __init__(self, now_s: Callable[[], float], _address: str = "") -> None:
        super().__init__()
        self.now_s = now_s
        self.brokers: dict[str, Broker] = {}
        self.mappings = self.mapped()
        self.handlers = {
            RequestCode.REGISTER_BROKER: self.register,
            RequestCode.UNREGISTER_BROKER: self.unregister,
            RequestCode.GET_ROUTEINFO_BY_TOPIC: self.route,
            RequestCode.GET_BROKER_CLUSTER_INFO: self.clusters,
            RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER: self.list_topics,
            RequestCode.GET_NAMESRV_CONFIG: self.configuration,
            RequestCode.QUERY_DATA_VERSION: self.query,
            RequestCode.BROKER_HEARTBEAT: self.live,
            RequestCode.DELETE_TOPIC_IN_NAMESRV: self.delete,
        }

    # What a fault overrides

    def is_whole(self, said: RegisterBrokerRequest, body: bytes) -> bool:
        """Whether a body is the one that was sent."""
        return not said.body_crc32 or zlib.crc32(body) == said.body_crc32

    def is_older(self, before: Broker, version: DataVersion) -> bool:
        """Whether who registers was master before this one."""
        return (before.version.state_version or 0) > (version.state_version or 0)

    def takes_the_place_of(self, before: Broker, said: RegisterBrokerRequest) -> bool:
        """Whether an earlier registration counts no more: the same broker, or the same place in its set."""
        same_place = before.number == (said.broker_id or MASTER)
        return before.said.broker_addr == said.broker_addr or (
            before.said.broker_name == said.broker_name and same_place
        )

    def master_of(self, name: str | None) -> Broker | None:
        """The master of a set."""
        return next((each for each in self.of_set(name) if each.number == MASTER), None)

    def told(self, said: RegisterBrokerRequest) -> RegisterBrokerResponse:
        """What a broker is told of its master: who is none."""
        master = self.master_of(said.broker_name)
        if master is None or said.broker_id == MASTER:
            return RegisterBrokerResponse(None, None)
        return RegisterBrokerResponse(master.said.ha_server_addr, master.said.broker_addr)

    def lacks(self, before: Broker | None, since: DataVersion) -> bool:
        """Whether not all is known of a broker that it registered up to a version."""
        return before is None or not before.is_whole or before.version != since

    def suffices(self, said: RegisterBrokerRequest) -> bool | None:
        """Whether a broker may tell what changes alone from now on."""
        return True if said.broker_id == MASTER else None

    def rest(self, topics: dict[str, TopicConfig]) -> dict[str, TopicConfig]:
        """Of what a broker registered before, what stays when it tells what changed."""
        return topics

    def leaving(self, broker: Broker) -> Iterable[Broker]:
        """Who is gone when this broker is."""
        return [broker]

    def unregistered(self, said: UnregisterBrokerRequest) -> None:
        """A broker says that it stops."""
        broker = self.brokers.get(said.broker_addr or "")
        if broker is not None:
            self.leave(broker)

    def ended(self, channel: Channel) -> None:
        """A connection ended."""
        for each in [each for each in self.brokers.values() if each.channel == channel]:
            self.leave(each)

    def is_silent(self, broker: Broker) -> bool:
        """Whether a broker has not been heard for too long."""
        return self.now_s() >= broker.heard_s + broker.lasts_s

    def has_changed(self, known: DataVersion | None, asked: DataVersion) -> bool:
        """Whether the topics of who asks are not those that it registered."""
        return known != asked

    def queues(self, _topic: str, config: TopicConfig) -> tuple[int, int]:
        """How many queues a topic has, to read and to write."""
        return config.read_queue_nums or 0, config.write_queue_nums or 0

    def holders(self, topic: str) -> list[str]:
        """The sets that hold a topic."""
        return sorted({each.said.broker_name or "" for each in self.brokers.values() if topic in each.topics})

    def shown_sets(self) -> list[str]:
        """The sets that anybody is told of who asks for all."""
        return sorted({each.said.broker_name or "" for each in self.brokers.values()})

    def speaks_for_its_set(self, said: RegisterBrokerRequest) -> bool:
        """Whether the mappings of who registers count."""
        return said.broker_id == MASTER

    def cluster_of(self, said: DeleteTopicRouteRequest) -> str | None:
        """The only cluster in which a topic is deleted; None: in all."""
        return said.cluster_name or None

    def forgotten(self, _topic: str, cluster: str | None) -> Iterable[Broker]:
        """Whose topic it is no more when it is deleted."""
        return [each for each in self.brokers.values() if cluster in (None, each.said.cluster_name)]

    def asks_for_logical(self, said: GetRouteInfoRequest) -> bool:
        """Whether a client knows logical queues."""
        return bool((said.sys_flag or 0) & RouteFlag.LOGICAL_QUEUE)

    def chosen(self, said: GetRouteInfoRequest, index: int) -> bool:
        """Whether a client asks for this index."""
        listed = said.logical_queue_ids_filter
        return listed is None or str(index) in listed.strip("[]").split(", ")

    def is_withheld(self, topic: str) -> bool:
        """Whether a client that knows logical queues is refused when they are not whole."""
        return self.mappings.enabled(topic) is not None

    def nobody_holds(self, topic: str) -> Answer:
        """The answer about a topic that nobody registered."""
        return Answer(ResponseCode.TOPIC_NOT_EXIST, remark=f"no {topic}")

    def listed_topics(self) -> list[str]:
        """The topics that an administrator is told."""
        return sorted({topic for each in self.brokers.values() for topic in each.topics})

    def settings(self) -> list[Property]:
        """The configuration that an administrator is told."""
        return [Property("listenPort", "9876")]

    def addresses(self, name: str) -> dict[int, str]:
        """The addresses of a set's brokers, by id."""
        return {each.number: each.said.broker_addr or "" for each in self.of_set(name)}

    # The requests

    def of_set(self, name: str | None) -> Sequence[Broker]:
        """The brokers of a set."""
        return [each for each in self.brokers.values() if each.said.broker_name == name]

    def leave(self, broker: Broker) -> None:
        """Forget a broker."""
        for each in self.leaving(broker):
            self.mappings.left(each.said.broker_name or "")
            self.brokers.pop(each.said.broker_addr or "", None)

    def register(self, request: Command) -> Answer:
        """103."""
        said = RegisterBrokerRequest.from_ext_fields(request.header.ext_fields or {})
        if not self.is_whole(said, request.body):
            raise Refused(ResponseCode.SYSTEM_ERROR, "the body is damaged")
        body = RegisterBrokerBody.decode(request.body)
        table = body.topic_config_serialize_wrapper
        assert table is not None, "the suite sends no registration without topics"
        version = table.data_version or DataVersion(None, None, None)
        master = self.master_of(said.broker_name)
        is_another = master is not None and master.said.broker_addr != said.broker_addr
        if master is not None and said.broker_id == MASTER and is_another and self.is_older(master, version):
            raise Refused(ResponseCode.SYSTEM_ERROR, "another master is newer")
        before = self.brokers.get(said.broker_addr or "")
        is_same = before is not None and before.said.broker_name == said.broker_name
        known = before.topics if before is not None and is_same else {}
        if body.changed_since is not None:
            if self.lacks(before if is_same else None, body.changed_since):
                raise Refused(ResponseCode.SYSTEM_ERROR, "not all is known of it")
            known = self.rest(known)
        for each in [each for each in self.brokers.values() if self.takes_the_place_of(each, said)]:
            del self.brokers[each.said.broker_addr or ""]
        topics = {**known, **(table.topic_config_table or {})}
        self.keep(Broker(said, topics, version, self.channel, self.now_s()))
        if self.speaks_for_its_set(said):
            self.mappings.take(said, table)
        return Answer(header=replace(self.told(said), changes_suffice=self.suffices(said)))

    def keep(self, broker: Broker) -> None:
        """A registration counts."""
        self.brokers[broker.said.broker_addr or ""] = broker

    def live(self, request: Command) -> Answer:
        """904."""
        said = BrokerHeartbeatRequest.from_ext_fields(request.header.ext_fields or {})
        broker = self.brokers.get(said.broker_addr or "")
        if broker is not None:
            broker.heard_s = self.now_s()
        return Answer()

    def unregister(self, request: Command) -> Answer:
        """104."""
        self.unregistered(UnregisterBrokerRequest.from_ext_fields(request.header.ext_fields or {}))
        return Answer()

    def query(self, request: Command) -> Answer:
        """322."""
        said = QueryDataVersionRequest.from_ext_fields(request.header.ext_fields or {})
        broker = self.brokers.get(said.broker_addr or "")
        known = broker.version if broker is not None else None
        changed = self.has_changed(known, DataVersion.decode(request.body))
        body = known.encode() if known is not None else b""
        return Answer(header=QueryDataVersionResponse(changed), body=body)

    def route(self, request: Command) -> Answer:
        """105."""
        said = GetRouteInfoRequest.from_ext_fields(request.header.ext_fields or {})
        topic = said.topic or ""
        sets = self.holders(topic)
        if not sets:
            return self.nobody_holds(topic)
        datas = [BrokerData(self.addresses(each), each, self._cluster(each), False, None) for each in sets]
        queues = []
        for name in sets:
            config = self._config(name, topic)
            read, write = self.queues(topic, config)
            queues.append(QueueData(name, config.perm, read, config.topic_sys_flag, write))
        static = self.mappings.static(topic)
        route = TopicRouteData(
            datas, {}, queues, topic_queue_mapping_by_broker=None if static is None else dict(static)
        )
        if self.asks_for_logical(said):
            route.logical_queues_info = self.logical(said, sets)
        return Answer(body=route.encode())

    def logical(
        self, said: GetRouteInfoRequest, sets: Sequence[str]
    ) -> dict[int, LogicalQueueSegments] | None:
        """The logical queues that a client is told."""
        topic = said.topic or ""
        configs = {each: self._config(each, topic) for each in sets}
        told = self.mappings.logical(topic, configs)
        if told is None and self.is_withheld(topic):
            raise Refused(ResponseCode.SERVICE_NOT_AVAILABLE, "something is missing")
        return None if told is None else {at: each for at, each in told.items() if self.chosen(said, at)}

    def delete(self, request: Command) -> Answer:
        """216."""
        said = DeleteTopicRouteRequest.from_ext_fields(request.header.ext_fields or {})
        topic, cluster = said.topic or "", self.cluster_of(said)
        for each in self.forgotten(topic, cluster):
            if each.topics.pop(topic, None) is not None:
                each.is_whole = False
        self.mappings.deleted(topic, cluster)
        return Answer()

    def clusters(self, _request: Command) -> Answer:
        """106."""
        table, names = dict[str, ClusterBrokerData](), dict[str, list[str]]()
        for each in self.shown_sets():
            cluster = self._cluster(each) or ""
            table[each] = ClusterBrokerData(self.addresses(each), each, cluster, False, None)
            names.setdefault(cluster, []).append(each)
        lists = {cluster: BrokerNameList(found) for cluster, found in names.items()}
        return Answer(body=ClusterInfo(table, lists).encode())

    def list_topics(self, _request: Command) -> Answer:
        """206."""
        return Answer(body=TopicList(None, self.listed_topics()).encode())

    def configuration(self, _request: Command) -> Answer:
        """319."""
        return Answer(body=Properties(self.settings()).encode())

    def _config(self, name: str, topic: str) -> TopicConfig:
        return next(each.topics[topic] for each in self.of_set(name) if topic in each.topics)

    def _cluster(self, name: str) -> str | None:
        return next((each.said.cluster_name for each in self.of_set(name)), None)

    def connection_ended(self, _waiting_bytes: int, channel: Channel) -> list[Effect]:
        """Who was on it is gone."""
        self.ended(channel)
        return []

    def deadline_s(self) -> float:
        """When somebody is silent for too long."""
        return min((each.heard_s + each.lasts_s for each in self.brokers.values()), default=math.inf)

    def tick(self) -> list[Effect]:
        """Forget who is silent."""
        for each in [each for each in self.brokers.values() if self.is_silent(each)]:
            self.leave(each)
        return []
