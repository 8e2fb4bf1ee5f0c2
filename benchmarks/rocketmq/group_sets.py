"""Many broker sets at a group of controllers, made and kept alive over the wire by bare sockets."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from lab.ports import LOOPBACK
from replispec.runtime.primitives.headers import Header
from replispec.runtime.rocketmq.framing import Command, FrameBuffer, decode_command
from replispec.wire.rocketmq.codes import RequestCode, ResponseCode
from replispec.wire.rocketmq.controller import (
    AlterSyncStateSetRequest,
    ApplyBrokerIdRequest,
    BrokerHeartbeatRequest,
    BrokerNames,
    BrokerReplicasInfo,
    ElectMasterRequest,
    GetSyncStateDataRequest,
    RegisterBrokerToControllerRequest,
    SyncStateSet,
)
from replispec.wire.rocketmq.remoting import RemotingHeader
from replispec.wire.rocketmq.streams import REMOTING

CLUSTER = "bench"
BROKERS = (1, 2)
CHUNK_BYTES = 1 << 20
PATIENCE_S = 30.0
DEPTH = 64
LIVES_MS = 600_000
"""Longer than any measurement: who dies does so because a connection ends."""


@dataclass(frozen=True, slots=True)
class Question:
    """A request as it is asked."""

    code: RequestCode
    header: Header
    body: bytes = b""

    def frame(self, opaque: int) -> bytes:
        """Its bytes."""
        fields = RemotingHeader(code=self.code, opaque=opaque, ext_fields=self.header.to_ext_fields())
        return Command(fields, self.body).encode()


class Line:
    """A connection to one controller, on which many questions are under way at a time."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection((LOOPBACK, port), timeout=PATIENCE_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._frames = FrameBuffer(REMOTING)

    def close(self) -> None:
        """Hang up, also while somebody waits for answers."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def send(self, data: bytes) -> None:
        """Bytes of questions."""
        self._socket.sendall(data)

    def answers(self) -> Iterator[Command]:
        """All that comes, for ever. Raises OSError when nothing does."""
        while True:
            data = self._socket.recv(CHUNK_BYTES)
            if not data:
                raise ConnectionResetError("the controller hung up")
            yield from (each for each in map(decode_command, self._frames.receive(data)) if each.is_answer)

    def ask_all(self, questions: Sequence[Question], depth: int = DEPTH) -> None:
        """Ask all, so many at a time; each must be answered with SUCCESS."""
        left = iter(enumerate(questions))
        self.send(b"".join(each.frame(place) for place, each in _first(left, depth)))
        answers = self.answers()
        for _ in questions:
            answer = next(answers)
            question = questions[answer.header.opaque]
            assert answer.header.code == ResponseCode.SUCCESS, (question, answer.header)
            self.send(b"".join(each.frame(place) for place, each in _first(left, 1)))

    def ask(self, question: Question) -> Command:
        """Ask one."""
        self.send(question.frame(0))
        return next(self.answers())


def _first(of: Iterator[tuple[int, Question]], count: int) -> Iterator[tuple[int, Question]]:
    for _ in range(count):
        found = next(of, None)
        if found is None:
            return
        yield found


@dataclass
class ManySets:
    """Broker sets of two brokers each, made at the leader; broker 1 is master of each, both are members."""

    names: Sequence[str]
    set_epochs: dict[str, int] = field(default_factory=dict)

    def make(self, line: Line, lives: Callable[[], None] | None = None) -> None:
        """Have all of them on record, and alive by this connection or, with `lives`, by what that sends."""
        for broker in BROKERS:
            line.ask_all([application(name, broker) for name in self.names])
            line.ask_all([_registration(name, broker) for name in self.names])
        if lives is None:
            self.beat(line)
        else:
            lives()
        line.ask_all([_election(name) for name in self.names])
        self.set_epochs = dict.fromkeys(self.names, 1)
        line.ask_all([self.alteration(name) for name in self.names])
        self.set_epochs = dict.fromkeys(self.names, 2)

    def beat(self, line: Line) -> None:
        """Have all of them alive for LIVES_MS from now on, by this connection."""
        for broker in BROKERS:
            line.ask_all([heartbeat(name, broker) for name in self.names])

    def alteration(self, name: str) -> Question:
        """1001: from {1} to {1, 2} or back."""
        epoch = self.set_epochs[name]
        body = SyncStateSet(broker_ids=[1, 2] if epoch % 2 else [1], sync_state_set_epoch=epoch).encode()
        header = AlterSyncStateSetRequest(name, master_broker_id=1, master_epoch=1, invoke_time=0)
        return Question(RequestCode.CONTROLLER_ALTER_SYNC_STATE_SET, header, body)

    def alter(self, line: Line, seconds: float) -> int:
        """1001 of all sets, each again when it is answered; how many were answered."""
        end_s, count = time.perf_counter() + seconds, 0
        names = list(self.names)
        line.send(b"".join(self.alteration(name).frame(place) for place, name in enumerate(names)))
        open_ones = len(names)
        for answer in line.answers():
            assert answer.header.code == ResponseCode.SUCCESS, answer.header
            name = names[answer.header.opaque]
            self.set_epochs[name] += 1
            count, open_ones = count + 1, open_ones - 1
            if time.perf_counter() < end_s:
                line.send(self.alteration(name).frame(answer.header.opaque))
                open_ones += 1
            if not open_ones:
                return count
        raise AssertionError("answers end with an error")

    def without_master(self, line: Line) -> int:
        """How many have the master that they had at first, or none."""
        body = BrokerNames(names=list(self.names)).encode()
        header = GetSyncStateDataRequest()
        answer = line.ask(Question(RequestCode.CONTROLLER_GET_SYNC_STATE_DATA, header, body))
        if answer.header.code != ResponseCode.SUCCESS:
            return len(self.names)
        table = BrokerReplicasInfo.decode(answer.body).replicas_info_table or {}
        return sum(each.master_broker_id != BROKERS[1] for each in table.values())


def heartbeat(name: str, broker: int, lives_ms: int = LIVES_MS) -> Question:
    """904."""
    header = BrokerHeartbeatRequest(
        CLUSTER, _address(broker), name, broker, 1, 0, 0, heartbeat_timeout_mills=lives_ms
    )
    return Question(RequestCode.BROKER_HEARTBEAT, header)


def application(name: str, broker: int) -> Question:
    """1013: something that has to be remembered, whoever lives."""
    header = ApplyBrokerIdRequest(CLUSTER, name, broker, f"{_address(broker)};1")
    return Question(RequestCode.CONTROLLER_APPLY_BROKER_ID, header)


def beats(names: Iterable[str], broker: int) -> list[Question]:
    """Heartbeats of this broker of each of these sets."""
    return [heartbeat(name, broker) for name in names]


def frames(questions: Iterable[Question]) -> bytes:
    """One behind the other."""
    return b"".join(each.frame(1) for each in questions)


def _registration(name: str, broker: int) -> Question:
    header = RegisterBrokerToControllerRequest(CLUSTER, name, broker, _address(broker), invoke_time=0)
    return Question(RequestCode.CONTROLLER_REGISTER_BROKER, header)


def _election(name: str) -> Question:
    header = ElectMasterRequest(CLUSTER, name, broker_id=1, designate_elect=False, invoke_time=0)
    return Question(RequestCode.CONTROLLER_ELECT_MASTER, header)


def _address(broker: int) -> str:
    # Nobody listens there: who is notified is told nothing.
    return f"{LOOPBACK}:{broker}"
