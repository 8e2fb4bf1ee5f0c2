"""One static topic on two masters of Java's and two of ours: its queues go from Java's to ours, back,
and to ours again under load. mqadmin dies before each of its mappings, and a command of ours finishes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from lab.rocketmq import settings
from lab.rocketmq.interop import mappings
from lab.rocketmq.interop.mappings import TOPIC, Line
from lab.rocketmq.interop.stage import Stage
from replispec.wire.rocketmq.codes import RequestCode

JAVA: Final = ("java-a", "java-b")
OURS: Final = ("ours-a", "ours-b")
QUEUES: Final = 4
# Of a run that moves all queues: those who gain are told, those who lose, and those who gain again.
MAPPINGS: Final = 2 * len(OURS) + len(JAVA)
SOME: Final = 200
# What a broker of ours says to a mapping whose items are not those that it knows and more.
STALE: Final = "an item does not change what it said"


def on_both(stage: Stage) -> None:
    """Whatever was acknowledged is read once, over borders of both kinds. Raises LabError."""
    _start(stage)
    lines: list[Line] = []
    mappings.java(stage, "updateStaticTopic", "-qn", str(QUEUES), "-b", ",".join(JAVA))
    _led_by(stage, JAVA)
    lines += mappings.sent(stage, lines, count=SOME)
    for to in (OURS, JAVA, OURS):
        lines += mappings.sent(stage, lines, partial(_moved, stage, to))
        if to == JAVA:
            # Who leads asks for what is older: here Java's ask ours, in the end ours ask Java's.
            mappings.read_once(stage, lines, "readers-of-java")
    lines += _finished(stage, lines)
    mappings.read_once(stage, lines)
    mappings.read_by_ours(stage, lines)


def _start(stage: Stage) -> None:
    cluster = stage.cluster
    stage.start_coordinator(ours=True)
    plain = {"brokerId": 0, "enableControllerMode": "false", "allAckInSyncStateSet": "false"}
    for name in JAVA:
        values = settings.broker(cluster, name, brokerName=name, **plain)
        cluster.start(stage.subject(ours=False), "broker", name, values)
    for name in OURS:
        stage.start_broker(name, ours=True, brokerName=name)
    for name in (*JAVA, *OURS):
        mappings.wait_route(stage, name)


def _led_by(stage: Stage, brokers: Sequence[str]) -> None:
    mappings.leads(stage, dict.fromkeys(brokers, QUEUES // len(brokers)))


def _moved(stage: Stage, to: Sequence[str]) -> None:
    words = ("remappingStaticTopic", "-t", TOPIC, "-b", ",".join(to))
    said = stage.tools.complaint(*words, nameserver=stage.nameserver)
    _is_stale(stage, said)
    if said:
        mappings.ours(stage, "remappingStaticTopic", "-b", ",".join(to))
    _led_by(stage, to)


def _is_stale(stage: Stage, complaint: str) -> None:
    """mqadmin takes what a broker once left undecided for the end of its queue, and leaves out all that
    followed: ours refuses such a mapping, Java's takes it. That it waited too
    long is taken, too. Raises LabError for any other complaint."""
    expected = not complaint or STALE in complaint or mappings.TIMEOUT in complaint
    what = "mqadmin ends its run, or ours refuses a queue that lost items"
    stage.measured.demand(expected, what, complaint or "ends")


def _finished(stage: Stage, before: Sequence[Line]) -> Sequence[Line]:
    """mqadmin dies before each of its mappings in turn; ours finishes each run. What is sent meanwhile."""
    more: list[Line] = []
    for number in range(MAPPINGS):
        to = OURS if number % 2 else JAVA
        more += mappings.sent(stage, [*before, *more], partial(_cut_and_finished, stage, number, to))
    return more


def _cut_and_finished(stage: Stage, number: int, to: Sequence[str]) -> None:
    words = ("remappingStaticTopic", "-t", TOPIC, "-b", ",".join(to))
    code = RequestCode.UPDATE_AND_CREATE_STATIC_TOPIC
    died, complaint = stage.tools.cut(number, code, *words, nameserver=stage.nameserver)
    _is_stale(stage, complaint)
    what = f"mqadmin dies before mapping {number} of {MAPPINGS}, or is refused"
    stage.measured.demand(died or bool(complaint), what, "dies" if died else "is refused")
    mappings.ours(stage, "remappingStaticTopic", "-b", ",".join(to))
    _led_by(stage, to)
