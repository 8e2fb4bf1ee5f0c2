"""A static topic under whatever brokers: commands of mqadmin and of ours, messages meanwhile, read once."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Final

from lab.errors import LabError
from lab.ports import LOOPBACK
from lab.processes import environment
from lab.rocketmq import questions
from lab.rocketmq.interop import figures
from lab.rocketmq.interop.stage import Stage
from lab.rocketmq.interop.tools import CLI, Client
from lab.rocketmq.peer import Peer
from replispec.runtime.primitives.headers import Header
from replispec.runtime.rocketmq.framing import Command
from replispec.wire.rocketmq.broker import GetRouteInfoRequest, TopicRouteData
from replispec.wire.rocketmq.codes import RequestCode, ResponseCode

TOPIC: Final = "StaticTopic"
STEADY, PAUSE_MS, MESSAGE_BYTES, IDLE_MS = 400, 5, 100, 5_000
COMMAND_S_MAXIMUM: Final = 60
PUSHED_S_MAXIMUM: Final = 30.0
# What Java's client calls it that a broker refuses a message.
REFUSED: Final = "MQBrokerException"
# What mqadmin says when it waited for too long.
TIMEOUT: Final = "RemotingTimeoutException"
Line = Mapping[str, object]


def ours(stage: Stage, name: str, *words: str, code: int = 0, topic: str = TOPIC) -> str:
    """Run a command of ours. Raises LabError where it ends with another code."""
    command = [*CLI, "admin", name, "-t", topic, "-n", stage.nameserver, *words]
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


def java(stage: Stage, name: str, *words: str, topic: str = TOPIC) -> None:
    """Run mqadmin, which ends with code 0 whatever happens, once more where a busy machine let it wait too
    long. Raises LabError where it failed."""
    words = (name, "-t", topic, *words)
    complaint = stage.tools.complaint(*words, nameserver=stage.nameserver)
    if TIMEOUT in complaint:
        stage.measured.note(f"mqadmin {name} gave up waiting, and was started again", complaint)
        complaint = stage.tools.complaint(*words, nameserver=stage.nameserver)
    if complaint:
        raise LabError(f"mqadmin {name}: {complaint}")


def same_route(stage: Stage) -> None:
    """Demand that our topicRoute prints what mqadmin does, in whatever order of brokers."""
    theirs = stage.tools.mqadmin("topicRoute", "-t", TOPIC, nameserver=stage.nameserver)
    own = ours(stage, "topicRoute").splitlines()
    plain = [sorted(line.strip().rstrip(",") for line in each) for each in (own, theirs.splitlines())]
    what = "lines of topicRoute, which are mqadmin's"
    stage.measured.demand(plain[0] == plain[1] and "currIdMap" in str(own), what, len(own))


def route(stage: Stage, topic: str = TOPIC) -> TopicRouteData | None:
    """What the name server tells clients of a topic."""
    with Peer(LOOPBACK, stage.cluster.port(stage.named)) as peer:
        answer = peer.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, GetRouteInfoRequest(topic=topic))
    if answer.header.code != ResponseCode.SUCCESS:
        return None
    return TopicRouteData.decode(answer.body)


def leads(stage: Stage, wanted: Mapping[str, int], topic: str = TOPIC) -> None:
    """Wait until the name server knows that these brokers lead so many logical queues each."""

    def reached() -> bool | None:
        found = route(stage, topic)
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


def routed(port: int, broker: str) -> str | None:
    """Where the master of a broker set is by the account of a name server."""
    return questions.routed(port, broker).get(0)


def wait_route(stage: Stage, broker: str, address: str = "") -> None:
    """Wait until the name server knows a master of a broker set, at this address if one is given."""
    port = stage.cluster.port(stage.named)
    stage.cluster.until(
        lambda: ((found := routed(port, broker)) is not None and address in ("", found)) or None,
        f"a route to {broker}",
    )


def asked(stage: Stage, broker: str, code: RequestCode, header: Header, body: bytes = b"") -> Command:
    """Ask the master of a broker set that the name server knows. Raises OSError, RemoteProtocolError."""
    master = questions.routed(stage.cluster.port("nameserver"), broker)[0]
    host, _, port = master.rpartition(":")
    with Peer(host, int(port)) as peer:
        return peer.ask(code, header, body)


def sent(
    stage: Stage,
    before: Sequence[Line],
    strike: Callable[[], object] | None = None,
    count: int = STEADY,
    *,
    may_refuse: bool = True,
    topic: str = TOPIC,
) -> Sequence[Line]:
    """Send with Java's producer, which tries each message once, and do something meanwhile, for which brokers
    may refuse some. Raises LabError."""
    first = len(before)
    arguments = (
        stage.nameserver,
        topic,
        str(first),
        str(count),
        str(MESSAGE_BYTES),
        str(PAUSE_MS),
        "patient",
    )
    with stage.tools.client_running("produce", *arguments) as producer:
        if strike is not None:
            stage.cluster.until(lambda: len(producer.lines()) > STEADY // 8 or None, "a producer that sends")
            strike()
        lines = producer.finish()
    tell_failed(stage, first, lines)
    refused = sum(each["status"] == REFUSED for each in lines)
    if strike is None or not may_refuse:
        what = "while queues moved" if strike is not None else "where nothing moved"
        stage.measured.demand(not refused, f"sends from {first} on that brokers refused, {what}", refused)
    return lines


def tell_failed(stage: Stage, first: int, lines: Sequence[Line]) -> None:
    """Print how many sends failed, who refused them, and the longest time between two acknowledgements."""
    failed = [each for each in lines if each["status"] != "SEND_OK"]
    stage.measured.note(f"of {len(lines)} sends from {first} on, failed", len(failed))
    who = Counter(f"{each['status']} {_named(stage, str(each['broker']))}".strip() for each in failed)
    if failed:
        stage.measured.note(f"sends from {first} on, failed at", dict(who))
    stage.measured.note(f"sends from {first} on, longest pause, ms", figures.longest_gap_ms(lines))


def _named(stage: Stage, address: str) -> str:
    names = [name for name in stage.cluster.processes if stage.cluster.address(name) == address]
    return names[0] if names else address


def pushed(stage: Stage, lines: Iterable[Line], consumer: Client) -> None:
    """Demand that a push consumer that was there all the time was given all of them, and tell what twice."""
    wanted = figures.acknowledged(lines)
    read: list[Line] = []

    def has_all() -> bool | None:
        read[:] = [each for each in consumer.lines() if str(each["status"]).startswith("READ")]
        return wanted <= figures.read(read) or None

    with suppress(LabError):
        stage.cluster.until(has_all, "a push consumer that has all", patience_s=PUSHED_S_MAXIMUM)
    missing = wanted - figures.read(read)
    stage.measured.demand(not missing, "acknowledged messages that the push consumer misses", len(missing))
    twice = sum(count > 1 for count in Counter(str(each["key"]) for each in read).values())
    stage.measured.note("messages that the push consumer was given twice", twice)


def read_once(stage: Stage, lines: Iterable[Line], group: str = "static-readers") -> None:
    """Demand that whatever was acknowledged is read once, at the place that was said."""
    acknowledged = {str(each["key"]): place(each) for each in lines if each["status"] == "SEND_OK"}
    read = stage.tools.client("pull", stage.nameserver, TOPIC, group, str(IDLE_MS))
    times = Counter(str(each["key"]) for each in read)
    places = {str(each["key"]): place(each) for each in read}
    measured = stage.measured
    lost = acknowledged.keys() - places.keys()
    measured.demand(not lost, f"of {len(acknowledged)} acknowledged messages the consumer misses", len(lost))
    twice = sum(count > 1 for count in times.values())
    measured.demand(not twice, "messages read twice", twice)
    said = {key: place for key, place in acknowledged.items() if place[1] >= 0}
    moved = sum(places[key] != place for key, place in said.items())
    measured.demand(not moved, f"of {len(said)} with an offset, read at another", moved)
    measured.note("acknowledged without an offset, while it was not decided", len(acknowledged) - len(said))


def sent_by_ours(stage: Stage, before: Sequence[Line]) -> Sequence[Line]:
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
        ours(stage, "remappingStaticTopic", "-b", "broker-a,broker-b")
        code = producer.wait(COMMAND_S_MAXIMUM)
    told = [json.loads(line) for line in said.read_text().splitlines()]
    offsets: dict[object, list[int]] = {}
    for each in told:
        offsets.setdefault(each.get("queue"), []).append(int(each.get("offset", -1)))
    jumps = sum(two > one + 1 for each in offsets.values() for one, two in pairwise(each))
    stage.measured.demand(jumps > 0, "queues that moved below our producer", jumps)
    stage.measured.demand(not code, f"of {len(told)} sends of ours over a remapping failed", code)
    return [{**each, "key": f"k{len(before)}-{each['number']}"} for each in told]


def read_by_ours(stage: Stage, lines: Iterable[Line]) -> None:
    """Our consumer reads what Java's did, and a group of it goes on where it was."""
    acknowledged = {str(each["key"]): place(each) for each in lines if each["status"] == "SEND_OK"}
    read: list[Line] = []
    for more in (("--count", str(len(acknowledged) // 2)), ("--idle", "5")):
        said = clients(stage, "consume", "-t", TOPIC, "--group", "our-readers", "--format", "json", *more)
        read += [json.loads(line) for line in said.splitlines()]
    places = {str(each["key"]): place(each) for each in read}
    measured = stage.measured
    measured.demand(len(read) == len(places), "messages that our group read twice", len(read) - len(places))
    lost = sum(places.get(key) is None for key in acknowledged)
    measured.demand(not lost, f"of {len(acknowledged)} acknowledged messages our consumer misses", lost)
    moved = sum(place[1] >= 0 and places[key] != place for key, place in acknowledged.items())
    measured.demand(not moved, "messages that ours reads at another offset", moved)


def clients(stage: Stage, name: str, *words: str) -> str:
    """Run our producer or consumer. Raises LabError where it ends with another code than 0."""
    command = [*CLI, name, "-n", stage.nameserver, *words]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=COMMAND_S_MAXIMUM, env=environment()
    )
    if done.returncode:
        raise LabError(f"{name} {' '.join(words)}: code {done.returncode}: {done.stderr.strip()[-400:]}")
    return done.stdout


def place(line: Line) -> tuple[int, int]:
    """Queue and offset that a line tells."""
    return int(str(line["queue"])), int(str(line["offset"]))
