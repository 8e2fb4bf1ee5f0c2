"""The asking side: each request has one outcome, whatever the peer and the network do."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replispec.runtime.rocketmq.framing import Command, FrameBuffer, decode_command
from replispec.runtime.rocketmq.remoting import Calls, Failure, Outcome
from replispec.runtime.world import Close, Closed, Connected, Dial, Effect, Note, Outbox, Received, Send
from replispec.wire.rocketmq.codes import RemotingFlag, RequestCode, ResponseCode
from replispec.wire.rocketmq.remoting import RemotingHeader
from replispec.wire.rocketmq.streams import REMOTING
from tests.runtime.remoting.peers import request

READ = int(RequestCode.CONTROLLER_GET_METADATA_INFO)
PEER = "127.0.0.1:9"


class Caller:
    """Calls with an outbox, and what came of each request by the name that the test gave it."""

    def __init__(self, *, requests_max: int = 100) -> None:
        self.outbox = Outbox()
        self.calls = Calls(self.outbox, connect_timeout_ms=1_000, requests_max=requests_max)
        self.outcomes: dict[object, Outcome] = {}
        self.told: Counter[object] = Counter()
        self.effects: list[Effect] = []
        self.now_ms = 0

    def ask(self, name: object, *, timeout_ms: int = 3_000, address: str = PEER) -> None:
        """Ask, and keep what comes of it."""

        def then(outcome: Outcome, _: int) -> None:
            self.outcomes[name] = outcome
            self.told[name] += 1

        self.calls.ask(address, READ, then, now_ms=self.now_ms, timeout_ms=timeout_ms)
        self.turn()

    def turn(self) -> None:
        """What a node does after each event."""
        self.calls.ticked(self.now_ms)
        self.effects += self.outbox.take()

    def connect(self, connection: int = -1) -> None:
        """The connection opens."""
        self.calls.connected(Connected(connection, "127.0.0.1:1", self.now_ms))
        self.turn()

    def hear(self, data: bytes, connection: int = -1) -> None:
        """The peer sends bytes."""
        self.calls.received(Received(connection, data, self.now_ms))
        self.turn()

    def lose(self, connection: int = -1) -> None:
        """The connection ends."""
        self.calls.closed(Closed(connection, "gone", self.now_ms))
        self.turn()

    def wait(self, ms: int) -> None:
        """Time passes."""
        self.now_ms += ms
        self.turn()

    def sent(self, connection: int = -1) -> list[Command]:
        """What left on a connection."""
        data = b"".join(
            bytes(effect.data)
            for effect in self.effects
            if isinstance(effect, Send) and effect.connection == connection
        )
        return [decode_command(frame) for frame in FrameBuffer(REMOTING).receive(data)]

    def of(self, kind: type) -> list[Effect]:
        """The effects of one kind."""
        return [effect for effect in self.effects if isinstance(effect, kind)]


def _answer(opaque: int) -> bytes:
    header = RemotingHeader(
        code=int(ResponseCode.SUCCESS), language="JAVA", version=1, opaque=opaque, flag=RemotingFlag.RESPONSE
    )
    return Command(header).encode()


def _failure(caller: Caller, name: object) -> Failure:
    outcome = caller.outcomes[name]
    assert isinstance(outcome, Failure)
    return outcome


def test_answers_find_their_requests_in_any_order() -> None:
    caller = Caller()
    caller.ask("a")
    caller.ask("b")
    caller.connect()
    first, second = [command.header.opaque for command in caller.sent()]
    caller.hear(_answer(second) + _answer(first)[:10])
    caller.hear(_answer(first)[10:])
    assert {name: type(outcome) for name, outcome in caller.outcomes.items()} == {"a": Command, "b": Command}
    assert len(caller.of(Dial)) == 1
    assert caller.calls.deadline_ms() is None


def test_a_request_that_is_not_answered_fails_at_its_own_time() -> None:
    caller = Caller()
    caller.ask("late", timeout_ms=500)
    caller.ask("later", timeout_ms=900)
    caller.connect()
    assert caller.calls.deadline_ms() == 500
    caller.wait(500)
    assert _failure(caller, "late").sent
    assert "later" not in caller.outcomes
    assert caller.calls.deadline_ms() == 900
    caller.hear(_answer(caller.sent()[0].header.opaque))
    assert caller.told["late"] == 1


def test_what_timed_out_before_the_connection_opened_never_leaves() -> None:
    caller = Caller()
    caller.ask("early", timeout_ms=100)
    caller.ask("patient", timeout_ms=900)
    caller.wait(200)
    assert not _failure(caller, "early").sent
    caller.connect()
    assert len(caller.sent()) == 1


def test_a_dial_that_fails_or_takes_too_long_fails_what_waits_unsent() -> None:
    caller = Caller()
    caller.ask("refused")
    caller.lose()
    assert not _failure(caller, "refused").sent
    caller.ask("silent")
    assert caller.calls.deadline_ms() == 1_000
    caller.wait(1_000)
    assert not _failure(caller, "silent").sent
    assert caller.of(Close) == [Close(-2)]


def test_a_lost_connection_fails_what_was_sent_and_the_next_request_dials_again() -> None:
    caller = Caller()
    caller.ask("a")
    caller.connect()
    caller.lose()
    assert _failure(caller, "a").sent
    caller.ask("b")
    caller.connect(-2)
    assert [effect for effect in caller.effects if isinstance(effect, Dial)] == [
        Dial(-1, PEER),
        Dial(-2, PEER),
    ]


@pytest.mark.parametrize(
    "bad", [bytes(100), b"GET / HTTP/1.1\r\n\r\n", (2**31 - 1).to_bytes(4, "big") + bytes(9)]
)
def test_a_peer_that_breaks_the_protocol_is_hung_up_on_with_one_line(bad: bytes) -> None:
    caller = Caller()
    caller.ask("a")
    caller.connect()
    caller.hear(bad)
    caller.hear(_answer(1))
    assert isinstance(caller.outcomes["a"], Failure)
    assert (len(caller.of(Note)), caller.of(Close)) == (1, [Close(-1)])


def test_requests_and_unknown_answers_that_come_this_way_are_ignored() -> None:
    caller = Caller()
    caller.ask("a")
    caller.connect()
    caller.hear(request(1) + _answer(12345))
    assert caller.outcomes == {}
    assert not caller.of(Close)


def test_what_waits_for_one_address_is_bounded() -> None:
    caller = Caller(requests_max=3)
    for name in range(5):
        caller.ask(name)
    assert [name for name, outcome in caller.outcomes.items() if isinstance(outcome, Failure)] == [3, 4]
    caller.ask("elsewhere", address="127.0.0.1:10")
    assert "elsewhere" not in caller.outcomes


def test_who_asks_again_at_each_failure_does_not_hold_the_node_up() -> None:
    caller = Caller(requests_max=0)
    asked = []

    def again(_: Outcome, now_ms: int) -> None:
        asked.append(now_ms)
        caller.calls.ask(PEER, READ, again, now_ms=now_ms, timeout_ms=1)

    caller.calls.ask(PEER, READ, again, now_ms=0, timeout_ms=1)
    caller.turn()
    assert len(asked) == 1
    assert caller.calls.deadline_ms() == 0


def test_deadlines_of_answered_requests_do_not_pile_up() -> None:
    caller = Caller()
    caller.ask(0)
    caller.connect()
    for name in range(1, 5_000):
        caller.ask(name, timeout_ms=3_600_000)
        caller.hear(_answer(name + 1))
    assert len(caller.calls._alarms) < 1_000


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("ask"), st.integers(1, 2_000)),
            st.tuples(st.just("wait"), st.integers(0, 900)),
            st.tuples(st.sampled_from(["connect", "lose", "answer"]), st.integers(1, 12)),
        ),
        max_size=40,
    )
)
def test_every_request_has_exactly_one_outcome(steps: list[tuple[str, int]]) -> None:
    caller = Caller(requests_max=4)
    asked = 0
    for what, number in steps:
        match what:
            case "ask":
                asked += 1
                caller.ask(asked, timeout_ms=number)
            case "wait":
                caller.wait(number)
            case "connect":
                caller.connect(-number)
            case "lose":
                caller.lose(-number)
            case _:
                for connection in range(-12, 0):
                    caller.hear(_answer(number), connection)
    caller.wait(10_000)
    caller.wait(10_000)
    assert caller.told == Counter(range(1, asked + 1))
    assert caller.calls.deadline_ms() is None


def test_a_connection_on_which_nothing_answers_is_left_and_another_is_dialled() -> None:
    caller = Caller()
    caller.ask("lost")
    caller.connect()
    caller.wait(10)
    caller.ask("lost too")
    caller.wait(3_000)
    assert isinstance(caller.outcomes["lost"], Failure)
    assert [effect for effect in caller.effects if isinstance(effect, Close)] == [Close(-1)]
    caller.ask("again")
    assert [effect.connection for effect in caller.effects if isinstance(effect, Dial)] == [-1, -2]


def test_a_connection_on_which_something_answers_stays() -> None:
    caller = Caller()
    caller.ask("slow")
    caller.connect()
    caller.wait(10)
    caller.ask("quick")
    caller.hear(_answer(caller.sent()[-1].header.opaque))
    caller.wait(3_000)
    assert isinstance(caller.outcomes["slow"], Failure)
    assert not [effect for effect in caller.effects if isinstance(effect, Close)]
