"""What was decided of a request is used for the next one like it, and for no other."""

from __future__ import annotations

from typing import Any

from replispec.runtime.primitives.headers import ReadFields
from replispec.runtime.rocketmq.framing import Command
from replispec.runtime.rocketmq.remoting.server import Request, RequestServer
from replispec.runtime.world import Outbox
from replispec.wire.rocketmq import constants
from replispec.wire.rocketmq.broker import PullMessageRequest, SendMessageRequest, SendMessageV2Request
from replispec.wire.rocketmq.client import QueryConsumerOffsetRequest, QueryConsumerOffsetResponse
from replispec.wire.rocketmq.codes import MessageFlag, PullFlag, RequestCode, ResponseCode
from replispec.wire.rocketmq.options import RemotingLimits
from replispec.wire.rocketmq.remoting import RemotingHeader
from tests.broker.simulated_set import OK
from tests.queues.logical_sets import LogicalSets
from tests.queues.test_static_queues import NOT_LEADER, pulled, sent
from tests.queues.test_static_topics import Place
from tests.queues.two_sets import Sets

A0: Place = ("broker-a", 3, 0)
BACK: Place = ("broker-a", 4, 10_000)


def two_items() -> tuple[Sets, str]:
    """Messages 0 to 2 in an item that ended, two in the one that is led."""
    sets = Sets("ab", forward_to_queue_leader=False)
    address = sets.at["broker-a"]
    sets.map(5, [A0])
    assert [sent(sets, address)[2] for _ in range(3)] == [0, 1, 2]
    sets.map(6, [A0, BACK])
    assert [sent(sets, address)[2] for _ in range(2)] == [10_000, 10_001]
    return sets, address


def committed(sets: Sets, address: str) -> int | None:
    """Where the group of pulls is."""
    header = QueryConsumerOffsetRequest("g", "S", 0, bname=constants.MOCK_BROKER_GLOBAL)
    answer = sets.ask(address, RequestCode.QUERY_CONSUMER_OFFSET, header).header
    return QueryConsumerOffsetResponse.from_ext_fields(answer.ext_fields or {}).offset


def test_pulls_of_every_item_are_answered_again_as_the_first_time() -> None:
    sets, address = two_items()
    for _ in range(3):
        assert pulled(sets, address, 1) == (OK, 3, 0, 10_002, 0)
        assert pulled(sets, address, 10_001) == (OK, 10_002, 10_000, 10_002, 10_000)
        assert pulled(sets, address, 10_002)[:2] == (ResponseCode.PULL_NOT_FOUND, 10_002)


def test_each_pull_carries_how_far_its_group_has_read() -> None:
    sets, address = two_items()
    flags = int(PullFlag.SUBSCRIPTION | PullFlag.COMMIT_OFFSET)
    for position in (1, 2, 10_001):
        more: dict[str, Any] = {"sys_flag": flags, "commit_offset": position}
        assert pulled(sets, address, 10_000, consumer_group="g", **more)[0] == OK
        assert committed(sets, address) == position


def test_a_queue_that_was_led_until_now_takes_nothing_more() -> None:
    sets, address = two_items()
    sets.map(7, [A0, BACK, ("broker-b", 0, 20_000)])
    assert sent(sets, address)[0] == NOT_LEADER
    assert pulled(sets, address, 10_001)[0] == NOT_LEADER


def test_who_means_a_physical_queue_gets_it_whatever_was_asked_before() -> None:
    sets, address = two_items()
    assert sent(sets, address, 0, lo=False)[1:] == (0, 0), "the queue 0 holds nothing of the topic"
    assert sent(sets, address)[2] == 10_002
    assert pulled(sets, address, 0, 3, lo=False)[3] == 3


def test_a_topic_that_is_none_of_the_mapped_ones_is_served_as_ever() -> None:
    sets, address = two_items()
    assert [sets.send(address, b"m", topic="Plain")[1].queue_offset for _ in range(2)] == [0, 1]


def test_a_segment_that_ended_takes_nothing_more_of_who_knows_it() -> None:
    sets = LogicalSets("ab")
    address = sets.at["broker-a"]
    sets.mapped(address, 1)
    flags: dict[str, Any] = {"topic": "L", "sys_flag": int(MessageFlag.LOGICAL_QUEUE)}
    assert [sets.send(address, b"m", **flags)[0] for _ in range(2)] == [OK, OK]
    assert sets.seal(address, 0, 0)[0][0] == OK
    assert sets.send(address, b"m", **flags)[0] == ResponseCode.NO_PERMISSION


def test_a_header_that_was_read_is_read_again_with_what_was_changed_in_it() -> None:
    server = RequestServer(Outbox(), lambda _request: None, limits=RemotingLimits())
    fields = {**PullMessageRequest(topic="T", queue_id=1, queue_offset=7).to_ext_fields(), "other": "x"}
    command = Command(RemotingHeader(code=RequestCode.PULL_MESSAGE, opaque=1, ext_fields=fields))
    request = Request(1, "10.0.0.1:1", "main", command, 5, server, wants_answer=True)
    header: Any = request.header
    header.queue_id = 4
    again = PullMessageRequest.from_ext_fields(command.header.ext_fields or {})
    assert again is request.header is header
    assert (again.queue_id, again.queue_offset, again.unknown) == (4, 7, {"other": "x"})
    assert isinstance(command.header.ext_fields, ReadFields)
    older = SendMessageRequest.from_ext_fields(command.header.ext_fields)
    assert older.queue_id == 1, "of another kind it is read from the texts"
    assert SendMessageV2Request.key_of("topic") != SendMessageRequest.key_of("topic") == "topic"
