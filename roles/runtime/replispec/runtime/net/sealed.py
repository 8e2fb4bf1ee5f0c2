"""A TCP socket with TLS in it: takes and gives what is said, and never waits, as a plain one does.

The library seals and opens in memory (`ssl.MemoryBIO`); only sealed bytes touch the socket here, so that
whoever holds a connection reads, writes and closes it in one way, with TLS or without.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import Final

import trio

from replispec.runtime.world.effects import Buffer

BEGIN_BYTES_MAX: Final = 128 * 1024
"""What a peer may send to begin TLS: chains of certificates are the most of it."""
RECORD_BYTES: Final = 32 * 1024
"""More than one record of TLS takes, sealed or not: what may wait in memory until the rest of it has come."""
SEALED_BYTES_MAX: Final = 256 * 1024
"""What is sealed ahead of what the kernel takes."""
SAID_BYTES_MAX: Final = 16 * 1024
"""What TLS itself may have to say (alerts, new keys) to a peer that does not take it."""
HANDSHAKE: Final = 0x16
"""The first byte of a connection that begins TLS (RFC 8446, section 5.1)."""


class NothingTakenError(OSError):
    """A peer makes TLS itself answer, and takes none of the answers."""


class SealedSocket:
    """What a `socket.socket` offers, of those parts that a connection uses. Raises as that one does."""

    def __init__(self, sock: socket.socket, context: ssl.SSLContext, server_name: str | None) -> None:
        """A server when no name is expected of the other side."""
        self._sock = sock
        self._in = ssl.MemoryBIO()
        self._out = ssl.MemoryBIO()
        self._tls = context.wrap_bio(
            self._in, self._out, server_side=server_name is None, server_hostname=server_name
        )
        # Sealed bytes on their way, and how many bytes of what is being sent they are.
        self._sealed = memoryview(b"")
        self._sealing = 0
        # Of what is sealed, at most so much was not asked to be sent: reading has made TLS say it.
        self._said = 0
        self._is_ended = False
        self.fileno = sock.fileno
        self.close = sock.close
        self.setsockopt = sock.setsockopt
        self.getsockname = sock.getsockname
        self.getpeername = sock.getpeername

    async def begin(self, turn: Callable[[], Awaitable[None]]) -> None:
        """Agree on keys. Each step is taken in a `turn`, as it takes long.

        Raises OSError, of which ssl.SSLError is one, after the other side was told.
        """
        taken = 0
        while True:
            await turn()
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                await self._push_all()
            except ssl.SSLError:
                await self._push_all()
                raise
            else:
                await self._push_all()
                return
            await trio.lowlevel.wait_readable(self._sock)
            try:
                data = self._sock.recv(RECORD_BYTES)
            except BlockingIOError:
                continue
            taken += len(data)
            if not data:
                raise OSError("the peer closed the connection while TLS began")
            if taken > BEGIN_BYTES_MAX:
                raise OSError(f"more than {BEGIN_BYTES_MAX} bytes to begin TLS")
            self._in.write(data)

    def check_time(self, now_s: float) -> None:
        """Of a session that is taken up again nobody asks whether what was shown when it began still counts.

        `now_s`: seconds since 1970. Raises OSError when the certificate's time is over.
        """
        shown = self._tls.getpeercert() if self._tls.session_reused else None
        if shown and now_s > ssl.cert_time_to_seconds(str(shown["notAfter"])):
            raise OSError("its certificate has expired, which it had shown when its session began")

    @property
    def has_said(self) -> bool:
        """Whether something that TLS itself has to say may wait to be sent."""
        return self._said > 0

    def flush(self) -> None:
        """Send what is sealed. Raises BlockingIOError while some of it is left, OSError."""
        self._push()

    def send(self, data: Buffer) -> int:
        """Seal and send; what is not taken is to be offered again. Raises BlockingIOError, OSError."""
        if not self._sealing:
            part = memoryview(data)[:SEALED_BYTES_MAX]
            while self._sealing < len(part):
                self._sealing += self._tls.write(part[self._sealing :])
        self._push()
        sent, self._sealing = self._sealing, 0
        return sent

    def sendmsg(self, parts: Iterable[Buffer]) -> int:
        """Likewise, of the first of several."""
        return self.send(next(iter(parts)))

    def recv(self, size: int) -> bytes:
        """What has come: all of it that is whole, so that nothing waits unseen.

        At most `size` bytes where that is several records, else a little more. Raises BlockingIOError and
        OSError.
        """
        data = self._sock.recv(max(size - RECORD_BYTES, RECORD_BYTES // 2))
        if not data:
            return b""
        self._in.write(data)
        opened = self.rest()
        if not opened and not self._is_ended:
            raise BlockingIOError
        return opened

    def rest(self) -> bytes:
        """What has come and was not given yet; with the end of the beginning, the first of what is said may
        come too. Raises OSError, of which NothingTakenError is one."""
        parts = []
        before = self._out.pending
        while True:
            try:
                part = self._tls.read(RECORD_BYTES)
            except ssl.SSLWantReadError:
                break
            except ssl.SSLZeroReturnError:
                part = b""
            if not part:
                # The other side has said that nothing follows.
                self._is_ended = True
                break
            parts.append(part)
        said = self._out.pending - before
        if said:
            # What TLS itself has to say, as far as it is taken now.
            self._said += said
            with suppress(BlockingIOError):
                self._push()
            if self._said > SAID_BYTES_MAX:
                raise NothingTakenError(f"TLS itself has more than {SAID_BYTES_MAX} bytes to say to it")
        return b"".join(parts)

    def shutdown(self, how: int) -> None:
        """Say that nothing follows. Raises OSError."""
        # The other side has not said so yet: that is the error.
        with suppress(ssl.SSLError):
            self._tls.unwrap()
        with suppress(BlockingIOError):
            self._push()
        self._sock.shutdown(how)

    def _push(self) -> None:
        """Give the kernel what is sealed. Raises BlockingIOError while some of it is left."""
        while self._sealed or self._out.pending:
            if not self._sealed:
                self._sealed = memoryview(self._out.read())
            sent = self._sock.send(self._sealed)
            self._sealed = self._sealed[sent:]
        self._said = 0

    async def _push_all(self) -> None:
        while True:
            try:
                self._push()
            except BlockingIOError:
                await trio.lowlevel.wait_writable(self._sock)
            else:
                return
