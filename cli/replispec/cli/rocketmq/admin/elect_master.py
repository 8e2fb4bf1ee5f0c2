"""`replispec admin electMaster`: another member of a broker set becomes master."""

from __future__ import annotations

from collections.abc import Sequence

import click

from replispec.administrator.rocketmq.controllers import Wanted, elect
from replispec.cli.peers_text import say
from replispec.cli.rocketmq.admin import controller_text
from replispec.cli.rocketmq.admin.asking import (
    ask,
    confirmed,
    controllers_option,
    dry_run_option,
    yes_option,
)
from replispec.cli.shown import form_option, show


@click.command(
    "electMaster",
    epilog="\b\nExamples:\n"
    "  replispec admin electMaster -a 127.0.0.1:9878 -bn broker-a -c DefaultCluster -b 2",
    short_help="Make another member of a broker set its master.",
)
@controllers_option
@click.option("-b", "--brokerId", "broker_id", type=int, required=True, help="Who becomes master.")
@click.option("-bn", "--brokerName", "broker", metavar="NAME", required=True, help="The broker set.")
@click.option("-c", "--clusterName", "cluster", metavar="NAME", required=True, help="Its cluster.")
@yes_option
@dry_run_option
@form_option
def command(
    controllers: Sequence[str],
    broker_id: int,
    broker: str,
    cluster: str,
    form: str,
    *,
    yes: bool,
    dry_run: bool,
) -> int:
    """Depose the master of a broker set, and have another member become master.

    What the deposed master acknowledged without the other one is cut from its log.
    """
    wanted = Wanted(cluster, broker, broker_id)
    what = f"{broker} of {cluster}: broker {broker_id} becomes master, whoever is master now is deposed"
    if dry_run:
        say(what)
        return 0
    confirmed(what, broker, yes=yes)
    found = ask(elect(controllers, wanted))
    return show(lambda: controller_text.elected(wanted, found), form, None)
