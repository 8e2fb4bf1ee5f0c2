"""The client of metastores: one session over connections, changes in few requests, watches that are read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from replispec.metastore.zookeeper.process import members
from replispec.runtime.sim import World
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
from replispec.runtime.zookeeper.client import BatchItem, MetastoreClient, SeenNode, SessionStanding
from replispec.runtime.zookeeper.client.client import create_of
from replispec.runtime.zookeeper.client.settling import error_of
from replispec.wire.zookeeper.codes import CreateFlags, ErrorCode
from replispec.wire.zookeeper.operations import CheckVersionRequest, ExistsRequest, SetDataRequest
from replispec.wire.zookeeper.options import MetastoreOptions

SERVERS = ["10.0.0.1:2181"]


class Owner:
    """A node with nothing but a client."""

    listeners: dict[str, str] = {}  # noqa: RUF012  a node's

    def __init__(self, servers: Sequence[str] = SERVERS, timeout_ms: int = 6_000) -> None:
        self.outbox = Outbox()
        self.stood: list[SessionStanding] = []
        self.client = MetastoreClient(self.outbox, servers, timeout_ms, stands=self.stood.append)
        self.told: list[int] = []
        self.seen: list[SeenNode] = []
        self.soon: list[Callable[[], None]] = []
        self.now_ms = 0

    def receive(self, event: Event) -> Sequence[Effect]:
        self.now_ms = event.now_ms
        match event:
            case Started():
                self.client.begin(event.now_ms)
            case Connected():
                assert self.client.connected(event)
            case Received():
                assert self.client.received(event)
            case Closed():
                assert self.client.closed(event)
            case Ticked():
                self.client.ticked(event.now_ms)
                soon, self.soon = self.soon, []
                for each in soon:
                    each()
            case _:
                pass
        return self.outbox.take()

    def deadline_ms(self) -> int | None:
        return self.now_ms if self.soon else self.client.deadline_ms()


class Scene:
    """A metastore and owners of clients."""

    def __init__(self, *owners: Owner, **options: Any) -> None:
        self.world = World(11)
        self.owners = owners
        wanted = MetastoreOptions(client_port_address="10.0.0.1", data_dir="m", **options)
        self.world.add("metastore", "10.0.0.1", lambda storage: members(wanted, storage, 5))
        self.world.start("metastore")
        for number, owner in enumerate(owners, 1):
            self.world.add(f"c{number}", f"10.0.1.{number}", lambda _, owner=owner: [Member("c", owner)])  # type: ignore[misc]
            self.world.start(f"c{number}")
        self.world.run_for(1_000)

    def do(self, owner: Owner, *what: Callable[[], None], wait_ms: int = 3_000) -> None:
        """Have an owner do something, and let time pass."""
        owner.soon += what
        name = f"c{1 + self.owners.index(owner)}"
        (life,) = self.world.processes[name].lives
        self.world.deliver(life, Ticked)
        self.world.run_for(wait_ms)


def told(owner: Owner) -> Callable[[Any], None]:
    return lambda answer: owner.told.append(error_of(answer))


def test_a_session_outlives_its_connections_and_the_server() -> None:
    owner = Owner()
    scene = Scene(owner)
    number = owner.client.session.number
    for _ in range(3):
        scene.world.network.reset("c1", "metastore")
        scene.world.run_for(1_000)
    scene.world.kill("metastore", power=True)
    scene.world.run_for(2_000)
    scene.world.start("metastore")
    scene.world.run_for(5_000)
    assert owner.client.session.is_connected
    assert owner.client.session.number == number
    assert SessionStanding.LOST not in owner.stood


def test_a_session_is_kept_alive_by_pings_alone() -> None:
    owner = Owner()
    scene = Scene(owner)
    scene.world.run_for(60_000)
    assert owner.stood == [SessionStanding.CONNECTING, SessionStanding.CONNECTED]


def test_a_session_that_is_lost_is_told_once_and_another_one_may_begin() -> None:
    owner = Owner()
    scene = Scene(owner)
    scene.world.pause("c1")
    scene.world.run_for(30_000)
    scene.world.go_on("c1")
    scene.world.run_for(5_000)
    assert owner.stood[-1] is SessionStanding.LOST
    owner.client.create("/x", b"", told(owner))
    assert owner.told == [ErrorCode.SESSION_EXPIRED]
    scene.do(owner, lambda: owner.client.begin(owner.now_ms))
    assert owner.client.session.is_connected


def test_who_leaves_ends_its_session_at_once() -> None:
    owner, other = Owner(), Owner()
    scene = Scene(owner, other)
    flags = CreateFlags.EPHEMERAL
    scene.do(owner, lambda: owner.client.create("/e", b"", told(owner), flags=flags))
    scene.do(owner, owner.client.leave, wait_ms=500)
    scene.do(other, lambda: other.client.read(ExistsRequest("/e", False), told(other)), wait_ms=500)
    assert owner.told == [ErrorCode.OK]
    assert other.told == [ErrorCode.NO_NODE]


def test_another_server_is_tried_when_one_is_not_there() -> None:
    owner = Owner(["10.0.0.8:2181", "10.0.0.9:2181", *SERVERS])
    scene = Scene(owner)
    scene.world.run_for(40_000)
    assert owner.client.session.is_connected


def test_what_is_watched_is_told_as_it_is_read() -> None:
    owner, other = Owner(), Owner()
    scene = Scene(owner, other)
    owner.client.watch("/a", owner.seen.append)
    scene.do(owner)
    scene.do(other, lambda: other.client.create("/a", b"1", told(other)))
    scene.do(other, lambda: other.client.set_data("/a", b"2", 0, told(other)))
    scene.world.network.reset("c1", "metastore")
    scene.world.run_for(2_000)
    scene.do(other, lambda: other.client.delete("/a", 1, told(other)))
    assert other.told == [ErrorCode.OK] * 3
    seen = [each.data for each in owner.seen]
    assert seen == [None, b"1", b"2", b"2", None]
    assert owner.seen[-1].stat is None


def test_children_are_watched_and_a_watch_that_is_over_tells_nothing() -> None:
    owner, other = Owner(), Owner()
    scene = Scene(owner, other)
    watching = owner.client.watch("/", owner.seen.append, children=True)
    scene.do(owner)
    scene.do(other, lambda: other.client.create("/a", b"", told(other)))
    watching.stop()
    scene.do(other, lambda: other.client.create("/b", b"", told(other)))
    assert [each.children for each in owner.seen] == [(), ("a",)]


def test_many_changes_go_in_few_requests_and_one_refusal_costs_only_its_own() -> None:
    owner = Owner()
    scene = Scene(owner)
    results: dict[int, int] = {}
    fence = CheckVersionRequest("/fence", 0)
    items = [
        BatchItem((create_of(f"/n{each % 999}", b""),), partial(results.__setitem__, each))
        for each in range(1_000)
    ]
    scene.do(owner, lambda: owner.client.create("/fence", b"", told(owner)))
    before = len(scene.world.processes["metastore"].disk.changes)
    scene.do(owner, lambda: owner.client.change_all(items, fence=fence), wait_ms=20_000)
    assert len(results) == 1_000
    assert [each for each, error in results.items() if error != ErrorCode.OK] == [999]
    assert results[999] == ErrorCode.NODE_EXISTS
    assert len(scene.world.processes["metastore"].disk.changes) > before


def test_nothing_is_changed_behind_a_fence_that_does_not_hold() -> None:
    owner = Owner()
    scene = Scene(owner)
    results: list[int] = []
    scene.do(owner, lambda: owner.client.create("/fence", b"", told(owner)))
    scene.do(owner, lambda: owner.client.set_data("/fence", b"newer", 0, told(owner)))
    items = [BatchItem((create_of(f"/n{each}", b""),), results.append) for each in range(5)]
    fence = CheckVersionRequest("/fence", 0)
    scene.do(owner, lambda: owner.client.change_all(items, fence=fence))
    assert results == [ErrorCode.BAD_VERSION] * 5


def test_a_set_whose_answer_was_lost_is_found_done_and_not_done_twice() -> None:
    owner = Owner()
    scene = Scene(owner)
    scene.do(owner, lambda: owner.client.create("/a", b"", told(owner)))
    for version in range(10):
        lost: list[int] = []
        request = SetDataRequest("/a", b"%d" % version, version)

        def ask(request: SetDataRequest = request, lost: list[int] = lost) -> None:
            owner.client.set_data(
                "/a", request.data, request.version, lambda answer: lost.append(error_of(answer))
            )

        scene.do(owner, ask, wait_ms=version)
        scene.world.network.reset("metastore", "c1")
        scene.world.network.reset("c1", "metastore")
        scene.world.run_for(4_000)
        assert lost == [ErrorCode.OK], f"version {version}"
    owner.client.watch("/a", owner.seen.append)
    scene.do(owner)
    assert owner.seen[-1].stat is not None
    assert owner.seen[-1].stat.version == 10
