"""`replispec produce`: messages sent to a topic."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any, BinaryIO

import click

from replispec.cli.speaking import speaks

EXAMPLES = """\b
Examples:
  replispec produce -n 127.0.0.1:9876 -t TopicA                         one message
  replispec produce -n 127.0.0.1:9876 -t TopicA --count 1000 --body 'number {n}' --key 'k{n}'
  replispec produce -n 127.0.0.1:9876 -t TopicA --lines < orders.txt    a message for each line
  replispec produce -n 127.0.0.1:9876 -t TopicA --count 10 --format json | jq .offset

\b
The topic may be a plain one, a static one, or one of logical queues: queues are called
__syslo__global__ or __logical_queue_broker__ then, and keep their numbers when a broker
joins or leaves. While a logical queue moves an offset may be -1: it is decided soon.

\b
Exit codes:
  0  every message was acknowledged, and stored as the broker is configured to
  1  some were not, and the first reason is said
  2  a wrong command line, or a file that cannot be read
"""


@dataclass(frozen=True, slots=True)
class Production:
    """What is to be sent: `count` times the same, with its number put in, or each line of a file."""

    name_servers: str
    topic: str
    count: int
    body: str
    key: str
    tag: str
    lines: BinaryIO | None
    at_once: int
    pause_ms: int
    group: str
    form: str
    quiet: bool


@speaks
@click.command("produce", epilog=EXAMPLES, short_help="Send messages to a topic.")
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
    "--count",
    metavar="NUMBER",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="How many messages.",
)
@click.option(
    "--body",
    metavar="TEXT",
    default="message {n}",
    show_default=True,
    help="With {n}, the number, from 0 on.",
)
@click.option("--key", metavar="TEXT", default="", help="The key of each; with {n}, too.")
@click.option("--tag", metavar="TEXT", default="", help="The tag of each.")
@click.option("--lines", is_flag=True, help="Send a message for each line of standard input instead.")
@click.option(
    "--at-once",
    metavar="NUMBER",
    type=click.IntRange(1, 4096),
    default=1,
    show_default=True,
    help="How many wait for an answer; beyond 1 they may be stored in another order.",
)
@click.option(
    "--pause",
    "pause_ms",
    metavar="MILLISECONDS",
    type=click.IntRange(0),
    default=0,
    help="Between two messages.",
)
@click.option("--group", metavar="NAME", default="replispec-produce", show_default=True, help="Of producers.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Text for people, an object of JSON in each line for programs.",
)
@click.option(
    "-q", "--quiet", is_flag=True, help="No line for each message, no progress: the last line alone."
)
def produce(
    name_servers: str,
    topic: str,
    count: int,
    body: str,
    key: str,
    tag: str,
    at_once: int,
    pause_ms: int,
    group: str,
    form: str,
    *,
    lines: bool,
    quiet: bool,
) -> int:
    """Send messages to a topic, and say where each was stored.

    The name server tells which brokers take messages of the topic; they take turns. A broker that says that
    another one leads is left for that one, at most three times for a message.
    """
    from replispec.runtime import families

    family = families.with_part("cli", "clients")[0]
    source = sys.stdin.buffer if lines else None
    wanted = Production(
        name_servers, topic.strip(), count, body, key, tag, source, at_once, pause_ms, group, form, quiet
    )
    clients: Any = families.part("cli", family, "clients")
    code: int = clients.produce(wanted)
    return code
