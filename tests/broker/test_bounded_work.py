"""Whatever a peer sends, reading it is work in proportion to its bytes, and of one event only so much.

Counted in lines of Python that run (`tests.steps`). Each reader of peers' bytes is fed inputs of doubling
size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from replispec.broker.rocketmq.node import BrokerNode
from replispec.controller.rocketmq.node import ControllerNode
from replispec.nameserver.rocketmq.node import NameServerNode
from replispec.runtime.primitives.jsons import dumps
from replispec.runtime.rocketmq.framing import Command
from replispec.runtime.rocketmq.remoting.server import REQUESTS_AT_ONCE
from replispec.runtime.sim import Disk, Rng, SimulatedJournal
from replispec.runtime.world import (
    Accepted,
    Event,
    Node,
    Persist,
    Persisted,
    Received,
    Send,
    Ticked,
    Writable,
)
from replispec.wire.rocketmq.broker import (
    RegisterBrokerBody,
    RegisterBrokerRequest,
    TopicConfig,
    TopicConfigTable,
)
from replispec.wire.rocketmq.client import (
    BatchMessage,
    ConsumerData,
    GetConsumerListRequest,
    GetLogDigestsRequest,
    HeartbeatData,
    QueryConsumerOffsetRequest,
    UpdateConsumerOffsetRequest,
)
from replispec.wire.rocketmq.codes import RemotingFlag, RequestCode, SerializeType
from replispec.wire.rocketmq.controller import BrokerHeartbeatRequest
from replispec.wire.rocketmq.ha import HaHandshakeId, HaReport, HaTransferHeaderFixed
from replispec.wire.rocketmq.options import ControllerOptions, NameServerOptions
from replispec.wire.rocketmq.remoting import RemotingHeader
from tests.broker.simulated_set import CONTROLLER, BrokerSet, Header, message, wanted
from tests.steps import steps_of

NOW_MS = 1_700_000_100_000
PEER = 1_000_001
PIECE_BYTES = 256 * 1024
TURN_MAX = 40_000
"""Lines that one event of a peer may run, whatever it says: about 10 ms on a slow machine."""


class Turns:
    """A node, and the loop around it: what a peer says in pieces, what is written, whoever has to be told
    the time or that it may send. `turns` are the lines that each event ran."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.turns: list[int] = []
        self._events: list[Event] = []
        self._last = PEER

    def open(self, listener: str) -> int:
        """A peer connects."""
        self._last += 1
        self._hand(Accepted(self._last, listener, f"10.0.0.{self._last % 200}:{self._last % 60_000}", NOW_MS))
        return self._last

    def say(self, connection: int, data: bytes) -> None:
        """A peer sends bytes; all that follows of them is done."""
        pieces = [data[at : at + PIECE_BYTES] for at in range(0, len(data), PIECE_BYTES)]
        for piece in pieces:
            self._hand(Received(connection, piece, NOW_MS))
            while self._events or self._is_due():
                self._hand(self._events.pop(0) if self._events else Ticked(NOW_MS))

    def _is_due(self) -> bool:
        due_ms = self.node.deadline_ms()
        return due_ms is not None and due_ms <= 0

    def _hand(self, event: Event) -> None:
        found: list[object] = []
        self.turns.append(steps_of(lambda: found.extend(self.node.receive(event))))
        for effect in found:
            if isinstance(effect, Send) and effect.tell:
                self._events.append(Writable(effect.connection, NOW_MS))
            elif isinstance(effect, Persist):
                self._events.append(Persisted(effect.token, NOW_MS))


def frame(code: int, header: Header | None = None, body: bytes = b"", *, binary: bool = False) -> bytes:
    """A request."""
    fields = {} if header is None else header.to_ext_fields()
    kind = SerializeType.ROCKETMQ if binary else SerializeType.JSON
    said = RemotingHeader(code=int(code), language="JAVA", version=493, opaque=1, flag=0, ext_fields=fields)
    return Command(said, body, kind).encode()


def broker() -> Turns:
    """A master that asks nobody what a topic is: no name server is there that answers."""
    brokers = BrokerSet()
    brokers.alone(mapped_file_size_commit_log=16 * 1024 * 1024, namesrv_addr=())
    return Turns(brokers.broker(1))


def asking_broker() -> Turns:
    """A master that asks a name server, which is silent, what a topic is."""
    brokers = BrokerSet()
    brokers.alone(mapped_file_size_commit_log=16 * 1024 * 1024)
    return Turns(brokers.broker(1))


def controller() -> Turns:
    """A controller."""
    disk = Disk(Rng(1))
    journal = SimulatedJournal(disk)
    return Turns(ControllerNode(ControllerOptions(), journal))


def name_server() -> Turns:
    """A name server."""
    return Turns(NameServerNode(NameServerOptions()))


