"""A port at another address, as a host behind a translation has one: what comes there is passed on."""

from __future__ import annotations

import socket
import threading
from contextlib import ExitStack, suppress
from types import TracebackType
from typing import Self

OUTSIDE = ("127.0.0.2", "127.0.0.3", "127.0.0.4")
"""The addresses from which clusters have connections passed on. Captures leave them out: what is passed on is
there once, as it comes to who listens."""
CHUNK_BYTES = 65_536


class Forwarded:
    """Passes on what comes to one address to another one of the same port. `accepted` are the connections so
    far. Leaving the block ends them."""

    def __init__(self, outside: str, inside: str, port: int) -> None:
        self.accepted = 0
        self._inside = inside, port
        self._open = ExitStack()
        self._listener = self._open.enter_context(socket.create_server((outside, port)))
        self._thread = threading.Thread(target=self._accept, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # A thread that waits in `accept` is not woken by `close`.
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._open.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                outer, _ = self._listener.accept()
                self.accepted += 1
                self._open.enter_context(outer)
                # Nobody listens inside: who came is told so by the end of the connection.
                try:
                    inner = self._open.enter_context(socket.create_connection(self._inside))
                except OSError:
                    outer.close()
                    continue
                for source, sink in ((outer, inner), (inner, outer)):
                    threading.Thread(target=_pass_on, args=(source, sink), daemon=True).start()


def _pass_on(source: socket.socket, sink: socket.socket) -> None:
    """Until one of both ends: then both do."""
    with suppress(OSError):
        while data := source.recv(CHUNK_BYTES):
            sink.sendall(data)
    for each in (source, sink):
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
