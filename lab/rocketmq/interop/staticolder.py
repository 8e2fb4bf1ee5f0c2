"""A client of Java's before 5.0.0 on a static topic that moves: on brokers of ours, where it notices nothing,
and on Java's for the record."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

from lab.rocketmq import settings
from lab.rocketmq.apache import ClientAlone
from lab.rocketmq.interop import figures, mappings
from lab.rocketmq.interop.mappings import IDLE_MS, TOPIC, Line
from lab.rocketmq.interop.stage import Stage
from lab.rocketmq.interop.tools import ClientFailedError, Tools

RELEASE: Final = "4.9.8"
OURS: Final = ("ours-a", "ours-b")
JAVA: Final = ("java-a", "java-b")
# Of its own: messages at an offset of a topic are the same on whatever brokers.
TOPIC_ON_JAVA: Final = "StaticTopicOnJava"
QUEUES: Final = 4


def on_ours_and_java(stage: Stage) -> None:
    """On ours no send fails, and all is read once, also by a client of now. Raises LabError."""
    earlier = ClientAlone(RELEASE)
    earlier.fetch()
    older = Stage(stage.cluster, Tools(stage.cluster, earlier), stage.measured, stage.rounds)
    stage.start_coordinator(ours=True)
    for name in OURS:
        stage.start_broker(name, ours=True, brokerName=name)
    lines = _sent_over_a_move(stage, older, OURS, TOPIC)
    failed = sum(each["status"] != "SEND_OK" for each in lines)
    stage.measured.demand(not failed, f"sends of {RELEASE} on ours that failed", failed)
    _each_once(
        stage, lines, older.tools.client("pull", older.nameserver, TOPIC, "older", str(IDLE_MS)), RELEASE
    )
    now = stage.tools.client("pull", stage.nameserver, TOPIC, "newer", str(IDLE_MS))
    _each_once(stage, lines, now, stage.tools.apache.release)
    for name in OURS:
        stage.cluster.stop(name)
    _on_java(stage, older)


def _sent_over_a_move(stage: Stage, older: Stage, brokers: Sequence[str], topic: str) -> Sequence[Line]:
    """Messages of the older client while all queues move from one broker to the other."""
    source, target = brokers
    for name in brokers:
        mappings.wait_route(stage, name)
    mappings.java(stage, "updateStaticTopic", "-qn", str(QUEUES), "-b", source, topic=topic)
    mappings.leads(stage, {source: QUEUES}, topic)
    move = partial(mappings.java, stage, "remappingStaticTopic", "-b", target, topic=topic)
    lines = mappings.sent(older, (), move, count=2 * mappings.STEADY, topic=topic)
    mappings.leads(stage, {target: QUEUES}, topic)
    return lines


def _each_once(stage: Stage, lines: Sequence[Line], read: Sequence[Mapping[str, object]], who: str) -> None:
    wanted, times = figures.acknowledged(lines), Counter(str(each["key"]) for each in read)
    missing = len(wanted - times.keys())
    stage.measured.demand(
        not missing, f"of {len(wanted)} acknowledged messages a client of {who} misses", missing
    )
    twice = sum(count > 1 for count in times.values())
    stage.measured.demand(not twice, f"messages that a client of {who} read twice", twice)


def _on_java(stage: Stage, older: Stage) -> None:
    """The same on two Java masters, where what fails is told."""
    cluster = stage.cluster
    plain = {"brokerId": 0, "enableControllerMode": "false", "allAckInSyncStateSet": "false"}
    for name in JAVA:
        values = settings.broker(cluster, name, brokerName=name, **plain)
        cluster.start(stage.subject(ours=False), "broker", name, values)
    lines = _sent_over_a_move(stage, older, JAVA, TOPIC_ON_JAVA)
    failed = sum(each["status"] != "SEND_OK" for each in lines)
    stage.measured.note(f"Java's brokers: of {len(lines)} sends of {RELEASE}, failed", failed)
    try:
        words = (older.nameserver, TOPIC_ON_JAVA, "older-on-java", str(IDLE_MS))
        read = older.tools.client("pull", *words)
    except ClientFailedError as error:
        stage.measured.note(f"Java's brokers: a consumer of {RELEASE}", str(error).splitlines()[0])
        return
    missing = len(figures.acknowledged(lines) - figures.read(read))
    stage.measured.note(f"Java's brokers: acknowledged messages that a client of {RELEASE} misses", missing)
