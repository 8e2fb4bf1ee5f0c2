"""`replispec produce` and `replispec consume`: what is sent and read, as lines."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import click

from replispec.cli.consume import Consumption
from replispec.cli.peers_text import say
from replispec.cli.produce import Production
from replispec.cli.progress import Tell, counting
from replispec.cli.rocketmq.admin.asking import ADDRESSES
from replispec.cli.rocketmq.signing import sealing, signer
from replispec.cli.speaking import current
from replispec.runtime.net.visit_shell import visit
from replispec.runtime.primitives.visible import visible
from replispec.runtime.rocketmq.client import (
    Begin,
    ClientQueue,
    ConsumerNode,
    Failed,
    MessageToSend,
    ProducerNode,
    Reading,
    ReadMessage,
    Stored,
)

EXIT_FAILED: Final = 1
OK: Final = "SEND_OK"
NUMBER: Final = "{n}"
CONSUMER: Final = "replispec-consume"
BODY_CHARACTERS_MAX: Final = 4_096


# ---- sent ----------------------------------------------------------------------------------------


def produce(wanted: Production) -> int:
    """Send, and say what came of it; the exit code."""
    speaking = current()
    total = 0 if wanted.lines is not None else wanted.count
    with counting("sent", total, quiet=wanted.quiet) as tell:
        told = _Producing(wanted, tell)
        node = ProducerNode(
            _addresses(wanted.name_servers),
            _outgoing(wanted),
            told.heard,
            group=wanted.group,
            at_once=wanted.at_once,
            pause_ms=wanted.pause_ms,
            sign=signer(speaking),
        )
        visit(node, sealing(speaking))
    say(told.summary, err=True)
    if told.failures:
        say(f"replispec: {told.failures[0]}", err=True)
    return EXIT_FAILED if told.failures else 0


def _addresses(text: str) -> tuple[str, ...]:
    found: tuple[str, ...] = ADDRESSES.convert(text, None, None)
    return found


def _outgoing(wanted: Production) -> Iterator[MessageToSend]:
    if wanted.lines is not None:
        for number, line in enumerate(wanted.lines):
            yield _message(wanted, number, line.rstrip(b"\r\n"))
        return
    for number in range(wanted.count):
        yield _message(wanted, number, wanted.body.replace(NUMBER, str(number)).encode())


def _message(wanted: Production, number: int, body: bytes) -> MessageToSend:
    return MessageToSend(wanted.topic, body, wanted.key.replace(NUMBER, str(number)), wanted.tag)


class _Producing:
    """What came of the messages so far."""

    def __init__(self, wanted: Production, tell: Tell) -> None:
        self._wanted = wanted
        self._tell = tell
        self._sent = 0
        self.failures: list[str] = []

    @property
    def summary(self) -> str:
        """How many were stored."""
        return f"{self._sent} of {self._sent + len(self.failures)} messages acknowledged"

    def heard(self, number: int, came: Stored | Failed, _now_ms: int) -> None:
        """One message was answered."""
        if isinstance(came, Failed):
            self.failures.append(f"message {number}: {came}")
            row: dict[str, object] = {"number": number, "status": "FAILED", "why": str(came)}
        else:
            row = {
                "number": number,
                "status": came.status,
                "broker": came.queue.broker,
                "queue": came.queue.number,
                "offset": came.offset,
            }
            if came.status == OK:
                self._sent += 1
            else:
                self.failures.append(f"message {number}: {came.status}")
        if not self._wanted.quiet:
            click.echo(json.dumps(row) if self._wanted.form == "json" else _line(row))
        done = self._sent + len(self.failures)
        self._tell(f"{done} messages", done, max(done, self._wanted.count))


def _line(row: dict[str, object]) -> str:
    return " ".join(visible(str(each), BODY_CHARACTERS_MAX) for each in row.values())


# ---- read ----------------------------------------------------------------------------------------


def consume(wanted: Consumption) -> int:
    """Read, and show what is read; the exit code."""
    speaking = current()
    reading = Reading(
        wanted.topic,
        _begin(wanted.begin),
        wanted.group,
        wanted.count,
        None if wanted.idle is None else int(wanted.idle * 1_000),
    )
    told = _Consuming(wanted)
    node = ConsumerNode(
        _addresses(wanted.name_servers),
        reading,
        told.heard,
        told.troubled,
        name=CONSUMER,
        sign=signer(speaking),
    )
    visit(node, sealing(speaking))
    say(f"{told.count} messages", err=True)
    if node.failure is not None:
        say(f"replispec: {node.failure}", err=True)
        return EXIT_FAILED
    return EXIT_FAILED if wanted.count is not None and told.count < wanted.count else 0


def _begin(text: str) -> Begin | int:
    for each in Begin:
        if text == each.value:
            return each
    if text.isdecimal():
        return int(text)
    raise click.UsageError(f"--from {text}: earliest, latest or milliseconds since 1970 are expected")


@dataclass(slots=True)
class _Consuming:
    """What was read so far."""

    wanted: Consumption
    count: int = 0
    said: str = ""

    def heard(self, message: ReadMessage, _now_ms: int) -> None:
        """One message came."""
        self.count += 1
        if self.wanted.quiet:
            return
        text = message.body.decode("utf-8", "replace")
        row: dict[str, object] = {
            "broker": message.queue.broker,
            "queue": message.queue.number,
            "offset": message.offset,
            "key": message.key,
            "body": text,
        }
        if self.wanted.form == "json":
            click.echo(json.dumps({**row, "tag": message.tag, "stored_ms": message.stored_ms}))
        else:
            click.echo(_line({**row, "key": message.key or "-"}))
        sys.stdout.flush()

    def troubled(self, queue: ClientQueue, failure: Failed) -> None:
        """A queue cannot be read for now."""
        text = f"replispec: queue {queue.number} of {queue.broker}: {failure}; trying again"
        if text != self.said:
            say(text, err=True)
        self.said = text
