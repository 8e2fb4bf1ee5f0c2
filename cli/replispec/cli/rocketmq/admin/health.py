"""`replispec admin health`: whether something is wrong with a cluster, by the exit code."""

from __future__ import annotations

from collections.abc import Sequence

import click

from replispec.administrator.rocketmq.health import judged
from replispec.administrator.rocketmq.status import WhereToAsk, status
from replispec.cli.rocketmq.admin import status_text
from replispec.cli.rocketmq.admin.asking import any_controllers_option, ask, name_servers_option
from replispec.cli.shown import Display, show, with_formats

EXAMPLES = """\b
Examples:
  replispec admin health -a '127.0.0.1:9871;127.0.0.1:9872;127.0.0.1:9873' -n 127.0.0.1:9876
  replispec admin health -n 127.0.0.1:9876 --format json

\b
Exit codes:
  0  nothing is wrong; notes are no fault
  1  something is: a line for each, marked FAULT
  2  nobody could be asked, or a wrong command line
"""


@click.command("health", epilog=EXAMPLES, short_help="Is something wrong? By the exit code, with reasons.")
@any_controllers_option
@name_servers_option
@click.option("--set", "names", metavar="NAME", multiple=True, help="This broker set; may be said again.")
@click.option(
    "--lag",
    "lag_bytes",
    metavar="BYTES",
    type=click.IntRange(0),
    default=1_048_576,
    show_default=True,
    help="A member of the SyncStateSet that is further behind its master is a fault.",
)
@with_formats
def command(
    controllers: Sequence[str],
    name_servers: Sequence[str],
    names: Sequence[str],
    lag_bytes: int,
    form: str,
    interval: float | None,
) -> int:
    """Ask every controller for its own view, the name servers and all brokers, and compare.

    A fault is: a controller that is silent or names another leader, records that differ, a set without a
    living master, two that call themselves master, a member of the SyncStateSet that is not alive or far
    behind, a route to another master. A member outside of the SyncStateSet, as a learner is, is a note.
    """
    if not controllers and not name_servers:
        raise click.UsageError("name controllers with -a, or a name server with -n")

    def look() -> Display:
        found = ask(status(WhereToAsk(controllers, name_servers, names)))
        return status_text.health(found, judged(found, lag_bytes=lag_bytes))

    return show(look, form, interval)
