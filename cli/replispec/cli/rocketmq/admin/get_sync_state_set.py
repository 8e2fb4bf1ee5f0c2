"""`replispec admin getSyncStateSet`: who is in the SyncStateSet of broker sets, by the word of the leader."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import click

from replispec.administrator.rocketmq import brokers, controllers
from replispec.administrator.rocketmq.plans import NotAsWantedError, Plan
from replispec.cli.rocketmq.admin import controller_text
from replispec.cli.rocketmq.admin.asking import (
    NOBODY,
    ask,
    cluster_option,
    controllers_option,
    name_servers_option,
)
from replispec.cli.shown import show, with_formats
from replispec.wire.rocketmq.controller import ReplicasInfo

Found = Mapping[str, ReplicasInfo]


def plan(
    addresses: Sequence[str], name_servers: Sequence[str], broker: str | None, cluster: str | None
) -> Plan[Found]:
    """What is on record of one set, or of all of a cluster. Raises NotAsWantedError."""
    if broker is not None:
        return (yield from controllers.sets(addresses, [broker]))
    if cluster is None:
        raise NotAsWantedError(NOBODY)
    known = yield from brokers.clusters(name_servers)
    return (yield from controllers.sets(addresses, list(known.cluster(cluster))))


@click.command(
    "getSyncStateSet",
    epilog="\b\nExamples:\n  replispec admin getSyncStateSet -a 127.0.0.1:9878 -b broker-a",
    short_help="Who is in the SyncStateSet of broker sets.",
)
@controllers_option
@click.option("-b", "--brokerName", "broker", metavar="NAME", help="This broker set alone.")
@cluster_option
@name_servers_option
@with_formats
def command(
    controllers: Sequence[str],
    broker: str | None,
    cluster: str | None,
    name_servers: Sequence[str],
    form: str,
    interval: float | None,
) -> int:
    """Show master, epochs and members of broker sets as the controllers have them on record."""
    return show(
        lambda: controller_text.sync_state_sets(ask(plan(controllers, name_servers, broker, cluster))),
        form,
        interval,
    )
