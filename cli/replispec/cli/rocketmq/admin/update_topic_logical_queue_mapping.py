"""`replispec admin updateTopicLogicalQueueMapping`: message queues made logical queues."""

from __future__ import annotations

from collections.abc import Sequence

import click

from replispec.administrator.rocketmq import logical_queues
from replispec.administrator.rocketmq.logical_queues import QueuePlace
from replispec.administrator.rocketmq.logical_topics import LogicalTopic, untold
from replispec.administrator.rocketmq.plans import Plan
from replispec.cli.peers_text import say
from replispec.cli.rocketmq.admin.asking import broker_option, cluster_option, name_servers_option
from replispec.cli.rocketmq.admin.logical_queues import CODES, asked_for, one_of, say_late, topic_option
from replispec.runtime.net.clock import wall_ms

EXAMPLES = (
    """\b
Examples:
  replispec admin updateTopicLogicalQueueMapping -n 127.0.0.1:9876 -t TopicL -c DefaultCluster
  replispec admin updateTopicLogicalQueueMapping -n 127.0.0.1:9876 -t TopicL -b 127.0.0.1:10911 -q 0 -i 0

\b
With -c every message queue that is not mapped yet gets the lowest free index, brokers by
address. With -b, -q and -i one queue gets one index; -i -1 takes it back, if the queue holds
no message that is read. As soon as no queue is left, the topic is enabled: that is said last,
and to every broker that has it, so that clients are told of all logical queues or of none.

"""
    + CODES
)


@click.command(
    "updateTopicLogicalQueueMapping", epilog=EXAMPLES, short_help="Make message queues logical ones."
)
@topic_option
@cluster_option
@broker_option
@click.option(
    "-q",
    "--queueId",
    "queue_id",
    metavar="NUMBER",
    type=click.IntRange(0),
    help="A message queue of that broker.",
)
@click.option(
    "-i",
    "--index",
    metavar="NUMBER",
    type=click.IntRange(-1),
    help="The logical queue that it is to be; -1: none.",
)
@name_servers_option
def command(
    topic: str,
    cluster: str | None,
    broker: str | None,
    queue_id: int | None,
    index: int | None,
    name_servers: Sequence[str],
) -> int:
    """Map message queues of a topic to logical queues, and enable them once all are mapped."""
    where, topic = one_of(broker, cluster), topic.strip()
    wanted: QueuePlace | str = where
    if broker is not None:
        if queue_id is None or index is None:
            raise click.UsageError("with -b, -q and -i are needed")
        wanted = QueuePlace(broker, queue_id, index)

    def plan() -> Plan[tuple[LogicalTopic, str | None, str | None]]:
        found, missing = yield from logical_queues.mapped(name_servers, topic, wanted, wall_ms())
        late = None if missing is not None else (yield from untold(name_servers, topic))
        return found, missing, late

    def done(came: tuple[LogicalTopic, str | None, str | None]) -> None:
        found, missing, late = came
        say(f"{len(found.queues)} logical queues of {topic} are mapped.")
        say("they are enabled." if missing is None else f"they are not enabled yet: {missing}.")
        say_late(late)

    return asked_for(plan, done)
