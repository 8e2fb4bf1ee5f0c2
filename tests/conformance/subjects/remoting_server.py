"""Serves a core that answers remoting requests over loopback TCP, and is all that knows sockets."""

from __future__ import annotations

import itertools
import socket
import struct
from collections.abc import Callable, Sequence

import trio

from replispec.runtime.primitives.errors import RemoteProtocolError
from tests.conformance.subjects.answering import Answering
from tests.conformance.subjects.records import (
    Die,
    Effect,
    Flood,
    Hangup,
    Reply,
    Reset,
    Tell,
)

HOST = "127.0.0.1"
READ_BYTES = 65536
RESET_AT_CLOSE = struct.pack("ii", 1, 0)

MakeCore = Callable[[Callable[[], float], str], Answering]
Broken = (trio.BrokenResourceError, trio.ClosedResourceError)


class RemotingServer:
    """One core on a port of its own, from `serve` on until its task is cancelled or it dies."""

    def __init__(self, make: MakeCore) -> None:
        self._make = make
        self._channels = itertools.count(1)
        self._wake = trio.Event()

    async def serve(
        self, port: int = 0, *, task_status: trio.TaskStatus[str] = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Serve; the status is the address, `127.0.0.1:PORT`."""
        listeners = await trio.open_tcp_listeners(port, host=HOST)
        address = f"{HOST}:{listeners[0].socket.getsockname()[1]}"
        self._core = self._make(trio.current_time, address)
        async with trio.open_nursery() as self._nursery:
            self._nursery.start_soon(self._scan)
            self._nursery.start_soon(trio.serve_listeners, self._connection, listeners)
            task_status.started(address)

    async def _connection(self, stream: trio.SocketStream) -> None:
        channel, reader = next(self._channels), self._core.reader()
        try:
            while data := await stream.receive_some(READ_BYTES):
                for command in reader.receive(data):
                    effects = self._core.receive(command, channel)
                    self._wake.set()
                    if not await self._perform(effects, stream):
                        return
        except (RemoteProtocolError, *Broken):
            return
        finally:
            await self._perform(self._core.connection_ended(reader.waiting_bytes, channel), None)

    async def _perform(self, effects: Sequence[Effect], stream: trio.SocketStream | None) -> bool:
        """Carry out effects in order; False when the connection is to be closed."""
        for effect in effects:
            if isinstance(effect, Tell):
                self._nursery.start_soon(self._tell, effect.address, effect.data)
            elif isinstance(effect, Die):
                self._nursery.cancel_scope.cancel()
            elif stream is not None:
                if self._core.answers_after_s:
                    await trio.sleep(self._core.answers_after_s)
                if not await carry_out(effect, stream):
                    return False
        return True

    async def _tell(self, address: str, data: bytes) -> None:
        host, _, port = address.rpartition(":")
        try:
            async with await trio.open_tcp_stream(host, int(port)) as stream:
                await stream.send_all(data)
        except (OSError, ValueError, *Broken):
            return

    async def _scan(self) -> None:
        while True:
            self._wake = trio.Event()
            with trio.move_on_at(self._core.deadline_s()):
                await self._wake.wait()
            await self._perform(self._core.tick(), None)


async def carry_out(effect: Reply | Hangup | Reset | Flood, stream: trio.SocketStream) -> bool:
    """Carry out one effect on a connection; False when it is to be closed."""
    match effect:
        case Reply(data):
            await stream.send_all(data)
        case Flood(data):
            while True:
                await stream.send_all(data)
        case Reset():
            stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_AT_CLOSE)
    return isinstance(effect, Reply)
