"""What the commands for logical queues of RIP-21 share: options, and refusals of one line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

import click

from replispec.administrator.rocketmq import logical_queues
from replispec.administrator.rocketmq.logical_migration import MovedQueue, moved
from replispec.administrator.rocketmq.plans import Plan
from replispec.cli.peers_text import say
from replispec.cli.rocketmq.admin.asking import ask
from replispec.cli.rocketmq.admin.static_topics import EXIT_REFUSED, refusals
from replispec.runtime.net.clock import wall_ms

T = TypeVar("T")
topic_option = click.option("-t", "--topic", metavar="NAME", required=True, help="The topic.")
CODES: Final = """\b
Exit codes:
  0  done
  1  refused, and the reason is said; where it was cut off, run the same again
  2  a wrong command line
"""


def asked_for(plan: Callable[[], Plan[T]], done: Callable[[T], int | None]) -> int:
    """Carry a plan out and say what came of it; the exit code."""
    code: int | None = None
    with refusals() as refused:
        code = done(ask(plan()))
    return EXIT_REFUSED if refused else code or 0


def say_late(late: str | None) -> None:
    """A name server does not tell clients yet what is enabled."""
    if late is not None:
        say(f"clients are not told of them yet: {late}", err=True)


def one_of(broker: str | None, cluster: str | None) -> str:
    """What is named of a broker and a cluster. Raises click.UsageError."""
    if (broker is None) == (cluster is None):
        raise click.UsageError("one of -b and -c is needed")
    return broker or cluster or ""


def migrate(
    name_servers: Sequence[str],
    topic: str,
    index: int,
    target: str,
    start: int | None = None,
    *,
    ended_too: bool = False,
) -> MovedQueue:
    """A logical queue moved, and its new broker told that the topic is enabled."""
    found = ask(moved(name_servers, topic, index, target, start, ended_too=ended_too))
    ask(logical_queues.restated(name_servers, topic, wall_ms()))
    for each in found.ended:
        broker, queue_id = each.segment.queue
        say(
            f"{broker} was passed over: it ends logical queue {each.index} at offset"
            f" {each.segment.logical_end}; {each.beyond} messages of its queue {queue_id}, from"
            f" {each.segment.physical_end} on, are of no logical offset",
            err=True,
        )
    if found.finished:
        say(f"what an earlier run left of logical queue {index} is finished", err=True)
    return found
