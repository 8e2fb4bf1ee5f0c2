"""`replispec admin haStatus`: how replication is, as brokers tell it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import click

from replispec.administrator.rocketmq import brokers
from replispec.administrator.rocketmq.plans import NotAsWantedError, Plan
from replispec.cli.rocketmq.admin import broker_text
from replispec.cli.rocketmq.admin.asking import NOBODY, ask, named
from replispec.cli.shown import show, with_formats
from replispec.wire.rocketmq.client import HaRuntimeInfo


def plan(
    name_servers: Sequence[str], broker: str | None, cluster: str | None
) -> Plan[Mapping[str, HaRuntimeInfo]]:
    """How replication is at one broker, or at the masters of a cluster. Raises NotAsWantedError."""
    if broker is not None:
        return (yield from brokers.replication([broker]))
    if cluster is None:
        raise NotAsWantedError(NOBODY)
    known = yield from brokers.clusters(name_servers)
    return (yield from brokers.replication(known.masters(known.cluster(cluster).values())))


@click.command(
    "haStatus",
    epilog="\b\nExamples:\n  replispec admin haStatus -b 127.0.0.1:10911 --watch 1",
    short_help="How replication is.",
)
@named
@with_formats
def command(
    broker: str | None, cluster: str | None, name_servers: Sequence[str], form: str, interval: float | None
) -> int:
    """Show how far replicas are, as their masters see it; or how a replica sees itself."""
    return show(lambda: broker_text.replication(ask(plan(name_servers, broker, cluster))), form, interval)
