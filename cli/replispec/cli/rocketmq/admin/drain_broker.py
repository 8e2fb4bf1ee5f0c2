"""`replispec admin drainBroker`: the logical queues of a broker taken off it, before it stops."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

import click

from replispec.administrator.rocketmq import logical_queues, static_topics
from replispec.administrator.rocketmq.logical_losses import declared_lost
from replispec.administrator.rocketmq.logical_topics import HeldTopics, known, topics_at
from replispec.administrator.rocketmq.mappings import older_at
from replispec.administrator.rocketmq.plans import NotAsWantedError
from replispec.cli.peers_text import say
from replispec.cli.rocketmq.admin.asking import ask, dry_run_option, name_servers_option
from replispec.cli.rocketmq.admin.logical_queues import migrate
from replispec.cli.rocketmq.admin.static_topics import EXIT_REFUSED, refusals
from replispec.runtime.net.clock import wall_ms

EXAMPLES = """\b
Examples:
  replispec admin drainBroker -n 127.0.0.1:9876 -b broker1 --dry-run
  replispec admin drainBroker -n 127.0.0.1:9876 -b broker1
  until replispec admin drainBroker -n 127.0.0.1:9876 -b broker1; do sleep 600; done
  replispec admin drainBroker -n 127.0.0.1:9876 -b broker1 -t Orders --lost

\b
Logical queues that the broker writes move to those that write the fewest. What it only reads
stays until its messages are deleted, which is retention's matter; once all are, the brokers
that stay are told that these offsets are gone and where groups read on, and the broker may stop.
Where a logical queue ends that is not written any more is kept at one that stays. Clients see the
same queues all the time. A broker that leads queues of static topics may not stop:
remappingStaticTopic moves those, and their older items go with their messages. Of plain topics
nothing is moved: what the broker has of them nobody reads while it is stopped.

A broker that is gone for good, and was passed over (migrateTopicLogicalQueue -fd), may have held
older messages: with --lost the brokers that stay say of a topic that all of them are gone.

\b
Exit codes:
  0  the broker holds nothing of logical queues that is written or read: it may stop; with -t, nothing
     of this topic
  1  it may not yet, or something is refused, and the reason is said; run the same again
  2  a wrong command line
"""


@click.command("drainBroker", epilog=EXAMPLES, short_help="Take the logical queues off a broker.")
@click.option(
    "-b", "--brokerName", "broker", metavar="NAME", required=True, help="The broker that is to stop."
)
@click.option("-t", "--topic", metavar="NAME", help="Of this topic alone; else of all.")
@click.option("--lost", is_flag=True, help="With -t: it is gone for good, and all that it alone held.")
@name_servers_option
@dry_run_option
def command(broker: str, topic: str | None, name_servers: Sequence[str], *, lost: bool, dry_run: bool) -> int:
    """Move the logical queues that a broker writes to others, and say when it may stop."""
    broker = broker.strip()
    if lost:
        return _declared(name_servers, topic, broker, dry_run=dry_run)
    with refusals() as refused:
        held = HeldTopics([topic.strip()], {}) if topic else ask(topics_at(name_servers, broker))
        drained = (_drained(name_servers, each, broker, dry_run=dry_run) for each in held.logical)
        left = [*chain.from_iterable(drained), *_led(held), *_older(name_servers, held, broker)]
        if left:
            raise NotAsWantedError(f"{broker} may not stop yet: {left[0]}")
        if topic:
            say(f"{broker} holds nothing of {held.logical[0]} that is written or read.")
        else:
            say(f"{broker} holds nothing of logical queues that is written or read: it may stop.")
    return EXIT_REFUSED if refused else 0


def _declared(name_servers: Sequence[str], topic: str | None, broker: str, *, dry_run: bool) -> int:
    with refusals() as refused:
        if topic is None or dry_run:
            raise NotAsWantedError("--lost goes with -t, and without --dry-run")
        gone = ask(declared_lost(name_servers, topic.strip(), broker, wall_ms()))
        for index, intervals in gone.items():
            for begin, end in intervals:
                which = f"offsets {begin} to {end - 1} of logical queue {index} of {topic}"
                say(f"{which} are gone with {broker}.")
        if not gone:
            say(f"nothing of {topic} is missing without {broker}.")
    return EXIT_REFUSED if refused else 0


def _led(held: HeldTopics) -> Sequence[str]:
    """Static topics that a broker writes keep it from stopping, too."""
    return [
        f"it leads {count} logical queues of the static topic {each}, which remappingStaticTopic moves"
        for each, count in held.led.items()
    ]


def _older(name_servers: Sequence[str], held: HeldTopics, broker: str) -> Iterator[str]:
    """So do older items that have messages: nobody else has those."""
    for topic in held.older:
        count = older_at(ask(static_topics.known(name_servers, topic)).topic, broker)
        if count:
            yield f"{count} older items of the static topic {topic} are still read"


def _drained(name_servers: Sequence[str], topic: str, broker: str, *, dry_run: bool) -> Iterator[str]:
    """Move what a broker writes of a topic; told is what keeps it from stopping."""
    found = ask(known(name_servers, topic))
    if not found.queues and found.stated is None:
        raise NotAsWantedError(f"no broker has logical queues of {topic}")
    left = logical_queues.left_behind(found, broker)
    for index, target in left.items():
        if dry_run:
            yield f"logical queue {index} of {topic} waits at {target} for the end of a run that was cut off"
            continue
        migrate(name_servers, topic, index, target)
        say(f"logical queue {index} of {topic} is written at {target}.")
    if left:
        found = ask(known(name_servers, topic))
    for index in logical_queues.written_at(found, broker):
        found = ask(known(name_servers, topic))
        target = logical_queues.target_of(found, broker)
        if dry_run:
            yield f"it writes logical queue {index} of {topic}, which would move to {target}"
            continue
        migrate(name_servers, topic, index, target)
        say(f"logical queue {index} of {topic} is written at {target}.")
    for index in logical_queues.ended_at(ask(known(name_servers, topic)), broker):
        found = ask(known(name_servers, topic))
        target = logical_queues.target_of(found, broker)
        if dry_run:
            yield f"where logical queue {index} of {topic} ends is known there alone; {target} would keep it"
            continue
        migrate(name_servers, topic, index, target, ended_too=True)
        say(f"where logical queue {index} of {topic} ends is kept at {target}.")
    if not dry_run:
        ask(logical_queues.sealed_again(name_servers, topic))
    found = ask(known(name_servers, topic))
    read = logical_queues.read_at(found, broker)
    if read:
        yield f"{len(read)} segments of {topic} are still read"
    elif not dry_run and found.stated is not None and not logical_queues.written_at(found, broker):
        ask(logical_queues.announced(found, broker, wall_ms()))
