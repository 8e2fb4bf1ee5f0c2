"""What hostile peers do to our roles on loopback, each bounded in count and in time.

An attack runs in a process of its own and returns how much it did. Everything is sent by sockets that nobody
waits for: a role that takes no more is not pressed, which is what an attacker would do, too.
"""

from __future__ import annotations

import random
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass

from lab.ports import LOOPBACK
from replispec.runtime.primitives.headers import Header
from replispec.runtime.rocketmq.framing import Command
from replispec.wire.raft.codes import RequestCode as MemberCode
from replispec.wire.raft.member import RaftVoteRequest
from replispec.wire.rocketmq.broker import (
    RegisterBrokerBody,
    RegisterBrokerRequest,
    SendMessageV2Request,
    TopicConfig,
    TopicConfigTable,
)
from replispec.wire.rocketmq.client import ConsumerData, HeartbeatData
from replispec.wire.rocketmq.codes import RequestCode
from replispec.wire.rocketmq.controller import ApplyBrokerIdRequest
from replispec.wire.rocketmq.ha import HaHandshakeId, HaReport
from replispec.wire.rocketmq.remoting import RemotingHeader

MEGABYTE = 1_000_000
WAVES_OF_ALL, WAVE = 10_000, 250
HOSTILE_HOSTS = (LOOPBACK, "127.0.0.66", "127.0.0.67")
GARBAGE = (
    (2**31 - 1).to_bytes(4, "big") + bytes(200),
    b"\xff\xff\xff\xff" + bytes(200),
    bytes(200),
    b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    (60).to_bytes(4, "big") + (40).to_bytes(4, "big") + b'{"a":"' + b'\\"' * 17,
)


@dataclass(frozen=True, slots=True)
class Targets:
    """Where the roles listen."""

    broker: int
    replication: int
    nameserver: int
    controller: int
    members: tuple[int, ...] = ()
    """All controllers of a group."""


@dataclass(frozen=True, slots=True)
class Attack:
    """`role` is the one that is attacked; `run` is given the ports and for how many seconds to go on, and
    returns a count of `what`."""

    what: str
    role: str
    run: Callable[[Targets, float], int]


def _frame(code: int, header: Header | None = None, body: bytes = b"") -> bytes:
    fields = {} if header is None else header.to_ext_fields()
    said = RemotingHeader(code=int(code), language="JAVA", version=493, opaque=1, flag=0, ext_fields=fields)
    return Command(said, body).encode()


@contextmanager
def _connected(port: int, number: int) -> Iterator[list[socket.socket]]:
    """So many connections, or as many as are taken."""
    with ExitStack() as stack:
        found = []
        for _ in range(number):
            with suppress(OSError):
                one = stack.enter_context(socket.create_connection((LOOPBACK, port), timeout=2.0))
                one.setblocking(False)
                found.append(one)
        yield found


def _press(
    connections: list[socket.socket], frames: Callable[[int], bytes], number: int, seconds: float
) -> int:
    """Send so many frames on each connection, in turns, without reading; how many were taken whole."""
    until_s = time.monotonic() + seconds
    sent = [0] * len(connections)
    left = [b""] * len(connections)
    while time.monotonic() < until_s and any(each < number for each in sent):
        is_idle = True
        for place, one in enumerate(connections):
            if sent[place] >= number:
                continue
            left[place] = left[place] or frames(sent[place])
            try:
                taken = one.send(left[place])
            except BlockingIOError:
                continue
            except OSError:
                sent[place] = number
                continue
            is_idle = False
            left[place] = left[place][taken:]
            sent[place] += not left[place]
        if is_idle:
            time.sleep(0.005)
    return sum(sent)


def idle(targets: Targets, seconds: float) -> int:
    """Connections that say nothing."""
    with _connected(targets.broker, 2_000) as found:
        time.sleep(seconds)
        return len(found)


def garbage(targets: Targets, seconds: float) -> int:
    """Connections to all ports that say what no peer says."""
    until_s, count = time.monotonic() + seconds, 0
    ports = (targets.broker, targets.replication, targets.nameserver, targets.controller)
    chance = random.Random(1)
    while time.monotonic() < until_s and count < 20_000:
        with suppress(OSError), socket.create_connection((LOOPBACK, ports[count % 4]), timeout=1.0) as one:
            one.sendall(chance.choice(GARBAGE) if chance.random() < 0.7 else chance.randbytes(300))
        count += 1
    return count


def halves(targets: Targets, seconds: float) -> int:
    """Frames of 15 MB of which the last byte does not come."""
    begin = (15 * MEGABYTE).to_bytes(4, "big") + (100).to_bytes(4, "big")
    with _connected(targets.broker, 100) as found:
        _press(found, lambda number: bytes(MEGABYTE) if number else begin, 10, seconds)
        return len(found)


def no_readers(targets: Targets, seconds: float) -> int:
    """Connections that ask for all brokers, again and again, and read no answer."""
    asked = _frame(RequestCode.GET_BROKER_CLUSTER_INFO) * 50
    with _connected(targets.nameserver, 100) as found:
        return 50 * _press(found, lambda _: asked, 2_000, seconds)


