"""A plan is carried out: every question is asked, and each of them ends in an answer or a reason."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from replispec.administrator.rocketmq import AdministratorNode, Asking, NotAsWantedError, Plan
from replispec.administrator.rocketmq.controllers import leader, metadata
from replispec.administrator.rocketmq.plans import LookingAgain, answered, code_name
from replispec.runtime.rocketmq.framing import Command, FrameBuffer, decode_command
from replispec.runtime.world import Closed, Connected, Dial, Effect, Received, Send, Started, Ticked
from replispec.wire.rocketmq.codes import RemotingFlag, RequestCode, ResponseCode
from replispec.wire.rocketmq.controller import GetMetadataResponse
from replispec.wire.rocketmq.remoting import RemotingHeader
from replispec.wire.rocketmq.streams import REMOTING

FIRST, SECOND = "10.0.0.1:1", "10.0.0.2:1"
ASK = RequestCode.CONTROLLER_GET_METADATA_INFO


def both() -> Plan[list[int]]:
    """Asks two at once and says how they answer."""
    replies = yield [Asking(FIRST, ASK), Asking(SECOND, ASK)]
    return [answered(each).header.code for each in replies]


class Played:
    """A node, and peers that a test speaks for."""

    def __init__(self, plan: Plan[object]) -> None:
        self.node = AdministratorNode(plan, answer_ms=1_000)
        self.dialled: dict[str, int] = {}
        self.asked: dict[str, list[Command]] = {}
        self.take(self.node.receive(Started(0)))

    def take(self, effects: Sequence[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Dial):
                self.dialled[effect.address] = effect.connection
            elif isinstance(effect, Send):
                address = next(at for at, number in self.dialled.items() if number == effect.connection)
                frames = FrameBuffer(REMOTING).receive(bytes(effect.data))
                self.asked.setdefault(address, []).extend(map(decode_command, frames))

    def open(self, address: str, now_ms: int = 1) -> None:
        self.take(self.node.receive(Connected(self.dialled[address], "10.0.0.9:1", now_ms)))

    def answer(self, address: str, code: int, header: GetMetadataResponse | None = None) -> None:
        opaque = self.asked[address][-1].header.opaque
        fields = header.to_ext_fields() if header is not None else None
        said = RemotingHeader(code=code, opaque=opaque, flag=RemotingFlag.RESPONSE, ext_fields=fields)
        self.take(self.node.receive(Received(self.dialled[address], Command(said).encode(), 2)))


def test_all_questions_of_a_step_are_asked_at_once_and_replies_keep_their_order() -> None:
    played = Played(both())
    assert set(played.dialled) == {FIRST, SECOND}
    played.open(SECOND)
    played.answer(SECOND, ResponseCode.SYSTEM_BUSY)
    with pytest.raises(IndexError):
        played.node.result()
    played.open(FIRST)
    played.answer(FIRST, ResponseCode.SUCCESS)
    assert played.node.is_done
    assert played.node.deadline_ms() is None
    assert played.node.result() == [ResponseCode.SUCCESS, ResponseCode.SYSTEM_BUSY]


def test_who_does_not_answer_in_time_is_named_and_ends_nothing_else() -> None:
    played = Played(both())
    played.open(FIRST)
    played.answer(FIRST, ResponseCode.SUCCESS)
    due_ms = played.node.deadline_ms()
    assert due_ms == 1_000
    played.take(played.node.receive(Ticked(due_ms)))
    played.take(played.node.receive(Ticked(played.node.deadline_ms() or 0)))
    assert played.node.is_done
    with pytest.raises(NotAsWantedError, match=r"^10\.0\.0\.2:1: no connection in time$"):
        played.node.result()


def test_a_refused_connection_is_a_reason_of_one_line() -> None:
    played = Played(metadata([FIRST]))
    played.take(played.node.receive(Closed(played.dialled[FIRST], "Connection refused", 1)))
    assert played.node.is_done
    with pytest.raises(NotAsWantedError, match=r"^10\.0\.0\.1:1: Connection refused$"):
        played.node.result()


def test_the_next_controller_is_asked_where_one_is_silent_or_knows_no_leader() -> None:
    played = Played(leader([FIRST, SECOND]))
    assert set(played.dialled) == {FIRST}
    played.open(FIRST)
    played.answer(FIRST, ResponseCode.SUCCESS, GetMetadataResponse(group="g", is_leader=False))
    assert set(played.dialled) == {FIRST, SECOND}
    played.open(SECOND)
    told = GetMetadataResponse(group="g", is_leader=True, controller_leader_address=SECOND)
    played.answer(SECOND, ResponseCode.SUCCESS, told)
    assert played.node.result() == SECOND


@pytest.mark.parametrize("answer", [b"\0\0\0\1x", b"GET / HTTP/1.1\r\n\r\n" + bytes(60)])
def test_garbage_is_the_peers_fault_and_a_reason(answer: bytes) -> None:
    played = Played(metadata([FIRST]))
    played.open(FIRST)
    played.take(played.node.receive(Received(played.dialled[FIRST], answer, 2)))
    played.take(played.node.receive(Ticked(1_001)))
    played.take(played.node.receive(Ticked(2_002)))
    assert played.node.is_done
    with pytest.raises(NotAsWantedError):
        played.node.result()


def test_a_plan_without_questions_is_done_at_once() -> None:
    def nothing() -> Plan[str]:
        assert (yield []) == ()
        return "done"

    assert Played(nothing()).node.result() == "done"


def test_a_code_has_the_name_that_the_last_releases_give_it() -> None:
    assert code_name(2012) == "CONTROLLER_ELECT_MASTER_FAILED (2012)"
    assert code_name(4711) == "code 4711"


def test_a_plan_that_pauses_goes_on_when_the_time_has_passed_and_not_before() -> None:
    def pausing() -> Plan[str]:
        yield [Asking(FIRST, ASK)]
        assert (yield LookingAgain(200)) == ()
        return "done"

    played = Played(pausing())
    played.open(FIRST)
    played.answer(FIRST, ResponseCode.SUCCESS)
    assert played.node.deadline_ms() == 202
    played.take(played.node.receive(Ticked(201)))
    assert not played.node.is_done
    played.take(played.node.receive(Ticked(202)))
    assert played.node.result() == "done"
