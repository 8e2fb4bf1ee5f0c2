"""`replispec admin updateStaticTopic`: a static topic made, or given more logical queues."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from replispec.administrator.rocketmq.remapping import MappingRun, grown
from replispec.administrator.rocketmq.static_topics import TopicAtBrokers
from replispec.cli.rocketmq.admin.static_topics import RunWanted, carry_out, with_options

EXAMPLES = """\b
Examples:
  replispec admin updateStaticTopic -n 127.0.0.1:9876 -t TopicS -qn 4 -c DefaultCluster --dry-run
  replispec admin updateStaticTopic -n 127.0.0.1:9876 -t TopicS -qn 4 -c DefaultCluster
  replispec admin updateStaticTopic -n 127.0.0.1:9876 -t TopicS -qn 8 -b broker-a,broker-b

\b
Where a run was interrupted, of ours or of mqadmin, run the same again: it is finished first.

\b
Exit codes:
  0  the mappings are set
  1  refused, and the reason is said; what a run that failed left is finished by the next one
  2  a wrong command line
"""


@click.command("updateStaticTopic", epilog=EXAMPLES, short_help="Make a static topic, or more queues of one.")
@click.option(
    "-qn",
    "--totalQueueNum",
    "total",
    metavar="NUMBER",
    type=click.IntRange(1),
    required=True,
    help="Logical queues that the topic is to have; never fewer than it has.",
)
@with_options
def command(
    total: int,
    topic: str,
    brokers: Sequence[str],
    of_clusters: Sequence[str],
    map_file: Path | None,
    name_servers: Sequence[str],
    *,
    force: bool,
    dry_run: bool,
) -> int:
    """Make a static topic with so many logical queues, or give one more of them.

    New queues go to the brokers that lead the fewest. The mappings before and after are written to two files
    of the folder for temporary files; with --dry-run nothing else happens, and -mf carries the second out.
    """
    asked = RunWanted(topic.strip(), brokers, of_clusters, name_servers, map_file, force, dry_run, total)

    def planned(known: TopicAtBrokers, targets: Sequence[str], now_ms: int) -> MappingRun:
        return grown(known.topic, total, targets, known.every(targets), now_ms)

    return carry_out(asked, planned)
