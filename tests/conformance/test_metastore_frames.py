"""What a metastore writes as the suite reads it, and what a case sends as bytes: no socket."""

from __future__ import annotations

import pytest

from replispec.conformance.encoding import Question, Unsendable
from replispec.conformance.model import Raw, Sent
from replispec.conformance.received import Breach, ReceivedAnswer, ReceivedMessage
from replispec.conformance.zookeeper.frames import SubjectReplyReader, ZookeeperEncoder
from replispec.conformance.zookeeper.names import AdminText, ToldWatch
from replispec.wire.zookeeper.codes import AdminWord, ErrorCode, OpCode, WatchEvent
from replispec.wire.zookeeper.connection import ConnectResponse, ReplyFrame, RequestFrame
from replispec.wire.zookeeper.operations import CreateRequest, MultiRequest, SyncResponse, WatchNotification

GREETING = ConnectResponse(0, 4000, 7, bytes(16), False).encode()


def asked(*numbers: int, code: int = OpCode.SYNC) -> SubjectReplyReader:
    """A reader of a session in which these were asked."""
    reader = SubjectReplyReader()
    for number in numbers:
        reader.asked(Question(number, code, oneway=False))
    assert isinstance(reader.receive(GREETING)[0], ReceivedMessage)
    return reader


def answer(number: int, path: str = "/a", error: int = 0) -> bytes:
    """The answer to a sync."""
    return ReplyFrame(number, 9, error, b"" if error else SyncResponse(path).encode()).encode()


def encoder() -> ZookeeperEncoder:
    """An encoder of one case."""
    return ZookeeperEncoder((3, 6, 4), 100)


def test_answers_come_in_the_order_of_requests_with_what_their_requests_ask_for() -> None:
    first, second = asked(1, 2).receive(answer(1, "/a") + answer(2, "/b"))
    assert isinstance(first, ReceivedAnswer)
    assert isinstance(second, ReceivedAnswer)
    assert (first.opaque, first.body, first.header) == (1, {"path": "/a"}, {"zxid": 9})
    assert second.body == {"path": "/b"}


@pytest.mark.parametrize(
    ("came", "reason"),
    [
        (answer(2), "an answer out of turn"),
        (answer(1) + answer(2) + answer(2), "an answer to no request"),
        (ReplyFrame(1, 9, ErrorCode.NO_NODE, b"more").encode(), "undecodable: "),
        (ReplyFrame(1, 9, 0, b"\x7f").encode(), "undecodable: "),
        (bytes(4), "no frame: "),
    ],
)
def test_what_breaks_the_protocol_is_a_breach(came: bytes, reason: str) -> None:
    last = asked(1, 2).receive(came)[-1]
    assert isinstance(last, Breach)
    assert last.reason.startswith(reason)


def test_pings_alone_overtake() -> None:
    reader = asked(1)
    reader.asked(Question(-2, OpCode.PING, oneway=False))
    ping, other = reader.receive(ReplyFrame(-2, 9, 0).encode() + answer(1))
    assert isinstance(ping, ReceivedAnswer)
    assert isinstance(other, ReceivedAnswer)
    assert (ping.opaque, other.opaque) == (-2, 1)


def test_what_is_watched_is_told_by_names() -> None:
    told = WatchNotification(WatchEvent.DELETED, 3, "/a").encode()
    assert asked().receive(ReplyFrame(-1, -1, 0, told).encode()) == [
        ReceivedMessage("WatchNotification", ToldWatch("DELETED", "CONNECTED", "/a"))
    ]


def test_the_end_completes_the_text_of_a_word_and_cuts_a_frame() -> None:
    reader = SubjectReplyReader()
    reader.asked(Question(0, AdminWord.SRVR, oneway=True))
    assert reader.receive(b"Mode: stand") + reader.receive(b"alone\n") == []
    text = AdminText("Mode: standalone\n", {"Mode": "standalone"})
    assert reader.ended() == [ReceivedMessage("AdminText", text)]
    cut = asked(1)
    assert cut.receive(answer(1)[:-1]) == []
    (breach,) = cut.ended()
    assert isinstance(breach, Breach)
    assert asked().ended() == []


def test_a_request_is_what_a_client_would_write() -> None:
    sent = encoder().sent(
        Sent(command="CREATE", body={"path": "$node", "data": "é", "flags": "EPHEMERAL"}), {"node": "/n"}
    )
    frame = RequestFrame.decode(sent.data)
    wanted = CreateRequest.decode(frame.body)
    assert (frame.op_code, wanted.path, wanted.data, wanted.flags) == (OpCode.CREATE, "/n", "é".encode(), 1)
    assert [(each.permissions, each.scheme, each.expression) for each in wanted.acl or ()] == [
        (31, "world", "anyone")
    ]
    ping = RequestFrame.decode(encoder().sent(Sent(command="PING"), {}).data)
    assert (ping.xid, ping.op_code) == (-2, OpCode.PING)


def test_an_operation_of_a_multi_needs_no_type() -> None:
    body = {
        "operations": [{"check": {"path": "/a", "version": -1}}, {"delete": {"path": "/b", "version": 0}}]
    }
    frame = RequestFrame.decode(encoder().sent(Sent(command="MULTI", body=body), {}).data)
    assert [each.op_code for each in MultiRequest.decode(frame.body).operations] == [
        OpCode.CHECK,
        OpCode.DELETE,
    ]


@pytest.mark.parametrize(
    "sent",
    [
        Sent(command="CREATE", body={"paths": "/a"}),
        Sent(command="CREATE", body={"path": "/a", "flags": "FOREVER"}),
        Sent(command="CREATE", body={"path": "/a", "acl": [{"permission": 1}]}),
        Sent(command="MULTI", body={"operations": [{"checks": {}}]}),
        Sent(command="CREATE", body="text"),
        Sent(message="ConnectResponse"),
        Sent(command="DELETE", body={"path": "/a", "version": 1 << 40}),
    ],
)
def test_what_has_no_bytes_is_refused(sent: Sent) -> None:
    with pytest.raises(Unsendable):
        encoder().sent(sent, {})


def test_places_of_a_request_can_be_named() -> None:
    raw = Raw(of=(Sent(command="SYNC", body={"path": "/a"}),), patch={"op_code": 9999}, keep="body")
    data = encoder().raw(raw, {}).data
    assert len(data) == encoder().place("body", data)
    assert int.from_bytes(data[-4:], "big") == 9999
