"""Whoever does not lead a queue is left for who does, and what may be done already is not done twice."""

from __future__ import annotations

import pytest

from replispec.runtime.rocketmq.client import ClientQueue, Failed, MessageToSend, Stored, steps
from replispec.runtime.rocketmq.client.asking import Steps, looked_up
from replispec.runtime.rocketmq.framing import Command
from replispec.wire.rocketmq.broker import (
    PullMessageRequest,
    PullMessageResponse,
    SendMessageResponse,
    SendMessageV2Request,
    TopicRouteData,
)
from replispec.wire.rocketmq.client import GetMaxOffsetResponse, QueryConsumerOffsetResponse
from replispec.wire.rocketmq.codes import LogMagic, RequestCode, ResponseCode
from replispec.wire.rocketmq.constants import MOCK_BROKER_GLOBAL, MOCK_BROKER_NONE, REDIRECTS_MAX
from replispec.wire.rocketmq.store import LogRecord
from tests.runtime.client.scripted import NAME_SERVER, TOPIC, Said, Scripted, answer, place, static, telling

SEND = RequestCode.SEND_MESSAGE_V2
QUEUE = ClientQueue(MOCK_BROKER_GLOBAL, 0)


def stores(command: Command) -> Said:
    said = SendMessageV2Request.from_ext_fields(command.header.ext_fields or {})
    return answer(
        ResponseCode.SUCCESS, SendMessageResponse(msg_id="m", queue_id=said.queue_id, queue_offset=7)
    )


def leads_not(_command: Command) -> Said:
    return answer(ResponseCode.NOT_LEADER_FOR_QUEUE)


def sending(turn: int = 0) -> Steps[Stored]:
    return steps.send(MessageToSend(TOPIC, b"x"), "p", turn, 5)


OLD = static({"a": (10, {0: 0})}, 1, "b")
NEW = static({"a": (10, {0: 0}), "b": (11, {0: 3})}, 1)


def test_a_send_follows_a_queue_that_moved() -> None:
    world = Scripted({NAME_SERVER: telling(OLD, NEW), place("a"): leads_not, place("b"): stores})
    assert world.carried_out(sending()) == Stored(QUEUE, 7, "SEND_OK", "m")
    asked = world.questions(SEND)
    assert [at for at, _ in asked] == [place("a"), place("b")]
    said = SendMessageV2Request.from_ext_fields(asked[1][1].header.ext_fields or {})
    assert (said.queue_id, said.broker_name, said.lo) == (0, "b", None)
    assert world.carried_out(sending(1)) == Stored(QUEUE, 7, "SEND_OK", "m")
    assert len(world.questions(SEND)) == 3


def test_nobody_asks_elsewhere_more_often_than_is_allowed() -> None:
    world = Scripted({NAME_SERVER: telling(OLD), place("a"): leads_not})
    failure = world.carried_out(sending())
    assert isinstance(failure, Failed)
    assert (failure.code, failure.sent) == (ResponseCode.NOT_LEADER_FOR_QUEUE, False)
    assert len(world.questions(SEND)) == 1 + REDIRECTS_MAX


def test_what_a_broker_may_have_stored_is_not_sent_again() -> None:
    world = Scripted({NAME_SERVER: telling(OLD, NEW), place("a"): lambda _command: None, place("b"): stores})
    failure = world.carried_out(sending())
    assert isinstance(failure, Failed)
    assert failure.sent
    assert len(world.questions(SEND)) == 1


def test_a_broker_that_cannot_be_reached_is_left_for_the_next() -> None:
    world = Scripted({NAME_SERVER: telling(OLD, NEW), place("b"): stores})
    assert isinstance(world.carried_out(sending()), Stored)


def test_a_question_is_asked_again_whatever_became_of_it() -> None:
    tries = iter((None, answer(ResponseCode.SUCCESS, GetMaxOffsetResponse(offset=12))))
    world = Scripted({NAME_SERVER: telling(OLD), place("a"): lambda _command: next(tries)})
    assert world.carried_out(steps.max_offset(TOPIC, QUEUE)) == 12


def test_a_place_that_a_group_never_had_is_none_and_not_the_beginning() -> None:
    told = iter(
        (
            answer(ResponseCode.QUERY_NOT_FOUND),
            answer(ResponseCode.SUCCESS, QueryConsumerOffsetResponse(offset=0)),
        )
    )
    world = Scripted({NAME_SERVER: telling(OLD), place("a"): lambda _command: next(told)})
    assert world.carried_out(steps.position(TOPIC, QUEUE, "g")) is None
    assert world.carried_out(steps.position(TOPIC, QUEUE, "g")) == 0


