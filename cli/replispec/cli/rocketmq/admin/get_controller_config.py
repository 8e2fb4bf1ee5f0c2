"""`replispec admin getControllerConfig`: how controllers are configured."""

from __future__ import annotations

from collections.abc import Sequence

import click

from replispec.administrator.rocketmq.controllers import configurations
from replispec.cli.rocketmq.admin import controller_text
from replispec.cli.rocketmq.admin.asking import ask, controllers_option
from replispec.cli.shown import show, with_formats


@click.command(
    "getControllerConfig",
    epilog="\b\nExamples:\n  replispec admin getControllerConfig -a 127.0.0.1:9878 --format json",
    short_help="How controllers are configured.",
)
@controllers_option
@with_formats
def command(controllers: Sequence[str], form: str, interval: float | None) -> int:
    """Show all parameters of each of the controllers."""
    return show(lambda: controller_text.configurations(ask(configurations(controllers))), form, interval)
