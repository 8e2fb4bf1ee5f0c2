"""One TCP connection as the host holds it: what waits to be sent, and whether bytes are taken."""

from __future__ import annotations

import socket
import sys
from collections import deque
from itertools import islice
from typing import Final, Protocol

import trio

from replispec.runtime.net.addresses import join
from replispec.runtime.net.sealed import SealedSocket
from replispec.runtime.world.effects import Buffer

SMALL_BYTES: Final = 16 * 1024
"""Sends below this are joined into one write; a longer one goes out from where it lies."""
JOINED_BYTES_MAX: Final = 256 * 1024
VECTORS_MAX: Final = 64
"""Buffers given to the kernel in one call."""
# struct linger: on, for no time.
_RESET: Final = (1).to_bytes(4, sys.byteorder) + bytes(4)


class Tap(Protocol):
    """Hears what really travelled on a connection, in the order in which the kernel gave or took it."""

    def opened(self, local: str, peer: str, *, dialled: bool) -> int:
        """A connection is open; its handle for the other calls."""
        ...

    def sent(self, handle: int, data: Buffer) -> None:
        """The kernel took bytes."""
        ...

    def received(self, handle: int, data: bytes) -> None:
        """The kernel gave bytes."""
        ...

    def closed(self, handle: int, *, by_peer: bool, broken: bool) -> None:
        """It is gone."""
        ...

    def close(self) -> None:
        """End the record."""
        ...


class Link:
    """A connection of one node; opened by its peer (positive number) or dialled (negative, open later)."""

    __slots__ = (
        "_handle",
        "_resumed",
        "_tap",
        "begins",
        "closing",
        "draining",
        "emptied",
        "ended",
        "gone",
        "is_open",
        "number",
        "out",
        "out_bytes",
        "paused",
        "peer",
        "scope",
        "sock",
        "total",
        "writable_at",
    )

    def __init__(self, number: int, peer: str, tap: Tap | None) -> None:
        self.number = number
        self.peer = peer
        self.sock: socket.socket | SealedSocket
        # Ends a dial.
        self.scope = trio.CancelScope()
        self.ended = trio.Event()
        self.emptied: trio.Event | None = None
        self.out: deque[Buffer] = deque()
        self.out_bytes = 0
        # Bytes ever queued, and how many of them must have left before the node gets Writable.
        self.total = 0
        self.writable_at: int | None = None
        self.is_open = self.closing = self.draining = self.paused = self.gone = False
        # Whether TLS has yet to begin: nothing can be told to the peer before.
        self.begins = False
        self._resumed: trio.Event | None = None
        self._tap = tap
        self._handle = 0

    def open(self, sock: socket.socket | SealedSocket) -> None:
        """It is connected. Raises OSError when it is gone already."""
        if self._tap is not None:
            local, peer = join(sock.getsockname()), join(sock.getpeername())
            self._handle = self._tap.opened(local, peer, dialled=self.number < 0)
        self.sock = sock
        self.is_open = True

    def queue(self, data: Buffer, *, tell: bool) -> None:
        """Put bytes after those that wait."""
        size = len(data)
        if size:
            self.out.append(data)
            self.out_bytes += size
            self.total += size
        if tell:
            self.writable_at = self.total

    def push(self) -> bool:
        """Give the kernel what it takes without waiting; whether all of it left. Raises OSError."""
        if len(self.out) > 1:
            self._join()
        out = self.out
        while out:
            try:
                if len(out) == 1:
                    sent = self.sock.send(out[0])
                else:
                    sent = self.sock.sendmsg(islice(out, VECTORS_MAX))
            except BlockingIOError:
                return False
            self._sent(sent)
        if isinstance(self.sock, SealedSocket) and self.sock.has_said:
            try:
                self.sock.flush()
            except BlockingIOError:
                return False
        return True

    @property
    def has_said(self) -> bool:
        """Whether TLS itself has something to say that may wait to be sent."""
        return not self.gone and isinstance(self.sock, SealedSocket) and self.sock.has_said

    def became_writable(self) -> bool:
        """Whether what the node waits for has left, so that it gets Writable; true once for each wish."""
        if self.writable_at is None or self.total - self.out_bytes < self.writable_at:
            return False
        self.writable_at = None
        return True

    def take(self, size: int) -> bytes:
        """What has arrived, at most `size` bytes; empty at the end. Raises BlockingIOError, OSError."""
        data = self.sock.recv(size)
        if self._tap is not None and data:
            self._tap.received(self._handle, data)
        return data

    def take_rest(self) -> bytes:
        """What came with the end of the beginning of TLS; empty: nothing. Raises OSError."""
        data = self.sock.rest() if isinstance(self.sock, SealedSocket) else b""
        if self._tap is not None and data:
            self._tap.received(self._handle, data)
        return data

    def pause(self) -> None:
        """Let no bytes be taken."""
        self.paused = True

    def resume(self) -> None:
        """Let bytes be taken again."""
        self.paused = False
        if self._resumed is not None:
            self._resumed.set()
            self._resumed = None

    async def resumed(self) -> None:
        """Wait until bytes may be taken."""
        while self.paused:
            if self._resumed is None:
                self._resumed = trio.Event()
            await self._resumed.wait()

    def end_sending(self) -> None:
        """Tell the peer that nothing more comes. Raises OSError."""
        self.sock.shutdown(socket.SHUT_WR)

    def dispose(self, *, by_peer: bool = False, broken: bool = False) -> None:
        """Give the socket back. A broken one is reset, so that the kernel keeps nothing for its peer."""
        if self.gone:
            return
        self.gone = True
        self.scope.cancel()
        self.ended.set()
        self.resume()
        if not self.is_open:
            return
        if broken:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        trio.lowlevel.notify_closing(self.sock)
        self.sock.close()
        self.out.clear()
        if self._tap is not None:
            self._tap.closed(self._handle, by_peer=by_peer, broken=broken)

    def _sent(self, size: int) -> None:
        self.out_bytes -= size
        out = self.out
        while size:
            first = out[0]
            part = min(size, len(first))
            if self._tap is not None:
                self._tap.sent(self._handle, memoryview(first)[:part])
            size -= part
            if part == len(first):
                out.popleft()
            else:
                out[0] = memoryview(first)[part:]

    def _join(self) -> None:
        """Make one buffer of each run of small ones."""
        joined: list[Buffer] = []
        run: list[Buffer] = []
        run_bytes = 0
        for data in self.out:
            if len(data) < SMALL_BYTES and run_bytes < JOINED_BYTES_MAX:
                run.append(data)
                run_bytes += len(data)
                continue
            if run:
                joined.append(b"".join(run))
            small = len(data) < SMALL_BYTES
            run, run_bytes = ([data], len(data)) if small else ([], 0)
            if not small:
                joined.append(data)
        if run:
            joined.append(b"".join(run))
        self.out = deque(joined)
