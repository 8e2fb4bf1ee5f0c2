"""Connections of a case on trio: one task reads each, a bounded queue keeps what came."""

from __future__ import annotations

import math
import re
import socket
import sys

import trio

from replispec.conformance.encoding import Encoded
from replispec.conformance.received import (
    Breach,
    Ended,
    Received,
    SubjectReader,
    described,
)
from replispec.conformance.trace import Trace
from replispec.conformance.vocabulary import Dialect

CONNECT_S = 5.0
_PORT = re.compile(r"[0-9]{1,5}")
PIECE_BYTES = 65536
# What a subject may send beyond what is asked before it counts as flooding.
WAITING_MAXIMUM = 256
FLOOD = "the subject floods the connection"
# SO_LINGER switched on with 0 seconds, two integers of the system: closing sends a reset.
_LINGER_OFF = (1).to_bytes(4, sys.byteorder) + bytes(4)


class Unreachable(Exception):
    """Nobody accepts a connection at an address."""


class Wire:
    """One connection, and what came on it and was not looked at yet."""

    def __init__(
        self, name: str, stream: trio.SocketStream, reader: SubjectReader, trace: Trace, dialect: Dialect
    ):
        self.name = name
        self.reader = reader
        self._stream = stream
        self._sending = trio.Lock()
        self._trace = trace
        self._dialect = dialect
        self._put, self._got = trio.open_memory_channel[Received](WAITING_MAXIMUM)
        self._flooded = False
        self.unanswered = False  # whether nothing came since something was sent

    async def read(self) -> None:
        """Take bytes until the connection ends. What came too much ends it with a breach."""
        async with self._put:
            while True:
                try:
                    data = await self._stream.receive_some(PIECE_BYTES)
                except (trio.BrokenResourceError, trio.ClosedResourceError):
                    self._note(Ended("reset"))
                    return
                if not data:
                    for received in (*self.reader.ended(), Ended("in order")):
                        self._note(received)
                    return
                self._trace_bytes("<", bytes(data), "")
                for received in self.reader.receive(bytes(data)):
                    if not self._note(received) or isinstance(received, Breach):
                        return

    def _note(self, received: Received) -> bool:
        self._trace_bytes("<", b"", described(received, self._dialect))
        self.unanswered = self.unanswered and isinstance(received, Ended)
        try:
            self._put.send_nowait(received)
        except trio.WouldBlock:
            self._trace_bytes("-", b"", f"more than {WAITING_MAXIMUM} messages wait: a flood")
            self._flooded = True
            return False
        except trio.BrokenResourceError:
            return False
        return True

    def _trace_bytes(self, way: str, data: bytes, says: str) -> None:
        self._trace.add(trio.current_time() - self._trace.began_s, self.name, way, says, data)

    async def send(
        self, encoded: Encoded, parts: list[bytes], pause_s: float, unread_s: float = math.inf
    ) -> bool:
        """Send in pieces. False when the subject has ended the connection.

        Raises trio.TooSlowError when one piece is left unread for longer than `unread_s`: how long the suite
        itself takes between them is nothing to the subject.
        """
        for question in encoded.questions:
            self.reader.asked(question)
        self._trace_bytes(">", b"".join(parts), encoded.says)
        self.unanswered = True
        try:
            # A step and what is answered at once may come together: one message is whole before the next.
            async with self._sending:
                for number, part in enumerate(parts):
                    if number and pause_s:
                        await trio.sleep(pause_s)
                    with trio.fail_after(unread_s):
                        await self._stream.send_all(part)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            return False
        return True

    async def next(self) -> Received:
        """What came next; an end again and again once the connection has ended."""
        try:
            return await self._got.receive()
        except trio.EndOfChannel:
            return Breach(FLOOD) if self._flooded else Ended("before")

    def waiting(self) -> list[Received]:
        """What came and was not looked at."""
        found: list[Received] = [Breach(FLOOD)] if self._flooded else []
        while True:
            try:
                found.append(self._got.receive_nowait())
            except (trio.WouldBlock, trio.EndOfChannel):
                return found

    async def end(self, *, reset: bool) -> None:
        """Close the connection, with a reset when asked to."""
        if reset:
            self._stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_OFF)
        self._trace_bytes(">", b"", "reset" if reset else "closed")
        self._stream.socket.close() if reset else await trio.aclose_forcefully(self._stream)


def split_address(address: str) -> tuple[str, int]:
    """HOST:PORT in two. Raises ValueError."""
    host, colon, port = address.rpartition(":")
    is_port = _PORT.fullmatch(port) is not None and 0 < int(port) < 65536
    if not colon or not is_port or not host or not host.isprintable():
        raise ValueError(f"{address!a} is not HOST:PORT")
    return host.strip("[]"), int(port)


async def connect(address: str) -> trio.SocketStream:
    """A connection. Raises Unreachable."""
    host, port = split_address(address)
    try:
        with trio.fail_after(CONNECT_S):
            stream = await trio.open_tcp_stream(host, port)
    except trio.TooSlowError:
        raise Unreachable(f"{address} does not accept a connection within {CONNECT_S:g} s") from None
    except UnicodeError:
        raise Unreachable(f"nobody listens at {address}: that is no name of a host") from None
    except OSError as fault:
        raise Unreachable(f"nobody listens at {address}: {_cause(fault)}") from None
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return stream


async def accept(listener: trio.SocketListener, put: trio.MemorySendChannel[trio.SocketStream]) -> None:
    """Hand on every connection that is accepted, until nobody takes them any more."""
    async with listener, put:
        while True:
            await put.send(await listener.accept())


def _cause(fault: BaseException) -> str:
    """The system's word for why no address of a name accepted a connection."""
    deeper = fault.__cause__
    if isinstance(deeper, BaseExceptionGroup):
        deeper = deeper.exceptions[-1]
    if isinstance(deeper, OSError):
        return _cause(deeper)
    return (fault.strerror if isinstance(fault, OSError) else None) or str(fault)
