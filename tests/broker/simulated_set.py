"""A broker set with its controller and name server in a simulated world, and a client that asks it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from replispec.broker.rocketmq.node import BrokerNode
from replispec.controller.rocketmq.node import ControllerNode
from replispec.learner.rocketmq.node import LearnerNode
from replispec.nameserver.rocketmq.node import NameServerNode
from replispec.runtime.rocketmq.framing import Command
from replispec.runtime.rocketmq.remoting import Calls
from replispec.runtime.rocketmq.remoting.calls import Failure, Outcome
from replispec.runtime.sim import World
from replispec.runtime.storage import Storage, Stores
from replispec.runtime.world import Effect, Event, Member, Note, Outbox
from replispec.wire.rocketmq.broker import (
    PullMessageRequest,
    PullMessageResponse,
    SendMessageResponse,
    SendMessageV2Request,
)
from replispec.wire.rocketmq.codes import RequestCode, ResponseCode
from replispec.wire.rocketmq.controller import EpochEntryCache, GetReplicaInfoRequest, GetReplicaInfoResponse
from replispec.wire.rocketmq.options import (
    BrokerOptions,
    ControllerOptions,
    LearnerOptions,
    NameServerOptions,
)
from tests.playbook import deliver

CONTROLLER = "10.0.0.1:9878"
NAME_SERVER = "10.0.0.2:9876"
LOG_FILE_BYTES = 64 * 1024
PATIENCE_MS = 60_000


class Header(Protocol):
    """A typed header."""

    def to_ext_fields(self) -> dict[str, str | None]:
        """Its texts by key."""
        ...


class Client:
    """A node that asks whatever a test tells it to."""

    def __init__(self) -> None:
        self._outbox = Outbox()
        self._calls = Calls(self._outbox)
        self._wanted: deque[Callable[[int], None]] = deque()
        self._now_ms = 0

    def speak(self, release: int) -> None:
        """Before anything is asked: requests are of a release from now on."""
        self._calls = Calls(self._outbox, version=release)

    @property
    def listeners(self) -> Mapping[str, str]:
        """None."""
        return {}

    def deadline_ms(self) -> int | None:
        """Soon: tests ask between two events."""
        return self._now_ms + 5

    def receive(self, event: Event) -> Sequence[Effect]:
        """Take one event."""
        self._now_ms = event.now_ms
        deliver(self._calls, event)
        while self._wanted:
            self._wanted.popleft()(event.now_ms)
        self._calls.ticked(event.now_ms)
        return self._outbox.take()

    def ask(self, address: str, code: int, fields: dict[str, str | None], body: bytes) -> list[Outcome]:
        """Ask soon; the list has the answer as soon as there is one."""
        found: list[Outcome] = []

        def ask(now_ms: int) -> None:
            self._calls.ask(
                address,
                code,
                lambda outcome, _now_ms: found.append(outcome),
                now_ms=now_ms,
                timeout_ms=30_000,
                ext_fields=fields,
                body=body,
            )

        self._wanted.append(ask)
        return found


class BrokerSet:
    """One controller, one name server, one client; brokers and learners as they are added."""

    def __init__(self, seed: int = 1) -> None:
        self.world = World(seed)
        self.notes: list[tuple[str, Note]] = []
        self.world.notes = lambda name, note: self.notes.append((name, note))
        self.client = Client()
        self.world.add("controller", "10.0.0.1", _controller)
        self.world.add("nameserver", "10.0.0.2", _name_server)
        self.world.add("client", "10.0.0.3", lambda _storage: [Member("client", self.client)])
        for name in ("controller", "nameserver", "client"):
            self.world.start(name)

    def add_broker(self, number: int, **changes: Any) -> str:
        """Add a broker that does not run yet; returns its address."""
        host = f"10.0.1.{number}"
        options = BrokerOptions(
            broker_cluster_name="C",
            broker_name="broker-a",
            controller_addr=(CONTROLLER,),
            namesrv_addr=(NAME_SERVER,),
            bind_address=host,
            mapped_file_size_commit_log=LOG_FILE_BYTES,
            all_ack_in_sync_state_set=True,
        )
        options = replace(options, **changes)

        def make(storage: Storage) -> Sequence[Member]:
            files = storage.files("store")
            return [Member("broker", BrokerNode(options, files), Stores(files))]

        self.world.add(f"broker{number}", host, make)
        return f"{host}:{options.listen_port}"

    def add_learner(self, number: int) -> str:
        """Add a learner that does not run yet; returns its address."""
        host = f"10.0.2.{number}"
        options = LearnerOptions(
            broker_cluster_name="C",
            broker_name="broker-a",
            controller_addr=(CONTROLLER,),
            namesrv_addr=(NAME_SERVER,),
            bind_address=host,
            mapped_file_size_commit_log=LOG_FILE_BYTES,
        )

        def make(storage: Storage) -> Sequence[Member]:
            files, lines = storage.files("store"), storage.lines("export")
            return [Member("learner", LearnerNode(options, files, lines), Stores(files, lines=lines))]

        self.world.add(f"learner{number}", host, make)
        return f"{host}:{options.listen_port}"

    def start(self, *names: str) -> None:
        """Start processes, one after the other."""
        for name in names:
            self.world.start(name)
            self.world.run_for(300)

    def broker(self, number: int) -> BrokerNode:
        """The node of a running broker."""
        node = self.world.processes[f"broker{number}"].nodes[0]
        assert isinstance(node, BrokerNode)
        return node

    def until(self, is_so: Callable[[], bool], at_most_ms: int = PATIENCE_MS) -> None:
        """Run until something is so."""
        assert self.world.run_until(is_so, at_most_ms=at_most_ms), [str(note) for note in self.notes[-10:]]

    def ask(self, address: str, code: int, header: Header | None = None, body: bytes = b"") -> Command:
        """Ask and wait for the answer; once more on a connection that a dead process left behind."""
        outcome: Outcome = Failure("not asked", sent=False)
        for _ in range(2):
            found = self.asked(address, code, header, body)
            self.until(lambda found=found: bool(found))  # type: ignore[misc]  # bound here, and called here
            outcome = found[0]
            if not isinstance(outcome, Failure):
                return outcome
        raise AssertionError(outcome)

    def asked(
        self, address: str, code: int, header: Header | None = None, body: bytes = b""
    ) -> list[Outcome]:
        """Ask without waiting."""
        fields = {} if header is None else header.to_ext_fields()
        return self.client.ask(address, code, fields, body)

    def send(
        self, address: str, body: bytes, *, topic: str = "T", queue: int = 0, **more: Any
    ) -> tuple[int, SendMessageResponse]:
        """Send a message: the code, and what the answer says."""
        header = message(topic, queue, **more)
        answer = self.ask(address, RequestCode.SEND_MESSAGE_V2, header, body)
        return answer.header.code, SendMessageResponse.from_ext_fields(answer.header.ext_fields or {})

    def pull(
        self, address: str, position: int, *, topic: str = "T", queue: int = 0, wait_ms: int = 0
    ) -> tuple[int, PullMessageResponse, bytes]:
        """Pull: the code, what the answer says, and the records."""
        answer = self.ask(address, RequestCode.PULL_MESSAGE, wanted(topic, queue, position, wait_ms))
        received = PullMessageResponse.from_ext_fields(answer.header.ext_fields or {})
        return answer.header.code, received, answer.body

    def master(self) -> GetReplicaInfoResponse:
        """Who is master, by the controller's account."""
        request = GetReplicaInfoRequest("broker-a")
        answer = self.ask(CONTROLLER, RequestCode.CONTROLLER_GET_REPLICA_INFO, request)
        return GetReplicaInfoResponse.from_ext_fields(answer.header.ext_fields or {})

    def epochs(self, address: str) -> EpochEntryCache:
        """Epochs and log end of a broker or learner."""
        return EpochEntryCache.decode(self.ask(address, RequestCode.GET_BROKER_EPOCH_CACHE).body)

    def members(self, number: int) -> frozenset[int]:
        """The SyncStateSet that a broker counts with."""
        return self.broker(number).sync_set

    def pair(self, **changes: Any) -> tuple[str, str]:
        """Two brokers, both in the set; the first one is master."""
        addresses = self.add_broker(1, **changes), self.add_broker(2, **changes)
        self.start("broker1", "broker2")
        self.until(lambda: self.members(1) == {1, 2})
        return addresses

    def alone(self, **changes: Any) -> str:
        """One broker, which is master."""
        address = self.add_broker(1, **changes)
        self.start("broker1")
        self.until(lambda: self.broker(1).serves)
        return address


