"""`replispec admin resetOffsetByTime`: a group of consumers reads on from the messages of a time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

import click

from replispec.administrator.rocketmq.consumers import Reset, reset
from replispec.cli.peers_text import say
from replispec.cli.rocketmq.admin import consumer_text
from replispec.cli.rocketmq.admin.asking import (
    RefusedToAskError,
    ask,
    confirmed,
    dry_run_option,
    name_servers_option,
    yes_option,
)
from replispec.cli.shown import form_option, show
from replispec.runtime.net.clock import wall_ms

_FORM: Final = "%Y-%m-%d#%H:%M:%S:%f"


@click.command(
    "resetOffsetByTime",
    epilog="\b\nExamples:\n"
    "  replispec admin resetOffsetByTime -n 127.0.0.1:9876 -g readers -t TopicA -s 2026-01-31#23:59:00:000",
    short_help="Have a group read on from a time.",
)
@click.option("-g", "--group", metavar="NAME", required=True, help="The group.")
@click.option("-t", "--topic", metavar="NAME", required=True, help="The topic.")
@click.option(
    "-s",
    "--timestamp",
    "when",
    metavar="TIME",
    required=True,
    help="now, milliseconds since 1970, yyyy-MM-dd#HH:mm:ss:SSS, or -1 for the end.",
)
@click.option("-f", "--force", type=bool, default=True, show_default=True, help="Forward, too.")
@name_servers_option
@yes_option
@dry_run_option
@form_option
def command(
    group: str,
    topic: str,
    when: str,
    name_servers: Sequence[str],
    form: str,
    *,
    force: bool,
    yes: bool,
    dry_run: bool,
) -> int:
    """Have a group of consumers read a topic on from the messages of a time: earlier ones come again, later
    ones are passed over.

    Consumers that are connected are told when they ask for messages next.
    """
    wanted = Reset(group.strip(), topic.strip(), moment_of(when.strip()), force)
    what = f"{wanted.group} reads {wanted.topic} on from {when}"
    if dry_run:
        say(what)
        return 0
    confirmed(what, wanted.group, yes=yes)
    found = ask(reset(name_servers, wanted))
    return show(lambda: consumer_text.reset(wanted, when.strip(), found), form, None)


def moment_of(text: str) -> int:
    """Milliseconds since 1970, of this machine's zone where a date is written. Raises RefusedToAskError."""
    if text == "now":
        return wall_ms()
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return int(datetime.strptime(f"{text}000", _FORM).timestamp() * 1_000)  # noqa: DTZ007
    except ValueError:
        raise RefusedToAskError(f"-s {text}: no time; 2026-01-31#23:59:00:000 is one") from None
