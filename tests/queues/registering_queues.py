"""Brokers that register logical queues and static topics with a name server, and clients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from replispec.nameserver.rocketmq import Limits
from replispec.runtime.rocketmq.framing import Command
from replispec.runtime.rocketmq.queues import LogicalQueue, PhysicalQueue, Segment
from replispec.runtime.rocketmq.queues.forms import message_of_queues
from replispec.runtime.rocketmq.queues.telling import Enabled, Interval, Statement, message_of_statement
from replispec.wire.rocketmq.broker import (
    DataVersion,
    GetRouteInfoRequest,
    RegisterBrokerBody,
    TopicConfigTable,
    TopicRouteData,
)
from replispec.wire.rocketmq.codes import LogicalQueueState as State
from replispec.wire.rocketmq.codes import RequestCode, ResponseCode, RouteFlag
from replispec.wire.rocketmq.constants import MAPPING_SCOPE
from replispec.wire.rocketmq.logical_queue import LogicalQueues
from replispec.wire.rocketmq.static_topic import TopicQueueMappingInfo
from tests.controller import conversation
from tests.controller.test_nameserver import register, started, topic

NOW_MS = 1_700_000_000_000
TOPIC = "T"
NUMBERS = {"b1": 1, "b2": 2, "b3": 3}


def segment(broker: str, queue: int, start: int, end: int = -1, state: State | None = None) -> Segment:
    """A segment that begins at the physical offset 0; open ones are written, ended ones read."""
    of_end = State.NORMAL if end < 0 else State.READ_ONLY
    return Segment(PhysicalQueue(broker, queue), of_end if state is None else state, start, 0, end)


def open_segment(broker: str, queue: int) -> Segment:
    """The target of a migration that is not decided yet."""
    return Segment(PhysicalQueue(broker, queue), State.WRITE_ONLY)


@dataclass(frozen=True)
class Says:
    """What a broker registers of one topic."""

    broker: str
    counter: int = 1
    segments: Mapping[int, Sequence[Segment]] | None = None
    enabled: Enabled | None = None
    gone: Mapping[int, tuple[Interval, ...]] = field(default_factory=dict)
    static: TopicQueueMappingInfo | None = None
    queues: int = 1
    state: int = 1
    topics: tuple[str, ...] = (TOPIC,)
    said_as: str = TOPIC

    @property
    def table(self) -> TopicConfigTable:
        """As it is in a registration."""
        queues = [LogicalQueue.of(index, each) for index, each in (self.segments or {}).items()]
        stated = None if self.enabled is None else Statement(self.enabled, self.gone)
        return TopicConfigTable(
            DataVersion(self.counter, self.state, NOW_MS),
            topic_config_table={name: topic(name, self.queues) for name in self.topics},
            topic_queue_mapping_info_map=None if self.static is None else {TOPIC: self.static},
            logical_queues_info_map=None
            if self.segments is None
            else {TOPIC: LogicalQueues(message_of_queues(queues, self.said_as).queues)},
            logical_queues_enabled_map=None if stated is None else {TOPIC: message_of_statement(stated)},
        )


def info(broker: str, epoch: int, led: Mapping[int, int], total: int = 4) -> TopicQueueMappingInfo:
    """What a broker leads of a static topic."""
    return TopicQueueMappingInfo(
        broker, dict(led), dirty=False, epoch=epoch, scope=MAPPING_SCOPE, topic=TOPIC, total_queues=total
    )


class NameServer:
    """A name server, its brokers by name, each on one connection, and clients."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.talk = started(limits)
        self.talk.now_ms = NOW_MS
        self.connections: dict[str, int] = {}

    def hears(self, *every: Says, role: int = 0, host: str = "127.0.0.1") -> None:
        """Brokers register; each is taken."""
        for says in every:
            if says.broker not in self.connections:
                self.connections[says.broker] = self.talk.connect(host)
            assert self.hears_body(says.broker, RegisterBrokerBody([], says.table).encode(), role) == 0

    def hears_body(self, broker: str, body: bytes, role: int = 0) -> int:
        """The code with which a registration is answered."""
        return self.answers_body(broker, body, role).header.code

    def answers_body(self, broker: str, body: bytes, role: int = 0) -> Command:
        """What it is answered."""
        connection = self.connections.setdefault(broker, self.talk.connect())
        number = NUMBERS.get(broker, 9)
        return register(self.talk, connection, role, body, broker=number, name=broker)

    def loses(self, broker: str) -> None:
        """A broker is not heard any more."""
        self.talk.close(self.connections.pop(broker))

    def asked(self, *, flag: int = RouteFlag.LOGICAL_QUEUE, indexes: str | None = None) -> Command:
        """What a client is answered who knows logical queues, or does not."""
        header = GetRouteInfoRequest(TOPIC, sys_flag=flag, logical_queue_ids_filter=indexes)
        return self.talk.ask(self.talk.connect(), RequestCode.GET_ROUTEINFO_BY_TOPIC, header)

    def route(self, *, flag: int = RouteFlag.LOGICAL_QUEUE, indexes: str | None = None) -> TopicRouteData:
        """The route that a client is told."""
        answer = self.asked(flag=flag, indexes=indexes)
        assert answer.header.code == ResponseCode.SUCCESS, answer.header.remark
        return TopicRouteData.decode(answer.body)

    def told(self, indexes: str | None = None) -> dict[int, list[tuple[str, int, int]]] | None:
        """The segments by index, each as broker, logical start and physical end; None of a plain route."""
        found = self.route(indexes=indexes).logical_queues_info
        return (
            None
            if found is None
            else {
                index: [
                    (
                        (each.message_queue and each.message_queue.broker_name) or "",
                        each.logical_queue_delta or 0,
                        -1 if each.offset_max is None else each.offset_max,
                    )
                    for each in listed.segments or ()
                ]
                for index, listed in found.items()
            }
        )

    def refusal(self) -> str | None:
        """Why who asks for logical queues is refused; None: he is told them."""
        answer = self.asked()
        if answer.header.code == ResponseCode.SUCCESS:
            assert TopicRouteData.decode(answer.body).logical_queues_info is not None, "he is told plain"
            return None
        assert answer.header.code == ResponseCode.SERVICE_NOT_AVAILABLE
        return answer.header.remark

    def noted(self) -> list[str]:
        """What was noted of mappings, and is noted once."""
        return [each for each in self.talk.noted() if each == "a mapping of queues was not taken"]


def address(broker: str) -> str:
    """Where a broker is."""
    return conversation.address(NUMBERS[broker])
