"""A static topic on three broker sets of ours, of two members each, under mqadmin and Java's clients: made,
grown, moved under load, and deleted; the master of a leader is killed once mqadmin has returned."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from itertools import product
from typing import Final

from lab.cluster import CLUSTER_NAME
from lab.rocketmq import questions, waiting
from lab.rocketmq.interop import mappings
from lab.rocketmq.interop.mappings import TOPIC, Line
from lab.rocketmq.interop.stage import Stage
from replispec.wire.rocketmq.client import GetTopicConfigRequest
from replispec.wire.rocketmq.codes import RequestCode
from replispec.wire.rocketmq.static_topic import TopicConfigAndQueueMapping, TopicQueueMappingDetail

SETS: Final = ("broker-a", "broker-b", "broker-c")
MEMBERS: Final = (1, 2)
# Of the producer below which a master dies: it must see both sides of it.
THROUGH: Final = 1_200


def on_sets_of_ours(stage: Stage) -> None:
    """Whatever was acknowledged is read once, at the offset it was given. Raises LabError."""
    _start(stage)
    lines: list[Line] = []
    mappings.java(stage, "updateStaticTopic", "-qn", "4", "-b", "broker-a,broker-b")
    mappings.leads(stage, {"broker-a": 2, "broker-b": 2})
    with stage.tools.client_running("push", stage.nameserver, TOPIC, "pushed") as pushed:
        lines += mappings.sent(stage, lines)
        mappings.java(stage, "updateStaticTopic", "-qn", "6", "-b", "broker-c")
        mappings.leads(stage, dict.fromkeys(SETS, 2))
        mappings.same_route(stage)
        lines += mappings.sent(stage, lines, partial(_moved, stage, "broker-b", "broker-c"), may_refuse=False)
        lines += mappings.sent(stage, lines, partial(_struck, stage), count=THROUGH, may_refuse=False)
        lines += mappings.sent(stage, lines, partial(_moved, stage, "broker-b", "broker-c"), may_refuse=False)
        mappings.pushed(stage, lines, pushed)
    mappings.read_once(stage, lines)
    mappings.read_by_ours(stage, lines)
    for name in SETS:
        members = [_member(name, number) for number in MEMBERS]
        stage.same_logs(members, waiting.wait_same_end(stage.cluster, *members))
    mappings.java(stage, "deleteTopic", "-c", CLUSTER_NAME)
    stage.cluster.until(lambda: mappings.route(stage) is None or None, "a topic that is gone")


def _member(broker_set: str, number: int) -> str:
    return f"{broker_set}-{number}"


def _start(stage: Stage) -> None:
    stage.start_coordinator(ours=True)
    for number, name in product(MEMBERS, SETS):
        stage.start_broker(_member(name, number), ours=True, brokerName=name)
        if number == MEMBERS[0]:
            stage.cluster.until(partial(_led, stage, name), f"a master of {name}")
    for name in SETS:
        mappings.wait_route(stage, name)
        _wait_in_sync(stage, name)


def _led(stage: Stage, broker_set: str, after_epoch: int = 0) -> questions.NamedMaster | None:
    found = questions.master(stage.cluster.port("controller"), broker_set)
    return found if found is not None and found.broker_id and found.epoch > after_epoch else None


def _wait_in_sync(stage: Stage, broker_set: str) -> None:
    port = stage.cluster.port("controller")
    whole = list(MEMBERS)
    stage.cluster.until(
        lambda: questions.in_sync(port, broker_set) == whole or None, f"SyncStateSet {whole} of {broker_set}"
    )


def _moved(stage: Stage, *to: str) -> None:
    mappings.java(stage, "remappingStaticTopic", "-b", ",".join(to))
    mappings.leads(stage, dict.fromkeys(to, 3))


def _struck(stage: Stage) -> None:
    """Queues move to broker-a, and its master is killed as soon as mqadmin has returned. Raises LabError."""
    to = ("broker-a", "broker-b")
    mappings.java(stage, "remappingStaticTopic", "-b", ",".join(to))
    before = stage.cluster.until(partial(_led, stage, to[0]), "a master")
    kept = _detail(stage, to[0])
    dead = stage.name_of(before.address)
    stage.cluster.kill(dead)
    after = stage.cluster.until(partial(_led, stage, to[0], before.epoch), "a new master")
    mappings.wait_route(stage, to[0], after.address)
    stands = _detail(stage, to[0])
    same = kept.epoch == stands.epoch and _items(kept) == _items(stands)
    stage.measured.demand(
        same and bool(_items(kept)),
        f"{to[0]} lost its master once mqadmin had returned: its mapping",
        "stands",
    )
    mappings.leads(stage, dict.fromkeys(to, 3))
    stage.start_broker(dead, ours=True, brokerName=to[0])
    _wait_in_sync(stage, to[0])


def _detail(stage: Stage, broker_set: str) -> TopicQueueMappingDetail:
    header = GetTopicConfigRequest(topic=TOPIC, lo=True)
    answer = mappings.asked(stage, broker_set, RequestCode.GET_TOPIC_CONFIG, header)
    return TopicConfigAndQueueMapping.decode(answer.body).mapping_detail or TopicQueueMappingDetail()


def _items(detail: TopicQueueMappingDetail) -> Mapping[int, object]:
    return dict(detail.hosted_queues or {})
