"""Logical queues of a static topic at the broker that leads: offsets count over all items."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from replispec.wire.rocketmq import constants
from replispec.wire.rocketmq.broker import PullMessageResponse, SendMessageRequest, SendMessageResponse
from replispec.wire.rocketmq.client import (
    BatchMessage,
    ConsumerOffsetTable,
    GetMaxOffsetRequest,
    GetMaxOffsetResponse,
    GetMinOffsetRequest,
    GetMinOffsetResponse,
    GetTopicStatsRequest,
    QueryConsumerOffsetRequest,
    QueryConsumerOffsetResponse,
    SearchOffsetRequest,
    SearchOffsetResponse,
    TopicStatsTable,
    UpdateConsumerOffsetRequest,
)
from replispec.wire.rocketmq.codes import MessageFlag, RequestCode, ResponseCode
from replispec.wire.rocketmq.message_queue import MessageQueue
from replispec.wire.rocketmq.store import LogRecord
from tests.broker.simulated_set import OK, BrokerSet, message, wanted
from tests.queues.test_static_topics import SET_IT, Place, detail, header, put

A0: Place = ("broker-a", 0, 0)
NOT_LEADER = ResponseCode.NOT_LEADER_FOR_QUEUE
RETRY = ResponseCode.PULL_RETRY_IMMEDIATELY


def leading(*queues: list[Place], epoch: int = 5) -> tuple[BrokerSet, str]:
    """A broker with a static topic."""
    brokers = BrokerSet()
    address = brokers.alone()
    assert put(brokers, address, detail(epoch, *queues))[0] == OK
    return brokers, address


def sent(brokers: BrokerSet, address: str, queue: int = 0, **more: Any) -> tuple[int, int | None, int | None]:
    """Send to a logical queue: code, queue and offset of the answer."""
    more.setdefault("broker_name", "broker-a")
    code, said = brokers.send(address, b"m", topic="S", queue=queue, **more)
    return code, said.queue_id, said.queue_offset


def pulled(
    brokers: BrokerSet, address: str, position: int, queue: int = 0, **more: Any
) -> tuple[int, int | None, int | None, int | None, int | None]:
    """Pull of a logical queue: code, next, oldest, end, and what is added to offsets of the records."""
    asked = replace(wanted("S", queue, position), **{"bname": constants.MOCK_BROKER_GLOBAL, **more})
    answer = brokers.ask(address, RequestCode.PULL_MESSAGE, asked).header
    said = PullMessageResponse.from_ext_fields(answer.ext_fields or {})
    return answer.code, said.next_begin_offset, said.min_offset, said.max_offset, said.offset_delta


def ends(brokers: BrokerSet, address: str, queue: int = 0, **more: Any) -> tuple[int | None, int | None]:
    """Where a logical queue begins and ends."""
    more.setdefault("bname", constants.MOCK_BROKER_GLOBAL)
    low = brokers.ask(address, RequestCode.GET_MIN_OFFSET, GetMinOffsetRequest("S", queue, **more)).header
    high = brokers.ask(address, RequestCode.GET_MAX_OFFSET, GetMaxOffsetRequest("S", queue, **more)).header
    return (
        GetMinOffsetResponse.from_ext_fields(low.ext_fields or {}).offset,
        GetMaxOffsetResponse.from_ext_fields(high.ext_fields or {}).offset,
    )


def test_an_answer_has_the_logical_queue_and_offset() -> None:
    brokers, address = leading([("broker-a", 3, 0)], [("broker-a", 5, 0)])
    assert [sent(brokers, address, 1) for _ in range(2)] == [(OK, 1, 0), (OK, 1, 1)]
    assert sent(brokers, address, 0) == (OK, 0, 0)
    assert pulled(brokers, address, 0, 1) == (OK, 2, 0, 2, 0)
    assert brokers.pull(address, 0, topic="S", queue=5)[1].max_offset == 2, "a pull of a release before"


def test_older_and_batched_sends_count_alike() -> None:
    brokers, address = leading([("broker-a", 3, 0)])
    older = SendMessageRequest("p", "S", constants.TEMPLATE_TOPIC, 4, 0, 0, bname="broker-a")
    answer = brokers.ask(address, RequestCode.SEND_MESSAGE, older, b"m").header
    said = SendMessageResponse.from_ext_fields(answer.ext_fields or {})
    assert (answer.code, said.queue_id, said.queue_offset) == (OK, 0, 0)
    body = b"".join(BatchMessage(body=b"part").encode() for _ in range(3))
    batch = message("S", 0, broker_name="broker-a")
    answer = brokers.ask(address, RequestCode.SEND_BATCH_MESSAGE, batch, body).header
    said = SendMessageResponse.from_ext_fields(answer.ext_fields or {})
    assert (answer.code, said.queue_id, said.queue_offset) == (OK, 0, 1)
    assert pulled(brokers, address, 0) == (OK, 4, 0, 4, 0)


def test_a_queue_that_came_back_is_read_over_the_border_without_a_gap() -> None:
    brokers, address = leading([A0])
    for number in range(3):
        assert sent(brokers, address) == (OK, 0, number)
    assert put(brokers, address, detail(6, [A0, ("broker-a", 4, 10_000)]))[0] == OK
    assert [sent(brokers, address)[2] for _ in range(2)] == [10_000, 10_001]
    assert ends(brokers, address) == (0, 10_002)
    assert pulled(brokers, address, 0) == (OK, 3, 0, 10_002, 0)
    assert pulled(brokers, address, 3) == (RETRY, 10_000, 10_000, 10_002, 10_000)
    assert pulled(brokers, address, 5_000) == (RETRY, 10_000, 10_000, 10_002, 10_000)
    assert pulled(brokers, address, 10_000) == (OK, 10_002, 10_000, 10_002, 10_000)
    assert pulled(brokers, address, 10_002)[:2] == (ResponseCode.PULL_NOT_FOUND, 10_002)
    assert pulled(brokers, address, 20_000)[:2] == (ResponseCode.PULL_OFFSET_MOVED, 10_002)


def test_an_undecided_tail_takes_messages_and_answers_without_an_offset() -> None:
    brokers, address = leading([("broker-b", 0, 0), ("broker-a", 4, -1)])
    assert sent(brokers, address) == (OK, 0, constants.UNDECIDED)
    assert put(brokers, address, detail(5, [("broker-b", 0, 0), ("broker-a", 4, 20_000)]))[0] == OK
    assert sent(brokers, address) == (OK, 0, 20_001)
    assert pulled(brokers, address, 20_000) == (OK, 20_002, 20_000, 20_002, 20_000)
    assert pulled(brokers, address, 7)[0] == ResponseCode.SYSTEM_ERROR, "there is no other broker"


@pytest.mark.parametrize("queue", [0, 1, 7])
def test_who_does_not_lead_says_so(queue: int) -> None:
    brokers, address = leading([A0, ("broker-b", 0, 10_000)], [("broker-b", 1, 0)])
    assert sent(brokers, address, queue)[0] == NOT_LEADER
    assert pulled(brokers, address, 0, queue)[0] == NOT_LEADER


def test_a_physical_request_is_answered_as_if_there_were_no_mapping() -> None:
    brokers, address = leading([("broker-a", 3, 10_000)])
    assert sent(brokers, address)[2] == 10_000
    assert sent(brokers, address, 3, lo=False) == (OK, 3, 1)
    assert pulled(brokers, address, 0, 3, lo=False) == (OK, 2, 0, 2, None)
    assert ends(brokers, address, 3, lo=False) == (0, 2)
    assert ends(brokers, address, 3, bname=None) == (0, 2)


def test_a_message_behind_the_record_that_took_the_lead_is_refused_also_before_that_is_kept() -> None:
    brokers, address = leading([A0])
    brokers.world.run_for(100)
    moved = detail(6, [A0, ("broker-b", 0, 10_000)])
    told = brokers.asked(address, SET_IT, header(), moved.encode())
    assert sent(brokers, address)[0] == NOT_LEADER
    brokers.until(lambda: bool(told))


def test_after_a_fail_over_offsets_go_on_where_they_were() -> None:
    brokers = BrokerSet()
    first, second = brokers.pair()
    assert put(brokers, first, detail(5, [A0]))[0] == OK
    assert put(brokers, first, detail(6, [A0, ("broker-a", 4, 10_000)]))[0] == OK
    acknowledged = [sent(brokers, first)[2] for _ in range(3)]
    brokers.world.kill("broker1", power=True)
    brokers.until(lambda: brokers.broker(2).serves)
    brokers.until(lambda: brokers.members(2) == {2})
    assert [*acknowledged, sent(brokers, second)[2]] == [10_000, 10_001, 10_002, 10_003]
    assert pulled(brokers, second, 10_000)[:4] == (OK, 10_004, 10_000, 10_004)


def committed(brokers: BrokerSet, address: str, position: int | None = None, **more: Any) -> tuple[int, Any]:
    """What a group reads next of logical queue 0, after it said so: code and position."""
    more = {"bname": constants.MOCK_BROKER_GLOBAL, **more}
    if position is not None:
        said = replace(UpdateConsumerOffsetRequest(None, "g", "S", 0, position), **more)
        assert brokers.ask(address, RequestCode.UPDATE_CONSUMER_OFFSET, said).header.code == OK
    asked = replace(QueryConsumerOffsetRequest("g", "S", 0), **more)
    answer = brokers.ask(address, RequestCode.QUERY_CONSUMER_OFFSET, asked).header
    return answer.code, QueryConsumerOffsetResponse.from_ext_fields(answer.ext_fields or {}).offset


def test_a_group_that_never_read_is_told_so_and_not_0() -> None:
    brokers, address = leading([("broker-a", 3, 0)])
    assert committed(brokers, address) == (ResponseCode.QUERY_NOT_FOUND, None)


def test_positions_of_groups_are_kept_by_physical_queues_and_found_in_the_newest_item() -> None:
    brokers, address = leading([A0])
    for _ in range(3):
        sent(brokers, address)
    assert put(brokers, address, detail(6, [A0, ("broker-a", 4, 10_000)]))[0] == OK
    sent(brokers, address)
    assert committed(brokers, address, 2) == (OK, 2)
    assert committed(brokers, address, 10_001) == (OK, 10_001)
    assert committed(brokers, address, 3) == (OK, 10_001), "a way back over a border is lost"
    assert committed(brokers, address, lo=False) == (OK, 3)
    table = ConsumerOffsetTable.decode(brokers.ask(address, RequestCode.GET_ALL_CONSUMER_OFFSET).body)
    kept = {key: each.offsets for key, each in (table.offset_table or {}).items()}
    assert kept == {"S@g": {0: 3, 4: 1}}


def test_the_first_message_since_a_time_is_looked_for_from_the_oldest_item_on() -> None:
    brokers, address = leading([A0])
    sent(brokers, address)
    brokers.world.run_for(1_000)
    then = LogRecord.decode(brokers.pull(address, 0, topic="S")[2]).store_timestamp + 1
    assert put(brokers, address, detail(6, [A0, ("broker-a", 4, 10_000)]))[0] == OK
    sent(brokers, address)

    def since(timestamp: int) -> int | None:
        asked = SearchOffsetRequest("S", 0, timestamp, bname=constants.MOCK_BROKER_GLOBAL)
        answer = brokers.ask(address, RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, asked).header
        return SearchOffsetResponse.from_ext_fields(answer.ext_fields or {}).offset

    assert [since(0), since(then), since(then + 100_000)] == [0, 10_000, 10_001]


def test_no_answer_goes_over_a_border() -> None:
    brokers, address = leading([A0])
    for _ in range(5):
        sent(brokers, address)
    assert put(brokers, address, detail(6, [A0, ("broker-a", 4, 3)]), force=True)[0] == OK
    assert pulled(brokers, address, 0)[:2] == (OK, 3)
    assert pulled(brokers, address, 3)[:2] == (ResponseCode.PULL_NOT_FOUND, 3)


def test_administrators_are_told_of_physical_queues_and_nothing_is_sent_in_a_transaction() -> None:
    brokers, address = leading([("broker-a", 3, 10_000)])
    assert sent(brokers, address)[2] == 10_000
    brokers.world.run_for(100)
    answer = brokers.ask(address, RequestCode.GET_TOPIC_STATS_INFO, GetTopicStatsRequest("S"))
    table = TopicStatsTable.decode(answer.body).offset_table or {}
    ends = {MessageQueue.decode(key.encode()).queue_id: each.max_offset for key, each in table.items()}
    assert ends == {**dict.fromkeys(range(8), 0), 3: 1}
    assert sent(brokers, address, sys_flag=MessageFlag.TRANSACTION)[0] == ResponseCode.NO_PERMISSION
