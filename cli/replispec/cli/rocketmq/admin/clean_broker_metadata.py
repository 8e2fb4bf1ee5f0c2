"""`replispec admin cleanBrokerMetadata`: members of a broker set forgotten by the controllers."""

from __future__ import annotations

from collections.abc import Sequence

import click

from replispec.administrator.rocketmq.controllers import Cleaned, clean
from replispec.cli.peers_text import say
from replispec.cli.rocketmq.admin.asking import (
    RefusedToAskError,
    ask,
    confirmed,
    controllers_option,
    dry_run_option,
    yes_option,
)


@click.command(
    "cleanBrokerMetadata",
    epilog="\b\nExamples:\n"
    "  replispec admin cleanBrokerMetadata -a 127.0.0.1:9878 -bn broker-a -c DefaultCluster -b 3",
    short_help="Have the controllers forget members of a broker set.",
)
@controllers_option
@click.option("-bn", "--brokerName", "broker", metavar="NAME", required=True, help="The broker set.")
@click.option(
    "-b", "--brokerControllerIdsToClean", "ids", metavar="ID[;...]", help="Who; else the whole set."
)
@click.option("-c", "--clusterName", "cluster", metavar="NAME", help="Its cluster; not needed with -l.")
@click.option("-l", "--cleanLivingBroker", "living", is_flag=True, help="Even those that live.")
@yes_option
@dry_run_option
def command(
    controllers: Sequence[str],
    broker: str,
    ids: str | None,
    cluster: str | None,
    *,
    living: bool,
    yes: bool,
    dry_run: bool,
) -> int:
    """Have the controllers forget members of a broker set; without -b the whole set.

    A member that was forgotten comes back with another id, or not at all.
    """
    cleaned = Cleaned(broker, cluster, _numbers(ids), living)
    if not living and not cluster:
        raise RefusedToAskError("the cluster is needed (-c), or -l")
    who = f"broker {', '.join(map(str, cleaned.ids))}" if cleaned.ids else "ALL members"
    what = f"{broker}: {who} will be forgotten{', even if alive' if living else ''}"
    if dry_run:
        say(what)
        return 0
    confirmed(what, broker, yes=yes)
    ask(clean(controllers, cleaned))
    click.echo(f"clear broker {broker} metadata from controller success! ")
    return 0


def _numbers(ids: str | None) -> Sequence[int]:
    try:
        found = [int(each) for each in (ids or "").split(";") if each.strip()]
    except ValueError:
        found = []
    if ids is not None and not found:
        raise RefusedToAskError(f"-b {ids}: numbers with ; between them are expected, as 2;3")
    return found
