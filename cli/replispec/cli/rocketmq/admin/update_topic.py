"""`replispec admin updateTopic`: a topic made or changed, with logical queues if that is wanted."""

from __future__ import annotations

from collections.abc import Sequence

import click

from replispec.administrator.rocketmq import logical_queues
from replispec.administrator.rocketmq.logical_topics import untold
from replispec.administrator.rocketmq.plans import Plan
from replispec.administrator.rocketmq.topics import TopicWanted, updated
from replispec.cli.peers_text import say
from replispec.cli.rocketmq.admin.asking import broker_option, cluster_option, name_servers_option
from replispec.cli.rocketmq.admin.logical_queues import CODES, asked_for, one_of, say_late, topic_option
from replispec.runtime.net.clock import wall_ms
from replispec.wire.rocketmq.codes import Permission

QUEUES = 8
PERM = int(Permission.READ | Permission.WRITE)
EXAMPLES = (
    """\b
Examples:
  replispec admin updateTopic -n 127.0.0.1:9876 -c DefaultCluster -t TopicA
  replispec admin updateTopic -n 127.0.0.1:9876 -c DefaultCluster -t TopicL -r 2 -w 2 -lq true

\b
The second makes two queues at each broker and numbers all of them from 0 on, brokers by
address: clients see as many queues as there are, whichever brokers come and go.

"""
    + CODES
)


@click.command("updateTopic", epilog=EXAMPLES, short_help="Make or change a topic.")
@topic_option
@cluster_option
@broker_option
@click.option(
    "-r",
    "--readQueueNums",
    "reads",
    metavar="NUMBER",
    type=click.IntRange(0),
    default=QUEUES,
    show_default=True,
    help="Queues that are read, at each broker.",
)
@click.option(
    "-w",
    "--writeQueueNums",
    "writes",
    metavar="NUMBER",
    type=click.IntRange(0),
    default=QUEUES,
    show_default=True,
    help="Queues that are written, at each broker.",
)
@click.option(
    "-p",
    "--perm",
    metavar="NUMBER",
    type=click.IntRange(0, 7),
    default=PERM,
    show_default=True,
    help="What clients may do: 2 write, 4 read, 6 both.",
)
@click.option(
    "-o",
    "--order",
    "is_ordered",
    type=bool,
    default=False,
    show_default=True,
    help="Whether the topic is ordered.",
)
@click.option(
    "-lq",
    "--logicalQueue",
    "logical",
    type=bool,
    default=False,
    show_default=True,
    help="Enable logical queues of the topic. There is no way back.",
)
@name_servers_option
def command(
    topic: str,
    cluster: str | None,
    broker: str | None,
    reads: int,
    writes: int,
    perm: int,
    name_servers: Sequence[str],
    *,
    is_ordered: bool,
    logical: bool,
) -> int:
    """Make a topic at a broker, or at each broker of a cluster, or change what it is there.

    With -lq true its queues become logical ones as soon as it is there: numbered from 0 on, and told to
    clients as queues of one broker that does not exist. Messages that were sent before stay where they are.
    The command ends when name servers tell clients.
    """
    where = one_of(broker, cluster)
    wanted = TopicWanted(topic.strip(), reads, writes, perm, is_ordered)
    if logical and cluster is None:
        raise click.UsageError("-lq true numbers the queues of a cluster: -c is needed")

    def plan() -> Plan[tuple[Sequence[str], str | None]]:
        if logical:
            masters = yield from logical_queues.made(name_servers, wanted, where, wall_ms())
            return masters, (yield from untold(name_servers, wanted.name))
        return (yield from updated(name_servers, wanted, cluster=cluster, broker=broker)), None

    def done(came: tuple[Sequence[str], str | None]) -> None:
        masters, late = came
        for each in masters:
            say(f"create topic to {each} success.")
        if logical:
            say(f"logical queues of {wanted.name} are enabled.")
        say_late(late)

    return asked_for(plan, done)
