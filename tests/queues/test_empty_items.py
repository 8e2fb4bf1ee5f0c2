"""Oldest items of a static topic that have no message any more are dropped, and no group loses its place."""

from __future__ import annotations

import pytest

from replispec.wire.rocketmq import constants
from replispec.wire.rocketmq.client import (
    QueryConsumerOffsetRequest,
    QueryConsumerOffsetResponse,
    UpdateConsumerOffsetRequest,
)
from replispec.wire.rocketmq.codes import RequestCode, ResponseCode
from replispec.wire.rocketmq.constants import EMPTY_ITEMS_MS
from replispec.wire.rocketmq.options import RetentionOptions
from tests.broker.simulated_set import OK
from tests.queues.test_static_queues import ends, pulled, sent
from tests.queues.test_static_topics import Place, told
from tests.queues.two_sets import Sets

A0, B4 = ("broker-a", 0, 0), ("broker-b", 4, 10_000)
WHEN_ASKED = RetentionOptions(file_reserved_time=0, delete_when="")


def moved(*items: Place) -> tuple[Sets, str, str]:
    """A queue with three messages at broker-a, which went on; else is said where, at broker-b."""
    sets = Sets(retention=WHEN_ASKED)
    first, second = sets.at.values()
    sets.map(5, [A0])
    for number in range(3):
        assert sent(sets, first) == (OK, 0, number)
    sets.map(6, [A0, *(items or (B4,))], to=["broker-b", "broker-a"])
    return sets, first, second


def emptied(sets: Sets, address: str, number: int = 1) -> None:
    """A broker deletes all messages but the newest ones, which are of another topic."""
    for _ in range(8):
        assert sets.send(address, bytes(30_000), topic="Filler")[0] == OK
        sets.world.run_for(1_000)
    assert sets.ask(address, RequestCode.DELETE_EXPIRED_COMMITLOG).header.code == OK
    queue = sets.broker(number)._log.store.index.queues["S", 0]
    sets.until(lambda: queue.first == queue.end)


def commit(sets: Sets, address: str, group: str, offset: int) -> None:
    """A group says how far it has read logical queue 0."""
    asked = UpdateConsumerOffsetRequest(
        bname=constants.MOCK_BROKER_GLOBAL, consumer_group=group, topic="S", queue_id=0, commit_offset=offset
    )
    assert sets.ask(address, RequestCode.UPDATE_CONSUMER_OFFSET, asked).header.code == OK


def place(sets: Sets, address: str, group: str) -> int | None:
    """Where a group reads on; None where it never said."""
    asked = QueryConsumerOffsetRequest(
        bname=constants.MOCK_BROKER_GLOBAL, consumer_group=group, topic="S", queue_id=0
    )
    answer = sets.ask(address, RequestCode.QUERY_CONSUMER_OFFSET, asked).header
    if answer.code == ResponseCode.QUERY_NOT_FOUND:
        return None
    assert answer.code == OK, answer.remark
    return QueryConsumerOffsetResponse.from_ext_fields(answer.ext_fields or {}).offset


def items(sets: Sets, address: str) -> list[Place]:
    """The items of logical queue 0, as a broker has them."""
    found = told(sets, address)
    assert found is not None
    assert found.mapping_detail is not None
    listed = (found.mapping_detail.hosted_queues or {})[0].items or ()
    return [(each.bname or "", each.queue_id or 0, each.logic_offset or 0) for each in listed]


def looked(sets: Sets, times: int) -> None:
    """So many looks later."""
    sets.world.run_for(times * (EMPTY_ITEMS_MS + 5_000))


def test_an_item_without_messages_is_dropped_and_a_group_that_read_it_alone_reads_on_behind_it() -> None:
    """5.4.0 drops it at once: the group has no place then, and may begin at the end."""
    sets, first, second = moved()
    assert sent(sets, second)[2] == 10_000
    commit(sets, second, "behind", 2)
    commit(sets, second, "further", 10_001)
    emptied(sets, first)
    looked(sets, 1)
    assert items(sets, second) == [A0, B4]
    looked(sets, 3)
    assert items(sets, second) == [B4]
    assert place(sets, second, "behind") == 10_000
    assert place(sets, second, "further") == 10_001
    assert place(sets, second, "new") is None
    assert ends(sets, second) == (10_000, 10_001)
    assert pulled(sets, second, 2)[:2] == (ResponseCode.PULL_OFFSET_MOVED, 10_000)
    assert pulled(sets, second, 10_000)[:2] == (OK, 10_001)


def test_what_was_dropped_and_where_groups_are_outlive_a_crash() -> None:
    sets, first, second = moved()
    commit(sets, second, "behind", 2)
    emptied(sets, first)
    looked(sets, 4)
    sets.world.kill("broker2", power=True)
    sets.start("broker2")
    sets.until(lambda: sets.broker(2).serves)
    sets.until(lambda: told(sets, second) is not None)
    assert items(sets, second) == [B4]
    assert place(sets, second, "behind") == 10_000


def test_a_group_that_comes_between_two_looks_is_kept_where_the_next_item_begins() -> None:
    sets, first, second = moved()
    emptied(sets, first)
    looked(sets, 1)
    assert items(sets, second) == [A0, B4], "what was said at the first look is on the disk by the second"
    commit(sets, second, "late", 1)
    assert sets.broker(1)._offsets.get("late", "S", 0) is None
    assert place(sets, second, "late") == 10_000
    looked(sets, 2)
    assert items(sets, second) == [B4]
    assert place(sets, second, "late") == 10_000


def test_an_item_is_not_dropped_while_its_broker_is_silent_or_has_messages() -> None:
    sets, first, second = moved()
    looked(sets, 3)
    assert items(sets, second) == [A0, B4]
    emptied(sets, first)
    sets.world.kill("broker1")
    looked(sets, 3)
    assert items(sets, second) == [A0, B4]


def test_an_empty_item_is_not_dropped_while_the_next_one_is_not_decided() -> None:
    sets, first, second = moved(("broker-b", 4, -1))
    emptied(sets, first)
    looked(sets, 3)
    assert items(sets, second) == [A0, ("broker-b", 4, -1)]


def test_an_item_of_the_broker_that_leads_is_dropped_and_who_led_keeps_its_copy() -> None:
    sets, first, second = moved(B4, ("broker-a", 5, 20_000))
    commit(sets, first, "behind", 3)
    emptied(sets, first)
    looked(sets, 4)
    # Nothing was sent to broker-b: its item is as empty.
    looked(sets, 3)
    assert items(sets, first) == [("broker-a", 5, 20_000)]
    assert place(sets, first, "behind") == 20_000
    assert items(sets, second) == [A0, B4, ("broker-a", 5, 20_000)]


@pytest.mark.parametrize("epoch", [6, 7])
def test_a_mapping_that_names_a_dropped_item_is_taken(epoch: int) -> None:
    sets, first, second = moved()
    emptied(sets, first)
    looked(sets, 3)
    assert items(sets, second) == [B4]
    sets.map(epoch, [A0, B4], to=["broker-b"])
    assert items(sets, second) == [A0, B4]
    looked(sets, 3)
    assert items(sets, second) == [B4]
