"""`replispec admin brokerStatus`: the figures of brokers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import click

from replispec.administrator.rocketmq import brokers
from replispec.administrator.rocketmq.plans import NotAsWantedError, Plan
from replispec.cli.rocketmq.admin import broker_text
from replispec.cli.rocketmq.admin.asking import NOBODY, ask, named
from replispec.cli.shown import show, with_formats
from replispec.wire.rocketmq.client import RuntimeInfo


def plan(
    name_servers: Sequence[str], broker: str | None, cluster: str | None
) -> Plan[Mapping[str, RuntimeInfo]]:
    """The figures of one broker, or of all of a cluster. Raises NotAsWantedError."""
    if broker is not None:
        return (yield from brokers.figures([broker]))
    if cluster is None:
        raise NotAsWantedError(NOBODY)
    known = yield from brokers.clusters(name_servers)
    return (yield from brokers.figures(known.addresses(known.cluster(cluster).values())))


@click.command(
    "brokerStatus",
    epilog="\b\nExamples:\n  replispec admin brokerStatus -b 127.0.0.1:10911",
    short_help="The figures of brokers.",
)
@named
@with_formats
def command(
    broker: str | None, cluster: str | None, name_servers: Sequence[str], form: str, interval: float | None
) -> int:
    """Show the figures that a broker tells of itself, by name."""
    return show(
        lambda: broker_text.figures(ask(plan(name_servers, broker, cluster)), of_cluster=broker is None),
        form,
        interval,
    )
