"""`replispec admin queryTopicLogicalQueueMapping`: where the logical queues of a topic are."""

from __future__ import annotations

from collections.abc import Sequence

import click

from replispec.administrator.rocketmq.logical_topics import known
from replispec.cli.rocketmq.admin import logical_text
from replispec.cli.rocketmq.admin.asking import ask, broker_option, cluster_option, name_servers_option
from replispec.cli.rocketmq.admin.logical_queues import topic_option
from replispec.cli.rocketmq.admin.static_topics import EXIT_REFUSED, refusals
from replispec.cli.shown import Display, show, with_formats

EXAMPLES = """\b
Examples:
  replispec admin queryTopicLogicalQueueMapping -n 127.0.0.1:9876 -t TopicL -m
  replispec admin queryTopicLogicalQueueMapping -n 127.0.0.1:9876 -t TopicL -b 127.0.0.1:10911

\b
With -m, a table of all brokers as RIP-21 has it:
  brokerName MessageQueue LogicalQueue QueueStatus
  broker1    0            0(0-100)     ReadOnly
  broker1    1            1            Normal
  broker2    2            0(101-)      Normal
Normal: read and written. ReadOnly: read up to its end. Expired: its messages are deleted.
WriteOnly: it takes messages, and a migration is about to say where it begins.
Offsets count from 0 on and include their ends; what a queue had from 0 on is not repeated.
"""


@click.command("queryTopicLogicalQueueMapping", epilog=EXAMPLES, short_help="Where logical queues are.")
@topic_option
@cluster_option
@broker_option
@click.option("-m", "--merge", "merged", is_flag=True, help="One table of all brokers.")
@name_servers_option
@with_formats
def command(
    topic: str,
    cluster: str | None,
    broker: str | None,
    name_servers: Sequence[str],
    form: str,
    interval: float | None,
    *,
    merged: bool,
) -> int:
    """Show which segments of logical queues brokers hold, as they say it themselves: those of a cluster, one
    broker, or all that the name server knows."""
    topic = topic.strip()

    def look() -> Display:
        found = ask(known(name_servers, topic))
        if merged:
            return logical_text.table(found)
        if broker is not None:
            return logical_text.mapping(topic, [found.at(broker)])
        parts = found.holders if cluster is None else found.of_cluster(cluster)
        return logical_text.mapping(topic, parts)

    code = 0
    with refusals() as refused:
        code = show(look, form, interval)
    return EXIT_REFUSED if refused else code
