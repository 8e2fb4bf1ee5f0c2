"""The metastore on the bytes of its clients."""

from __future__ import annotations

import pytest

from replispec.metastore.zookeeper.core.values import TreeRefusal
from replispec.wire.zookeeper.codes import ErrorCode, OpCode, WatchEvent
from replispec.wire.zookeeper.connection import RequestFrame
from replispec.wire.zookeeper.operations import (
    AccessEntry,
    AuthRequest,
    CheckVersionRequest,
    CloseSessionRequest,
    CreateRequest,
    DeleteRequest,
    ExistsRequest,
    GetChildren2Request,
    GetChildrenRequest,
    GetDataRequest,
    MultiOperation,
    MultiRequest,
    PingRequest,
    SetDataRequest,
    SetWatchesRequest,
    SyncRequest,
)
from tests.metastore.talk import OPEN_ACL, Talk

EPHEMERAL, SEQUENTIAL = 1, 2


def create(path: str, flags: int = 0) -> CreateRequest:
    return CreateRequest(path, b"", OPEN_ACL, flags)


def multi(*messages: CreateRequest | DeleteRequest | SetDataRequest | CheckVersionRequest) -> MultiRequest:
    """A multi of these."""
    found = []
    for each in messages:
        match each:
            case CreateRequest():
                found.append(MultiOperation(OpCode.CREATE, create=each))
            case DeleteRequest():
                found.append(MultiOperation(OpCode.DELETE, delete=each))
            case SetDataRequest():
                found.append(MultiOperation(OpCode.SET_DATA, set_data=each))
            case CheckVersionRequest():
                found.append(MultiOperation(OpCode.CHECK, check=each))
    return MultiRequest(found)


def test_every_refusal_has_a_code() -> None:
    assert {ErrorCode[each.name] for each in TreeRefusal}


def test_a_session_is_granted_what_it_wishes_between_two_and_twenty_ticks() -> None:
    talk = Talk(tick_time_ms=2_000)
    granted = [talk.client(timeout=wish).greeting.timeout for wish in (0, 5_000, 10**8)]  # type: ignore[union-attr]
    assert granted == [4_000, 5_000, 40_000]


def test_who_does_not_say_whether_it_only_reads_is_not_told_either() -> None:
    talk = Talk()
    said = [talk.client(read_only=each).greeting for each in (None, False, True)]
    assert [each and each.read_only for each in said] == [None, False, False]


def test_nothing_is_said_of_a_session_before_it_is_on_the_disk() -> None:
    talk = Talk()
    talk.holds_writes = True
    client = talk.client()
    assert client.raw == b""
    talk.holds_writes = False
    talk.write()
    assert client.greeting is not None
    assert client.session != 0
    assert len(client.greeting.password or b"") == 16


def test_nobody_is_answered_a_change_before_it_is_on_the_disk_and_answers_keep_their_order() -> None:
    talk = Talk()
    client = talk.client()
    client.create("/a", b"old")
    talk.holds_writes = True
    client.send(SetDataRequest("/a", b"new", -1), GetDataRequest("/a", False), ExistsRequest("/b", False))
    assert len(client.told) == 1
    talk.holds_writes = False
    talk.write()
    errors = [frame.error for frame, _ in client.told]
    assert errors == [0, 0, 0, ErrorCode.NO_NODE]
    assert client.told[2][1].message.data == b"new"  # type: ignore[union-attr]


def test_who_reads_while_a_change_is_written_sees_the_state_before_it() -> None:
    talk = Talk()
    writer, reader = talk.client(), talk.client()
    writer.create("/a", b"old")
    talk.holds_writes = True
    writer.send(SetDataRequest("/a", b"new", -1))
    assert reader.get("/a") == b"old"
    talk.holds_writes = False
    talk.write()
    assert reader.get("/a") == b"new"


