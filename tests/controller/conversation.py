"""Talks with one node, without a socket: requests in, answers out, what it dials and notes kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from replispec.controller.rocketmq.node import ControllerNode
from replispec.runtime.primitives.headers import Header
from replispec.runtime.rocketmq.framing import Command, FrameBuffer, decode_command
from replispec.runtime.storage import Journal, Stores
from replispec.runtime.world import (
    Accepted,
    Close,
    Closed,
    Connected,
    Dial,
    Effect,
    Event,
    Halt,
    Node,
    Note,
    Persist,
    Received,
    Send,
    Started,
    Ticked,
    Writable,
)
from replispec.wire.rocketmq.codes import RemotingFlag
from replispec.wire.rocketmq.controller import (
    AlterSyncStateSetRequest,
    ApplyBrokerIdRequest,
    BrokerHeartbeatRequest,
    ElectMasterRequest,
    GetReplicaInfoRequest,
    RegisterBrokerToControllerRequest,
    SyncStateSet,
)
from replispec.wire.rocketmq.options import ControllerOptions
from replispec.wire.rocketmq.remoting import RemotingHeader
from replispec.wire.rocketmq.streams import REMOTING
from tests.runtime.storage.writing import carried_out

ADDRESS = "127.0.0.1:9878"
SET = "broker-a"
CLUSTER = "DefaultCluster"


class StoredJournal:
    """A journal in a list, that may be told to fail."""

    def __init__(self) -> None:
        self.kept: list[tuple[int, bytes]] = []
        self.value: bytes | None = None
        self.replaced: tuple[int, bytes] | None = None
        self.commits = 0

    def records(self) -> Sequence[tuple[int, bytes]]:
        """All records."""
        return list(self.kept)

    def append(self, records: Sequence[tuple[int, bytes]], *, state: bytes | None = None) -> None:
        """Keep these too."""
        self.commits += 1
        self.kept += records
        self.value = self.value if state is None else state

    def replace(
        self,
        index: int,
        snapshot: bytes,
        *,
        records: Sequence[tuple[int, bytes]] = (),
        state: bytes | None = None,
        is_all: bool = False,
    ) -> None:
        """Keep this instead."""
        assert (records, state, is_all) == ((), None, False), "it is of a controller that is alone"
        self.kept = [each for each in self.kept if each[0] > index]
        self.replaced = (index, snapshot)

    def snapshot(self) -> tuple[int, bytes] | None:
        """What stands in the place of records."""
        return self.replaced

    def state(self) -> bytes | None:
        """The value."""
        return self.value


@dataclass
class Talk:
    """One node and its peers; time stands still until `wait`."""

    node: Node
    listener: str
    now_ms: int = 1_000_000
    opaque: int = 0
    connections: int = 0
    effects: list[Effect] = field(default_factory=list)
    buffers: dict[int, FrameBuffer] = field(default_factory=dict)
    answers: dict[int, list[Command]] = field(default_factory=dict)
    stores: Stores = field(default_factory=Stores)
    holds_writes: bool = False
    held: list[Persist] = field(default_factory=list)

    def give(self, event: Event) -> Sequence[Effect]:
        """Hand an event to the node and keep what it wants, and what it wants once that is written."""
        effects = list(self.node.receive(event))
        self.effects.extend(effects)
        for effect in effects:
            if isinstance(effect, Send):
                buffer = self.buffers.setdefault(effect.connection, FrameBuffer(REMOTING))
                found = self.answers.setdefault(effect.connection, [])
                found.extend(decode_command(frame) for frame in buffer.receive(bytes(effect.data)))
        for effect in tuple(effects):
            if isinstance(effect, Persist) and self.holds_writes:
                self.held.append(effect)
            elif isinstance(effect, Persist):
                effects += self.give(carried_out(effect, self.stores, self.now_ms))
        return effects

    def write(self) -> None:
        """Carry out what was held back, and go on without holding back."""
        self.holds_writes = False
        held, self.held = self.held, []
        for persist in held:
            self.give(carried_out(persist, self.stores, self.now_ms))

    def start(self) -> Talk:
        """The process runs."""
        self.give(Started(self.now_ms, dict(self.node.listeners)))
        return self

    def connect(self, host: str = "127.0.0.1") -> int:
        """A peer on this host opens a connection."""
        self.connections += 1
        peer = f"{host}:{50_000 + self.connections}"
        self.give(Accepted(self.connections, self.listener, peer, self.now_ms))
        return self.connections

    def close(self, connection: int) -> None:
        """A peer ends its connection."""
        self.give(Closed(connection, "ended by the peer", self.now_ms))

    def wait(self, ms: int) -> None:
        """Time passes; the node is told whenever it wants to be."""
        until_ms = self.now_ms + ms
        while (deadline_ms := self.node.deadline_ms()) is not None and deadline_ms <= until_ms:
            self.now_ms = max(self.now_ms, deadline_ms)
            self.give(Ticked(self.now_ms))
        self.now_ms = until_ms

    def frame(self, code: int, header: Header | None = None, body: bytes = b"", *, flag: int = 0) -> bytes:
        """The next request as bytes."""
        self.opaque += 1
        fields = None if header is None else header.to_ext_fields()
        return Command(
            RemotingHeader(code=code, opaque=self.opaque, flag=flag, ext_fields=fields), body
        ).encode()

    def ask(self, connection: int, code: int, header: Header | None = None, body: bytes = b"") -> Command:
        """Send a request and return its answer, which comes at once."""
        data = self.frame(code, header, body)
        self.give(Received(connection, data, self.now_ms))
        answer = self.answers[connection].pop()
        assert answer.header.opaque == self.opaque
        return answer

    def tell(self, connection: int, code: int, header: Header | None = None) -> None:
        """Send a one-way request."""
        data = self.frame(code, header, flag=RemotingFlag.ONEWAY)
        self.give(Received(connection, data, self.now_ms))

    def dialled(self) -> list[Dial]:
        """Whom the node dialled since the last call."""
        found = [each for each in self.effects if isinstance(each, Dial)]
        self.effects = [each for each in self.effects if not isinstance(each, Dial)]
        return found

    def listens(self, dial: Dial) -> list[Command]:
        """Whoever was dialled takes the connection, and reads what it is told."""
        self.give(Connected(dial.connection, "127.0.0.1:40000", self.now_ms))
        return self.read(dial.connection)

    def read(self, connection: int) -> list[Command]:
        """Read all that was sent to a connection."""
        found = self.answers.pop(connection, [])
        self.give(Writable(connection, self.now_ms))
        return found

    def halted(self) -> str | None:
        """Why the node ended the process, if it did."""
        return next((each.reason for each in self.effects if isinstance(each, Halt)), None)

    def noted(self) -> list[str]:
        """What it wrote to its log."""
        return [each.what for each in self.effects if isinstance(each, Note)]

    def closed(self) -> list[int]:
        """Which connections it ended."""
        return [each.connection for each in self.effects if isinstance(each, Close)]


def controller(journal: Journal | None = None, *, snapshot_records: int = 1_000, **options: Any) -> Talk:
    """A controller that has started."""
    stored = journal or StoredJournal()
    node = ControllerNode(configured(**options), stored, snapshot_records=snapshot_records)
    return Talk(node, "controller", stores=Stores(journal=stored)).start()


def configured(**options: Any) -> ControllerOptions:
    """Options of a controller that listens on ADDRESS."""
    host, _, port = ADDRESS.rpartition(":")
    return ControllerOptions(bind_address=host, listen_port=int(port), **options)


def address(broker_id: int) -> str:
    """Where a broker listens."""
    return f"127.0.0.1:{30_900 + 10 * broker_id}"


def application(broker_id: int, name: str = SET) -> ApplyBrokerIdRequest:
    """1013 of a broker, always with the same check code."""
    return ApplyBrokerIdRequest(CLUSTER, name, broker_id, f"{address(broker_id)};1700000000000")


def registration(broker_id: int, at: str | None = None, name: str = SET) -> RegisterBrokerToControllerRequest:
    """1003 of a broker."""
    return RegisterBrokerToControllerRequest(CLUSTER, name, broker_id, at or address(broker_id))


def heartbeat(
    broker_id: int, *, epoch: int = 0, max_offset: int = 0, name: str = SET
) -> BrokerHeartbeatRequest:
    """904 of a broker that counts for 10 s."""
    return BrokerHeartbeatRequest(
        CLUSTER, address(broker_id), name, broker_id, epoch, max_offset, 0, heartbeat_timeout_mills=10_000
    )


def election(broker_id: int, *, designate: bool = False, name: str = SET) -> ElectMasterRequest:
    """1002 of a broker, or of an operator who names one."""
    return ElectMasterRequest(CLUSTER, name, broker_id=broker_id, designate_elect=designate)


def alteration(master: int, epoch: int, name: str = SET) -> AlterSyncStateSetRequest:
    """1001 of a master."""
    return AlterSyncStateSetRequest(name, master_broker_id=master, master_epoch=epoch)


def members(epoch: int, *brokers: int) -> bytes:
    """The body of 1001: the set that is wanted, on top of an epoch."""
    return SyncStateSet(broker_ids=list(brokers), sync_state_set_epoch=epoch).encode()


def question(name: str = SET) -> GetReplicaInfoRequest:
    """1004."""
    return GetReplicaInfoRequest(name)
