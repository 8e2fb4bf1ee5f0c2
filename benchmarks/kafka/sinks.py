"""Brokers that take every command, answer that all is well, and keep what came with its time."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from benchmarks.kafka.sessions import StoreSession
from lab.ports import LOOPBACK
from replispec.runtime.primitives.frames import FrameBuffer
from replispec.wire.kafka import paths
from replispec.wire.kafka.apache import (
    ApacheLeaderAndIsrRequest,
    ApacheLeaderAndIsrResponse,
    ApacheStopReplicaResponse,
    ApacheUpdateMetadataResponse,
)
from replispec.wire.kafka.codes import ApiKey, ErrorCode
from replispec.wire.kafka.constants import BROKER_NODE_VERSION, NO_JMX_PORT, PLAIN_PROTOCOL
from replispec.wire.kafka.nodes import ApacheBrokerNode
from replispec.wire.kafka.requests import ApacheRequestFrame, ApacheResponseFrame
from replispec.wire.kafka.streams import APACHE_REQUESTS
from replispec.wire.zookeeper.codes import CreateFlags

READ_BYTES: Final = 1 << 18
ANSWERS: Final[dict[int, Callable[[], object]]] = {
    ApiKey.LEADER_AND_ISR: lambda: ApacheLeaderAndIsrResponse(ErrorCode.NONE, []),
    ApiKey.STOP_REPLICA: lambda: ApacheStopReplicaResponse(ErrorCode.NONE, []),
    ApiKey.UPDATE_METADATA: lambda: ApacheUpdateMetadataResponse(ErrorCode.NONE),
}
# Controller and its epoch stand before the number of partitions, up to this version.
COUNT: Final = struct.Struct(">8xi")
COUNTED_VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class TakenCommand:
    """A command, when all of it was there (seconds of `time.time`, as nodes of the store have them)."""

    at_s: float
    key: int
    version: int
    body: bytes

    @property
    def partitions(self) -> int:
        """How many partitions a LeaderAndIsr names."""
        assert self.version <= COUNTED_VERSION
        (count,) = COUNT.unpack_from(self.body)
        return int(count)

    def led(self) -> dict[tuple[str, int], int]:
        """Who leads each partition of a LeaderAndIsr."""
        request = ApacheLeaderAndIsrRequest.decode(self.body, version=self.version)
        return {
            (each.topic_name or "", each.partition_index): each.leader for each in request.partitions or ()
        }


class Sink:
    """One broker; it lives in the store while its session does."""

    def __init__(self, broker_id: int, port: int, store: int) -> None:
        self.broker_id = broker_id
        self.taken: list[TakenCommand] = []
        self._listening = socket.create_server((LOOPBACK, port))
        threading.Thread(target=self._accept, daemon=True).start()
        self.session = StoreSession(store)
        node = ApacheBrokerNode(
            listener_security_protocol_map={PLAIN_PROTOCOL: PLAIN_PROTOCOL},
            endpoints=[f"{PLAIN_PROTOCOL}://{LOOPBACK}:{port}"],
            jmx_port=NO_JMX_PORT,
            port=port,
            host=LOOPBACK,
            version=BROKER_NODE_VERSION,
            timestamp="0",
        )
        path = paths.APACHE_BROKER.at(broker_id=broker_id)
        self.session.make(path, node.encode(), CreateFlags.EPHEMERAL)

    def named(self) -> int:
        """How many partitions its LeaderAndIsr named so far, twice what was named twice."""
        return sum(each.partitions for each in tuple(self.taken) if each.key == ApiKey.LEADER_AND_ISR)

    def close(self) -> None:
        """Hear nothing more."""
        self._listening.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listening.accept()
                threading.Thread(target=partial(self._serve, connection), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        buffer = FrameBuffer(APACHE_REQUESTS)
        with contextlib.suppress(OSError), connection:
            while data := connection.recv(READ_BYTES):
                for frame in buffer.receive(data):
                    at_s = time.time()
                    request = ApacheRequestFrame.decode(frame)
                    self.taken.append(
                        TakenCommand(at_s, request.api_key, request.api_version, bytes(request.body))
                    )
                    connection.sendall(_answer(request))


def _answer(request: ApacheRequestFrame) -> bytes:
    answer = ANSWERS[request.api_key]()
    body: bytes = answer.encode(version=request.api_version)  # type: ignore[attr-defined]
    return ApacheResponseFrame(request.correlation_id, body).encode()