def test_what_many_clients_change_while_one_write_is_under_way_is_flushed_together() -> None:
    talk = Talk()
    clients = [talk.client() for _ in range(10)]
    clients[0].create("/a")
    before, talk.holds_writes = len(talk.disk.changes), True
    for client in clients:
        client.send(SetDataRequest("/a", b"x", -1))
    talk.holds_writes = False
    talk.write()
    assert all(client.told[-1][0].error == 0 for client in clients)
    assert len(talk.disk.changes) - before == 2


def test_a_notification_comes_before_any_answer_that_shows_the_change() -> None:
    talk = Talk()
    one, other = talk.client(), talk.client()
    one.create("/a", b"1")
    assert other.get("/a", watch=True) == b"1"
    one.set("/a", b"2")
    assert other.notifications() == [(WatchEvent.DATA_CHANGED, "/a")]
    assert other.get("/a") == b"2"
    one.set("/a", b"3")
    assert len(other.notifications()) == 1


def test_who_changes_what_it_watches_itself_is_told_before_it_is_answered() -> None:
    client = Talk().client()
    client.create("/a", b"1")
    client.get("/a", watch=True)
    client.set("/a", b"2")
    assert [each.asked is None for _, each in client.told[-2:]] == [True, False]
    assert client.told[-2][0].zxid == -1


def test_what_is_not_there_is_watched_by_who_asks_whether_it_is() -> None:
    talk = Talk()
    one, other = talk.client(), talk.client()
    assert other.ask(ExistsRequest("/a", True))[0] == ErrorCode.NO_NODE
    assert other.ask(GetDataRequest("/b", True))[0] == ErrorCode.NO_NODE
    one.create("/a")
    one.create("/b")
    assert other.notifications() == [(WatchEvent.CREATED, "/a")]


def test_children_are_watched_apart_from_data() -> None:
    talk = Talk()
    one, other = talk.client(), talk.client()
    one.create("/a")
    other.ask(GetChildrenRequest("/a", True))
    one.set("/a", b"x")
    one.create("/a/b")
    other.ask(GetChildren2Request("/a", True))
    one.ask(DeleteRequest("/a/b", -1))
    other.ask(GetChildrenRequest("/a", True))
    one.ask(DeleteRequest("/a", -1))
    assert other.notifications() == [
        (WatchEvent.CHILDREN_CHANGED, "/a"),
        (WatchEvent.CHILDREN_CHANGED, "/a"),
        (WatchEvent.DELETED, "/a"),
    ]


def test_of_a_multi_that_fails_each_operation_has_its_error() -> None:
    client = Talk().client()
    error, message = client.ask(multi(create("/a"), CheckVersionRequest("/b", 0), DeleteRequest("/a", -1)))
    assert error == 0
    codes = [(each.op_code, each.error, each.failed) for each in message.results]  # type: ignore[union-attr]
    assert codes == [(-1, 0, 0), (-1, -101, -101), (-1, -2, -2)]
    assert client.ask(ExistsRequest("/a", False))[0] == ErrorCode.NO_NODE


def test_of_a_multi_that_is_done_each_operation_has_its_result() -> None:
    client = Talk().client()
    error, message = client.ask(
        multi(create("/a"), SetDataRequest("/a", b"x", 0), CheckVersionRequest("/a", 1), create("/a/b", 2))
    )
    results = message.results  # type: ignore[union-attr]
    assert error == 0
    assert [each.op_code for each in results] == [1, 5, 13, 1]
    assert results[1].set_data.stat.version == 1
    assert results[3].create.path == "/a/b0000000000"


def test_an_operation_that_is_none_is_refused_at_its_place() -> None:
    client = Talk().client()
    worst = CreateRequest("/b", b"", [], 0)
    codes = [
        [each.error for each in client.ask(asked)[1].results]  # type: ignore[union-attr]
        for asked in (multi(create("/a"), worst, create("/c")), multi(create("/x/y"), worst), multi())
    ]
    assert codes == [[0, -114, -2], [-101, -2], []]


