"""`replispec admin updateTopicPerm`: what clients may do with a topic, whatever its form is."""

from __future__ import annotations

from collections.abc import Sequence

import click

from replispec.administrator.rocketmq.permissions import Permitted, permitted
from replispec.administrator.rocketmq.plans import Plan
from replispec.cli.peers_text import say
from replispec.cli.rocketmq.admin.asking import broker_option, cluster_option, name_servers_option
from replispec.cli.rocketmq.admin.logical_queues import CODES, asked_for, one_of, topic_option
from replispec.runtime.net.clock import wall_ms

EXAMPLES = (
    """\b
Examples:
  replispec admin updateTopicPerm -n 127.0.0.1:9876 -c DefaultCluster -t TopicA -p 4
  replispec admin updateTopicPerm -n 127.0.0.1:9876 -b 127.0.0.1:10911 -t TopicA -p 6

"""
    + CODES
)


@click.command("updateTopicPerm", epilog=EXAMPLES, short_help="Open or close a topic to clients.")
@topic_option
@cluster_option
@broker_option
@click.option(
    "-p",
    "--perm",
    metavar="NUMBER",
    type=click.IntRange(0, 7),
    required=True,
    help="What clients may do: 2 write, 4 read, 6 both, 0 neither.",
)
@name_servers_option
def command(
    topic: str, cluster: str | None, broker: str | None, perm: int, name_servers: Sequence[str]
) -> int:
    """Say what clients may do with a topic at a broker, or at each broker of a cluster that has it.

    Plain topics and those with logical queues are changed broker by broker, and keep all their queues. Of a
    static topic all brokers are told, with its mapping: -c is needed.
    """
    one_of(broker, cluster)
    name = topic.strip()

    def plan() -> Plan[Sequence[Permitted]]:
        return permitted(name_servers, name, perm, wall_ms(), cluster=cluster, broker=broker)

    def done(found: Sequence[Permitted]) -> None:
        for each in found:
            if each.before == each.now:
                say(f"{each.address}: new perm equals to the old one!")
            else:
                say(f"update topic perm from {each.before} to {each.now} in {each.address} success.")

    return asked_for(plan, done)
