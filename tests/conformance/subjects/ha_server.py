"""Serves an HA master over loopback TCP, with its controller and its broker's remoting port."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import trio

from replispec.runtime.primitives.errors import RemoteProtocolError
from tests.conformance.subjects.controller_admin import GoodController
from tests.conformance.subjects.ha_broker import HaBroker
from tests.conformance.subjects.ha_master import GoodHaMaster
from tests.conformance.subjects.records import Die, Effect, Tell
from tests.conformance.subjects.remoting_server import HOST, READ_BYTES, Broken, RemotingServer, carry_out

MakeMaster = Callable[[Callable[[], float], GoodController], GoodHaMaster]


@dataclass(frozen=True, slots=True)
class HaAddresses:
    """Where the listener of replicas, the controller and the broker are, each `127.0.0.1:PORT`."""

    replicas: str
    controller: str
    broker: str


class HaServer:
    """One master on ports of its own, from `serve` on until its task is cancelled or it dies."""

    def __init__(self, make: MakeMaster) -> None:
        self._make = make

    async def serve(self, *, task_status: trio.TaskStatus[HaAddresses] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve; the status says where."""
        async with trio.open_nursery() as self._nursery:
            controller = GoodController(trio.current_time, HOST)
            self._master = self._make(trio.current_time, controller)
            listeners = await trio.open_tcp_listeners(0, host=HOST)
            addresses = HaAddresses(
                f"{HOST}:{listeners[0].socket.getsockname()[1]}",
                await self._nursery.start(RemotingServer(lambda _now, _address: controller).serve),
                await self._nursery.start(
                    RemotingServer(lambda _now, _address: HaBroker(self._master)).serve
                ),
            )
            controller.address = addresses.controller
            self._nursery.start_soon(self._examine)
            self._nursery.start_soon(trio.serve_listeners, self._replica, listeners)
            task_status.started(addresses)

    async def _examine(self) -> None:
        while True:
            await trio.sleep(self._master.examine_s)
            self._master.examine()

    async def _replica(self, stream: trio.SocketStream) -> None:
        wake = _Wake()
        link, reader = self._master.opened(wake.set), self._master.reader()
        try:
            while await self._perform(self._master.tick(link), stream):
                data = await wake.receive(stream, self._master.deadline_s(link))
                if data == b"":
                    return
                for message in reader.receive(data or b""):
                    if not await self._perform(self._master.receive(link, message), stream):
                        return
        except (RemoteProtocolError, *Broken):
            return
        finally:
            await self._perform(self._master.closed(link, reader.waiting_bytes), None)

    async def _perform(self, effects: Sequence[Effect], stream: trio.SocketStream | None) -> bool:
        """Carry out effects in order; False when the connection is to be closed."""
        for effect in effects:
            if isinstance(effect, Die):
                self._nursery.cancel_scope.cancel()
            elif stream is not None and not isinstance(effect, Tell) and not await carry_out(effect, stream):
                return False
        return True


class _Wake:
    """Ends a wait for bytes when the core has something to send."""

    def __init__(self) -> None:
        self._scope = trio.CancelScope()
        self._woken = False

    def set(self) -> None:
        """End the wait in hand, or the next one at once."""
        self._woken = True
        self._scope.cancel()

    async def receive(self, stream: trio.SocketStream, deadline_s: float) -> bytes | None:
        """The next bytes, none of them at the end of the stream; None when time is up or `set` was called."""
        data: bytes | None = None
        if not self._woken:
            with trio.CancelScope(deadline=deadline_s) as self._scope:
                data = await stream.receive_some(READ_BYTES)
        self._woken = False
        return data