@pytest.mark.parametrize(
    ("message", "error"),
    [
        (create("/a/"), ErrorCode.BAD_ARGUMENTS),
        (CreateRequest(None, b"", OPEN_ACL, 0), ErrorCode.BAD_ARGUMENTS),
        (create("/a", 4), ErrorCode.BAD_ARGUMENTS),
        (create("/"), ErrorCode.NODE_EXISTS),
        (create("/x/y"), ErrorCode.NO_NODE),
        (CreateRequest("/a", b"", None, 0), ErrorCode.INVALID_ACL),
        (CreateRequest("/a", b"", [AccessEntry(31, "auth", "")], 0), ErrorCode.INVALID_ACL),
        (CreateRequest("/a", b"", [AccessEntry(1, "world", "anyone")], 0), ErrorCode.INVALID_ACL),
        (DeleteRequest("/", -1), ErrorCode.BAD_ARGUMENTS),
        (DeleteRequest("/n", 3), ErrorCode.BAD_VERSION),
        (SetDataRequest("/nope", b"", -1), ErrorCode.NO_NODE),
        (GetDataRequest("/a//b", False), ErrorCode.BAD_ARGUMENTS),
        (GetChildrenRequest(None, False), ErrorCode.BAD_ARGUMENTS),
    ],
)
def test_what_is_refused_is_not_put_on_record(message: CreateRequest, error: int) -> None:
    talk = Talk()
    client = talk.client()
    client.create("/n")
    before = len(talk.disk.changes)
    assert client.ask(message)[0] == error
    assert len(talk.disk.changes) == before


def test_what_is_not_served_is_said_to_be_so() -> None:
    client = Talk().client()
    client.send_bytes(client.request(SyncRequest("/"), 9))
    frame = RequestFrame(77, 15, b"")
    client._pairing.ask(frame)
    client.send_bytes(frame.encode())
    assert [each.error for each, _ in client.told] == [0, ErrorCode.UNIMPLEMENTED]


def test_a_client_goes_on_with_its_session_and_what_goes_with_it() -> None:
    talk = Talk()
    client = talk.client()
    client.create("/e", b"", EPHEMERAL)
    client.leave()
    again = client.again(timeout=9_000)
    assert again.session == client.session
    assert again.greeting is not None
    assert again.greeting.timeout == 9_000
    assert again.get("/e") == b""


@pytest.mark.parametrize("password", [b"\0" * 16, b"short", None])
def test_who_does_not_know_the_password_gets_no_session(password: bytes | None) -> None:
    talk = Talk()
    client = talk.client()
    thief = talk.client(session=client.session, password=password)
    assert thief.greeting is not None
    assert (thief.greeting.timeout, thief.greeting.session_id) == (0, 0)
    assert thief.is_closed
    assert not client.is_closed


def test_a_session_moves_to_the_last_connection_and_leaves_the_one_before() -> None:
    talk = Talk()
    client = talk.client()
    client.get("/", watch=True)
    again = client.again()
    assert client.is_closed
    again.set("/", b"x")
    assert client.notifications() == []
    talk.pass_time(60_000)
    assert again.is_closed


def test_a_silent_session_ends_with_its_nodes_in_one_record_and_those_who_watch_hear_of_it() -> None:
    talk = Talk(tick_time_ms=2_000)
    silent, watching = talk.client(timeout=4_000), talk.client(timeout=40_000)
    silent.create("/e1", b"", EPHEMERAL)
    silent.create("/e2", b"", EPHEMERAL)
    watching.get("/e1", watch=True)
    watching.get("/e2", watch=True)
    zxid = watching.told[-1][0].zxid
    talk.pass_time(4_000)
    assert talk.serves(silent)
    talk.pass_time(2_001)
    assert silent.is_closed
    assert [path for _, path in watching.notifications()] == ["/e1", "/e2"]
    watching.ask(SyncRequest("/"))
    assert watching.told[-1][0].zxid == zxid + 1
    late = silent.again()
    assert late.greeting is not None
    assert late.greeting.timeout == 0


def test_a_session_lives_as_long_as_its_client_is_heard() -> None:
    talk = Talk()
    client = talk.client(timeout=4_000)
    for _ in range(20):
        talk.pass_time(3_000)
        assert client.ask(PingRequest())[0] == 0
    assert not client.is_closed


