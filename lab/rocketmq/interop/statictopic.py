"""A static topic on three Java brokers, made, grown, moved and deleted by mqadmin and by our commands."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Final

from lab.cluster import CLUSTER_NAME
from lab.errors import LabError
from lab.rocketmq import settings
from lab.rocketmq.interop import mappings
from lab.rocketmq.interop.mappings import IDLE_MS, STEADY, TOPIC, Line
from lab.rocketmq.interop.stage import Stage
from replispec.wire.rocketmq.client import GetMaxOffsetRequest, GetMaxOffsetResponse
from replispec.wire.rocketmq.codes import RequestCode, ResponseCode
from replispec.wire.rocketmq.constants import LOGIC_OFFSET_BLOCK, TEMPLATE_TOPIC, UNDECIDED
from replispec.wire.rocketmq.static_topic import (
    TopicConfigAndQueueMapping,
    TopicRemappingDetailWrapper,
    UpdateStaticTopicRequest,
)

PLAIN: Final = "PlainTopic"
BROKERS: Final = {"broker-1": "broker-a", "broker-2": "broker-b", "broker-3": "broker-c"}


def on_java_brokers(stage: Stage) -> None:
    """No controller: three masters. Whatever was acknowledged is read once, at the offset it was given."""
    _start(stage)
    lines: list[Line] = []
    mappings.ours(stage, "updateStaticTopic", "-qn", "4", "-b", "broker-a,broker-b")
    mappings.leads(stage, {"broker-a": 2, "broker-b": 2})
    lines += mappings.sent(stage, lines)
    mappings.java(stage, "updateStaticTopic", "-qn", "6", "-b", "broker-c")
    mappings.leads(stage, {"broker-a": 2, "broker-b": 2, "broker-c": 2})
    mappings.same_route(stage)
    lines += mappings.sent(
        stage, lines, partial(mappings.ours, stage, "remappingStaticTopic", "-b", "broker-b,broker-c")
    )
    mappings.leads(stage, {"broker-b": 3, "broker-c": 3})
    lines += mappings.sent(
        stage, lines, partial(mappings.java, stage, "remappingStaticTopic", "-b", "broker-a,broker-b")
    )
    mappings.leads(stage, {"broker-a": 3, "broker-b": 3})
    lines += _finishes_every_run(stage, lines)
    lines += mappings.sent_by_ours(stage, lines)
    mappings.read_once(stage, lines)
    mappings.read_by_ours(stage, lines)
    _plain(stage)
    _refused(stage)
    mappings.ours(stage, "deleteTopic", "-c", CLUSTER_NAME, "--yes")
    stage.cluster.until(lambda: mappings.route(stage) is None or None, "a topic that is gone")
    mappings.ours(stage, "updateStaticTopic", "-qn", "2", "-c", CLUSTER_NAME)
    mappings.java(stage, "deleteTopic", "-c", CLUSTER_NAME)


def _start(stage: Stage) -> None:
    cluster, java = stage.cluster, stage.subject(ours=False)
    cluster.start(java, "nameserver", "nameserver", settings.nameserver(cluster))
    for name, broker in BROKERS.items():
        more = {"brokerName": broker, "brokerId": 0, "enableControllerMode": "false"}
        values = settings.broker(cluster, name, **more, allAckInSyncStateSet="false")
        cluster.start(java, "broker", name, values)
    for broker in BROKERS.values():
        mappings.wait_route(stage, broker)


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
        mappings.ours(stage, "remappingStaticTopic", "-b", to)
        mappings.leads(stage, dict.fromkeys(to.split(","), 3))
        more += mappings.sent(stage, [*lines, *more])
        steps += 1
    stage.measured.demand(steps > 3, "runs that were cut off and finished", steps)
    return more


def _is_cut(stage: Stage, steps: int, to: Sequence[str]) -> bool:
    """Set the first mappings of a run that is planned, in the order of its steps; whether it has more."""
    said = mappings.ours(stage, "remappingStaticTopic", "-b", ",".join(to), "--dry-run").splitlines()
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
    answer = mappings.asked(stage, broker, RequestCode.UPDATE_AND_CREATE_STATIC_TOPIC, header, body)
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
    answer = mappings.asked(stage, broker, RequestCode.GET_MAX_OFFSET, header, b"")
    return GetMaxOffsetResponse.from_ext_fields(answer.header.ext_fields or {}).offset or 0


def _complaint(stage: Stage) -> str:
    """What mqadmin says that refuses to go on."""
    return stage.tools.complaint(
        "remappingStaticTopic", "-t", TOPIC, "-b", "broker-a,broker-b", nameserver=stage.nameserver
    )


# ---- messages ------------------------------------------------------------------------------------


def _plain(stage: Stage) -> None:
    """A plain topic on the same brokers, made by our producer, read by both consumers."""
    mappings.clients(
        stage, "produce", "-t", PLAIN, "--count", str(STEADY), "--key", "p{n}", "--at-once", "16"
    )
    keys = {f"p{number}" for number in range(STEADY)}
    stage.cluster.until(lambda: mappings.route(stage, PLAIN), "a route to the plain topic")
    ours = mappings.clients(
        stage, "consume", "-t", PLAIN, "--count", str(STEADY), "--idle", "10", "--format", "json"
    )
    found = {str(json.loads(line)["key"]) for line in ours.splitlines()}
    stage.measured.demand(found == keys, "messages of a plain topic that ours reads", len(found))
    java = stage.tools.client("pull", stage.nameserver, PLAIN, "plain-readers", str(IDLE_MS))
    found = {str(each["key"]) for each in java}
    stage.measured.demand(found == keys, "messages of ours that Java's consumer reads", len(found))


def _refused(stage: Stage) -> None:
    """What cannot be is refused in one line, with exit code 1."""
    said = mappings.ours(stage, "updateStaticTopic", "-qn", "3", "-c", CLUSTER_NAME, code=1)
    stage.measured.demand(len(said.splitlines()) == 1, "fewer logical queues are refused in a line", said)
