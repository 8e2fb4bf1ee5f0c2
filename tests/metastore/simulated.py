"""A metastore and its clients in the simulated world: what each asked and was told, what disturbs them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from replispec.metastore.zookeeper.process import members
from replispec.runtime.primitives.rng import Rng
from replispec.runtime.sim import World
from replispec.runtime.storage import Storage
from replispec.runtime.world import (
    Closed,
    Connected,
    Effect,
    Event,
    Member,
    Outbox,
    Received,
    Started,
    Ticked,
)
from replispec.runtime.zookeeper.client import MetastoreAnswer, MetastoreClient, SeenNode, SessionStanding
from replispec.runtime.zookeeper.client.client import create_of
from replispec.runtime.zookeeper.client.settling import change, error_of
from replispec.wire.zookeeper.codes import CreateFlags, ErrorCode
from replispec.wire.zookeeper.operations import (
    CreateRequest,
    DeleteRequest,
    GetDataRequest,
    GetDataResponse,
    SetDataRequest,
)
from replispec.wire.zookeeper.options import MetastoreOptions
from tests.linearizable.checker import Operation

SERVER = "10.0.0.1:2181"
PATHS = ("/x", "/y")
ASKED_MAX = 3
"""Operations that one client awaits."""
UNKNOWN = (ErrorCode.CONNECTION_LOSS, ErrorCode.SESSION_EXPIRED)


@dataclass(frozen=True)
class Did:
    """One operation on a node: what was asked, and its error (None: nobody knows), or what was read."""

    kind: str
    data: bytes | None = None
    version: int = -1
    error: int | None = None


State = tuple[int, bytes | None] | None


class Node:
    """One node as one client alone would see it: its version and data, or nothing."""

    initial: State = None

    def after(self, state: State, what: Did) -> Sequence[State]:
        """What it may be after this."""
        if what.kind == "get":
            seen = None if what.error == ErrorCode.NO_NODE else (what.version, what.data)
            return [state] if seen == state else []
        if what.error in (None, ErrorCode.OK):
            after = self._done(state, what)
            return [] if after is False else [after]  # type: ignore[list-item]
        fails = {
            ErrorCode.NODE_EXISTS: state is not None,
            ErrorCode.NO_NODE: state is None,
            ErrorCode.BAD_VERSION: state is not None and state[0] != what.version,
        }
        return [state] if fails.get(ErrorCode(what.error), True) else []

    def _done(self, state: State, what: Did) -> State | bool:
        if what.kind == "create":
            return (0, what.data) if state is None else False
        if state is None or state[0] != what.version:
            return False
        return (state[0] + 1, what.data) if what.kind == "set" else None


class History:
    """Everything that all clients asked, in one order of beginnings and ends."""

    def __init__(self) -> None:
        self.place = 0
        self.done: dict[str, list[Operation[Did]]] = {path: [] for path in PATHS}

    def next(self) -> int:
        """The next place."""
        self.place += 1
        return self.place


class Asker:
    """A node that asks at random: reads, changes of what it has read, ephemeral nodes of its own."""

    listeners: Mapping[str, str] = {}

    def __init__(
        self, name: str, seed: int, history: History, servers: Sequence[str], *, settles: bool
    ) -> None:
        self.settles = settles
        self.name = name
        self.rng = Rng(seed)
        self.history = history
        self.outbox = Outbox()
        self.client = MetastoreClient(self.outbox, servers, 4_000, stands=self._stands)
        self.known: dict[str, State] = dict.fromkeys(PATHS)
        self.seen: dict[str, SeenNode] = {}
        self.stood: list[SessionStanding] = []
        self.next_ms = 0
        self.now_ms = 0
        self.count = 0
        self.is_quiet = False
        self.asked = 0
        self._begins_again = False
        for path in PATHS:
            self.client.watch(path, partial(self.seen.__setitem__, path))

    def receive(self, event: Event) -> Sequence[Effect]:
        self.now_ms = event.now_ms
        match event:
            case Started():
                self.client.begin(event.now_ms)
            case Connected():
                self.client.connected(event)
            case Received():
                self.client.received(event)
            case Closed():
                self.client.closed(event)
            case Ticked():
                self.client.ticked(event.now_ms)
                self._act()
            case _:
                pass
        if self._begins_again:
            self._begins_again = False
            self.client.begin(event.now_ms)
        return self.outbox.take()

    def deadline_ms(self) -> int | None:
        deadline_ms = self.client.deadline_ms()
        if self.is_quiet:
            return deadline_ms
        return self.next_ms if deadline_ms is None else min(self.next_ms, deadline_ms)

    def _stands(self, standing: SessionStanding) -> None:
        self.stood.append(standing)
        if standing is SessionStanding.LOST:
            self._begins_again = True

    def _act(self) -> None:
        if self.is_quiet or self.now_ms < self.next_ms:
            return
        self.next_ms = self.now_ms + self.rng.between(20, 400)
        if self.asked >= ASKED_MAX:
            return
        self.count += 1
        path, data = self.rng.one_of(PATHS), f"{self.name}-{self.count}".encode()
        known = self.known[path]
        kinds = ["get", "set", "set", "set", "create", "mine"]
        # A change that is asked for again is told by the node, unless that went and came back meanwhile.
        kind = self.rng.one_of(kinds if self.settles else [*kinds, "delete"])
        if kind == "mine":
            name = f"/{self.name}-{self.count}"
            self.client.create(name, b"", lambda _: None, flags=CreateFlags.EPHEMERAL)
        elif kind == "get":
            ended = self._began(path, Did("get"))
            self.client.read(GetDataRequest(path, False), partial(self._got, path, ended))
        elif kind == "create" or known is None:
            self._change(path, Did("create", data), create_of(path, data))
        elif kind == "set":
            self._change(path, Did("set", data, known[0]), SetDataRequest(path, data, known[0]))
        else:
            self._change(path, Did("delete", None, known[0]), DeleteRequest(path, known[0]))

    def _change(self, path: str, did: Did, request: CreateRequest | SetDataRequest | DeleteRequest) -> None:
        then = partial(self._changed, path, self._began(path, did))
        if self.settles:
            change(self.client.session, request, then)
        else:
            self.client.read(request, then)

    def _began(self, path: str, did: Did) -> Callable[[Did | int | None], Did]:
        """An operation begins; what is called once it ends."""
        self.asked += 1
        called, place = self.history.next(), len(self.history.done[path])
        self.history.done[path].append(Operation(did, called, None, self.name))

        def ended(how: Did | int | None) -> Did:
            self.asked -= 1
            found = how if isinstance(how, Did) else replace(did, error=how)
            if found.error is not None:
                self.history.done[path][place] = Operation(found, called, self.history.next(), self.name)
            return found

        return ended

    def _got(self, path: str, ended: Callable[[Did | int | None], Did], answer: MetastoreAnswer) -> None:
        if isinstance(answer.message, GetDataResponse):
            stat, data = answer.message.stat, answer.message.data
            self.known[path] = (stat.version, data)
            ended(Did("get", data, stat.version, ErrorCode.OK))
        elif answer.error == ErrorCode.NO_NODE:
            self.known[path] = None
            ended(answer.error)
        else:
            ended(None)

    def _changed(self, path: str, ended: Callable[[Did | int | None], Did], answer: MetastoreAnswer) -> None:
        error = error_of(answer)
        did = ended(None if error in UNKNOWN and answer.was_sent else error)
        known = self.known[path]
        if did.error == ErrorCode.OK:
            self.known[path] = None if did.kind == "delete" else (did.version + 1, did.data)
        elif did.error == ErrorCode.NODE_EXISTS:
            self.known[path] = known or (0, b"")
        elif did.error == ErrorCode.BAD_VERSION and known is not None:
            self.known[path] = (known[0] + 1, b"")
        elif did.error == ErrorCode.NO_NODE:
            self.known[path] = None


class Simulation:
    """A world with a metastore and some clients. `faults` disturb it until `calm`."""

    def __init__(
        self, seed: int, clients: int = 3, *, snapshot_bytes: int = 4_096, settles: bool = False
    ) -> None:
        self.settles = settles
        self.world = World(seed)
        self.rng = Rng(seed ^ 0x5EED)
        self.history = History()
        self.askers: list[Asker] = []
        options = MetastoreOptions(
            client_port_address="10.0.0.1", client_port=2181, data_dir="m", snapshot_bytes=snapshot_bytes
        )
        life = iter(range(1, 1_000_000))

        def make(storage: Storage) -> Sequence[Member]:
            return members(options, storage, seed * 1_000 + next(life))

        self.world.add("metastore", "10.0.0.1", make)
        self.world.start("metastore")
        for number in range(clients):
            self._add(f"c{number}", number)

    def _add(self, name: str, number: int) -> None:
        asker = Asker(name, self.rng.bits(), self.history, ["10.0.0.9:2181", SERVER], settles=self.settles)
        self.askers.append(asker)
        self.world.add(name, f"10.0.1.{number + 1}", lambda _: [Member("asker", asker)])
        self.world.start(name)

    def fault(self) -> None:
        """Something goes wrong for a while."""
        world, rng = self.world, self.rng
        process = world.processes["metastore"]
        name = f"c{rng.below(len(self.askers))}"
        match rng.below(6):
            case 0:
                world.kill("metastore", power=rng.happens(500))
                world.run_for(rng.between(0, 3_000))
            case 1:
                process.disk.crash_at(rng.between(1, 4))
                world.run_until(lambda: not process.is_alive, at_most_ms=10_000)
                process.disk.mend()
            case 2:
                world.pause("metastore")
                world.run_for(rng.between(10, 12_000))
                world.go_on("metastore")
            case 3:
                world.pause(name)
                world.run_for(rng.between(10, 9_000))
                world.go_on(name)
            case 4:
                world.network.block(name, "metastore")
                world.run_for(rng.between(10, 9_000))
                world.network.heal()
            case _:
                world.network.reset(name, "metastore")
        if not process.is_alive:
            world.start("metastore")

    def run(self, faults: int) -> None:
        """So many faults, each after a while; then all is calm, and everybody falls silent."""
        for _ in range(faults):
            self.world.run_for(self.rng.between(200, 2_500))
            self.fault()
        self.world.run_for(15_000)
        for asker in self.askers:
            asker.is_quiet = True
        self.world.run_for(10_000)

    def is_down(self) -> bool:
        """Whether the metastore does not run."""
        return not self.world.processes["metastore"].is_alive

    def tree(self) -> object:
        """The metastore's tree now."""
        (life,) = self.world.processes["metastore"].lives
        return life.node.tree  # type: ignore[attr-defined]
