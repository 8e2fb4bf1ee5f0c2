"""How many requests a controller answers, one at a time and pipelined; the peer is a bare socket."""

from __future__ import annotations

import socket
import ssl
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass

from lab.ports import LOOPBACK
from lab.rocketmq.peer import Peer, connect
from replispec.runtime.primitives.headers import Header
from replispec.runtime.rocketmq.framing import Command
from replispec.wire.rocketmq.codes import RemotingFlag, RequestCode, ResponseCode
from replispec.wire.rocketmq.controller import (
    AlterSyncStateSetRequest,
    ApplyBrokerIdRequest,
    BrokerHeartbeatRequest,
    ElectMasterRequest,
    GetReplicaInfoRequest,
    RegisterBrokerToControllerRequest,
    SyncStateSet,
)
from replispec.wire.rocketmq.remoting import RemotingHeader

CLUSTER, SET = "bench", "bench-set"
HEARTBEAT_TIMEOUT_MS = 600_000
CHUNK_BYTES = 1 << 20
LENGTH_BYTES = 4


@dataclass(frozen=True, slots=True)
class Rate:
    """Answers in one second, and the median and 99th percentile of one answer's time in milliseconds."""

    per_second: float
    p50_ms: float = 0.0
    p99_ms: float = 0.0


class MeasuredSet:
    """A broker set of two at one controller, made over the wire, perhaps with TLS; its SyncStateSet is ours
    to change."""

    def __init__(self, port: int, name: str, seal: ssl.SSLContext | None = None) -> None:
        self.port, self.seal = port, seal
        self.peer = Peer(LOOPBACK, port, seal=seal)
        self.name = name
        for number in (1, 2):
            self._join(number)
        answer = self.peer.ask(
            RequestCode.CONTROLLER_ELECT_MASTER,
            ElectMasterRequest(
                cluster_name=CLUSTER, broker_name=name, broker_id=1, designate_elect=False, invoke_time=0
            ),
        )
        assert answer.header.code == ResponseCode.SUCCESS, answer.header.remark
        self.master_epoch, self.set_epoch = 1, 1

    def close(self) -> None:
        """Hang up."""
        self.peer.__exit__()

    def heartbeat(self, broker_id: int) -> BrokerHeartbeatRequest:
        """A heartbeat that lasts longer than any measurement."""
        return BrokerHeartbeatRequest(
            cluster_name=CLUSTER,
            broker_name=self.name,
            broker_addr=f"127.0.0.1:{broker_id}",
            broker_id=broker_id,
            epoch=1,
            max_offset=0,
            confirm_offset=0,
            heartbeat_timeout_mills=HEARTBEAT_TIMEOUT_MS,
        )

    def live(self) -> None:
        """Have both brokers alive by this connection: whoever dies with another one was not theirs."""
        for number in (1, 2):
            self.peer.ask(RequestCode.BROKER_HEARTBEAT, self.heartbeat(number))

    def alter(self) -> None:
        """Change the SyncStateSet from {1} to {1, 2} or back (1001)."""
        members = [1, 2] if self.set_epoch % 2 else [1]
        request = AlterSyncStateSetRequest(
            broker_name=self.name, master_broker_id=1, master_epoch=self.master_epoch, invoke_time=0
        )
        body = SyncStateSet(broker_ids=members, sync_state_set_epoch=self.set_epoch).encode()
        answer = self.peer.ask(RequestCode.CONTROLLER_ALTER_SYNC_STATE_SET, request, body)
        assert answer.header.code == ResponseCode.SUCCESS, answer.header.remark
        self.set_epoch += 1

    def _join(self, number: int) -> None:
        address = f"127.0.0.1:{number}"
        steps: list[tuple[RequestCode, Header]] = [
            (
                RequestCode.CONTROLLER_APPLY_BROKER_ID,
                ApplyBrokerIdRequest(
                    cluster_name=CLUSTER,
                    broker_name=self.name,
                    applied_broker_id=number,
                    register_check_code=f"{address};1",
                ),
            ),
            (
                RequestCode.CONTROLLER_REGISTER_BROKER,
                RegisterBrokerToControllerRequest(
                    cluster_name=CLUSTER,
                    broker_name=self.name,
                    broker_id=number,
                    broker_address=address,
                    invoke_time=0,
                ),
            ),
            (RequestCode.BROKER_HEARTBEAT, self.heartbeat(number)),
        ]
        for code, header in steps:
            answer = self.peer.ask(code, header)
            assert answer.header.code == ResponseCode.SUCCESS, (code, answer.header.remark)


def one_at_a_time(members: MeasuredSet, seconds: float) -> Rate:
    """1001, each sent when the one before is answered."""
    times: list[float] = []
    end = time.perf_counter() + seconds
    while (began := time.perf_counter()) < end:
        members.alter()
        times.append((time.perf_counter() - began) * 1e3)
    cuts = statistics.quantiles(times, n=100)
    return Rate(len(times) / seconds, cuts[49], cuts[98])


def pipelined(
    port: int,
    code: RequestCode,
    header: Header,
    *,
    depth: int,
    seconds: float,
    seal: ssl.SSLContext | None = None,
) -> Rate:
    """Requests of one kind on one connection, `depth` of them under way all the time."""
    frames = [_frame(code, header, opaque) for opaque in range(depth)]
    batches = [b"".join(frames[:count]) for count in range(depth + 1)]
    with connect(LOOPBACK, port, seal) as connection:
        connection.settimeout(None)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        answers = _answers(connection)
        began = time.perf_counter()
        connection.sendall(batches[depth])
        count = 0
        while time.perf_counter() - began < seconds:
            came = next(answers)
            count += came
            connection.sendall(batches[came])
        took = time.perf_counter() - began
    return Rate(count / took)


def _answers(connection: socket.socket) -> Iterator[int]:
    """How many answers each read completed; only their lengths are looked at."""
    data = bytearray()
    while True:
        piece = connection.recv(CHUNK_BYTES)
        assert piece, "the controller hung up"
        data += piece
        at = came = 0
        while len(data) - at >= LENGTH_BYTES:
            end = at + LENGTH_BYTES + int.from_bytes(data[at : at + LENGTH_BYTES], "big")
            if end > len(data):
                break
            at, came = end, came + 1
        del data[:at]
        yield came


def _frame(code: RequestCode, header: Header, opaque: int) -> bytes:
    fields = RemotingHeader(
        code=code, opaque=opaque, flag=RemotingFlag.REQUEST, ext_fields=header.to_ext_fields()
    )
    return Command(fields).encode()


def question() -> GetReplicaInfoRequest:
    """1004, about the set that is measured."""
    return GetReplicaInfoRequest(broker_name=SET)
