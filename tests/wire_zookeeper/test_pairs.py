"""Answers of ZooKeeper are read by their requests: by number, by type, in order."""

from __future__ import annotations

import pytest

from replispec.runtime.primitives.errors import LocalProtocolError, RemoteProtocolError
from replispec.runtime.primitives.exchanges import OpenRequests
from replispec.wire.zookeeper import operations
from replispec.wire.zookeeper.codes import ErrorCode, OpCode
from replispec.wire.zookeeper.commands import REPLY_FRAME
from replispec.wire.zookeeper.connection import ReplyFrame, RequestFrame

PATH = b"\0\0\0\2/a"


def test_the_same_bytes_are_what_their_request_asked_for() -> None:
    pairing = OpenRequests(REPLY_FRAME, most=8)
    pairing.ask(RequestFrame(1, OpCode.CREATE))
    pairing.ask(RequestFrame(2, OpCode.SYNC))
    found = [pairing.answered(ReplyFrame(xid, 5, 0, PATH)).message for xid in (1, 2)]
    assert found == [operations.CreateResponse("/a"), operations.SyncResponse("/a")]
    assert len(pairing) == 0


def test_a_request_that_failed_has_no_answer_but_its_error() -> None:
    pairing = OpenRequests(REPLY_FRAME, most=8)
    pairing.ask(RequestFrame(1, OpCode.EXISTS))
    assert pairing.answered(ReplyFrame(1, 5, ErrorCode.NO_NODE)).message is None
    pairing.ask(RequestFrame(2, OpCode.EXISTS))
    with pytest.raises(RemoteProtocolError, match="a request that failed has a body"):
        pairing.answered(ReplyFrame(2, 5, ErrorCode.NO_NODE, PATH))


def test_answers_come_in_the_order_of_requests_but_for_pings() -> None:
    pairing = OpenRequests(REPLY_FRAME, most=8)
    for xid, op_code in ((1, OpCode.SYNC), (-2, OpCode.PING), (2, OpCode.SYNC)):
        pairing.ask(RequestFrame(xid, op_code))
    assert pairing.answered(ReplyFrame(-2, 5, 0)).message == operations.PingResponse()
    with pytest.raises(RemoteProtocolError, match="the answer 2 comes before that to 1"):
        pairing.answered(ReplyFrame(2, 5, 0, PATH))


@pytest.mark.parametrize("xid", [1, -2, -4, -8])
def test_what_nobody_asked_for_is_blamed_on_the_peer(xid: int) -> None:
    with pytest.raises(RemoteProtocolError, match=f"nobody waits for an answer with the number {xid}"):
        OpenRequests(REPLY_FRAME, most=8).answered(ReplyFrame(xid, 5, 0))


def test_what_is_watched_is_told_without_a_request() -> None:
    told = operations.WatchNotification(1, 3, "/a")
    found = OpenRequests(REPLY_FRAME, most=8).answered(ReplyFrame(-1, -1, 0, told.encode()))
    assert (found.asked, found.message) == (None, told)


def test_a_number_that_means_something_is_not_used_for_something_else() -> None:
    pairing = OpenRequests(REPLY_FRAME, most=8)
    with pytest.raises(LocalProtocolError, match="the number -2 is that of requests with code 11"):
        pairing.ask(RequestFrame(-2, OpCode.SYNC))
    with pytest.raises(LocalProtocolError, match="the number -1 is that of what nobody asked for"):
        pairing.ask(RequestFrame(-1, OpCode.SYNC))


def test_only_so_many_requests_wait() -> None:
    pairing = OpenRequests(REPLY_FRAME, most=1)
    pairing.ask(RequestFrame(1, OpCode.SYNC))
    with pytest.raises(LocalProtocolError, match="1 requests wait"):
        pairing.ask(RequestFrame(-2, OpCode.PING))


def test_a_type_that_is_not_specified_is_no_fault_of_its_frame() -> None:
    """A server answers it with -6, and goes on."""
    assert REPLY_FRAME.read_request(RequestFrame(1, 999, b"whatever")) is None
    assert REPLY_FRAME.read_request(RequestFrame(1, OpCode.CHECK, PATH)) is None


def test_a_request_is_what_its_type_says() -> None:
    assert REPLY_FRAME.read_request(RequestFrame(1, OpCode.SYNC, PATH)) == operations.SyncRequest("/a")
    with pytest.raises(RemoteProtocolError):
        REPLY_FRAME.read_request(RequestFrame(1, OpCode.GET_DATA, PATH))