def heartbeat(client: str, groups: int) -> bytes:
    """A client lives, in so many groups."""
    consumers = [ConsumerData(group_name=f"g{number}") for number in range(groups)]
    return frame(RequestCode.HEART_BEAT, None, HeartbeatData(client, consumers, None, []).encode())


def registration(topics: int) -> bytes:
    """A broker registers so many topics."""
    table = {
        f"T{number}": TopicConfig(perm=6, read_queue_nums=1, write_queue_nums=1) for number in range(topics)
    }
    body = RegisterBrokerBody([], TopicConfigTable(None, None, table, None, None)).encode()
    header = RegisterBrokerRequest("b", "10.0.0.9:1", "C", "10.0.0.9:2", 0)
    return frame(RequestCode.REGISTER_BROKER, header, body)


def batch(messages: int) -> bytes:
    """A batch of so many messages."""
    body = b"".join(BatchMessage(body=b"x").encode() for _ in range(messages))
    return frame(RequestCode.SEND_BATCH_MESSAGE, message("T", 0, batch=True), body)


def reports(number: int) -> bytes:
    """A replica that says where its log ends, again and again."""
    return HaHandshakeId(broker_id=9).encode() + HaReport(max_offset=0).encode() * number


MANY: dict[str, tuple[Callable[[], Turns], str, Callable[[int], bytes]]] = {
    "unknown codes": (broker, "main", lambda size: frame(31_000) * size),
    "unknown codes in binary headers": (broker, "main", lambda size: frame(3_100, binary=True) * size),
    "questions for a group": (
        broker,
        "main",
        lambda size: frame(RequestCode.GET_CONSUMER_LIST_BY_GROUP, GetConsumerListRequest("g")) * size,
    ),
    "messages": (
        broker,
        "main",
        lambda size: frame(RequestCode.SEND_MESSAGE_V2, message("T", 0), b"x") * size,
    ),
    "new topics": (
        broker,
        "main",
        lambda size: b"".join(frame(310, message(f"T{number}", 0), b"x") for number in range(size)),
    ),
    "new topics of which a name server is asked": (
        asking_broker,
        "main",
        lambda size: b"".join(frame(310, message(f"T{number}", 0), b"x") for number in range(size)),
    ),
    "messages to one of them": (
        asking_broker,
        "main",
        lambda size: frame(RequestCode.SEND_MESSAGE_V2, message("T", 0), b"x") * size,
    ),
    "pulls that wait": (
        broker,
        "main",
        lambda size: b"".join(
            frame(RequestCode.PULL_MESSAGE, wanted("TBW102", 0, 0, 15_000)) for _ in range(size)
        ),
    ),
    "positions": (
        broker,
        "main",
        lambda size: b"".join(
            frame(
                15,
                UpdateConsumerOffsetRequest(consumer_group=f"g{n}", topic="T", queue_id=0, commit_offset=1),
            )
            for n in range(size)
        ),
    ),
    "reports of a replica": (broker, "ha", reports),
    "checksums of the log": (
        broker,
        "main",
        lambda size: (
            frame(RequestCode.GET_LOG_DIGESTS, GetLogDigestsRequest(1, 0, 1 << 40, 16 * 1024 * 1024)) * size
        ),
    ),
    "heartbeats of brokers": (
        controller,
        "controller",
        lambda size: b"".join(
            frame(
                RequestCode.BROKER_HEARTBEAT, BrokerHeartbeatRequest("C", "x", f"b{n}", 1, 1, 0, 0, 10_000, 1)
            )
            for n in range(size)
        ),
    ),
    "all brokers": (
        name_server,
        "nameserver",
        lambda size: frame(RequestCode.GET_BROKER_CLUSTER_INFO) * size,
    ),
}


@pytest.mark.parametrize("name", MANY)
def test_what_comes_in_many_messages_is_read_in_many_turns(name: str) -> None:
    make, listener, said = MANY[name]
    totals = []
    for size in (REQUESTS_AT_ONCE * 4, REQUESTS_AT_ONCE * 8):
        turns = make()
        connection = turns.open(listener)
        turns.say(connection, said(size))
        totals.append(sum(turns.turns))
        assert max(turns.turns) < TURN_MAX
    assert totals[1] < 2.3 * totals[0]


def copying() -> tuple[Turns, int, bytes]:
    """A replica, its connection to its master, and a heartbeat of that master."""
    brokers = BrokerSet()
    brokers.pair()
    brokers.send("10.0.1.1:10911", b"x")
    node = brokers.broker(2)
    brokers.until(lambda: bool(brokers.epochs("10.0.1.2:10911").max_offset))
    replica = node._log._replica
    assert replica is not None
    assert replica._connection is not None
    known = replica._variables
    last = known.epochs[-1]
    header = HaTransferHeaderFixed(2, 0, known.log_end, last.epoch, last.start_offset, known.log_end)
    return Turns(node), replica._connection, header.encode()


