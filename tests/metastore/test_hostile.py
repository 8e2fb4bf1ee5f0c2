"""Clients that mean harm: memory and work have an end, and others are served."""

from __future__ import annotations

from replispec.wire.zookeeper.codes import ErrorCode
from replispec.wire.zookeeper.constants import RECORDS_WAITING_BYTES_MAX
from replispec.wire.zookeeper.operations import (
    CloseSessionRequest,
    CreateRequest,
    DeleteRequest,
    ExistsRequest,
    GetDataRequest,
    SetDataRequest,
    SetWatchesRequest,
)
from replispec.wire.zookeeper.options import MetastoreLimits
from tests.metastore.talk import OPEN_ACL, Talk

MEGABYTE = 1_000_000


def test_answers_that_wait_for_a_write_are_not_made_all_at_once() -> None:
    talk = Talk(limits=MetastoreLimits(unsent_bytes_max=200_000))
    other, client = talk.client(), talk.client()
    assert client.create("/a", bytes(100_000)) == 0
    client.drain()
    talk.holds_writes = True
    before = len(client.raw)
    reads = (GetDataRequest("/a", False) for _ in range(100))
    client.send(SetDataRequest("/a", bytes(100_000), -1), *reads)
    talk.holds_writes = False
    talk.write()
    assert len(client.raw) - before < 400_000
    assert other.get("/a") == bytes(100_000)
    client.drain()
    assert [frame.error for frame, _ in client.told] == [0] * 102


def test_who_closes_its_session_is_answered_all_that_it_asked_before_however_slowly_it_reads() -> None:
    talk = Talk(limits=MetastoreLimits(unsent_bytes_max=10_000))
    client = talk.client()
    assert client.create("/a", bytes(8_000)) == 0
    talk.holds_writes = True
    reads = (GetDataRequest("/a", False) for _ in range(20))
    client.send(SetDataRequest("/a", bytes(8_000), -1), *reads, CloseSessionRequest())
    talk.holds_writes = False
    talk.write()
    assert talk.serves(client)
    client.drain()
    assert not talk.serves(client)
    assert [frame.error for frame, _ in client.told] == [0] * 23
    assert talk.node.tree.sessions == {}


def test_changes_that_wait_for_the_disk_take_no_more_than_they_may() -> None:
    talk = Talk()
    clients = [talk.client() for _ in range(3)]
    talk.holds_writes = True
    long = "/" + "x" * (MEGABYTE - 1_000)
    clients[0].send(CreateRequest("/a", b"", OPEN_ACL, 0))
    for client in clients:
        for _ in range(30):
            client.send(DeleteRequest(long, -1))
    assert talk.node.log.waiting_bytes <= RECORDS_WAITING_BYTES_MAX + MEGABYTE
    assert any(client.is_paused for client in clients)
    talk.holds_writes = False
    talk.write()
    for client in clients:
        client.drain()
    assert [len(client.told) for client in clients] == [31, 30, 30]
    assert not any(client.is_paused for client in clients)


def test_watches_of_all_take_no_more_than_they_may() -> None:
    talk = Talk(limits=MetastoreLimits(watch_bytes_max=MEGABYTE))
    clients = [talk.client() for _ in range(4)]
    long = "/" + "x" * 300_000
    errors = [client.ask(ExistsRequest(long, True))[0] for client in clients]
    assert errors == [ErrorCode.NO_NODE] * 3 + [ErrorCode.SYSTEM_ERROR]
    assert clients[3].ask(SetWatchesRequest(0, [], [long], []))[0] == ErrorCode.SYSTEM_ERROR
    clients[0].leave()
    assert clients[3].ask(ExistsRequest(long, True))[0] == ErrorCode.NO_NODE


def test_who_says_nothing_takes_nobodys_place() -> None:
    talk = Talk(limits=MetastoreLimits(max_cnxns=4))
    client = talk.client(timeout=40_000)
    silent = [talk.connection() for _ in range(3)]
    silent[1].send_bytes(b"\0\0\0")
    assert talk.connection().is_closed
    talk.pass_time(9_000)
    assert not any(each.is_closed for each in silent)
    talk.pass_time(2_000)
    assert all(each.is_closed for each in silent)
    assert not client.is_closed
    assert not talk.client().is_closed


def test_ten_thousand_requests_in_one_piece_are_answered_in_order_and_others_between_them() -> None:
    talk = Talk()
    flood, other = talk.client(), talk.client()
    requests = [CreateRequest(f"/n{each}", b"", OPEN_ACL, 0) for each in range(5_000)]
    flood.send(*requests, *(ExistsRequest(f"/n{each}", False) for each in range(5_000)))
    assert len(flood.told) < 10_000
    assert other.create("/other") == 0
    flood.drain()
    assert [frame.xid for frame, _ in flood.told] == list(range(1, 10_001))
    assert {frame.error for frame, _ in flood.told} == {0}


def test_sessions_that_nobody_keeps_make_room_again() -> None:
    talk = Talk(limits=MetastoreLimits(sessions_max=50))
    for _ in range(50):
        talk.client(timeout=4_000).leave()
    assert talk.client().is_closed
    talk.pass_time(9_000)
    assert talk.node.tree.sessions == {}
    assert not talk.client().is_closed
