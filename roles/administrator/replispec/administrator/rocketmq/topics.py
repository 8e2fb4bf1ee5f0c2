"""Topics made, changed and forgotten.

Source: apache/rocketmq rocketmq-all-5.4.0, UpdateTopicSubCommand, DeleteTopicSubCommand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from replispec.administrator.rocketmq.brokers import clusters_of_all
from replispec.administrator.rocketmq.plans import Asking, NotAsWantedError, Plan, granted
from replispec.wire.rocketmq.client import CreateTopicRequest
from replispec.wire.rocketmq.codes import RequestCode
from replispec.wire.rocketmq.constants import SINGLE_TAG, TEMPLATE_TOPIC
from replispec.wire.rocketmq.static_topic import DeleteTopicRequest, DeleteTopicRouteRequest


@dataclass(frozen=True, slots=True)
class TopicWanted:
    """A topic as each of some brokers is to have it."""

    name: str
    reads: int
    writes: int
    perm: int
    is_ordered: bool = False


def updated(
    name_servers: Sequence[str], wanted: TopicWanted, *, cluster: str | None, broker: str | None
) -> Plan[Sequence[str]]:
    """A topic is made or changed at a broker, or at each master of a cluster; where. Raises
    NotAsWantedError."""
    masters = [] if broker is None else [broker]
    if cluster is not None:
        found = yield from clusters_of_all(name_servers)
        masters = sorted(found.masters(found.cluster(cluster).values()))
    if not masters:
        raise NotAsWantedError(f"no broker set of {cluster} has a master")
    yield from updated_at(masters, wanted)
    return masters


def updated_at(addresses: Sequence[str], wanted: TopicWanted) -> Plan[None]:
    """A topic is made or changed at these brokers. Raises NotAsWantedError."""
    header = CreateTopicRequest(
        topic=wanted.name,
        default_topic=TEMPLATE_TOPIC,
        read_queue_nums=wanted.reads,
        write_queue_nums=wanted.writes,
        perm=wanted.perm,
        topic_filter_type=SINGLE_TAG,
        topic_sys_flag=0,
        order=wanted.is_ordered,
    )
    for reply in (yield [Asking(each, RequestCode.UPDATE_AND_CREATE_TOPIC, header) for each in addresses]):
        granted(reply)


def deleted(name_servers: Sequence[str], cluster: str, topic: str) -> Plan[None]:
    """A topic is deleted at each master of a cluster, then at each name server. Raises NotAsWantedError."""
    found = yield from clusters_of_all(name_servers)
    masters = found.masters(found.cluster(cluster).values())
    if not masters:
        raise NotAsWantedError(f"no broker set of {cluster} has a master")
    at_broker = DeleteTopicRequest(topic=topic)
    replies = yield [Asking(each, RequestCode.DELETE_TOPIC_IN_BROKER, at_broker) for each in masters]
    for reply in replies:
        granted(reply)
    header = DeleteTopicRouteRequest(topic=topic, cluster_name=cluster)
    replies = yield [Asking(each, RequestCode.DELETE_TOPIC_IN_NAMESRV, header) for each in name_servers]
    for reply in replies:
        granted(reply)
