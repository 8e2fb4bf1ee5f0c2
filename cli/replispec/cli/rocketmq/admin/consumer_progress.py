"""`replispec admin consumerProgress`: how far groups of consumers have read."""

from __future__ import annotations

from collections.abc import Sequence

import click

from replispec.administrator.rocketmq.consumers import groups, progress
from replispec.cli.rocketmq.admin import consumer_text
from replispec.cli.rocketmq.admin.asking import ask, name_servers_option
from replispec.cli.shown import Display, show, with_formats


@click.command(
    "consumerProgress",
    epilog="\b\nExamples:\n  replispec admin consumerProgress -n 127.0.0.1:9876 -g readers",
    short_help="How far groups of consumers have read.",
)
@click.option("-g", "--groupName", "group", metavar="NAME", help="This group alone, queue by queue.")
@click.option("-t", "--topicName", "topic", metavar="NAME", help="With -g: this topic alone.")
@name_servers_option
@with_formats
def command(
    group: str | None, topic: str | None, name_servers: Sequence[str], form: str, interval: float | None
) -> int:
    """Show how far each group has read and how much is left; with -g by queue."""

    def look() -> Display:
        if group is None:
            return consumer_text.groups(ask(groups(name_servers)))
        return consumer_text.progress(ask(progress(name_servers, group.strip(), topic)))

    return show(look, form, interval)