def topics(targets: Targets, seconds: float) -> int:
    """A producer that pipelines messages to new topics."""

    def message(number: int) -> bytes:
        header = SendMessageV2Request(
            producer_group="p",
            topic=f"Hostile{number}",
            default_topic="TBW102",
            default_topic_queue_nums=4,
            queue_id=0,
            sys_flag=0,
            born_timestamp=1,
            flag=0,
        )
        return _frame(RequestCode.SEND_MESSAGE_V2, header, b"x")

    with _connected(targets.broker, 1) as found:
        return _press(found, message, 16_000, seconds)


def heartbeats(targets: Targets, seconds: float) -> int:
    """Clients of a thousand groups each that read nothing of what they are told."""
    consumers = [
        ConsumerData(group_name=f"a group with a name that is long {number}") for number in range(1_000)
    ]
    with _connected(targets.broker, 60) as found:
        names = iter(range(len(found)))

        def said(_: int) -> bytes:
            body = HeartbeatData(f"client {next(names)}", consumers, None, []).encode()
            return _frame(RequestCode.HEART_BEAT, None, body)

        count = _press(found, said, 1, seconds / 2)
        time.sleep(seconds / 2)
        return count


def registrations(targets: Targets, seconds: float) -> int:
    """Brokers that nobody knows, with 200 topics each, at the name server."""

    def broker(number: int) -> bytes:
        names = (f"Topic{number}x{each}" for each in range(200))
        table = {name: TopicConfig(perm=6, read_queue_nums=4, write_queue_nums=4) for name in names}
        body = RegisterBrokerBody([], TopicConfigTable(None, None, table, None, None)).encode()
        header = RegisterBrokerRequest(f"hostile-{number}", f"10.0.0.1:{number}", "C", "10.0.0.1:1", 0)
        return _frame(RequestCode.REGISTER_BROKER, header, body)

    with _connected(targets.nameserver, 1) as found:
        return _press(found, broker, 2_000, seconds)


def identities(targets: Targets, seconds: float) -> int:
    """Broker sets that nobody knows, at the controller."""

    def applied(number: int) -> bytes:
        header = ApplyBrokerIdRequest("C", f"hostile-{number}", 1, f"10.0.0.1:{number};1")
        return _frame(RequestCode.CONTROLLER_APPLY_BROKER_ID, header)

    with _connected(targets.controller, 1) as found:
        return _press(found, applied, 5_000, seconds)


def reports(targets: Targets, seconds: float) -> int:
    """Replicas of ids that are in no set, which say where their logs end without a pause."""
    said = HaReport(max_offset=0).encode() * 1_000
    with _connected(targets.replication, 20) as found:
        for number, one in enumerate(found):
            with suppress(OSError):
                one.send(HaHandshakeId(broker_id=1_000 + number).encode())
        return 1_000 * _press(found, lambda _: said, 500, seconds)


def producers(targets: Targets, seconds: float) -> int:
    """Producers that pipeline small messages and do not read."""
    header = SendMessageV2Request(
        producer_group="p",
        topic="TBW102",
        default_topic="TBW102",
        default_topic_queue_nums=4,
        queue_id=0,
        sys_flag=0,
        born_timestamp=1,
        flag=0,
    )
    said = _frame(RequestCode.SEND_MESSAGE_V2, header, b"x" * 100) * 20
    with _connected(targets.broker, 20) as found:
        return 20 * _press(found, lambda _: said, 1_000, seconds)


def waves(targets: Targets, seconds: float) -> int:
    """Connections to all members of a group, many at a time and soon gone: silent ones, garbage, beginnings
    of large frames, questions whose answers nobody reads, votes for a member of another group."""
    vote = RaftVoteRequest(1, "another/n1,n2,n3", 1, 99, 999, 99, is_pre=False, is_transfer=True)
    said = (
        b"",
        GARBAGE[0],
        (MEGABYTE).to_bytes(4, "big") + (100).to_bytes(4, "big") + bytes(100_000),
        _frame(RequestCode.CONTROLLER_GET_METADATA_INFO) * 500,
        _frame(MemberCode.VOTE, vote),
    )
    until_s, count = time.monotonic() + seconds, 0
    while time.monotonic() < until_s and count < WAVES_OF_ALL:
        with ExitStack() as stack:
            for number in range(count, count + WAVE):
                source = (HOSTILE_HOSTS[number % len(HOSTILE_HOSTS)], 0)
                port = targets.members[number % len(targets.members)]
                with suppress(OSError):
                    one = socket.create_connection((LOOPBACK, port), timeout=2.0, source_address=source)
                    stack.enter_context(one).setblocking(False)
                    one.send(said[number // len(targets.members) % len(said)])
            count += WAVE
            time.sleep(0.05)
    return count


ATTACKS: Mapping[str, Attack] = {
    "idle": Attack("connections that say nothing", "broker", idle),
    "garbage": Attack("connections with garbage, all ports", "broker", garbage),
    "halves": Attack("frames of 15 MB without their end", "broker", halves),
    "no-readers": Attack("questions of 100 that do not read", "nameserver", no_readers),
    "topics": Attack("messages to new topics", "broker", topics),
    "heartbeats": Attack("clients in 1,000 groups each", "broker", heartbeats),
    "registrations": Attack("registrations of 200 topics", "nameserver", registrations),
    "identities": Attack("identities applied for", "controller", identities),
    "reports": Attack("reports of 20 unknown replicas", "broker", reports),
    "waves": Attack("connections in waves to three controllers", "controller", waves),
    "producers": Attack("messages of 20 that do not read", "broker", producers),
}
