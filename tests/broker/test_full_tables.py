"""A table that one host has filled does not lock others out: who comes new gets in, and who was in stays."""

from __future__ import annotations

import pytest

from replispec.broker.rocketmq.core import clients, offsets
from replispec.broker.rocketmq.core.clients import Clients, ClientSaid
from replispec.broker.rocketmq.core.offsets import ConsumerOffsets
from replispec.nameserver.rocketmq.registered import Limits, RouteRegistration
from replispec.nameserver.rocketmq.routes import Routes
from replispec.runtime.rocketmq.replication.master import HaMaster
from replispec.runtime.sim import Disk, Rng, SimulatedFiles
from replispec.runtime.storage import Stores
from replispec.runtime.world import Accepted, Close, Outbox, Persist, Received, Writes
from replispec.wire.rocketmq.broker import DataVersion, TopicConfig
from replispec.wire.rocketmq.client import ConsumerData
from replispec.wire.rocketmq.ha import HaHandshakeId
from tests.runtime.replication.pairs import Pair, ReplicaSide
from tests.runtime.replication.test_replication import master_with
from tests.runtime.storage.writing import carried_out


def test_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "MEMBERS_MAX", 100)
    table = Clients()

    def join(connection: int, host: str, *groups: str) -> None:
        said = [ConsumerData(group_name=group) for group in groups]
        heard = ClientSaid(f"{host}:1", f"client{connection}", "JAVA", 0)
        table.heartbeat_received(connection, heard, said, 0)

    join(1, "early", "g", "h")
    for connection in range(10, 20):
        join(connection, "greedy", *(f"x{number}" for number in range(50)))
    join(2, "late", "g", "i")
    assert table.members("g") == ["client1", "client2"]
    assert (table.members("h"), table.members("i")) == (["client1"], ["client2"])
    join(19, "greedy", "another")
    assert table.members("another") == []


def test_positions_also_on_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offsets, "ENTRIES_MAX", 300)
    files = SimulatedFiles(Disk(Rng(1)))
    outbox = Outbox()
    writes = Writes(outbox)

    def begun() -> ConsumerOffsets:
        return ConsumerOffsets(outbox, writes, files, 5_000)

    def kept(table: ConsumerOffsets) -> None:
        table.keep()
        for effect in outbox.take():
            if isinstance(effect, Persist):
                writes.answered(carried_out(effect, Stores(files), 0))

    table = begun()
    table.put(("early", "T", 0), 5, "10.0.0.1", 0)
    for number in range(1_000):
        table.put((f"x{number}", "T", 0), 6, "10.0.0.2", 0)
    assert table.get("x298", "T", 0) == 6
    assert table.get("x299", "T", 0) is None
    kept(table)
    for queue in range(4):
        table.put(("late", "T", queue), 7, "10.0.0.3", 0)
    assert [table.get("late", "T", queue) for queue in range(4)] == [7] * 4
    assert table.get("x298", "T", 0) is None, "the newest gave way"
    kept(table)
    table = begun()
    assert (table.get("early", "T", 0), table.get("late", "T", 3)) == (5, 7)
    assert table.get("x298", "T", 0) is None, "what gave way is not read again"
    table.put(("later", "T", 0), 7, "10.0.0.3", 0)
    assert table.get("later", "T", 0) is None, "of before nobody gives way: whose it is is not known"


def registration(name: str, address: str, topics: int = 1) -> RouteRegistration:
    """A master with so many topics."""
    table = {
        f"{name}-{number}": TopicConfig(perm=6, read_queue_nums=1, write_queue_nums=1)
        for number in range(topics)
    }
    return RouteRegistration("C", name, 0, address, "h:1", DataVersion(1, 1, 1), table)


def test_broker_sets_of_a_name_server() -> None:
    routes = Routes(Limits(brokers=20, topics=1_000))
    assert routes.register(registration("early", "a:1"), 1, "early", 0)
    taken = [routes.register(registration(f"x{n}", f"g:{n}"), 2, "greedy", 0) for n in range(50)]
    assert taken.count(True) == 19
    assert routes.register(registration("late", "l:1"), 3, "late", 0)
    assert routes.route("early-0") is not None
    assert routes.route("late-0") is not None
    assert routes.route("x18-0") is None
    assert routes.route("x17-0") is not None
    assert not routes.register(registration("x99", "g:99"), 2, "greedy", 0)


def test_topics_of_a_name_server() -> None:
    routes = Routes(Limits(brokers=100, topics=200))
    assert routes.register(registration("early", "a:1", 20), 1, "early", 0)
    for number in range(20):
        routes.register(registration(f"x{number}", f"g:{number}", 20), 2, "greedy", 0)
    assert routes.route("x8-19") is not None
    assert routes.route("x9-0") is None
    assert routes.register(registration("late", "l:1", 30), 3, "late", 0)
    assert routes.route("late-29") is not None
    assert routes.route("early-19") is not None
    assert routes.register(registration("huge", "h:1", 150), 4, "greedier", 0)
    assert routes.route("late-29") is not None
    assert routes.route("early-19") is not None
    assert routes.route("huge-149") is None, "nobody takes more than others are left with"


def test_replication_connections() -> None:
    side = master_with(1)
    master: HaMaster = side.ha
    outbox = side.outbox

    def open_(connection: int, host: str) -> None:
        master.accepted(Accepted(connection, "ha", f"{host}:{connection}", 0))

    outbox.take()
    open_(1, "early")
    for connection in range(10, 400):
        open_(connection, "greedy")
    open_(2, "late")
    closed = {effect.connection for effect in outbox.take() if isinstance(effect, Close)}
    assert len(master.feeds) == 256
    assert {1, 2} <= master.feeds.keys()
    assert closed == set(range(10, 400)) - master.feeds.keys()


def test_silent_peers_of_many_hosts_keep_no_replica_out_and_end_none_that_has_shown_itself() -> None:
    pair = Pair(master_with(1), ReplicaSide())
    pair.follow()
    master, outbox = pair.master.ha, pair.master.outbox
    shown = master.feed_of(2)
    assert shown is not None
    for number in range(1_000, 1_300):
        master.accepted(Accepted(number, "ha", f"silent{number}:1", pair.now_ms))
    outbox.take()
    master.accepted(Accepted(2_000, "ha", "late:1", pair.now_ms))
    assert [each.connection for each in outbox.take() if isinstance(each, Close)] == [1_045]
    asked = HaHandshakeId(broker_id=3)
    master.received(Received(2_000, asked.encode(), pair.now_ms))
    assert master.feed_of(3) is master.feeds[2_000]
    assert master.feed_of(2) is shown
