"""`replispec admin clusterList`: all brokers that a name server knows, with their figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import click

from replispec.administrator.rocketmq import brokers
from replispec.administrator.rocketmq.plans import NotAsWantedError, Plan
from replispec.cli.rocketmq.admin import cluster_text
from replispec.cli.rocketmq.admin.asking import ask, cluster_option, name_servers_option
from replispec.cli.shown import show, with_formats
from replispec.runtime.net.clock import wall_ms
from replispec.wire.rocketmq.client import RuntimeInfo
from replispec.wire.rocketmq.codes import RequestCode

Figures = Mapping[str, RuntimeInfo | NotAsWantedError]


def plan(name_servers: Sequence[str], cluster: str | None) -> Plan[tuple[brokers.Brokers, Figures]]:
    """Brokers of one cluster, or of all, and the figures of each. Raises NotAsWantedError."""
    known = yield from brokers.clusters(name_servers)
    if cluster is not None:
        known = brokers.Brokers({cluster: known.cluster(cluster)})
    addresses = known.addresses(known.sets().values())
    found = yield from brokers.everywhere(addresses, RequestCode.GET_BROKER_RUNTIME_INFO, RuntimeInfo)
    return known, found


@click.command(
    "clusterList",
    epilog="\b\nExamples:\n  replispec admin clusterList -n 127.0.0.1:9876",
    short_help="All brokers, with their figures.",
)
@click.option("-m", "--moreStats", "more", is_flag=True, help="How many messages came and went, by day.")
@cluster_option
@name_servers_option
@with_formats
def command(
    cluster: str | None, name_servers: Sequence[str], form: str, interval: float | None, *, more: bool
) -> int:
    """Show all brokers that the name server knows, by cluster and broker set."""
    word = cluster_text.more if more else cluster_text.listed
    return show(lambda: word(*ask(plan(name_servers, cluster)), wall_ms()), form, interval)
