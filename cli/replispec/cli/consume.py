"""`replispec consume`: messages of a topic read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import click

from replispec.cli.speaking import speaks

EXAMPLES = """\b
Examples:
  replispec consume -n 127.0.0.1:9876 -t TopicA --idle 3               all that is there
  replispec consume -n 127.0.0.1:9876 -t TopicA --from latest          what comes from now on
  replispec consume -n 127.0.0.1:9876 -t TopicA --group readers --count 100
  replispec consume -n 127.0.0.1:9876 -t TopicA --from 1767225600000 --format json | jq -r .body

\b
Each line is a queue, an offset, a key and a body. The queues of a static topic are called
__syslo__global__; their offsets go on at a multiple of 10,000 where a queue moved. Those
of logical queues (RIP-21), of __logical_queue_broker__, go on without a hole.

\b
With --group the group's place in each queue is kept by the brokers, every five seconds and at the end,
and the next call goes on there; --from counts for queues of which the group has read nothing. All queues
are read: groups are not shared with other consumers.

\b
Exit codes:
  0  as many messages as wanted, or none for --idle seconds
  1  fewer than wanted came in that time, or the topic cannot be read
  2  a wrong command line
  130  interrupted: the place of the group is that of at most five seconds before
"""


@dataclass(frozen=True, slots=True)
class Consumption:
    """What is to be read."""

    name_servers: str
    topic: str
    begin: str
    group: str | None
    count: int | None
    idle: float | None
    form: str
    quiet: bool


@speaks
@click.command("consume", epilog=EXAMPLES, short_help="Read messages of a topic.")
@click.option(
    "-n",
    "--namesrvAddr",
    "name_servers",
    metavar="ADDRESS:PORT[;...]",
    envvar="NAMESRV_ADDR",
    required=True,
    help="Name servers; else those of NAMESRV_ADDR.",
)
@click.option("-t", "--topic", metavar="NAME", required=True, help="The topic.")
@click.option(
    "--from",
    "begin",
    metavar="WHERE",
    default="earliest",
    show_default=True,
    help="earliest, latest, or milliseconds since 1970.",
)
@click.option("--group", metavar="NAME", help="The group whose place is kept; none: nothing is remembered.")
@click.option("--count", metavar="NUMBER", type=click.IntRange(1), help="End after so many messages.")
@click.option(
    "--idle", metavar="SECONDS", type=click.FloatRange(0.1), help="End when nothing came for so long."
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Text for people, an object of JSON in each line for programs.",
)
@click.option("-q", "--quiet", is_flag=True, help="No line for each message: the last line alone.")
def consume(
    name_servers: str,
    topic: str,
    begin: str,
    group: str | None,
    count: int | None,
    idle: float | None,
    form: str,
    *,
    quiet: bool,
) -> int:
    """Read the messages of all queues of a topic, and show them.

    Without --count and --idle it goes on until it is interrupted.
    """
    from replispec.runtime import families

    family = families.with_part("cli", "clients")[0]
    wanted = Consumption(name_servers, topic.strip(), begin, group, count, idle, form, quiet)
    clients: Any = families.part("cli", family, "clients")
    code: int = clients.consume(wanted)
    return code
