"""A broker that registers, in a few lines, and an adapter that starts it inside of the test."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import trio

from replispec.conformance.adapter_requests import AdapterRefused
from replispec.conformance.adapters import AdapterDescription, Living, Starting
from replispec.conformance.model import Sent
from replispec.conformance.rocketmq.remoting import RemotingEncoder, SubjectRemotingReader

ABILITIES = frozenset({"crash", "reset", "keep_storage", "start_at_once"})
GET, APPLY, REGISTER = (
    "CONTROLLER_GET_NEXT_BROKER_ID",
    "CONTROLLER_APPLY_BROKER_ID",
    "CONTROLLER_REGISTER_BROKER",
)


DESCRIBED = AdapterDescription("inside", "1", frozenset({"broker"}), ABILITIES)


@dataclass
class Store:
    """What a broker keeps: the id that it was told, its check code, and whether it was granted."""

    told: int = 0
    code: str = ""
    granted: bool = False
    address: str = ""


@dataclass
class Wrong:
    """What is wrong with a broker; by default nothing."""

    applies_for_more: int = 0
    forgets: bool = False
    new_code: bool = False
    garbage: bool = False
    dies: bool = False
    keeps_address: bool = False
    late: frozenset[str] = frozenset()
    """What is asked twice, as the first answer was not read in time."""
    starts_over: bool = False
    """Its first application was not answered in time: it forgets the id, as Apache's does."""
    twice: frozenset[str] = frozenset()
    """What is asked twice, as nobody answered the first time; both wait for an answer."""
    never_content: str = ""
    """What it asks again and again, whatever is answered."""


@dataclass
class InsideAdapter:
    """Stands in for `replispec.conformance.adapters.Adapter`."""

    nursery: trio.Nursery
    wrong: Wrong
    described: AdapterDescription = DESCRIBED
    stores: dict[str, Store] = field(default_factory=dict)
    living: dict[str, trio.CancelScope] = field(default_factory=dict)
    exited: dict[str, str] = field(default_factory=dict)
    starts: int = 0
    reserved: set[str] = field(default_factory=set)

    async def start(self, starting: Starting) -> Living:
        """A broker that speaks to the first controller that it is told of."""
        self.starts += 1
        if self.wrong.dies:
            self.exited[starting.name] = "it ended by itself with status 9"
        else:
            scope = self.living[starting.name] = trio.CancelScope()
            store = Store() if self.wrong.forgets else self.stores.setdefault(starting.name, Store())
            self.nursery.start_soon(self._run, scope, starting, store)
        return Living(starting.name, {"remoting": self.address(starting)})

    def address(self, starting: Starting) -> str:
        """Where a broker says that it listens."""
        return starting.address or f"127.0.0.1:{40_000 + self.starts}"

    async def crash(self, name: str) -> None:
        """End it at once."""
        self.living.pop(name).cancel()

    async def stop(self, name: str) -> None:
        """End it in order, which is no other thing here."""
        await self.crash(name)

    async def reset(self, name: str) -> None:
        """Forget what it wrote."""
        if self.stores.pop(name, None) is None:
            raise AdapterRefused("UNKNOWN_INSTANCE", "")

    def lives(self, name: str) -> bool:
        """Whether it runs."""
        return name in self.living

    def how_ended(self, name: str) -> str:
        """How it ended by itself."""
        return self.exited.get(name, "")

    async def _run(self, scope: trio.CancelScope, starting: Starting, store: Store) -> None:
        host, _, port = starting.controllers[0].rpartition(":")
        with scope:
            async with await trio.open_tcp_stream(host, int(port)) as stream:
                await _Broker(stream, starting, store, self).register()


class _Broker:
    def __init__(
        self, stream: trio.SocketStream, starting: Starting, store: Store, adapter: InsideAdapter
    ) -> None:
        self._stream, self._starting, self._store = stream, starting, store
        self._adapter, self._wrong = adapter, adapter.wrong
        self._encoder = RemotingEncoder((5, 5, 0), 1)
        self._reader = SubjectRemotingReader()

    async def register(self) -> None:
        """The way from nothing to a registration, from where the store has come to."""
        store = self._store
        if self._wrong.garbage:
            await self._stream.send_all(b"\xff" * 64)
            return
        if not store.told:
            await self._take_id()
        if not store.code or self._wrong.new_code:
            store.code = f"code {self._adapter.starts}"
        if not store.granted:
            await self._ask(APPLY, appliedBrokerId=store.told, registerCheckCode=store.code)
            if self._wrong.starts_over:
                await self._take_id()
                store.code = "another code"
                await self._ask(APPLY, appliedBrokerId=store.told, registerCheckCode=store.code)
            store.granted = True
        address = self._adapter.address(self._starting)
        await self._ask(REGISTER, brokerId=store.told, brokerAddress=store.address or address)
        if self._wrong.keeps_address:
            store.address = address
        await trio.sleep_forever()

    async def _take_id(self) -> None:
        answer = await self._ask(GET)
        self._store.told = int(str(answer["nextBrokerId"])) + self._wrong.applies_for_more

    async def _ask(self, command: str, **header: object) -> Mapping[str, object]:
        answer = await self._ask_once(command, **header)
        while command == self._wrong.never_content:
            await self._ask_once(command, **header)
        return await self._ask_once(command, **header) if command in self._wrong.late else answer

    async def _ask_once(self, command: str, **header: object) -> Mapping[str, object]:
        names = {"clusterName": self._starting.cluster, "brokerName": self._starting.set}
        for _ in range(2 if command in self._wrong.twice else 1):
            encoded = self._encoder.sent(Sent(command=command, header={**names, **header}), {})
            self._reader.asked(encoded.questions[0])
            await self._stream.send_all(encoded.data)
        while True:
            data = await self._stream.receive_some(65536)
            if not data:
                await trio.sleep_forever()
            for received in self._reader.receive(bytes(data)):
                found: Mapping[str, object] = received.header  # type: ignore[union-attr]  # an answer
                return found
