"""The answering side serves every peer within its bounds, and no peer costs another one anything."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replispec.runtime.rocketmq.remoting import Request
from replispec.runtime.world import Send
from replispec.wire.rocketmq.codes import ResponseCode
from replispec.wire.rocketmq.options import RemotingLimits
from tests.runtime.remoting.peers import Served, request

OK = int(ResponseCode.SUCCESS)
HOSTILE = {
    "a length of 2^31-1": (2**31 - 1).to_bytes(4, "big") + bytes(100),
    "a negative length": b"\xff\xff\xff\xff" + bytes(100),
    "no length at all": bytes(100),
    "an HTTP request": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a TLS hello": bytes.fromhex("160301020001000103") + bytes(100),
    "a header that is no JSON": (20).to_bytes(4, "big") + (16).to_bytes(4, "big") + b"x" * 16,
    "a header longer than its frame": (20).to_bytes(4, "big") + (999).to_bytes(4, "big") + b"{" * 16,
    "an unknown encoding": (20).to_bytes(4, "big") + b"\x07\x00\x00\x10" + b"{" * 16,
    "JSON that nests for ever": (5004).to_bytes(4, "big") + (5000).to_bytes(4, "big") + b"[" * 5000,
}


def _answer(one: Request) -> None:
    one.answer(OK)


def test_requests_are_handed_over_in_order_and_answered_in_one_send() -> None:
    served = Served(_answer)
    served.open(1)
    served.say(1, b"".join(request(opaque) for opaque in range(10)))
    assert served.opaques(1) == list(range(10))
    assert sum(isinstance(effect, Send) for effect in served.effects) == 1


def test_an_answer_may_come_later_and_in_another_order() -> None:
    kept: list[Request] = []
    served = Served(kept.append)
    served.open(1)
    served.say(1, request(1) + request(2))
    for one in reversed(kept):
        one.answer(OK)
    served.take()
    assert served.opaques(1) == [2, 1]


def test_a_one_way_request_is_never_answered_and_never_counted() -> None:
    served = Served(lambda _: None, RemotingLimits(unanswered_max=2))
    served.open(1)
    served.say(1, b"".join(request(opaque, oneway=True) for opaque in range(50)))
    assert served.sent[1] == b""
    assert not served.paused


def test_an_unknown_code_is_answered_so() -> None:
    served = Served(Request.refuse_unknown)
    served.open(1)
    served.say(1, request(9, code=31_000))
    (answer,) = served.answers(1)
    assert answer.header.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED
    assert "31000" in (answer.header.remark or "")


def test_a_second_answer_is_a_fault_of_ours() -> None:
    kept: list[Request] = []
    served = Served(kept.append)
    served.open(1)
    served.say(1, request(1))
    kept[0].answer(OK)
    with pytest.raises(AssertionError, match="second answer"):
        kept[0].answer(OK)


def test_who_went_away_is_answered_nothing() -> None:
    kept: list[Request] = []
    served = Served(kept.append)
    served.open(1)
    served.say(1, request(1))
    served.close(1)
    kept[0].answer(OK)
    served.take()
    assert served.sent[1] == b""
    assert served.server.connections == 0


def test_a_peer_with_too_many_unanswered_requests_is_paused_and_served_on_when_they_are_answered() -> None:
    kept: list[Request] = []
    served = Served(kept.append, RemotingLimits(unanswered_max=4))
    served.open(1)
    served.say(1, b"".join(request(opaque) for opaque in range(20)))
    assert len(kept) == 4
    assert served.paused == {1}
    while any(not one.answered for one in kept):
        for one in kept[:]:
            if not one.answered:
                one.answer(OK)
                served.take()
    assert served.opaques(1) == list(range(20))
    assert not served.paused


def test_no_request_is_handed_over_from_inside_an_answer() -> None:
    kept: list[Request] = []
    inside = []
    answering = False

    def handle(one: Request) -> None:
        inside.append(answering)
        kept.append(one)

    served = Served(handle, RemotingLimits(unanswered_max=1))
    served.open(1)
    served.say(1, request(1) + request(2))
    answering = True
    kept[0].answer(OK)
    answering = False
    served.take()
    assert inside == [False, False]


def test_a_peer_that_reads_nothing_is_paused_and_served_on_when_it_reads() -> None:
    served = Served(lambda one: one.answer(OK, body=bytes(1000)), RemotingLimits(unsent_bytes_max=5000))
    served.open(1)
    served.stuck.add(1)
    served.say(1, b"".join(request(opaque) for opaque in range(100)))
    assert len(served.sent[1]) < 7000
    assert served.paused == {1}
    served.unstick(1)
    assert served.opaques(1) == list(range(100))
    assert not served.paused


def test_what_a_peer_did_not_ask_for_is_left_out_while_too_much_waits_for_it() -> None:
    served = Served(_answer, RemotingLimits(unsent_bytes_max=5000))
    served.open(1, 2)
    served.stuck.add(1)
    for _ in range(100):
        for connection in (1, 2, 3):
            served.server.tell(connection, request(7, body=bytes(1000), oneway=True))
        served.take()
    assert len(served.sent[1]) < 7000
    assert len(served.sent[2]) > 100_000
    served.unstick(1)
    served.say(1, request(8))
    assert 8 in served.opaques(1)


@pytest.mark.parametrize("bad", HOSTILE.values(), ids=HOSTILE)
def test_a_peer_that_breaks_the_protocol_costs_its_connection_and_one_line(bad: bytes) -> None:
    served = Served(_answer, RemotingLimits(request_bytes_max=1024 * 1024))
    served.open(1, 2)
    served.say(1, request(1) + request(2))
    served.say(1, bad)
    served.say(1, request(3))
    served.say(2, request(4))
    assert served.closed == {1}
    assert served.opaques(1) == [1, 2]
    assert served.opaques(2) == [4]
    assert [(note.what, note.values["peer"]) for note in served.notes] == [("peer dropped", "127.0.0.1:1")]
    assert served.server.connections == 1


def test_who_is_dropped_in_the_midst_is_answered_what_came_before() -> None:
    served = Served(_answer)
    served.open(1)
    served.say(1, request(1) + HOSTILE["a header that is no JSON"] + request(2))
    assert served.opaques(1) == [1]
    assert served.closed == {1}


def test_a_request_beyond_the_limit_is_refused_before_it_is_there() -> None:
    served = Served(_answer, RemotingLimits(request_bytes_max=1000))
    served.open(1)
    served.say(1, request(1, body=bytes(2000))[:8])
    assert served.closed == {1}


def test_a_connection_beyond_the_limit_is_closed() -> None:
    served = Served(_answer, RemotingLimits(connections_max=2))
    served.open(1, 2)
    served.say(1, request(1))
    served.say(2, request(1))
    served.open(3)
    assert served.closed == {3}
    served.close(1)
    served.open(4)
    served.say(4, request(1))
    assert served.opaques(4) == [1]


def test_connections_of_a_host_that_has_most_give_way_and_those_of_others_stay() -> None:
    dropped: list[int] = []
    served = Served(_answer, RemotingLimits(connections_max=20), dropped=dropped.append)
    served.open(1, 2, host="early")
    served.open(*range(10, 60), host="greedy")
    assert served.server.connections == 20
    served.say(50, request(1))
    for connection in range(100, 110):
        served.open(connection, host="late")
        served.say(connection, request(0))
    assert not served.closed & {1, 2, 50, *range(100, 109)}, "who asked stays before who did not"
    assert 109 in served.closed, "nobody has two more than it"
    served.say(1, request(1))
    served.say(100, request(1))
    assert (served.opaques(1), served.opaques(100)) == ([1], [0, 1])
    assert set(dropped) == served.closed - {109}
    assert [note.what for note in served.notes] == ["too many connections"], "one line while it is full"


def test_who_asks_nothing_gives_way_to_others_of_its_own_host() -> None:
    served = Served(_answer, RemotingLimits(connections_max=3))
    served.open(1)
    served.say(1, request(1))
    served.open(*range(2, 50))
    served.open(50)
    served.say(50, request(1))
    assert (served.opaques(1), served.opaques(50)) == ([1], [1])
    assert served.closed == set(range(2, 49))


def test_what_all_peers_together_hold_is_bounded_and_the_greediest_goes_first() -> None:
    served = Served(_answer, RemotingLimits(waiting_bytes_max=100_000))
    cut = request(1, body=bytes(50_000))
    served.open(*range(1, 51))
    served.say(50, cut[:40_000])
    for connection in range(1, 50):
        served.say(connection, cut[:1500])
        assert served.server.held_bytes <= 100_000
    assert served.closed == {50}
    served.say(1, cut[1500:])
    assert served.opaques(1) == [1]


def test_counts_return_to_nothing_when_all_are_gone() -> None:
    kept: list[Request] = []
    served = Served(kept.append, RemotingLimits(unanswered_max=2))
    served.open(*range(1, 20))
    for connection in range(1, 20):
        served.say(connection, request(1) * 5 + request(2)[:7])
    for connection in range(1, 20):
        served.close(connection)
    assert (served.server.connections, served.server.held_bytes) == (0, 0)


@given(cuts=st.lists(st.integers(1, 400), max_size=30), unanswered=st.integers(1, 5))
def test_framing_does_not_depend_on_how_tcp_cuts_the_bytes(cuts: list[int], unanswered: int) -> None:
    data = b"".join(request(opaque, body=bytes(opaque)) for opaque in range(12))
    served = Served(_answer, RemotingLimits(unanswered_max=unanswered))
    served.open(1)
    at = 0
    for size in (*cuts, len(data)):
        if data[at : at + size]:
            served.say(1, data[at : at + size])
        at += size
    assert served.opaques(1) == list(range(12))
    assert not served.closed


@given(
    st.lists(st.one_of(st.binary(min_size=1), st.just(request(1)), st.sampled_from(list(HOSTILE.values()))))
)
def test_garbage_is_parsed_or_blamed_on_the_peer(pieces: list[bytes]) -> None:
    served = Served(_answer)
    served.open(1, 2)
    for piece in pieces:
        served.say(1, piece)
    served.say(2, request(5))
    assert served.opaques(2) == [5]
    assert len(served.notes) == len(served.closed) <= 1