def test_a_pause_of_the_metastore_costs_nobody_a_session() -> None:
    talk = Talk()
    client = talk.client(timeout=4_000)
    talk.now_ms += 600_000
    talk.pass_time(0)
    assert client.ask(PingRequest())[0] == 0
    assert not client.is_closed
    assert any(note.what == "was not running" for note in talk.notes)


def test_a_closed_session_is_answered_after_all_before_it_and_then_hung_up_on() -> None:
    talk = Talk()
    client, other = talk.client(), talk.client()
    client.create("/e", b"", EPHEMERAL)
    other.ask(ExistsRequest("/e", True))
    client.send(SetDataRequest("/e", b"x", -1), CloseSessionRequest(), GetDataRequest("/e", False))
    assert [frame.error for frame, _ in client.told[-2:]] == [0, 0]
    assert client.is_closed
    assert other.notifications() == [(WatchEvent.DATA_CHANGED, "/e")]
    assert other.ask(ExistsRequest("/e", False))[0] == ErrorCode.NO_NODE


def test_on_a_new_connection_a_client_hears_what_it_missed_and_watches_the_rest() -> None:
    talk = Talk()
    one, away = talk.client(), talk.client()
    for path in ("/a", "/b", "/c"):
        one.create(path)
    seen = one.told[-1][0].zxid
    away.leave()
    one.set("/a", b"x")
    one.ask(DeleteRequest("/c", -1))
    back = away.again(seen=seen)
    back.ask(SetWatchesRequest(seen, ["/a", "/b", "/c"], ["/d"], ["/a"]))
    assert back.notifications() == [(WatchEvent.DATA_CHANGED, "/a"), (WatchEvent.DELETED, "/c")]
    one.set("/b", b"x")
    one.create("/d")
    one.create("/a/x")
    assert back.notifications()[2:] == [
        (WatchEvent.DATA_CHANGED, "/b"),
        (WatchEvent.CREATED, "/d"),
        (WatchEvent.CHILDREN_CHANGED, "/a"),
    ]


def test_who_has_seen_what_this_metastore_has_not_is_not_taken() -> None:
    talk = Talk()
    client = talk.client(seen=99)
    assert client.greeting is None
    assert client.is_closed


def test_credentials_are_refused_and_not_taken_for_shown() -> None:
    client = Talk().client()
    client.send(AuthRequest(0, "digest", b"a:b"))
    assert client.told[-1][0].error == ErrorCode.AUTH_FAILED
    assert client.is_closed


def test_after_a_start_sessions_and_nodes_are_there_and_watches_are_not() -> None:
    talk = Talk()
    client = talk.client()
    client.create("/e", b"1", EPHEMERAL)
    client.get("/e", watch=True)
    talk.disk.crash()
    talk.now_ms += 100_000
    talk.begin()
    again = client.again(seen=2)
    assert again.session == client.session
    again.set("/e", b"2")
    assert again.notifications() == []
    again.leave()
    talk.pass_time(6_000 + 2_000)
    other = talk.client()
    assert other.ask(ExistsRequest("/e", False))[0] == ErrorCode.NO_NODE


def test_words_of_four_letters_are_answered_without_a_session() -> None:
    talk = Talk()
    said = []
    for word in (b"ruok", b"srvr", b"isro", b"mntr", b"abcd"):
        client = talk.connection()
        client.send_bytes(word)
        assert client.is_closed
        said.append(client.raw)
    assert said[0] == b"imok"
    assert b"Mode: standalone" in said[1]
    assert said[2] == b"rw"
    assert b"not in the whitelist" in said[3]
    assert said[4] == b""


def test_a_connection_that_is_gone_watches_nothing() -> None:
    talk = Talk()
    one, other = talk.client(), talk.client()
    one.create("/a")
    for client in (one, other):
        client.get("/a", watch=True)
    one.leave()
    other.again()
    assert other.is_closed
    assert talk.node.watches.count == 0
