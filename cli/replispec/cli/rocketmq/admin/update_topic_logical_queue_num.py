"""`replispec admin updateTopicLogicalQueueNum`: more or fewer logical queues."""

from __future__ import annotations

from collections.abc import Sequence

import click

from replispec.administrator.rocketmq import logical_queues
from replispec.administrator.rocketmq.logical_topics import untold
from replispec.administrator.rocketmq.plans import Plan
from replispec.cli.peers_text import say
from replispec.cli.rocketmq.admin.asking import name_servers_option
from replispec.cli.rocketmq.admin.logical_queues import CODES, asked_for, say_late, topic_option
from replispec.runtime.net.clock import wall_ms

EXAMPLES = (
    """\b
Examples:
  replispec admin updateTopicLogicalQueueNum -n 127.0.0.1:9876 -t TopicL -c DefaultCluster -num 6

\b
Fewer: the queues with the greatest indexes take no more messages, and are read until their
messages are deleted. More: first those are written again, behind their old ends, then new ones
are made, of message queues that belong to none, of expired ones, or at the brokers that write
the fewest.

"""
    + CODES
)


@click.command("updateTopicLogicalQueueNum", epilog=EXAMPLES, short_help="More or fewer logical queues.")
@topic_option
@click.option("-c", "--clusterName", "cluster", metavar="NAME", required=True, help="The cluster.")
@click.option(
    "-num",
    "--num",
    "number",
    metavar="NUMBER",
    type=click.IntRange(1),
    required=True,
    help="Logical queues that are to be written.",
)
@name_servers_option
def command(topic: str, cluster: str, number: int, name_servers: Sequence[str]) -> int:
    """Have so many logical queues of a topic be written."""
    topic = topic.strip()

    def plan() -> Plan[str | None]:
        yield from logical_queues.numbered(name_servers, topic, cluster.strip(), number, wall_ms())
        return (yield from untold(name_servers, topic))

    def done(late: str | None) -> None:
        say(f"{number} logical queues of {topic} are written.")
        say_late(late)

    return asked_for(plan, done)
