"""Tells brokers who is master (1008): one connection per address, none waits for another.

Only the newest decision is worth telling: what could not leave yet is replaced by what is newer. A broker
that cannot be reached is not tried again; it asks every few seconds by itself.
Source: apache/rocketmq rocketmq-all-5.4.0, ControllerManager, NotifyService.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from replispec.runtime.primitives.bindings import Notice
from replispec.runtime.rocketmq.access import Sign
from replispec.runtime.rocketmq.framing import Command
from replispec.runtime.rocketmq.remoting.server import LANGUAGE
from replispec.runtime.world import Closed, Connected, Level, Outbox, Writable
from replispec.wire.rocketmq import constants
from replispec.wire.rocketmq.codes import RemotingFlag
from replispec.wire.rocketmq.remoting import RemotingHeader

ADDRESSES_MAX: Final = 10_000
"""Brokers that are notified at a time; further ones find out by asking."""


@dataclass(slots=True)
class _Line:
    """The connection to one broker; `waiting` is what it is to be told once it listens."""

    address: str
    connection: int
    used_ms: int
    waiting: bytes | None
    may_send: bool = False
    is_open: bool = False


class Notifier:
    """Sends notifications; one-way, so whether they are received is never known."""

    def __init__(self, outbox: Outbox, sign: Sign | None = None) -> None:
        self._outbox = outbox
        self._sign = sign
        self._opaque = 0
        self._by_address: dict[str, _Line] = {}
        self._by_connection: dict[int, _Line] = {}

    def owns(self, connection: int) -> bool:
        """Whether this connection is one of ours."""
        return connection in self._by_connection

    def tell(self, notices: Iterable[tuple[str, Notice]], now_ms: int) -> None:
        """Tell the brokers at these addresses, in their order."""
        for address, notice in notices:
            fields = notice.ext_fields
            if self._sign is not None:
                fields = self._sign(fields, notice.body)
            self._opaque = 0 if self._opaque >= constants.OPAQUE_MAX else self._opaque + 1
            header = RemotingHeader(
                code=notice.code,
                language=LANGUAGE,
                opaque=self._opaque,
                flag=RemotingFlag.ONEWAY,
                ext_fields=fields,
            )
            self._put(address, Command(header, notice.body).encode(), now_ms)

    def connected(self, event: Connected) -> None:
        """A broker listens: tell it."""
        line = self._by_connection[event.connection]
        line.is_open = line.may_send = True
        self._send(line, event.now_ms)

    def writable(self, event: Writable) -> None:
        """A notification has left: the next one may."""
        line = self._by_connection.get(event.connection)
        if line is not None:
            line.may_send = True
            self._send(line, event.now_ms)

    def closed(self, event: Closed) -> None:
        """The connection is gone, and what was to be told on it."""
        line = self._by_connection.get(event.connection)
        if line is not None:
            self._forget(line, event.reason)

    def ticked(self, now_ms: int) -> None:
        """Give up on brokers that do not answer the dial, and on connections that are not needed."""
        for line in tuple(self._by_connection.values()):
            if now_ms >= self._end_ms(line):
                self._outbox.close(line.connection)
                self._forget(line, "no connection in time")

    def deadline_ms(self) -> int | None:
        """When `ticked` has something to do."""
        return min(map(self._end_ms, self._by_connection.values()), default=None)

    def _put(self, address: str, data: bytes, now_ms: int) -> None:
        line = self._by_address.get(address)
        if line is not None:
            line.waiting = data
            self._send(line, now_ms)
            return
        if len(self._by_address) >= ADDRESSES_MAX:
            self._outbox.note(Level.WARNING, "broker not notified: too many connections", broker=address)
            return
        line = _Line(address, self._outbox.dial(address), now_ms, data)
        self._by_address[address] = self._by_connection[line.connection] = line

    def _send(self, line: _Line, now_ms: int) -> None:
        if line.may_send and line.waiting is not None:
            self._outbox.send(line.connection, line.waiting, tell=True)
            line.waiting, line.may_send, line.used_ms = None, False, now_ms

    def _end_ms(self, line: _Line) -> int:
        return line.used_ms + (constants.NOTIFIER_IDLE_MS if line.is_open else constants.CONNECT_TIMEOUT_MS)

    def _forget(self, line: _Line, reason: str) -> None:
        del self._by_address[line.address], self._by_connection[line.connection]
        if line.waiting is not None:
            self._outbox.note(Level.WARNING, "broker not notified", broker=line.address, reason=reason)
