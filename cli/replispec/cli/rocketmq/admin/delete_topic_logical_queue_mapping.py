"""`replispec admin deleteTopicLogicalQueueMapping`: brokers that forget that a topic is mapped."""

from __future__ import annotations

from collections.abc import Sequence

import click

from replispec.administrator.rocketmq import logical_queues
from replispec.cli.peers_text import say
from replispec.cli.rocketmq.admin.asking import broker_option, cluster_option, name_servers_option
from replispec.cli.rocketmq.admin.logical_queues import CODES, asked_for, one_of, topic_option

EXAMPLES = (
    """\b
Examples:
  replispec admin deleteTopicLogicalQueueMapping -n 127.0.0.1:9876 -t TopicL -b 127.0.0.1:10911

\b
A broker refuses while it holds a logical queue, or part of one: queues are taken back one by
one (updateTopicLogicalQueueMapping -i -1), or moved away (drainBroker).

"""
    + CODES
)


@click.command(
    "deleteTopicLogicalQueueMapping",
    epilog=EXAMPLES,
    short_help="Have brokers forget a mapping of which nothing is left.",
)
@topic_option
@cluster_option
@broker_option
@name_servers_option
def command(topic: str, cluster: str | None, broker: str | None, name_servers: Sequence[str]) -> int:
    """Have a broker, or each one of a cluster, forget that a topic is mapped, where nothing of it is left."""
    where, topic = one_of(broker, cluster), topic.strip()
    return asked_for(
        lambda: logical_queues.unmapped(name_servers, topic, where, is_cluster=broker is None),
        lambda _none: say(f"the mapping of {topic} is deleted at {where}."),
    )
