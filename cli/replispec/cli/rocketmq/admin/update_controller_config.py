"""`replispec admin updateControllerConfig`: one parameter of controllers changed while they run."""

from __future__ import annotations

from collections.abc import Sequence

import click

from replispec.administrator.rocketmq.controllers import configure
from replispec.cli.rocketmq.admin import controller_text
from replispec.cli.rocketmq.admin.asking import ask, controllers_option, dry_run_option
from replispec.cli.shown import form_option, show


@click.command(
    "updateControllerConfig",
    epilog="\b\nExamples:\n"
    "  replispec admin updateControllerConfig -a 127.0.0.1:9878 -k notifyBrokerRoleChanged -v true",
    short_help="Change a parameter of controllers.",
)
@controllers_option
@click.option("-k", "--key", "name", metavar="NAME", required=True, help="The parameter.")
@click.option("-v", "--value", metavar="VALUE", required=True, help="What it is to be.")
@dry_run_option
@form_option
def command(controllers: Sequence[str], name: str, value: str, form: str, *, dry_run: bool) -> int:
    """Have each of the controllers take another value for a parameter. It holds until that one ends."""
    if dry_run:
        click.echo(f"{', '.join(controllers)} would be asked to take {name}={value}")
        return 0
    ask(configure(controllers, name.strip(), value.strip()))
    return show(lambda: controller_text.configured(controllers, name, value), form, None)
