"""`replispec admin topicRoute`: who holds a topic."""

from __future__ import annotations

from collections.abc import Sequence

import click

from replispec.administrator.rocketmq.brokers import route
from replispec.cli.rocketmq.admin import broker_text, route_text
from replispec.cli.rocketmq.admin.asking import ask, name_servers_option
from replispec.cli.shown import show, with_formats


@click.command(
    "topicRoute",
    epilog="\b\nExamples:\n  replispec admin topicRoute -n 127.0.0.1:9876 -t TopicA -l",
    short_help="Who holds a topic.",
)
@click.option("-t", "--topic", metavar="NAME", required=True, help="The topic.")
@click.option("-l", "--list", "as_list", is_flag=True, help="A line for each broker set.")
@name_servers_option
@with_formats
def command(
    topic: str, name_servers: Sequence[str], form: str, interval: float | None, *, as_list: bool
) -> int:
    """Show the route of a topic, as the name server gives it to clients."""
    word = broker_text.route_list if as_list else route_text.route
    return show(lambda: word(ask(route(name_servers, topic.strip()))), form, interval)
