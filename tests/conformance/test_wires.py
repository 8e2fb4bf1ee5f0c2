"""One connection of a case: what waits on it is bounded, and how it ended stays known."""

import pytest
import trio
import trio.testing

from replispec.conformance.encoding import Encoded, Encoder, Unsendable
from replispec.conformance.model import Raw
from replispec.conformance.received import Breach, Ended, Received, ReceivedRequest
from replispec.conformance.rocketmq.names import VOCABULARY
from replispec.conformance.rocketmq.remoting import SubjectRemotingReader
from replispec.conformance.trace import Trace
from replispec.conformance.vocabulary import Dialect
from replispec.conformance.wires import FLOOD, WAITING_MAXIMUM, Wire
from replispec.runtime.rocketmq.framing import Command
from replispec.wire.rocketmq.codes import RequestCode
from replispec.wire.rocketmq.remoting import RemotingHeader
from tests.conformance.case_files import RELEASE

NOTICE = Command(RemotingHeader(code=RequestCode.NOTIFY_BROKER_ROLE_CHANGED, opaque=7)).encode()


def _came(data: bytes, messages: int) -> tuple[list[Received], list[Received]]:
    """The next so many things that came of these bytes and an end, and what is left after them."""

    async def run() -> tuple[list[Received], list[Received]]:
        near, far = trio.testing.memory_stream_pair()
        wire = Wire("main", near, SubjectRemotingReader(), Trace(), Dialect(VOCABULARY, RELEASE))  # type: ignore[arg-type]  # in memory
        await far.send_all(data)
        await far.send_eof()
        await wire.read()
        return [await wire.next() for _ in range(messages)], wire.waiting()

    return trio.run(run)


def test_an_end_is_told_again_and_again() -> None:
    assert _came(NOTICE, 3) == (
        [ReceivedRequest(1008, {}, None, opaque=7), Ended("in order"), Ended("before")],
        [],
    )


def test_what_nobody_looked_at_waits() -> None:
    assert _came(NOTICE * 2, 1)[1] == [ReceivedRequest(1008, {}, None, opaque=7), Ended("in order")]


def test_a_flood_is_a_breach_and_never_an_end() -> None:
    came, left = _came(NOTICE * (WAITING_MAXIMUM + 1), WAITING_MAXIMUM + 2)
    assert {type(each) for each in came[:WAITING_MAXIMUM]} == {ReceivedRequest}
    assert came[WAITING_MAXIMUM:] == [Breach(FLOOD)] * 2
    assert left == [Breach(FLOOD)]


def test_as_many_messages_as_may_wait_are_no_flood() -> None:
    came, _ = _came(NOTICE * (WAITING_MAXIMUM - 1), WAITING_MAXIMUM)
    assert came[-1] == Ended("in order")


@pytest.mark.parametrize(
    ("split", "cut"),
    [((2,), [b"ab", b"cde"]), ((-1,), [b"abcd", b"e"]), ((4, 1), [b"a", b"bcd", b"e"]), ((), [b"abcde"])],
)
def test_bytes_are_cut_where_a_case_says(split: tuple[int, ...], cut: list[bytes]) -> None:
    assert Encoder(VOCABULARY).pieces(Raw(split=split), b"abcde") == cut


@pytest.mark.parametrize("place", [0, 5, 6, -5, -9])
def test_a_place_that_cuts_nothing_is_the_fault_of_the_case(place: int) -> None:
    with pytest.raises(Unsendable, match="cuts nothing off 5 bytes"):
        Encoder(VOCABULARY).pieces(Raw(split=(2, place)), b"abcde")


class _Slow:
    """A stream whose peer takes so many seconds for each piece that is sent."""

    def __init__(self, piece_s: float) -> None:
        self._piece_s = piece_s

    async def send_all(self, _: bytes) -> None:
        await trio.sleep(self._piece_s)


def _sent(piece_s: float, pause_s: float) -> bool:
    async def run() -> bool:
        reader, dialect = SubjectRemotingReader(), Dialect(VOCABULARY, RELEASE)
        wire = Wire("main", _Slow(piece_s), reader, Trace(), dialect)  # type: ignore[arg-type]  # sends alone
        return await wire.send(Encoded(b"abcd", (), ""), [b"a", b"b", b"c", b"d"], pause_s, 10.0)

    return trio.run(run, clock=trio.testing.MockClock(autojump_threshold=0))


def test_many_pieces_may_take_as_long_as_the_suite_needs_for_them() -> None:
    assert _sent(9.0, 60.0)


def test_a_piece_that_is_left_unread_ends_the_sending() -> None:
    with pytest.raises(trio.TooSlowError):
        _sent(11.0, 0.0)


def test_what_is_sent_at_once_by_two_is_whole_one_after_the_other() -> None:
    async def run() -> bytes:
        near, far = trio.testing.memory_stream_pair()
        wire = Wire("main", near, SubjectRemotingReader(), Trace(), Dialect(VOCABULARY, RELEASE))  # type: ignore[arg-type]  # in memory
        async with trio.open_nursery() as nursery:
            for parts in ([b"a", b"b", b"c"], [b"1", b"2", b"3"]):
                nursery.start_soon(wire.send, Encoded(b"".join(parts), (), ""), parts, 0.01)
        return bytes(await far.receive_some())

    assert trio.run(run, clock=trio.testing.MockClock(autojump_threshold=0)) in (b"abc123", b"123abc")
