"""Serves the store of a scripted controller and carries its commands to brokers: it alone knows sockets."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import trio

from tests.conformance.subjects.kafka_controller import VERSIONS, GoodController
from tests.conformance.subjects.kafka_server import Asker
from tests.conformance.subjects.metastore import GoodMetastore
from tests.conformance.subjects.metastore_server import Broken, MetastoreServer
from tests.conformance.subjects.nodes import Told

AGAIN_S = 0.5
Channel = trio.MemorySendChannel[tuple[int, object]]


class WatchedStore(GoodMetastore):
    """A store that says when something in it changed."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        super().__init__(now_s)
        self.changed = trio.Event()

    def tell(self, told: Sequence[Told]) -> None:
        super().tell(list(told))
        self.changed.set()


class ControllerServer:
    """One controller beside a store, from `serve` on until its task is cancelled."""

    def __init__(self, make: type[GoodController]) -> None:
        self._make = make
        self._links: dict[int, Channel] = {}

    async def serve(self, *, task_status: trio.TaskStatus[str] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve; the status is the address of the store."""
        stores: list[WatchedStore] = []

        def store(now_s: Callable[[], float]) -> GoodMetastore:
            stores.append(WatchedStore(now_s))
            return stores[0]

        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            address: str = await nursery.start(MetastoreServer(store).serve)
            self._store = stores[0]
            self._core = self._make(self._store)
            self._settle()
            task_status.started(address)
            while True:
                await self._store.changed.wait()
                self._store.changed = trio.Event()
                self._settle()

    def _settle(self) -> None:
        self._core.settle()
        out, self._core.out = self._core.out, []
        for broker, key, command in out:
            if broker not in self._links:
                self._links[broker], got = trio.open_memory_channel[tuple[int, object]](10_000)
                self._nursery.start_soon(self._link, broker, got)
            self._links[broker].send_nowait((key, command))

    async def _link(self, broker: int, got: trio.MemoryReceiveChannel[tuple[int, object]]) -> None:
        async for key, command in got:
            while (node := self._core.live.get(broker)) is not None:
                try:
                    async with await trio.open_tcp_stream(node["host"], node["port"]) as stream:
                        said = await Asker(stream).ask(key, VERSIONS[key], command)
                        self._core.answered(
                            broker, key, said if not hasattr(command, "delete_partitions") else command
                        )
                    self._store.changed.set()
                    break
                except (OSError, *Broken):
                    await trio.sleep(AGAIN_S)