def asking() -> tuple[Turns, int, bytes]:
    """A broker, its connection to its controller, and an answer that nobody waits for."""
    turns = broker()
    assert isinstance(turns.node, BrokerNode)
    channel = turns.node._calls._by_address[CONTROLLER]
    header = RemotingHeader(code=0, language="JAVA", version=493, opaque=77, flag=RemotingFlag.RESPONSE)
    return turns, channel.connection, Command(header, b"").encode()


@pytest.mark.parametrize("make", [copying, asking])
def test_what_others_answer_or_send_to_a_replica_is_read_in_many_turns(
    make: Callable[[], tuple[Turns, int, bytes]],
) -> None:
    totals = []
    for size in (1_000, 2_000):
        turns, connection, said = make()
        turns.say(connection, said * size)
        totals.append(sum(turns.turns))
        assert len(turns.turns) > size // 100
        assert max(turns.turns) < TURN_MAX
    assert totals[1] < 2.3 * totals[0]


LONG: dict[str, tuple[Callable[[], Turns], str, Callable[[int], bytes]]] = {
    "a client of many groups": (broker, "main", lambda size: heartbeat("c", size)),
    "a batch": (broker, "main", batch),
    "a registration": (name_server, "nameserver", registration),
    "names of broker sets": (
        controller,
        "controller",
        lambda size: frame(
            RequestCode.CONTROLLER_GET_SYNC_STATE_DATA, None, dumps([f"b{n}" for n in range(size)])
        ),
    ),
    "a long header": (
        broker,
        "main",
        lambda size: frame(29, QueryConsumerOffsetRequest(consumer_group="g" * size, topic="T", queue_id=0)),
    ),
}


@pytest.mark.parametrize("name", LONG)
def test_one_long_message_is_work_in_proportion_to_its_length(name: str) -> None:
    make, listener, said = LONG[name]
    totals = []
    for size in (200, 400):
        turns = make()
        turns.say(turns.open(listener), said(size))
        totals.append(sum(turns.turns))
    assert totals[1] < 2.3 * totals[0]


def test_bytes_that_come_one_by_one_cost_what_they_cost_together() -> None:
    data = frame(31_000, None, bytes(2_000))
    totals = []
    for size in (200, 400):
        turns = broker()
        connection = turns.open("main")
        for at in range(size):
            turns.say(connection, data[at : at + 1])
        totals.append(sum(turns.turns))
    assert totals[1] < 2.3 * totals[0]


def clients(turns: Turns, number: int, groups: int) -> Iterator[int]:
    """So many clients come, each in all of the groups; the lines of the longest turn of each."""
    for client in range(number):
        turns.turns.clear()
        turns.say(turns.open("main"), heartbeat(f"c{client}", groups))
        yield max(turns.turns)


def test_a_client_that_comes_into_many_groups_is_told_to_others_in_many_turns() -> None:
    turns = broker()
    longest = list(clients(turns, 24, 100))
    assert longest[-1] < 1.5 * longest[4]
    assert longest[-1] < TURN_MAX


def sends(turns: Turns, number: int) -> int:
    """The lines that one message to a queue that nobody waits for costs, the dearest of so many."""
    connection = turns.open("main")
    turns.turns.clear()
    for _ in range(number):
        turns.say(connection, frame(RequestCode.SEND_MESSAGE_V2, message("T", 3), b"x"))
    return max(turns.turns)


def test_pulls_that_wait_cost_a_message_of_another_queue_nothing() -> None:
    turns = broker()
    turns.say(turns.open("main"), frame(RequestCode.SEND_MESSAGE_V2, message("T", 0), b"x"))
    none = sends(turns, 8)
    for _ in range(20):
        connection = turns.open("main")
        waits = frame(RequestCode.PULL_MESSAGE, wanted("T", 1, 0, 15_000))
        turns.say(connection, waits * 50)
    assert sends(turns, 8) <= none * 1.1


def test_those_that_wait_for_one_message_share_its_bytes_and_are_answered_in_turns() -> None:
    turns = broker()
    writer = turns.open("main")
    turns.say(writer, frame(RequestCode.SEND_MESSAGE_V2, message("T", 0), b"x"))
    given: list[bytes] = []
    receive = turns.node.receive

    def watched(event: Event) -> object:
        effects = receive(event)
        given.extend(e.data for e in effects if isinstance(e, Send) and len(e.data) > 100_000)  # type: ignore[misc]
        return effects

    for _ in range(300):
        turns.say(turns.open("main"), frame(RequestCode.PULL_MESSAGE, wanted("T", 0, 1, 15_000)))
    turns.node.receive = watched  # type: ignore[method-assign, assignment]
    turns.turns.clear()
    turns.say(writer, frame(RequestCode.SEND_MESSAGE_V2, message("T", 0), bytes(200_000)))
    assert len(given) == 300
    assert len(set(map(id, given))) < 10
    assert max(turns.turns) < TURN_MAX
