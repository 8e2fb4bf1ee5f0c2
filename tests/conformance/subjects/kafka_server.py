"""Serves a scripted broker beside a scripted store over loopback TCP, follows for it, and is all that knows
sockets."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import trio

from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.primitives.frames import FrameBuffer
from replispec.wire.kafka import clients as c
from replispec.wire.kafka.codes import ApiKey, ErrorCode
from replispec.wire.kafka.commands import APACHE_RESPONSE_FRAME
from replispec.wire.kafka.requests import ApacheRequestFrame, ApacheResponseFrame
from replispec.wire.kafka.streams import APACHE_REQUESTS, APACHE_RESPONSES
from tests.conformance.subjects.kafka_broker import Asked, GoodBroker, HungUp
from tests.conformance.subjects.kafka_choices import BROKER_ID
from tests.conformance.subjects.kafka_replica import Key, ScriptedReplica, whole
from tests.conformance.subjects.metastore import GoodMetastore
from tests.conformance.subjects.metastore_server import HOST, READ_BYTES, Broken, MetastoreServer

TICK_S, PAUSE_S, WAIT_MS, BYTES = 1.0, 0.3, 500, 1 << 20
FETCH_VERSION, OFFSETS_VERSION, EPOCHS_VERSION = 6, 2, 0
EARLIEST, LATEST = -2, -1
MakeBroker = Callable[[Callable[[], float], GoodMetastore], GoodBroker]


class KafkaServer:
    """One broker and its store, each on a port of its own, from `serve` on until its task is cancelled."""

    def __init__(self, make: MakeBroker) -> None:
        self._make = make
        self._changed = trio.Event()
        self._fetching: dict[Key, tuple[int, trio.CancelScope]] = {}

    async def serve(self, *, task_status: trio.TaskStatus[dict[str, str]] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve; the status are the addresses: `target` and `metastore`."""
        cores: list[GoodMetastore] = []

        def store(now_s: Callable[[], float]) -> GoodMetastore:
            cores.append(GoodMetastore(now_s))
            return cores[0]

        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            metastore: str = await nursery.start(MetastoreServer(store).serve)
            listeners = await trio.open_tcp_listeners(0, host=HOST)
            port = listeners[0].socket.getsockname()[1]
            self._core = self._make(trio.current_time, cores[0])
            self._core.begin(HOST, port)
            nursery.start_soon(self._tick)
            nursery.start_soon(trio.serve_listeners, self._connection, listeners)
            task_status.started({"target": f"{HOST}:{port}", "metastore": metastore})

    async def _tick(self) -> None:
        while True:
            await trio.sleep(TICK_S)
            self._core.tick()
            self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = trio.Event()
        self._follow()

    async def _connection(self, stream: trio.SocketStream) -> None:
        frames = FrameBuffer(APACHE_REQUESTS)
        try:
            while data := await stream.receive_some(READ_BYTES):
                for frame in frames.receive(bytes(data)):
                    await self._serve(stream, ApacheRequestFrame.decode(frame))
        except (*Broken, HungUp, RemoteProtocolError):
            pass
        await trio.aclose_forcefully(stream)

    async def _serve(self, stream: trio.SocketStream, frame: ApacheRequestFrame) -> None:
        asked = self._core.ask(frame)
        self._wake()
        body = await self._answered(asked)
        if asked.is_answered:
            await stream.send_all(ApacheResponseFrame(frame.correlation_id, body).encode())

    async def _answered(self, asked: Asked) -> bytes:
        while True:
            body = asked.attempt(trio.current_time() >= asked.until_s)
            if body is not None:
                self._wake()
                return body
            with trio.move_on_at(asked.until_s) if asked.until_s < math.inf else trio.CancelScope():
                await self._changed.wait()

    # Following

    def _follow(self) -> None:
        """Follow whom the core is told to, and nobody else."""
        for key, (epoch, scope) in tuple(self._fetching.items()):
            one = self._core.replicas.get(key)
            if one is None or not self._core.follows(one, epoch):
                scope.cancel()
                del self._fetching[key]
        for key, one in self._core.replicas.items():
            if key not in self._fetching and one.leader != BROKER_ID and one.place is not None:
                scope = trio.CancelScope()
                self._fetching[key] = one.epoch, scope
                self._nursery.start_soon(partial(self._fetch, one, scope))

    async def _fetch(self, one: ScriptedReplica, scope: trio.CancelScope) -> None:
        with scope:
            cut = self._core.truncates(one)
            if cut is not None:
                one.cut(cut)
            while one.place is not None:
                try:
                    stream = await trio.open_tcp_stream(*one.place)
                    async with stream:
                        await self._fetch_on(one, Asker(stream), asks_epoch=cut is None)
                        return
                except (OSError, *Broken):
                    await trio.sleep(PAUSE_S)

    async def _fetch_on(self, one: ScriptedReplica, asker: Asker, *, asks_epoch: bool) -> None:
        topic, number = one.key
        if asks_epoch:
            part = c.ApacheOffsetForLeaderEpochPartition(number, None, one.epochs[-1][0])
            asked = c.ApacheOffsetForLeaderEpochRequest(
                None, [c.ApacheOffsetForLeaderEpochTopic(topic, [part])]
            )
            told = await asker.ask(ApiKey.OFFSET_FOR_LEADER_EPOCH, EPOCHS_VERSION, asked)
            end = told.topics[0].partitions[0].end_offset
            one.cut(one.hw if end == -1 else min(end, one.end))
        while True:
            offset = self._core.next_offset(one)
            wanted = c.ApacheFetchPartition(number, None, offset, one.start, BYTES)
            fetch = c.ApacheFetchRequest(
                BROKER_ID, WAIT_MS, 1, BYTES, 0, topics=[c.ApacheFetchTopic(topic, [wanted])]
            )
            found = (await asker.ask(ApiKey.FETCH, FETCH_VERSION, fetch)).topics[0].partitions[0]
            if found.error == ErrorCode.OFFSET_OUT_OF_RANGE:
                await self._find_range(one, asker)
            elif found.error:
                if not self._core.asks_again(found.error):
                    return
                await trio.sleep(PAUSE_S)
            else:
                before = one.end
                self._core.keeps(one, found.records or b"")
                one.hw = self._core.taken_watermark(one, found.high_watermark)
                if one.end == before:
                    await trio.sleep(PAUSE_S)

    async def _find_range(self, one: ScriptedReplica, asker: Asker) -> None:
        topic, number = one.key
        found = []
        for time in (LATEST, EARLIEST):
            part = c.ApacheListOffsetsPartition(number, None, time)
            asked = c.ApacheListOffsetsRequest(BROKER_ID, 0, [c.ApacheListOffsetsTopic(topic, [part])])
            found.append(
                (await asker.ask(ApiKey.OFFSETS, OFFSETS_VERSION, asked)).topics[0].partitions[0].offset
            )
        end, start = found
        if end < one.end:
            one.cut(end)
        else:
            one.log.clear()
            one.epochs.clear()
            one.start = start


class Asker:
    """A connection to a leader."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self._stream = stream
        self._frames = FrameBuffer(APACHE_RESPONSES)
        self._number = 0

    async def ask(self, key: int, version: int, said: Any) -> Any:
        """What is answered. Raises trio.BrokenResourceError when nobody answers."""
        self._number += 1
        frame = ApacheRequestFrame(
            key, version, self._number, "scripted", whole(said, version).encode(version=version)
        )
        await self._stream.send_all(frame.encode())
        while True:
            data = await self._stream.receive_some(READ_BYTES)
            if not data:
                raise trio.BrokenResourceError
            for found in self._frames.receive(bytes(data)):
                form = APACHE_RESPONSE_FRAME.form_of(key, version)
                assert form is not None
                kind: Any = form.answer
                return kind.decode(ApacheResponseFrame.decode(found).body, version=version)
