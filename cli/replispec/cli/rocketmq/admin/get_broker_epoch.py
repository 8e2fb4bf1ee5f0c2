"""`replispec admin getBrokerEpoch`: the epochs of brokers' logs, as each broker tells them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import click

from replispec.administrator.rocketmq import brokers
from replispec.administrator.rocketmq.plans import NotAsWantedError, Plan
from replispec.cli.rocketmq.admin import broker_text
from replispec.cli.rocketmq.admin.asking import NOBODY, ask, cluster_option, name_servers_option
from replispec.cli.shown import show, with_formats
from replispec.wire.rocketmq.controller import EpochEntryCache


def plan(
    name_servers: Sequence[str], broker: str | None, cluster: str | None
) -> Plan[Mapping[str, EpochEntryCache]]:
    """The epochs of all members of one set, or of a cluster. Raises NotAsWantedError."""
    if broker is None and cluster is None:
        raise NotAsWantedError(NOBODY)
    known = yield from brokers.clusters(name_servers)
    sets = [known.broker_set(broker)] if broker is not None else known.cluster(cluster or "").values()
    return (yield from brokers.epochs(known.addresses(sets)))


@click.command(
    "getBrokerEpoch",
    epilog="\b\nExamples:\n  replispec admin getBrokerEpoch -n 127.0.0.1:9876 -b broker-a",
    short_help="The epochs of brokers' logs.",
)
@click.option("-b", "--brokerName", "broker", metavar="NAME", help="This broker set alone.")
@cluster_option
@name_servers_option
@with_formats
def command(
    broker: str | None, cluster: str | None, name_servers: Sequence[str], form: str, interval: float | None
) -> int:
    """Show where each masterEpoch begins and ends in the log of each broker."""
    return show(lambda: broker_text.epochs(ask(plan(name_servers, broker, cluster))), form, interval)
