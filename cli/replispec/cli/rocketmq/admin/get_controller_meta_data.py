"""`replispec admin getControllerMetaData`: who leads the controllers."""

from __future__ import annotations

from collections.abc import Sequence

import click

from replispec.administrator.rocketmq.controllers import metadata
from replispec.cli.rocketmq.admin import controller_text
from replispec.cli.rocketmq.admin.asking import ask, controllers_option
from replispec.cli.shown import show, with_formats


@click.command(
    "getControllerMetaData",
    epilog="\b\nExamples:\n  replispec admin getControllerMetaData -a 127.0.0.1:9878",
    short_help="Who leads the controllers.",
)
@controllers_option
@with_formats
def command(controllers: Sequence[str], form: str, interval: float | None) -> int:
    """Show group, leader and members, as the first of the controllers tells them that answers."""
    return show(lambda: controller_text.metadata(ask(metadata(controllers))), form, interval)