def message(topic: str, queue: int, **more: Any) -> SendMessageV2Request:
    """The header of a message."""
    header = SendMessageV2Request(
        producer_group="p",
        topic=topic,
        default_topic="TBW102",
        default_topic_queue_nums=4,
        queue_id=queue,
        sys_flag=0,
        born_timestamp=7,
        flag=0,
    )
    return replace(header, **more)


def wanted(topic: str, queue: int, position: int, wait_ms: int = 0, flags: int = 2) -> PullMessageRequest:
    """The header of a pull."""
    return PullMessageRequest(
        consumer_group="g",
        topic=topic,
        queue_id=queue,
        queue_offset=position,
        max_msg_nums=32,
        sys_flag=flags,
        commit_offset=0,
        suspend_timeout_millis=wait_ms,
        sub_version=0,
    )


def _controller(storage: Storage) -> Sequence[Member]:
    host, _, port = CONTROLLER.rpartition(":")
    options = ControllerOptions(bind_address=host, listen_port=int(port))
    journal = storage.journal("log")
    return [Member("controller", ControllerNode(options, journal), Stores(journal=journal))]


def _name_server(_storage: Storage) -> Sequence[Member]:
    host, _, port = NAME_SERVER.rpartition(":")
    options = NameServerOptions(bind_address=host, listen_port=int(port))
    return [Member("nameserver", NameServerNode(options))]


OK = ResponseCode.SUCCESS
