"""What clients may do with a topic, changed whatever its form is: of a plain one and one with logical queues
at each broker alone, of a static topic with its mapping, at all of them.

Source: apache/rocketmq rocketmq-all-5.4.0, UpdateTopicPermSubCommand, MQAdminUtils.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from replispec.administrator.rocketmq import static_topics
from replispec.administrator.rocketmq.brokers import clusters_of_all
from replispec.administrator.rocketmq.mappings import PERM, Topic
from replispec.administrator.rocketmq.plans import (
    Asking,
    NotAsWantedError,
    Plan,
    answered,
    body_of,
    granted,
)
from replispec.administrator.rocketmq.remapping import MappingRun, checked, is_unfinished
from replispec.runtime.rocketmq import rules
from replispec.wire.rocketmq.client import CreateTopicRequest, GetTopicConfigRequest
from replispec.wire.rocketmq.codes import RequestCode, ResponseCode
from replispec.wire.rocketmq.constants import RUN_UPDATED, SINGLE_TAG, TEMPLATE_TOPIC
from replispec.wire.rocketmq.static_topic import TopicConfigAndQueueMapping


@dataclass(frozen=True, slots=True)
class Permitted:
    """What clients might do at a broker, and what they may now."""

    address: str
    before: int
    now: int


def permitted(
    name_servers: Sequence[str],
    topic: str,
    perm: int,
    now_ms: int,
    *,
    cluster: str | None,
    broker: str | None,
) -> Plan[Sequence[Permitted]]:
    """A broker, or each master of a cluster that has a topic, lets clients do this with it; where. Raises
    NotAsWantedError."""
    masters = [] if broker is None else [broker]
    if cluster is not None:
        found = yield from clusters_of_all(name_servers)
        masters = sorted(found.masters(found.cluster(cluster).values()))
    known = yield from _configs(masters, topic)
    if not known:
        raise NotAsWantedError(
            f"no broker of {cluster} has {topic}" if cluster else f"{broker} has no {topic}"
        )
    if any(each.mapping_detail is not None for each in known.values()):
        if cluster is None:
            raise NotAsWantedError(f"{topic} is a static topic, which all brokers have alike: -c is needed")
        return (yield from _of_static(name_servers, topic, perm, now_ms))
    changed = {address: each for address, each in known.items() if _perm(each) != perm}
    asked = [_asking(address, topic, perm, each) for address, each in changed.items()]
    for reply in (yield asked) if asked else ():
        granted(reply)
    return [Permitted(address, _perm(each), perm) for address, each in known.items()]


def _configs(addresses: Sequence[str], topic: str) -> Plan[Mapping[str, TopicConfigAndQueueMapping]]:
    """The topic at each of these brokers that has it. Raises NotAsWantedError."""
    header = GetTopicConfigRequest(topic=topic, lo=True)
    asked = [Asking(each, RequestCode.GET_TOPIC_CONFIG, header) for each in addresses]
    found: dict[str, TopicConfigAndQueueMapping] = {}
    for reply in (yield asked) if asked else ():
        if answered(reply).header.code != ResponseCode.TOPIC_NOT_EXIST:
            found[reply.question.address] = body_of(reply, TopicConfigAndQueueMapping)
    return found


def _perm(said: TopicConfigAndQueueMapping) -> int:
    return PERM if said.perm is None else said.perm


def _asking(address: str, topic: str, perm: int, was: TopicConfigAndQueueMapping) -> Asking:
    """All but this stays as it is there."""
    header = CreateTopicRequest(
        topic=topic,
        default_topic=TEMPLATE_TOPIC,
        read_queue_nums=was.read_queue_nums,
        write_queue_nums=was.write_queue_nums,
        perm=perm,
        topic_filter_type=was.topic_filter_type or SINGLE_TAG,
        topic_sys_flag=was.topic_sys_flag or 0,
        order=was.order or False,
    )
    return Asking(address, RequestCode.UPDATE_AND_CREATE_TOPIC, header)


def _of_static(name_servers: Sequence[str], topic: str, perm: int, now_ms: int) -> Plan[Sequence[Permitted]]:
    """Every broker is told its mapping again, under a later epoch and with what clients may do."""
    known = yield from static_topics.known(name_servers, topic)
    parts = known.topic.parts
    if is_unfinished(known.topic, known.every(())):
        raise NotAsWantedError(f"an interrupted run of {topic} is finished first: updateStaticTopic does it")
    checked(known.topic)
    masters = {name: static_topics.master_of(known.brokers, name) for name in sorted(parts)}
    if any(each.perm != perm for each in parts.values()):
        epoch = rules.next_mapping_epoch(known.topic.epoch, now_ms)
        wanted = {name: replace(each, epoch=epoch, perm=perm) for name, each in parts.items()}
        run = MappingRun(RUN_UPDATED, Topic(topic, wanted), (), ())
        yield from static_topics.carried_out(run, known.brokers)
    return [Permitted(masters[name], parts[name].perm, perm) for name in masters]
