"""`replispec admin topicStatus`: where the queues of a topic begin and end."""

from __future__ import annotations

from collections.abc import Sequence

import click

from replispec.administrator.rocketmq.consumers import topic_stats
from replispec.cli.rocketmq.admin import consumer_text
from replispec.cli.rocketmq.admin.asking import ask, name_servers_option
from replispec.cli.shown import show, with_formats


@click.command(
    "topicStatus",
    epilog="\b\nExamples:\n  replispec admin topicStatus -n 127.0.0.1:9876 -t TopicA",
    short_help="Where the queues of a topic begin and end.",
)
@click.option("-t", "--topic", metavar="NAME", required=True, help="The topic.")
@name_servers_option
@with_formats
def command(topic: str, name_servers: Sequence[str], form: str, interval: float | None) -> int:
    """Show the first and the next position of each queue of a topic, and when a message came last.

    A broker of ours does not tell when, nor how many come in a second.
    """
    plan = topic_stats
    return show(lambda: consumer_text.topic_stats(ask(plan(name_servers, topic.strip()))), form, interval)
