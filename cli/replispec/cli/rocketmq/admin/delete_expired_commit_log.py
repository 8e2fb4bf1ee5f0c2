"""`replispec admin deleteExpiredCommitLog`: old files of the log deleted now, whatever the hour is."""

from __future__ import annotations

from collections.abc import Sequence

import click

from replispec.administrator.rocketmq.brokers import old_files_deleted
from replispec.cli.peers_text import say
from replispec.cli.rocketmq.admin.asking import ask, named


@click.command(
    "deleteExpiredCommitLog",
    epilog="\b\nExamples:\n  replispec admin deleteExpiredCommitLog -n 127.0.0.1:9876 -c DefaultCluster",
    short_help="Delete old files of the log now.",
)
@named
def command(name_servers: Sequence[str], cluster: str | None, broker: str | None) -> int:
    """Have a broker, or each member of a cluster (without -b and -c: of all clusters) delete what is older
    than its fileReservedTime now, and not in the hours of deleteWhen alone."""
    ask(old_files_deleted(name_servers, cluster=cluster, broker=broker))
    say("success")
    return 0
