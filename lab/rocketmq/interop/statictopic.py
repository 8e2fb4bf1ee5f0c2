"""A static topic on three Java brokers, made, grown, moved and deleted by mqadmin and by our commands."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Final

from lab.cluster import CLUSTER_NAME
from lab.errors import LabError
from lab.ports import LOOPBACK
from lab.processes import environment
from lab.rocketmq import questions, settings
from lab.rocketmq.interop.stage import Stage
from lab.rocketmq.interop.tools import CLI
from lab.rocketmq.peer import Peer
from replispec.runtime.primitives.headers import Header
from replispec.runtime.rocketmq.framing import Command
from replispec.wire.rocketmq.broker import GetRouteInfoRequest, TopicRouteData
from replispec.wire.rocketmq.client import GetMaxOffsetRequest, GetMaxOffsetResponse
from replispec.wire.rocketmq.codes import RequestCode, ResponseCode
from replispec.wire.rocketmq.constants import LOGIC_OFFSET_BLOCK, TEMPLATE_TOPIC, UNDECIDED
from replispec.wire.rocketmq.static_topic import (
    TopicConfigAndQueueMapping,
    TopicRemappingDetailWrapper,
    UpdateStaticTopicRequest,
)

TOPIC: Final = "StaticTopic"
PLAIN: Final = "PlainTopic"
BROKERS: Final = {"broker-1": "broker-a", "broker-2": "broker-b", "broker-3": "broker-c"}
STEADY, PAUSE_MS, MESSAGE_BYTES, IDLE_MS = 400, 5, 100, 5_000
COMMAND_S_MAXIMUM: Final = 60
# What Java's client calls it that a broker refuses a message.
REFUSED: Final = "MQBrokerException"
Line = Mapping[str, object]


def on_java_brokers(stage: Stage) -> None:
    """No controller: three masters. Whatever was acknowledged is read once, at the offset it was given."""
    _start(stage)
    lines: list[Line] = []
    _ours(stage, "updateStaticTopic", "-qn", "4", "-b", "broker-a,broker-b")
    _leads(stage, {"broker-a": 2, "broker-b": 2})
    lines += _sent(stage, lines)
    _java(stage, "updateStaticTopic", "-qn", "6", "-b", "broker-c")
    _leads(stage, {"broker-a": 2, "broker-b": 2, "broker-c": 2})
    _same_route(stage)
    lines += _sent(stage, lines, partial(_ours, stage, "remappingStaticTopic", "-b", "broker-b,broker-c"))
    _leads(stage, {"broker-b": 3, "broker-c": 3})
    lines += _sent(stage, lines, partial(_java, stage, "remappingStaticTopic", "-b", "broker-a,broker-b"))
    _leads(stage, {"broker-a": 3, "broker-b": 3})
    lines += _finishes_every_run(stage, lines)
    lines += _sent_by_ours(stage, lines)
    _read_once(stage, lines)
    _read_by_ours(stage, lines)
    _plain(stage)
    _refused(stage)
    _ours(stage, "deleteTopic", "-c", CLUSTER_NAME, "--yes")
    stage.cluster.until(lambda: _route(stage) is None or None, "a topic that is gone")
    _ours(stage, "updateStaticTopic", "-qn", "2", "-c", CLUSTER_NAME)
    _java(stage, "deleteTopic", "-c", CLUSTER_NAME)


def _start(stage: Stage) -> None:
    cluster, java = stage.cluster, stage.subject(ours=False)
    cluster.start(java, "nameserver", "nameserver", settings.nameserver(cluster))
    for name, broker in BROKERS.items():
        more = {"brokerName": broker, "brokerId": 0, "enableControllerMode": "false"}
        values = settings.broker(cluster, name, **more, allAckInSyncStateSet="false")
        cluster.start(java, "broker", name, values)
    port = cluster.port("nameserver")
    for broker in BROKERS.values():
        cluster.until(partial(_routed, port, broker), f"a route to {broker}")


def _routed(port: int, broker: str) -> str | None:
    return questions.routed(port, broker).get(0)


# ---- commands ------------------------------------------------------------------------------------


def _ours(stage: Stage, name: str, *words: str, code: int = 0) -> str:
    """Run a command of ours. Raises LabError where it ends with another code."""
    command = [*CLI, "admin", name, "-t", TOPIC, "-n", stage.nameserver, *words]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        timeout=COMMAND_S_MAXIMUM,
        env={**environment(), "TMPDIR": str(stage.cluster.part("tmp"))},
    )
    if done.returncode != code:
        raise LabError(f"{name} {' '.join(words)}: code {done.returncode}: {done.stderr.strip()[-400:]}")
    return done.stderr if code else done.stdout


def _java(stage: Stage, name: str, *words: str) -> None:
    """Run mqadmin, which ends with code 0 whatever happens. Raises LabError where it failed."""
    complaint = stage.tools.complaint(name, "-t", TOPIC, *words, nameserver=stage.nameserver)
    if complaint:
        raise LabError(f"mqadmin {name}: {complaint}")


def _same_route(stage: Stage) -> None:
    """Demand that our topicRoute prints what mqadmin does, in whatever order of brokers."""
    java = stage.tools.mqadmin("topicRoute", "-t", TOPIC, nameserver=stage.nameserver).splitlines()
    ours = _ours(stage, "topicRoute").splitlines()
    plain = [sorted(line.strip().rstrip(",") for line in each) for each in (ours, java)]
    what = "lines of topicRoute, which are mqadmin's"
    stage.measured.demand(plain[0] == plain[1] and "currIdMap" in str(ours), what, len(ours))


def _route(stage: Stage, topic: str = TOPIC) -> TopicRouteData | None:
    with Peer(LOOPBACK, stage.cluster.port("nameserver")) as peer:
        answer = peer.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, GetRouteInfoRequest(topic=topic))
    if answer.header.code != ResponseCode.SUCCESS:
        return None
    return TopicRouteData.decode(answer.body)


def _leads(stage: Stage, wanted: Mapping[str, int]) -> None:
    """Wait until the name server knows that these brokers lead so many logical queues each."""

    def reached() -> bool | None:
        found = _route(stage)
        by_broker = {} if found is None else found.topic_queue_mapping_by_broker or {}
        epoch = max((each.epoch or 0 for each in by_broker.values()), default=0)
        leads = {
            name: len(each.curr_id_map or {})
            for name, each in by_broker.items()
            if each.epoch == epoch and each.curr_id_map
        }
        return leads == wanted or None

    stage.cluster.until(reached, f"logical queues led by {wanted}")
    stage.measured.note("logical queues by broker", wanted)


# ---- interruptions -------------------------------------------------------------------------------


def _finishes_every_run(stage: Stage, lines: Sequence[Line]) -> Sequence[Line]:
    """A run that ends after each of its mappings is refused by mqadmin, and finished by a command of ours."""
    more: list[Line] = []
    steps = 0
    while _is_cut(stage, steps, ("broker-b", "broker-c") if steps % 2 else ("broker-a", "broker-c")):
        refused = _complaint(stage)
        stage.measured.demand(
            "does not match" in refused or steps == 0, f"mqadmin refuses after {steps} mappings", refused
        )
        to = "broker-b,broker-c" if steps % 2 else "broker-a,broker-c"
        _ours(stage, "remappingStaticTopic", "-b", to)
        _leads(stage, dict.fromkeys(to.split(","), 3))
        more += _sent(stage, [*lines, *more])
        steps += 1
    stage.measured.demand(steps > 3, "runs that were cut off and finished", steps)
    return more


def _is_cut(stage: Stage, steps: int, to: Sequence[str]) -> bool:
    """Set the first mappings of a run that is planned, in the order of its steps; whether it has more."""
    said = _ours(stage, "remappingStaticTopic", "-b", ",".join(to), "--dry-run").splitlines()
    planned = TopicRemappingDetailWrapper.decode(Path(said[1].rpartition(" ")[2]).read_bytes())
    gains, loses = list(planned.broker_to_map_in or ()), list(planned.broker_to_map_out or ())
    others = sorted({*(planned.broker_config_map or {})} - {*gains, *loses})
    told = [*gains, *loses, *gains, *others]
    for number, broker in enumerate(told[:steps]):
        if number == len(gains) + len(loses):
            _decide(stage, planned)
        _set(stage, broker, (planned.broker_config_map or {})[broker])
    return steps < len(told)


def _set(stage: Stage, broker: str, config: TopicConfigAndQueueMapping) -> None:
    """Have a broker keep a mapping. Raises LabError."""
    header = UpdateStaticTopicRequest(
        topic=TOPIC,
        default_topic=TEMPLATE_TOPIC,
        read_queue_nums=config.read_queue_nums,
        write_queue_nums=config.write_queue_nums,
        perm=config.perm,
        topic_filter_type=config.topic_filter_type,
        order=False,
        force=False,
    )
    body = config.mapping_detail.encode() if config.mapping_detail is not None else b""
    answer = _asked(stage, broker, RequestCode.UPDATE_AND_CREATE_STATIC_TOPIC, header, body)
    if answer.header.code != ResponseCode.SUCCESS:
        raise LabError(f"{broker} refuses a mapping: {answer.header.remark}")


def _decide(stage: Stage, planned: TopicRemappingDetailWrapper) -> None:
    """Give queues that moved a start above the end of what they had."""
    for config in (planned.broker_config_map or {}).values():
        for hosted in ((config.mapping_detail and config.mapping_detail.hosted_queues) or {}).values():
            items = hosted.items or []
            for before, last in pairwise(items[-2:]):
                if last.logic_offset != UNDECIDED:
                    continue
                end = (before.logic_offset or 0) + _end(stage, before.bname or "", before.queue_id or 0)
                last.logic_offset = (end // LOGIC_OFFSET_BLOCK + 2) * LOGIC_OFFSET_BLOCK


def _end(stage: Stage, broker: str, queue: int) -> int:
    header = GetMaxOffsetRequest(topic=TOPIC, queue_id=queue, lo=False)
    answer = _asked(stage, broker, RequestCode.GET_MAX_OFFSET, header, b"")
    return GetMaxOffsetResponse.from_ext_fields(answer.header.ext_fields or {}).offset or 0


def _asked(stage: Stage, broker: str, code: RequestCode, header: Header, body: bytes) -> Command:
    name = next(each for each, known in BROKERS.items() if known == broker)
    with Peer(LOOPBACK, stage.cluster.port(name)) as peer:
        return peer.ask(code, header, body)


def _complaint(stage: Stage) -> str:
    """What mqadmin says that refuses to go on."""
    return stage.tools.complaint(
        "remappingStaticTopic", "-t", TOPIC, "-b", "broker-a,broker-b", nameserver=stage.nameserver
    )


# ---- messages ------------------------------------------------------------------------------------


def _sent(stage: Stage, before: Sequence[Line], strike: object = None) -> Sequence[Line]:
    """Send, and do something meanwhile."""
    first = len(before)
    arguments = (stage.nameserver, TOPIC, str(first), str(STEADY), str(MESSAGE_BYTES), str(PAUSE_MS))
    with stage.tools.client_running("produce", *arguments) as producer:
        if callable(strike):
            stage.cluster.until(lambda: len(producer.lines()) > STEADY // 8 or None, "a producer that sends")
            strike()
        lines = producer.finish()
    failed = sum(each["status"] != "SEND_OK" for each in lines)
    stage.measured.note(f"sends from {first} on that failed", failed)
    refused = sum(each["status"] == REFUSED for each in lines)
    if strike is None:
        stage.measured.demand(
            not refused, f"sends from {first} on that brokers refused, where nothing moved", refused
        )
    return lines


def _read_once(stage: Stage, lines: Iterable[Line]) -> None:
    """Demand that whatever was acknowledged is read once, at the place that was said."""
    acknowledged = {str(each["key"]): _place(each) for each in lines if each["status"] == "SEND_OK"}
    read = stage.tools.client("pull", stage.nameserver, TOPIC, "static-readers", str(IDLE_MS))
    times = Counter(str(each["key"]) for each in read)
    places = {str(each["key"]): _place(each) for each in read}
    measured = stage.measured
    lost = acknowledged.keys() - places.keys()
    measured.demand(not lost, f"of {len(acknowledged)} acknowledged messages the consumer misses", len(lost))
    twice = sum(count > 1 for count in times.values())
    measured.demand(not twice, "messages read twice", twice)
    said = {key: place for key, place in acknowledged.items() if place[1] >= 0}
    moved = sum(places[key] != place for key, place in said.items())
    measured.demand(not moved, f"of {len(said)} with an offset, read at another", moved)
    measured.note("acknowledged without an offset, while it was not decided", len(acknowledged) - len(said))


def _sent_by_ours(stage: Stage, before: Sequence[Line]) -> Sequence[Line]:
    """Our producer sends while queues move, and no send fails."""
    words = (
        "--count",
        str(STEADY),
        "--pause",
        str(PAUSE_MS),
        "--key",
        f"k{len(before)}-{{n}}",
        "--format",
        "json",
    )
    said = stage.cluster.part("log") / "produce.out"
    command = [*CLI, "produce", "-n", stage.nameserver, "-t", TOPIC, *words]
    with said.open("wb") as output, subprocess.Popen(command, stdout=output, env=environment()) as producer:
        stage.cluster.until(lambda: said.stat().st_size or None, "a producer of ours that sends")
        _ours(stage, "remappingStaticTopic", "-b", "broker-a,broker-b")
        code = producer.wait(COMMAND_S_MAXIMUM)
    told = [json.loads(line) for line in said.read_text().splitlines()]
    offsets: dict[object, list[int]] = {}
    for each in told:
        offsets.setdefault(each.get("queue"), []).append(int(each.get("offset", -1)))
    jumps = sum(two > one + 1 for each in offsets.values() for one, two in pairwise(each))
    stage.measured.demand(jumps > 0, "queues that moved below our producer", jumps)
    stage.measured.demand(not code, f"of {len(told)} sends of ours over a remapping failed", code)
    return [{**each, "key": f"k{len(before)}-{each['number']}"} for each in told]


def _read_by_ours(stage: Stage, lines: Iterable[Line]) -> None:
    """Our consumer reads what Java's did, and a group of it goes on where it was."""
    acknowledged = {str(each["key"]): _place(each) for each in lines if each["status"] == "SEND_OK"}
    read: list[Line] = []
    for more in (("--count", str(len(acknowledged) // 2)), ("--idle", "5")):
        said = _clients(stage, "consume", "-t", TOPIC, "--group", "our-readers", "--format", "json", *more)
        read += [json.loads(line) for line in said.splitlines()]
    places = {str(each["key"]): _place(each) for each in read}
    measured = stage.measured
    measured.demand(len(read) == len(places), "messages that our group read twice", len(read) - len(places))
    lost = sum(places.get(key) is None for key in acknowledged)
    measured.demand(not lost, f"of {len(acknowledged)} acknowledged messages our consumer misses", lost)
    moved = sum(place[1] >= 0 and places[key] != place for key, place in acknowledged.items())
    measured.demand(not moved, "messages that ours reads at another offset", moved)


def _plain(stage: Stage) -> None:
    """A plain topic on the same brokers, made by our producer, read by both consumers."""
    _clients(stage, "produce", "-t", PLAIN, "--count", str(STEADY), "--key", "p{n}", "--at-once", "16")
    keys = {f"p{number}" for number in range(STEADY)}
    stage.cluster.until(lambda: _route(stage, PLAIN), "a route to the plain topic")
    ours = _clients(stage, "consume", "-t", PLAIN, "--count", str(STEADY), "--idle", "10", "--format", "json")
    found = {str(json.loads(line)["key"]) for line in ours.splitlines()}
    stage.measured.demand(found == keys, "messages of a plain topic that ours reads", len(found))
    java = stage.tools.client("pull", stage.nameserver, PLAIN, "plain-readers", str(IDLE_MS))
    found = {str(each["key"]) for each in java}
    stage.measured.demand(found == keys, "messages of ours that Java's consumer reads", len(found))


def _clients(stage: Stage, name: str, *words: str) -> str:
    """Run our producer or consumer. Raises LabError where it ends with another code than 0."""
    command = [*CLI, name, "-n", stage.nameserver, *words]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=COMMAND_S_MAXIMUM, env=environment()
    )
    if done.returncode:
        raise LabError(f"{name} {' '.join(words)}: code {done.returncode}: {done.stderr.strip()[-400:]}")
    return done.stdout


def _place(line: Line) -> tuple[int, int]:
    return int(str(line["queue"])), int(str(line["offset"]))


def _refused(stage: Stage) -> None:
    """What cannot be is refused in one line, with exit code 1."""
    said = _ours(stage, "updateStaticTopic", "-qn", "3", "-c", CLUSTER_NAME, code=1)
    stage.measured.demand(len(said.splitlines()) == 1, "fewer logical queues are refused in a line", said)
