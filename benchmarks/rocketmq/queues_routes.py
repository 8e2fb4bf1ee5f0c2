"""Many topics with mapped queues told to a name server of ours, and their routes asked for."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from benchmarks.family import Bench, Effort, QueuePart, WrongResultError, in_a_folder
from benchmarks.rocketmq.queues_asked import Connection, frame
from lab.cluster import CLUSTER_NAME, Cluster
from lab.processes import cpu_seconds, usage
from lab.rocketmq import questions, settings
from lab.rocketmq.roles import OURS
from replispec.runtime.rocketmq.framing import decode_command
from replispec.runtime.rocketmq.queues import PhysicalQueue, Segment
from replispec.runtime.rocketmq.queues.forms import message_of
from replispec.wire.rocketmq.broker import (
    DataVersion,
    GetRouteInfoRequest,
    RegisterBrokerBody,
    RegisterBrokerRequest,
    TopicConfig,
    TopicConfigTable,
    TopicRouteData,
)
from replispec.wire.rocketmq.codes import LogicalQueueState, Permission, RequestCode, ResponseCode, RouteFlag
from replispec.wire.rocketmq.logical_queue import (
    LogicalQueues,
    LogicalQueueSegments,
    LogicalQueuesEnabled,
)
from replispec.wire.rocketmq.static_topic import TopicQueueMappingInfo

PLAIN, LOGICAL, STATIC = "plain", "LQ", "ST"
QUEUES: Final = 64
SEGMENTS: Final = 4
# A queue has its segments at so many brokers next to each other: each holds half of all queues, so that what
# it tells stays below the 16 MiB that a frame has at most, Java's too.
BROKERS: Final = 8
EACH: Final = 100
ASKED: Final = 50
FIGURES = {
    "a broker tells all topics": ("s", False),
    "bytes of that": ("MB", False),
    "the same again": ("s", False),
    "name server, CPU until all are told": ("s", False),
    "name server, memory then": ("MB", False),
    "a route, the first time": ("ms", False),
    "a route, the next time": ("ms", False),
    "bytes of a route": ("KB", False),
}
Table = Callable[[int, int], TopicConfigTable]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of topics: what a broker tells of so many, and what a route of one has to be."""

    who: str
    table: Table
    fault: Callable[[TopicRouteData, str], str | None]
    is_logical: bool = False


def measure(bench: Bench, effort: Effort) -> None:
    """One name server for each kind, each round. Raises WrongResultError."""
    kinds = (
        Kind(PLAIN, plain_table, fault_of_plain),
        Kind(LOGICAL, logical_table, fault_of_logical, is_logical=True),
        Kind(STATIC, static_table, fault_of_static),
    )
    for _ in range(effort.rounds):
        for kind in kinds:
            with in_a_folder("queues-routes") as cluster:
                _round(bench, cluster, kind, effort.topics)


def _round(bench: Bench, cluster: Cluster, kind: Kind, topics: int) -> None:
    cluster.start(OURS, "nameserver", "nameserver", settings.nameserver(cluster))
    port = cluster.port("nameserver")
    cluster.until(lambda: questions.routed(port, "nobody") == {} or None, "a name server")
    pid = cluster.processes["nameserver"].pid
    before_s, brokers = cpu_seconds(pid), [Connection(port) for _ in range(BROKERS)]
    bodies = [RegisterBrokerBody([], kind.table(number, topics)).encode() for number in range(BROKERS)]
    for number, (connection, body) in enumerate(zip(brokers, bodies, strict=True)):
        bench.note("a broker tells all topics", kind.who, _told(connection, number, body))
        bench.note("bytes of that", kind.who, len(body) / 1e6)
    bench.note("name server, CPU until all are told", kind.who, cpu_seconds(pid) - before_s)
    bench.note("name server, memory then", kind.who, usage(pid)[0].peak_mb)
    bench.note("the same again", kind.who, _told(brokers[0], 0, bodies[0]))
    _ask(bench, brokers[0], kind, min(topics, ASKED))
    for each in brokers:
        each.close()


def _told(connection: Connection, number: int, body: bytes) -> float:
    """Seconds of a registration. Raises WrongResultError when it is not taken."""
    header = RegisterBrokerRequest(
        broker_name=broker(number),
        broker_addr=f"127.0.0.1:{number + 1}",
        cluster_name=CLUSTER_NAME,
        broker_id=0,
    )
    request = frame(RequestCode.REGISTER_BROKER, header, 1, body)
    began_s = time.perf_counter()
    answer = decode_command(connection.ask(request))
    took_s = time.perf_counter() - began_s
    if answer.header.code != ResponseCode.SUCCESS:
        raise WrongResultError(f"{broker(number)} is not registered: {answer.header.remark}")
    return took_s


