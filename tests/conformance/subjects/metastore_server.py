"""Serves a scripted metastore over loopback TCP, and is all that knows sockets."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import trio

from tests.conformance.subjects.metastore import Client, GoodMetastore

HOST = "127.0.0.1"
READ_BYTES = 65536
Broken = (trio.BrokenResourceError, trio.ClosedResourceError)
MakeMetastore = Callable[[Callable[[], float]], GoodMetastore]


class MetastoreServer:
    """One metastore on a port of its own, from `serve` on until its task is cancelled."""

    def __init__(self, make: MakeMetastore) -> None:
        self._make = make
        self._numbers = itertools.count(1)
        self._streams: dict[int, tuple[Client, trio.Event, trio.SocketStream]] = {}
        self._woken = trio.Event()

    async def serve(self, *, task_status: trio.TaskStatus[str] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve; the status is the address, `127.0.0.1:PORT`."""
        listeners = await trio.open_tcp_listeners(0, host=HOST)
        self._core = self._make(trio.current_time)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._expire)
            nursery.start_soon(trio.serve_listeners, self._connection, listeners)
            task_status.started(f"{HOST}:{listeners[0].socket.getsockname()[1]}")

    async def _connection(self, stream: trio.SocketStream) -> None:
        client = self._core.accepted(next(self._numbers))
        self._streams[client.number] = client, trio.Event(), stream
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._write, client)
                try:
                    while data := await stream.receive_some(READ_BYTES):
                        self._core.receive(client, bytes(data))
                        self._wake()
                except Broken:
                    pass
                nursery.cancel_scope.cancel()
        finally:
            del self._streams[client.number]
            self._core.disconnected(client)
            self._wake()

    def _wake(self) -> None:
        """Something happened: deadlines may be others."""
        self._woken.set()
        self._wake_clients()

    async def _write(self, client: Client) -> None:
        while True:
            _, event, stream = self._streams[client.number]
            await event.wait()
            self._streams[client.number] = client, trio.Event(), stream
            while client.out:
                try:
                    await stream.send_all(client.out.pop(0))
                except Broken:
                    return
            if client.ends:
                await stream.aclose()
                return

    async def _expire(self) -> None:
        while True:
            self._woken = trio.Event()
            with trio.move_on_at(self._core.deadline_s()):
                await self._woken.wait()
            self._core.tick()
            self._wake_clients()

    def _wake_clients(self) -> None:
        """Whoever was given something to send, or is to be hung up on, has it done."""
        for client, event, _ in self._streams.values():
            if client.out or client.ends:
                event.set()
