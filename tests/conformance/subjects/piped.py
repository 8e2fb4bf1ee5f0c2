"""A program that brings registering brokers to life, inside of the test: it speaks the adapter protocol over
streams of memory, and takes as long for a start as it is told to."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import trio
import trio.testing

from replispec.adapter.v1 import adapter_pb2 as wire
from replispec.conformance.adapter_requests import AdapterRefused
from replispec.conformance.adapters import LOOPBACK, Adapter, Starting, speaking
from replispec.runtime.documents import official_seam
from replispec.runtime.documents.delimited import DocumentBuffer, delimited
from tests.conformance.subjects.registering import InsideAdapter, Store, Wrong

START_AT_ONCE = [
    wire.ABILITY_CRASH,
    wire.ABILITY_RESET,
    wire.ABILITY_KEEP_STORAGE,
    wire.ABILITY_START_AT_ONCE,
    wire.ABILITY_CHOOSE_PORTS,
]
FIRST_PORT = 500
"""Below the ports that a system gives to clients: nobody listens there."""

StartLasts = Callable[[int], float]
"""How many seconds the start of this number, from 1 on, takes."""


class _Brokers(InsideAdapter):
    def address(self, starting: Starting) -> str:
        return starting.address or f"{LOOPBACK}:{FIRST_PORT + self.starts}"

    async def _run(self, scope: trio.CancelScope, starting: Starting, store: Store) -> None:
        if starting.controllers:
            await super()._run(scope, starting, store)


class PipedAdapter:
    """The process, as `Adapter` uses one, and what is behind it. `asked`: each request and its instance."""

    def __init__(
        self, nursery: trio.Nursery, wrong: Wrong, lasts: StartLasts, instead: Mapping[int, bytes]
    ) -> None:
        self.stdin, self._requests = trio.testing.memory_stream_one_way_pair()
        self._answers, self.stdout = trio.testing.memory_stream_one_way_pair()
        self._words, self.stderr = trio.testing.memory_stream_one_way_pair()
        self.asked: list[tuple[str, str]] = []
        self._brokers = _Brokers(nursery, wrong)
        self._lasts = lasts
        self._instead = instead

    async def serve(self) -> None:
        """Carry requests out, one after another."""
        buffer = DocumentBuffer()
        while data := await self._requests.receive_some():
            for document in buffer.receive(bytes(data)):
                request: Any = official_seam.decode(wire.RunnerMessage, document, unknown_allowed=False)
                answer = await self._answered(request)
                message = wire.AdapterMessage(request_id=request.request_id, **answer)
                await self._answers.send_all(delimited(official_seam.encode(message)))

    async def _answered(self, request: Any) -> dict[str, Any]:
        kind = request.WhichOneof("request")
        told = getattr(request, kind)
        self.asked.append((kind, getattr(told, "instance", "")))
        try:
            return await self._done(kind, told)
        except AdapterRefused:
            return {"refusal": wire.Refusal(reason=wire.REFUSAL_REASON_UNKNOWN_INSTANCE)}

    async def _done(self, kind: str, told: Any) -> dict[str, Any]:
        match kind:
            case "describe":
                described = wire.Description(protocol=1, roles=[wire.ROLE_BROKER], abilities=START_AT_ONCE)
                return {"description": described}
            case "start":
                return {"ready": await self._ready(told)}
            case "crash":
                await self._brokers.crash(told.instance)
            case "reset":
                await self._brokers.reset(told.instance)
        return {"done": wire.Done()}

    async def _ready(self, told: wire.Start) -> wire.Ready:
        number = sum(kind == "start" for kind, _ in self.asked)
        await trio.sleep(self._lasts(number))
        if number in self._instead:
            await self._answers.send_all(self._instead[number])
            await trio.sleep_forever()
        reserved = told.listen[0].port
        starting = Starting(
            told.instance,
            "broker",
            told.cluster_name,
            told.broker_name,
            tuple(told.controllers),
            address=f"{LOOPBACK}:{reserved}" if reserved else "",
        )
        living = await self._brokers.start(starting)
        host, _, port = living.listening["remoting"].rpartition(":")
        place = wire.Endpoint(purpose=wire.ENDPOINT_PURPOSE_REMOTING, host=host, port=int(port))
        return wire.Ready(instance=told.instance, listening=[place])


@asynccontextmanager
async def piped(
    lasts: StartLasts, wrong: Wrong | None = None, instead: Mapping[int, bytes] | None = None
) -> AsyncIterator[tuple[Adapter, Sequence[tuple[str, str]]]]:
    """Such an adapter that has described itself, and what it was asked so far. Raises AdapterFault.

    `instead` is what it writes in place of the answer to the start of this number.
    """
    async with trio.open_nursery() as nursery:
        process = PipedAdapter(nursery, wrong or Wrong(), lasts, instead or {})
        nursery.start_soon(process.serve)
        adapter = Adapter(process, 1.0)  # type: ignore[arg-type]  # as far as it is used
        faults = []
        try:
            async with speaking(adapter):
                yield adapter, process.asked
        except Exception as fault:  # noqa: BLE001  the nursery would wrap it
            faults.append(fault)
        nursery.cancel_scope.cancel()
    if faults:
        raise faults[0]