@pytest.mark.parametrize("older", [OLD, static({"a": (10, {0: 0}), "b": (9, {})}, 1)])
def test_an_older_route_does_not_bring_an_old_leader_back(older: TopicRouteData) -> None:
    world = Scripted({NAME_SERVER: telling(NEW, older), place("b"): leads_not, place("a"): stores})
    failure = world.carried_out(sending())
    assert isinstance(failure, Failed)
    assert {at for at, _ in world.questions(SEND)} == {place("b")}


def test_a_static_topic_that_is_told_without_its_mapping_stays_one() -> None:
    """Its physical queues have other offsets."""
    plain = TopicRouteData(OLD.broker_datas, queue_datas=OLD.queue_datas)
    world = Scripted({NAME_SERVER: telling(OLD, plain), place("a"): stores})
    before = world.carried_out(looked_up(TOPIC))
    world.now_ms += 3_600_000
    assert world.carried_out(looked_up(TOPIC)) is before
    assert len(world.questions(RequestCode.GET_ROUTEINFO_BY_TOPIC)) == 2


def test_a_route_without_queues_is_known_and_asked_for_again() -> None:
    """A topic that nobody may write, or a broker that is gone."""
    empty = TopicRouteData(broker_datas=[], queue_datas=[])
    world = Scripted({NAME_SERVER: telling(empty, OLD), place("a"): stores})
    found = world.carried_out(looked_up(TOPIC))
    assert (found.published, found.subscribed) == ([], [])
    assert world.carried_out(looked_up(TOPIC)) is found
    assert isinstance(world.carried_out(sending()), Stored)


def test_queues_that_nobody_leads_are_read_by_nobody_and_take_nothing() -> None:
    world = Scripted({NAME_SERVER: telling(static({"a": (10, {1: 0})}, 3)), place("a"): stores})
    route = world.carried_out(looked_up(TOPIC))
    assert [each.broker for each in route.subscribed] == [
        MOCK_BROKER_NONE,
        MOCK_BROKER_GLOBAL,
        MOCK_BROKER_NONE,
    ]
    assert route.published == [ClientQueue(MOCK_BROKER_GLOBAL, 1)]
    assert isinstance(world.carried_out(steps.max_offset(TOPIC, route.subscribed[0])), Failed)


@pytest.mark.parametrize(
    ("broker", "total", "epoch"), [("c", 1, 11), ("b", 2_000_000_000, 11), ("b", 1, -7), ("b", 0, 11)]
)
def test_a_route_that_cannot_be_is_refused_and_the_known_one_kept(
    broker: str, total: int, epoch: int
) -> None:
    hostile = static({"b": (epoch, {0: 3})}, total, "a")
    (info,) = (hostile.topic_queue_mapping_by_broker or {}).values()
    info.bname = broker
    world = Scripted({NAME_SERVER: telling(hostile), place("a"): stores})
    failure = world.carried_out(sending())
    assert "cannot be read" in str(failure)
    world = Scripted({NAME_SERVER: telling(OLD, hostile), place("a"): leads_not, place("b"): stores})
    assert world.carried_out(sending()).code == ResponseCode.NOT_LEADER_FOR_QUEUE
    assert {at for at, _ in world.questions(SEND)} == {place("a")}


def test_offsets_are_those_of_the_logical_queue_on_both_sides_of_a_border() -> None:
    """Records keep the offsets of the queue where they lie, and an answer says what is added to them."""
    runs = {5: (0, [5, 6], 10_000), 10_000: (10_000, [0, 1], 10_002)}

    def pulled(command: Command) -> Said:
        offset = PullMessageRequest.from_ext_fields(command.header.ext_fields or {}).queue_offset or 0
        delta, physical, following = runs[offset]
        header = PullMessageResponse(
            suggest_which_broker_id=0,
            next_begin_offset=following,
            min_offset=0,
            max_offset=10_002,
            offset_delta=delta,
        )
        records = b"".join(record(each) for each in physical)
        return answer(ResponseCode.SUCCESS, header, records)

    world = Scripted({NAME_SERVER: telling(OLD), place("a"): pulled})
    offsets, at = list[int](), 5
    for _ in range(2):
        came = world.carried_out(steps.pull(steps.Pull(TOPIC, "g", QUEUE, at, 32, 0)))
        offsets += [each.offset for each in came.messages]
        at = came.next_offset
    assert (offsets, at) == ([5, 6, 10_000, 10_001], 10_002)
    said = PullMessageRequest.from_ext_fields(world.asked[-1][1].header.ext_fields or {})
    assert (said.bname, said.queue_id) == (MOCK_BROKER_GLOBAL, 0)


def record(offset: int) -> bytes:
    """A message as it lies at this offset of its physical queue."""
    return LogRecord(
        magic=LogMagic.MESSAGE_V1,
        queue_offset=offset,
        born_ip=bytes(4),
        store_ip=bytes(4),
        body=b"x",
        topic=TOPIC,
    ).encode()
