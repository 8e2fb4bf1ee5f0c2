"""What clients can make grow, what disks do, and any bytes at all."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from replispec.metastore.zookeeper.core.watches import WatchedPart
from replispec.runtime.primitives.rng import Rng
from replispec.runtime.sim.disk import Disk
from replispec.runtime.world import Persisted, Received
from replispec.wire.zookeeper.codes import ErrorCode
from replispec.wire.zookeeper.connection import ConnectRequest, RequestFrame
from replispec.wire.zookeeper.operations import (
    CreateRequest,
    DeleteRequest,
    ExistsRequest,
    GetChildren2Request,
    GetDataRequest,
    PingRequest,
    SetDataRequest,
    SetWatchesRequest,
)
from replispec.wire.zookeeper.options import MetastoreLimits
from tests.metastore.talk import OPEN_ACL, Talk
from tests.metastore.test_node import create, multi

SEQUENTIAL = 2


def test_no_frame_is_longer_than_may_be() -> None:
    talk = Talk(jute_maxbuffer=2_000)
    fits, not_fits = talk.client(), talk.client()
    assert fits.create("/a", bytes(1_900)) == 0
    not_fits.send_bytes(RequestFrame(1, 1, bytes(2_000)).encode()[:16])
    assert not_fits.is_closed
    assert not fits.is_closed


def test_a_tree_grows_no_larger_than_it_may() -> None:
    talk = Talk(limits=MetastoreLimits(tree_bytes_max=4_000))
    client = talk.client()
    talk.holds_writes = True
    client.send(*(CreateRequest(f"/n{each}", bytes(500), OPEN_ACL, 0) for each in range(10)))
    talk.holds_writes = False
    talk.write()
    errors = [frame.error for frame, _ in client.told]
    assert errors.count(0) in range(3, 6)
    assert set(errors) == {0, ErrorCode.SYSTEM_ERROR}
    assert talk.node.tree.bytes <= 4_000
    assert client.ask(DeleteRequest("/n0", -1))[0] == 0
    assert client.create("/n0", bytes(500)) == 0


def test_sessions_watches_and_connections_are_no_more_than_may_be() -> None:
    limits = MetastoreLimits(sessions_max=2, watches_max=2, max_cnxns=4, max_client_cnxns=3)
    talk = Talk(limits=limits)
    one, two, three = (talk.client() for _ in range(3))
    assert three.is_closed
    assert [one.ask(ExistsRequest(path, True))[0] for path in ("/a", "/a", "/b", "/c")] == [
        ErrorCode.NO_NODE,
        ErrorCode.NO_NODE,
        ErrorCode.NO_NODE,
        ErrorCode.SYSTEM_ERROR,
    ]
    assert one.ask(SetWatchesRequest(0, ["/x"], [], []))[0] == ErrorCode.SYSTEM_ERROR
    assert not talk.connection().is_closed
    assert talk.connection().is_closed
    assert not talk.connection("10.0.0.2:1").is_closed
    assert talk.connection("10.0.0.3:1").is_closed
    assert not two.is_closed


def test_who_asks_faster_than_it_is_answered_is_not_read() -> None:
    talk = Talk(limits=MetastoreLimits(unanswered_max=8))
    client = talk.client()
    client.create("/a")
    talk.holds_writes = True
    client.send(*(SetDataRequest("/a", b"x", -1) for _ in range(30)))
    assert talk.node.peers.get(client.number).paused  # type: ignore[union-attr]
    assert talk.node.peers.unanswered == 30
    talk.holds_writes = False
    talk.write()
    client.drain()
    assert [frame.error for frame, _ in client.told] == [0] * 31
    assert not client.is_paused
    assert talk.node.peers.held_bytes == 0


def test_who_reads_nothing_is_not_answered_without_end_and_not_told_a_part() -> None:
    talk = Talk(limits=MetastoreLimits(unsent_bytes_max=4_096))
    one, lazy = talk.client(), talk.client()
    one.create("/a", bytes(2_000))
    lazy.send(*(GetDataRequest("/a", False) for _ in range(50)))
    assert len(lazy.raw) < 10_000
    assert lazy.is_paused
    lazy.drain()
    assert len(lazy.told) == 50
    lazy.wants_writable = False
    for each in range(600):
        lazy.talk.node.watches.add(lazy.number, WatchedPart.DATA, "/a")
        one.set("/a", bytes([each % 256]))
        one.drain()
        if lazy.is_closed:
            break
    assert lazy.is_closed


def test_a_full_disk_refuses_changes_and_answers_questions() -> None:
    talk = Talk()
    client = talk.client()
    client.create("/a", b"1")
    talk.disk.room_bytes = talk.disk.used_bytes()
    assert client.set("/a", b"2") == ErrorCode.SYSTEM_ERROR
    assert client.get("/a") == b"1"
    assert talk.client().is_closed
    silent_until = talk.now_ms
    talk.pass_time(60_000)
    assert talk.now_ms > silent_until
    assert talk.node.tree.sessions
    talk.disk.room_bytes = None
    talk.pass_time(60_000)
    assert talk.node.tree.sessions == {}
    assert talk.halted == []


def test_a_disk_of_which_nothing_is_known_ends_the_process() -> None:
    talk = Talk()
    client = talk.client()
    talk.disk.plan = lambda what: "broken" if what.startswith("append") else None
    client.send(create("/a"))
    assert len(talk.halted) == 1
    assert client.told == []


def test_a_log_that_no_metastore_wrote_ends_the_start() -> None:
    disk = Disk(Rng(1))
    talk = Talk(disk)
    talk.client()
    disk.crash()
    disk.journals["journal"].records[1] = b"\xff\xff"
    talk.begin()
    assert "record 1 of the log" in talk.halted[0]


CONVERSATION = (
    create("/a"),
    create("/a/s", SEQUENTIAL),
    ExistsRequest("/a", True),
    SetDataRequest("/a", b"x", 0),
    multi(create("/b"), SetDataRequest("/a", b"y", 1)),
    GetChildren2Request("/a", True),
    PingRequest(),
    GetDataRequest("/a", False),
)


@settings(max_examples=30, deadline=None)
@given(cuts=st.lists(st.integers(1, 400), max_size=12))
def test_the_answers_do_not_depend_on_how_tcp_cuts_the_bytes(cuts: list[int]) -> None:
    whole, parts = Talk(), Talk()
    one, other = whole.client(), parts.connection()
    data = b"".join(map(one.request, CONVERSATION))
    one.send_bytes(data)
    hello = ConnectRequest(0, 0, 6_000, 0, b"\0" * 16, False).encode()
    for each in CONVERSATION:
        other.request(each)
    at, stream = 0, hello + data
    for cut in (*cuts, len(stream)):
        if stream[at : at + cut]:
            other.send_bytes(stream[at : at + cut])
            other.drain()
        at += cut
    assert [frame for frame, each in other.told if each.asked and each.asked.number > 0] == [
        frame for frame, each in one.told if each.asked and each.asked.number > 0
    ]
    assert other.notifications() == one.notifications()


@settings(max_examples=150, deadline=None)
@given(garbage=st.binary(min_size=1, max_size=200), greeted=st.booleans(), frame=st.booleans())
def test_garbage_is_answered_or_blamed_on_the_client(garbage: bytes, greeted: bool, frame: bool) -> None:
    talk = Talk(jute_maxbuffer=1_024)
    other = talk.client()
    client = talk.client() if greeted else talk.connection()
    data = RequestFrame(1, garbage[0] % 16, garbage[1:]).encode() if frame else garbage
    for effect in talk.node.receive(Received(client.number, data, talk.now_ms)):
        if type(effect).__name__ == "Persist":
            talk.persists.append(effect)  # type: ignore[arg-type]
    while talk.persists:
        persist = talk.persists.popleft()
        talk.stores.carry_out(persist.operations)
        talk.node.receive(Persisted(persist.token, talk.now_ms))
    assert talk.halted == []
    assert talk.node.peers.held_bytes <= 2_048
    assert other.create("/still") in (0, ErrorCode.NODE_EXISTS)
