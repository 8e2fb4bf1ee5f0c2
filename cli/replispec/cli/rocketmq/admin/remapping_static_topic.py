"""`replispec admin remappingStaticTopic`: logical queues of a static topic moved to other brokers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from replispec.administrator.rocketmq.remapping import MappingRun, remapped
from replispec.administrator.rocketmq.static_topics import TopicAtBrokers
from replispec.cli.rocketmq.admin.static_topics import RunWanted, carry_out, with_options

EXAMPLES = """\b
Examples:
  replispec admin remappingStaticTopic -n 127.0.0.1:9876 -t TopicS -b broker-b,broker-c --dry-run
  replispec admin remappingStaticTopic -n 127.0.0.1:9876 -t TopicS -b broker-b,broker-c

\b
Where a run was interrupted, of ours or of mqadmin, run the same again: it is finished first.

\b
Exit codes:
  0  the mappings are set
  1  refused, and the reason is said; what a run that failed left is finished by the next one
  2  a wrong command line
"""


@click.command("remappingStaticTopic", epilog=EXAMPLES, short_help="Move queues of a static topic.")
@with_options
def command(
    topic: str,
    brokers: Sequence[str],
    of_clusters: Sequence[str],
    map_file: Path | None,
    name_servers: Sequence[str],
    *,
    force: bool,
    dry_run: bool,
) -> int:
    """Have these brokers lead all logical queues of a static topic, each as many as the others.

    Messages stay where they are; new ones go to the brokers that lead from then on, and their offsets go on
    at the next multiple of 10,000. As few queues as possible move.
    """
    asked = RunWanted(topic.strip(), brokers, of_clusters, name_servers, map_file, force, dry_run)

    def planned(known: TopicAtBrokers, targets: Sequence[str], now_ms: int) -> MappingRun:
        return remapped(known.topic, targets, known.every(targets), now_ms)

    return carry_out(asked, planned)
