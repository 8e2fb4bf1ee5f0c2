"""What nodes of a store say, nodes that are made, what a broker answers: each on a connection of its own."""

from __future__ import annotations

import contextlib
import socket

from lab.errors import LabError
from lab.ports import LOOPBACK
from replispec.runtime.primitives.frames import FrameBuffer
from replispec.wire.kafka import paths
from replispec.wire.kafka.nodes import ApacheControllerNode, ApachePartitionStateNode
from replispec.wire.kafka.requests import ApacheRequestFrame, ApacheResponseFrame
from replispec.wire.kafka.streams import APACHE_RESPONSES
from replispec.wire.zookeeper.codes import CreateFlags, ErrorCode, OpCode, Permission
from replispec.wire.zookeeper.connection import ConnectRequest, ReplyFrame, RequestFrame
from replispec.wire.zookeeper.constants import EVERYBODY_ID, EVERYBODY_SCHEME, PASSWORD_BYTES
from replispec.wire.zookeeper.operations import (
    AccessEntry,
    CreateRequest,
    GetChildrenRequest,
    GetChildrenResponse,
    GetDataRequest,
    GetDataResponse,
)
from replispec.wire.zookeeper.streams import ANSWERS

ASKED_S = 30.0
SESSION_MS = 10_000
EVERYBODY = AccessEntry(Permission.ALL, EVERYBODY_SCHEME, EVERYBODY_ID)


class StoreReader:
    """Reads nodes of a store, each time in a session of its own."""

    def __init__(self, port: int) -> None:
        self._port = port

    def data(self, path: str) -> bytes | None:
        """What a node holds; None for no node."""
        answer = self._ask(OpCode.GET_DATA, GetDataRequest(path, False).encode())
        return None if answer is None else GetDataResponse.decode(answer).data

    def children(self, path: str) -> list[str]:
        """The names below a node; none for no node."""
        answer = self._ask(OpCode.GET_CHILDREN, GetChildrenRequest(path, False).encode())
        return [] if answer is None else sorted(GetChildrenResponse.decode(answer).children or ())

    def make(self, path: str, data: bytes) -> None:
        """Make a node that lasts. Raises LabError when the store refuses."""
        if (
            self._ask(OpCode.CREATE, CreateRequest(path, data, [EVERYBODY], CreateFlags.PERSISTENT).encode())
            is None
        ):
            raise LabError(f"the store makes no {path}")

    def record(self, topic: str, partition: int) -> ApachePartitionStateNode | None:
        """Who leads a partition."""
        data = self.data(paths.APACHE_STATE.at(topic=topic, partition=partition))
        return None if data is None else ApachePartitionStateNode.decode(data)

    def controller_id(self) -> int | None:
        """Who is the controller; None while nobody is."""
        data = self.data(paths.APACHE_CONTROLLER.at())
        return None if data is None else ApacheControllerNode.decode(data).broker_id

    def _ask(self, code: int, body: bytes) -> bytes | None:
        hello = ConnectRequest(0, 0, SESSION_MS, 0, bytes(PASSWORD_BYTES), False).encode()
        frames = [RequestFrame(1, code, body), RequestFrame(2, OpCode.CLOSE_SESSION, b"")]
        buffer, found = FrameBuffer(ANSWERS), list[bytes]()
        with contextlib.closing(socket.create_connection((LOOPBACK, self._port), timeout=ASKED_S)) as one:
            one.sendall(hello + b"".join(each.encode() for each in frames))
            while len(found) < 2:
                found += buffer.receive(_more(one))
        reply = ReplyFrame.decode(found[1])
        return bytes(reply.body) if reply.error == ErrorCode.OK else None


def ask(port: int, key: int, version: int, body: bytes) -> bytes:
    """What the broker at a port answers. Raises OSError."""
    frame = ApacheRequestFrame(key, version, 1, "lab", body)
    buffer, found = FrameBuffer(APACHE_RESPONSES), list[bytes]()
    with contextlib.closing(socket.create_connection((LOOPBACK, port), timeout=ASKED_S)) as one:
        one.sendall(frame.encode())
        while not found:
            found += buffer.receive(_more(one))
    return ApacheResponseFrame.decode(found[0]).body


def _more(one: socket.socket) -> bytes:
    data = one.recv(65_536)
    if not data:
        raise ConnectionError("whoever was asked hung up")
    return data
