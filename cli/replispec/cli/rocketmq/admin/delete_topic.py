"""`replispec admin deleteTopic`: a topic, with its mapping, forgotten by brokers and name servers."""

from __future__ import annotations

from collections.abc import Sequence

import click

from replispec.administrator.rocketmq.topics import deleted
from replispec.cli.peers_text import say
from replispec.cli.rocketmq.admin.asking import (
    ask,
    confirmed,
    dry_run_option,
    name_servers_option,
    yes_option,
)
from replispec.cli.rocketmq.admin.static_topics import EXIT_REFUSED, refusals


@click.command(
    "deleteTopic",
    epilog="\b\nExamples:\n  replispec admin deleteTopic -n 127.0.0.1:9876 -c DefaultCluster -t TopicA",
    short_help="Have a cluster forget a topic.",
)
@click.option("-t", "--topic", metavar="NAME", required=True, help="The topic.")
@click.option("-c", "--clusterName", "cluster", metavar="NAME", required=True, help="The cluster.")
@name_servers_option
@yes_option
@dry_run_option
def command(topic: str, cluster: str, name_servers: Sequence[str], *, yes: bool, dry_run: bool) -> int:
    """Have the brokers of a cluster forget a topic and its mapping, then the name servers. Its messages are
    out of reach from then on."""
    topic, cluster = topic.strip(), cluster.strip()
    what = f"the topic {topic} will be deleted in cluster {cluster}"
    if dry_run:
        say(what)
        return 0
    confirmed(what, topic, yes=yes)
    with refusals() as refused:
        ask(deleted(name_servers, cluster, topic))
    if refused:
        return EXIT_REFUSED
    say(f"delete topic [{topic}] from cluster [{cluster}] success.")
    say(f"delete topic [{topic}] from NameServer success.")
    return 0
