"""`replispec metastore` as a process, killed and started on its folder."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from replispec.runtime.primitives.frames import FrameBuffer
from replispec.runtime.zookeeper.client.client import create_of
from replispec.wire.zookeeper.codes import ErrorCode, OpCode
from replispec.wire.zookeeper.connection import ConnectRequest, ReplyFrame, RequestFrame
from replispec.wire.zookeeper.streams import ANSWERS
from tests.cli.command import command

NODES = 20


@contextmanager
def metastore(folder: Path) -> Iterator[tuple[subprocess.Popen[str], tuple[str, int]]]:
    """A process on this folder, and where it listens."""
    arguments = ["metastore", "--set", "clientPort=0", "--set", f"dataDir={folder}"]
    process = subprocess.Popen(command(*arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        ready = json.loads(process.stdout.readline())
        host, _, port = ready["roles"]["metastore"]["clients"].rpartition(":")
        yield process, (host, int(port))
    finally:
        process.kill()
        process.communicate(timeout=30)


def ask_all(address: tuple[str, int], frames: list[bytes]) -> list[ReplyFrame]:
    """The answers to requests that are sent in one piece, in a new session."""
    hello = ConnectRequest(0, 0, 6_000, 0, bytes(16), False).encode()
    buffer, found = FrameBuffer(ANSWERS), list[bytes]()
    with closing(socket.create_connection(address, timeout=30)) as connection:
        connection.sendall(hello + b"".join(frames))
        while len(found) < len(frames) + 1:
            data = connection.recv(65_536)
            assert data, "the connection ended"
            found += buffer.receive(data)
    return [ReplyFrame.decode(each) for each in found[1:]]


def creates() -> list[bytes]:
    """Requests for some nodes."""
    bodies = [create_of(f"/n{each}", b"x" * 100).encode() for each in range(NODES)]
    return [RequestFrame(xid, OpCode.CREATE, body).encode() for xid, body in enumerate(bodies, 1)]


def test_what_was_acknowledged_is_there_after_kill_9(tmp_path: Path) -> None:
    with metastore(tmp_path) as (process, address):
        assert [each.error for each in ask_all(address, creates())] == [ErrorCode.OK] * NODES
        process.kill()
    with metastore(tmp_path) as (process, address):
        assert [each.error for each in ask_all(address, creates())] == [ErrorCode.NODE_EXISTS] * NODES
        with closing(socket.create_connection(address, timeout=30)) as connection:
            connection.sendall(b"ruok")
            assert connection.recv(64) == b"imok"
            assert connection.recv(64) == b""
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 0


def test_a_folder_belongs_to_one_process(tmp_path: Path) -> None:
    with metastore(tmp_path):
        arguments = ["metastore", "--set", "clientPort=0", "--set", f"dataDir={tmp_path}"]
        second = subprocess.run(command(*arguments), capture_output=True, text=True, timeout=60, check=False)
    assert second.returncode == 1
    assert "metastore.log.sqlite" in second.stderr
