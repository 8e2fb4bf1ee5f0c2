"""Serves what a process shows by HTTP, within bounds: many, slow and silent readers cost little."""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import trio

from replispec.runtime.net.live_page_shell import live_page
from replispec.runtime.net.log_shell import Log
from replispec.runtime.net.turns import Turns
from replispec.runtime.seeing.answers import Answers, Seen, refused
from replispec.runtime.seeing.http import Bad, HttpConnection, HttpRequest
from replispec.runtime.world import Level

CONNECTIONS_MAX: Final = 32
VIEWERS_MAX: Final = 8
"""Of these connections, so many may be streams of events."""
REQUEST_S: Final = 5.0
"""What a request may take to arrive."""
ANSWER_S: Final = 10.0
"""What an answer, or one piece of a stream, may take to be read."""
LOOK_S: Final = 0.2
"""How often a stream tells what is new."""
SILENCE_S: Final = 10.0
"""A stream is not silent for longer."""
_READ_BYTES: Final = 4096


class SeenServer:
    """The listeners of one process."""

    def __init__(self, nodes: Sequence[Seen], log: Log, answers: Answers | None = None) -> None:
        self._answers = answers or Answers(nodes, live_page())
        self._log = log
        self._role = nodes[0].role
        self._turns = Turns()
        self._open = self._viewers = 0
        # Of those that are open and no stream, in the order in which they came: who gives way.
        self._passing: dict[trio.CancelScope, None] = {}
        self._told = False
        log.heard = self._answers.happened

    async def run(self, listeners: Sequence[socket.socket]) -> None:
        """Serve until cancelled."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._turns.run)
            for listener in listeners:
                nursery.start_soon(self._accept, listener, nursery)

    async def _accept(self, listener: socket.socket, nursery: trio.Nursery) -> None:
        while True:
            await trio.lowlevel.wait_readable(listener)
            try:
                sock, _ = listener.accept()
            except BlockingIOError:
                continue
            except OSError:
                await trio.sleep(LOOK_S)
                continue
            if self._open >= CONNECTIONS_MAX:
                self._tell_full()
                if not self._make_room():
                    sock.close()
                    continue
            sock.setblocking(False)
            self._open += 1
            self._passing[mine := trio.CancelScope()] = None
            nursery.start_soon(self._serve, sock, mine)

    def _make_room(self) -> bool:
        """End the oldest connection that is no stream: who asks for something is answered at once, so it asks
        nothing, or does not read. Whether there was one."""
        oldest = next(iter(self._passing), None)
        if oldest is None:
            return False
        del self._passing[oldest]
        oldest.cancel()
        return True

    def _tell_full(self) -> None:
        if not self._told:
            self._told = True
            most = {"most": CONNECTIONS_MAX}
            self._log.write(Level.WARNING, self._role, "too many readers of metrics and health", most)

    async def _serve(self, sock: socket.socket, mine: trio.CancelScope) -> None:
        try:
            with mine:
                await self._answer(sock, mine)
        except (OSError, trio.TooSlowError):
            pass
        except Exception as error:  # noqa: BLE001  a role serves though it cannot be shown
            reason = {"reason": f"{type(error).__name__}: {error}"}
            self._log.write(Level.ERROR, self._role, "what is asked cannot be shown", reason)
        finally:
            sock.close()
            self._passing.pop(mine, None)
            self._open -= 1
            if not self._open:
                self._told = False

    async def _answer(self, sock: socket.socket, mine: trio.CancelScope) -> None:
        connection = HttpConnection(sock.getsockname()[0])
        asked: HttpRequest | None = None
        try:
            with trio.fail_after(REQUEST_S):
                while asked is None:
                    asked = connection.received(await _some(sock))
            # Text of many numbers takes a while: one is made in a turn of the loop.
            await self._turns.mine()
            found = self._answers.respond(asked)
            if found.is_stream and self._viewers >= VIEWERS_MAX:
                raise Bad(503, f"{VIEWERS_MAX} pages are open, and no more are served")
        except Bad as bad:
            await _send(sock, connection.respond(refused(bad)))
            await _leave(sock)
            return
        await _send(sock, connection.respond(found, with_body=asked.method != "HEAD"))
        if not found.is_stream:
            await _leave(sock)
            return
        self._viewers += 1
        self._passing.pop(mine, None)
        try:
            await self._stream(lambda data: _send(sock, connection.more(data)))
        finally:
            self._viewers -= 1

    async def _stream(self, send: Callable[[bytes], Awaitable[None]]) -> None:
        """What happened, and how all is whenever that changed."""
        after, shown, sent_s = 0, b"", trio.current_time()
        while True:
            await self._turns.mine()
            after, lines = self._answers.events(after)
            picture = self._answers.picture()
            news = lines + (picture if picture != shown else b"")
            if not news and trio.current_time() >= sent_s + SILENCE_S:
                news = b": nothing new\n\n"
            if news:
                shown, sent_s = picture, trio.current_time()
                await send(news)
            await trio.sleep(LOOK_S)


async def _some(sock: socket.socket) -> bytes:
    """The next bytes, none at the end. Raises OSError."""
    while True:
        await trio.lowlevel.wait_readable(sock)
        try:
            return sock.recv(_READ_BYTES)
        except BlockingIOError:
            continue


async def _send(sock: socket.socket, data: bytes) -> None:
    """Raises OSError, and TooSlowError for who does not read."""
    view = memoryview(data)
    with trio.fail_after(ANSWER_S):
        while view:
            await trio.lowlevel.wait_writable(sock)
            try:
                view = view[sock.send(view) :]
            except BlockingIOError:
                continue


async def _leave(sock: socket.socket) -> None:
    """Wait for the reader's end a moment: to close over bytes that were not read would take the answer
    along."""
    sock.shutdown(socket.SHUT_WR)
    with trio.move_on_after(1.0):
        while await _some(sock):
            pass
