"""How fast a backlog is copied, and how long a switch takes."""

from __future__ import annotations

import os
import socket
import ssl
import time

from lab import poll
from lab.cluster import BROKER_NAME, Cluster
from lab.errors import LabError
from lab.ports import LOOPBACK
from lab.rocketmq import questions
from lab.rocketmq.peer import Peer, connect
from replispec.wire.rocketmq.ha import (
    HaHandshakeAnswer,
    HaHandshakeId,
    HaReport,
    HaTransferHeader,
    HaTransferHeaderFixed,
)
from replispec.wire.rocketmq.streams import HA_MASTER

MESSAGE_BYTES = 1_000_000
COPIED_S_MAXIMUM = 180.0
SWITCHED_S_MAXIMUM = 60.0
CHUNK_BYTES = 4 << 20
POLL_S, SWITCH_POLL_S = 0.005, 0.001
# What tells how long the rest is.
ANSWER_BYTES = HA_MASTER.form(HaHandshakeAnswer.__name__).fixed
TRANSFER_BYTES = HA_MASTER.form(HaTransferHeader.__name__).fixed


def fill(address: str, topic: str, megabytes: int) -> int:
    """Give a master a backlog of this size; returns the end of its log."""
    port = int(address.rpartition(":")[2])
    body = os.urandom(MESSAGE_BYTES)
    with Peer(LOOPBACK, port) as peer:
        sender = questions.Sender(peer, topic)
        for number in range(megabytes):
            while sender.send(body, queue=number % questions.QUEUES, now_ms=1)[1] is None:
                time.sleep(POLL_S)
    return questions.epochs(port).max_offset or 0


def copied(cluster: Cluster, replica: str, end: int) -> float:
    """MB/s from the first byte that a replica has to the last, by its own account."""
    first: list[tuple[float, int]] = []

    def whole() -> float | None:
        has = questions.epochs(cluster.port(replica)).max_offset or 0
        now_s = time.perf_counter()
        if has and not first:
            first.append((now_s, has))
        return now_s if has >= end else None

    what = f"a replica with {end} bytes"
    ended_s = poll.until(whole, waiting_for=what, patience_s=COPIED_S_MAXIMUM, every_s=POLL_S)
    began_s, had = first[0]
    return (end - had) / 1e6 / max(ended_s - began_s, 1e-6)


def to_a_sink(port: int, end: int, seal: ssl.SSLContext | None = None) -> float:
    """MB/s at which a master's bytes come to a peer that only counts them."""
    with connect(LOOPBACK, port, seal) as connection:
        connection.sendall(HaHandshakeId(broker_id=99).encode())
        received = _exactly(connection, ANSWER_BYTES)
        _exactly(connection, HA_MASTER.measure(received, 0, len(received)) - len(received))
        began = time.perf_counter()
        connection.sendall(HaReport(max_offset=0).encode())
        count = 0
        while count < end:
            header = HaTransferHeaderFixed.decode(_exactly(connection, TRANSFER_BYTES))
            left = header.body_size
            while left:
                left -= len(connection.recv(min(left, CHUNK_BYTES)))
            count += header.body_size
        return count / 1e6 / (time.perf_counter() - began)


def switched(cluster: Cluster, dead: str, other: str, controller: int) -> tuple[float, float]:
    """Seconds from kill -9 of the master until the controller names another, and until that one knows it."""
    before = questions.master(controller, BROKER_NAME)
    assert before is not None
    port = cluster.port(other)
    with Peer(LOOPBACK, controller) as asked, Peer(LOOPBACK, port) as replica:
        question = questions.question(BROKER_NAME)
        began = cluster.kill(dead)
        named = _until_epoch(lambda: questions.epoch_of(asked, question), before.epoch, began)
        known = _until_epoch(lambda: questions.last_epoch(replica), before.epoch, began)
    return named, known


def _until_epoch(ask: questions.Ask, epoch: int, began_s: float) -> float:
    def reached() -> float | None:
        return time.monotonic() - began_s if ask() > epoch else None

    return poll.until(
        reached, waiting_for="a new master", patience_s=SWITCHED_S_MAXIMUM, every_s=SWITCH_POLL_S
    )


def _exactly(connection: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        piece = connection.recv(size - len(data))
        if not piece:
            raise LabError("the master hung up")
        data += piece
    return bytes(data)
