"""Topics forgotten.

Source: apache/rocketmq rocketmq-all-5.4.0, DeleteTopicSubCommand.
"""

from __future__ import annotations

from collections.abc import Sequence

from replispec.administrator.rocketmq.brokers import clusters
from replispec.administrator.rocketmq.plans import Asking, NotAsWantedError, Plan, granted
from replispec.wire.rocketmq.codes import RequestCode
from replispec.wire.rocketmq.static_topic import DeleteTopicRequest, DeleteTopicRouteRequest


def deleted(name_servers: Sequence[str], cluster: str, topic: str) -> Plan[None]:
    """A topic is deleted at each master of a cluster, then at each name server. Raises NotAsWantedError."""
    found = yield from clusters(name_servers)
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
