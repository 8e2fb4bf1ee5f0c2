"""`replispec admin migrateTopicLogicalQueue`: a logical queue moved to another broker."""

from __future__ import annotations

from collections.abc import Sequence

import click

from replispec.cli.peers_text import say
from replispec.cli.rocketmq.admin.asking import name_servers_option
from replispec.cli.rocketmq.admin.logical_queues import CODES, migrate, topic_option
from replispec.cli.rocketmq.admin.static_topics import EXIT_REFUSED, refusals

EXAMPLES = (
    """\b
Examples:
  replispec admin migrateTopicLogicalQueue -n 127.0.0.1:9876 -t TopicL -i 0 -b broker2
  replispec admin migrateTopicLogicalQueue -n 127.0.0.1:9876 -t TopicL -i 0 -b broker2 -fd 5000

\b
No message is copied: old ones are read where they are, new ones go to the new broker, and
their offsets go on without a hole. At any time some broker takes messages. A run that was
cut off, whoever began it, is finished by the next one; two at once end in an order.

\b
The second is for a broker that is gone for good: nobody can be asked where its queue ended,
so -fd says at which offset the queue goes on. It is refused below any end that somebody
knows. Take it great enough: what lies between is lost, as the broker is.

"""
    + CODES
)


@click.command(
    "migrateTopicLogicalQueue", epilog=EXAMPLES, short_help="Move a logical queue to another broker."
)
@topic_option
@click.option(
    "-i", "--index", metavar="NUMBER", type=click.IntRange(0), required=True, help="The logical queue."
)
@click.option(
    "-b", "--brokerName", "target", metavar="NAME", required=True, help="The broker that is to write it."
)
@click.option(
    "-fd",
    "--forceDelta",
    "start",
    metavar="START",
    type=click.IntRange(0),
    help="The broker that wrote it is gone for good: the queue goes on at this offset.",
)
@name_servers_option
def command(topic: str, index: int, target: str, start: int | None, name_servers: Sequence[str]) -> int:
    """Have another broker write a logical queue from now on."""
    topic, target = topic.strip(), target.strip()
    with refusals() as refused:
        found = migrate(name_servers, topic, index, target, start)
        written = found.queue.writable
        if written is not None:
            say(
                f"logical queue {index} of {topic} is written at {written.queue.broker_name}, queue"
                f" {written.queue.queue_id}, from offset {written.logical_start} on."
            )
    return EXIT_REFUSED if refused else 0