def _ask(bench: Bench, connection: Connection, kind: Kind, topics: int) -> None:
    flags = RouteFlag.LOGICAL_QUEUE if kind.is_logical else None
    first, again = list[float](), list[float]()
    for number in range(topics):
        header = GetRouteInfoRequest(topic(number), sys_flag=flags)
        request = frame(RequestCode.GET_ROUTEINFO_BY_TOPIC, header, number)
        for times in (first, again):
            began_s = time.perf_counter()
            answer = connection.ask(request)
            times.append((time.perf_counter() - began_s) * 1e3)
        command = decode_command(answer)
        if command.header.code != ResponseCode.SUCCESS:
            raise WrongResultError(f"no route of {topic(number)}: {command.header.remark}")
        fault = kind.fault(TopicRouteData.decode(command.body), topic(number))
        if fault is not None:
            raise WrongResultError(f"the route of {topic(number)}: {fault}")
    bench.note("a route, the first time", kind.who, sorted(first)[len(first) // 2])
    bench.note("a route, the next time", kind.who, sorted(again)[len(again) // 2])
    bench.note("bytes of a route", kind.who, len(answer) / 1e3)


# ---- what brokers tell ---------------------------------------------------------------------------


def broker(number: int) -> str:
    """A broker's name."""
    return f"broker-{number}"


def topic(number: int) -> str:
    """A topic's name."""
    return f"Topic{number}"


def places(index: int) -> Mapping[int, tuple[int, int]]:
    """Where the segments of a logical queue are: by broker the generation, and the queue id there."""
    return {(index + place) % BROKERS: (place, index) for place in range(SEGMENTS)}


def plain_table(number: int, topics: int) -> TopicConfigTable:
    """Topics with as many queues."""
    config = TopicConfig(
        order=False,
        perm=int(Permission.READ | Permission.WRITE),
        read_queue_nums=QUEUES,
        topic_filter_type="SINGLE_TAG",
        topic_sys_flag=0,
        write_queue_nums=QUEUES,
    )
    version = DataVersion(1, number, 1)
    configs = {topic(each): config for each in range(topics)}
    return TopicConfigTable(version, version, configs)


def logical_table(number: int, topics: int) -> TopicConfigTable:
    """What a broker tells of its segments; queues that it does not write are not written physically."""
    table = plain_table(number, topics)
    table.logical_queues_info_map = {topic(each): _segments(number, topic(each)) for each in range(topics)}
    statement = LogicalQueuesEnabled(1, None, QUEUES, QUEUES)
    table.logical_queues_enabled_map = {topic(each): statement for each in range(topics)}
    for config in (table.topic_config_table or {}).values():
        # Of what is written each queue has to be one of a logical queue.
        config.write_queue_nums = 0
    return table


def _segments(number: int, name: str) -> LogicalQueues:
    found = {}
    for index in range(QUEUES):
        held = places(index).get(number)
        if held is not None:
            segment = segment_at(number, *held)
            found[index] = LogicalQueueSegments([message_of(segment, name, index)])
    return LogicalQueues(found)


def segment_at(number: int, place: int, queue_id: int) -> Segment:
    """A segment of EACH messages, the last of which is written."""
    is_last = place == SEGMENTS - 1
    return Segment(
        PhysicalQueue(broker(number), queue_id),
        LogicalQueueState.NORMAL if is_last else LogicalQueueState.READ_ONLY,
        logical_start=place * EACH,
        physical_end=-1 if is_last else EACH,
        address=f"127.0.0.1:{number + 1}",
    )


def static_table(number: int, topics: int) -> TopicConfigTable:
    """What a broker tells of the queues that it leads."""
    table = plain_table(number, topics)
    led = {index: index for index in range(QUEUES) if places(index).get(number, (0, 0))[0] == SEGMENTS - 1}
    table.topic_queue_mapping_info_map = {
        name: TopicQueueMappingInfo(
            bname=broker(number),
            curr_id_map=led,
            dirty=False,
            epoch=1_000,
            scope="__global__",
            topic=name,
            total_queues=QUEUES,
        )
        for name in map(topic, range(topics))
    }
    return table


# ---- what a route has to be ----------------------------------------------------------------------


def fault_of_plain(route: TopicRouteData, _name: str) -> str | None:
    """What is wrong with it."""
    queues = sum(each.write_queue_nums or 0 for each in route.queue_datas or ())
    return None if queues == BROKERS * QUEUES else f"{queues} queues"


def fault_of_logical(route: TopicRouteData, name: str) -> str | None:
    """Likewise of one with logical queues."""
    told = route.logical_queues_info or {}
    for index in range(QUEUES):
        wanted = [
            message_of(segment_at(number, *held), name, index) for number, held in places(index).items()
        ]
        if index not in told or list(told[index].segments or ()) != wanted:
            return f"logical queue {index} is {told.get(index)}"
    return None if len(told) == QUEUES else f"{len(told)} logical queues"


def fault_of_static(route: TopicRouteData, _name: str) -> str | None:
    """Likewise of a static topic: each queue is led once."""
    by_broker = route.topic_queue_mapping_by_broker or {}
    led = sorted(index for each in by_broker.values() for index in each.curr_id_map or {})
    return None if led == list(range(QUEUES)) else f"it is led {led}"


PART = QueuePart(
    about=f"topics of {QUEUES} queues of {SEGMENTS} segments, told to a name server by {BROKERS} brokers",
    columns=(PLAIN, LOGICAL, STATIC),
    base=PLAIN,
    figures=FIGURES,
    measure=measure,
    subjects=(OURS,),
)
