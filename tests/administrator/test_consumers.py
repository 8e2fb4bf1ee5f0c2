"""How far groups have read, asked of real brokers."""

from __future__ import annotations

from typing import TypeVar

import pytest

from replispec.administrator.rocketmq import NotAsWantedError
from replispec.administrator.rocketmq.consumers import (
    Reset,
    Rollback,
    TopicQueue,
    groups,
    progress,
    reset,
    topic_stats,
)
from replispec.administrator.rocketmq.plans import Plan, Reply
from replispec.cli.rocketmq.admin import consumer_text
from replispec.runtime.rocketmq.framing import Command
from replispec.wire.rocketmq.client import (
    ClientHeartbeatRequest,
    ConsumerData,
    HeartbeatData,
    UpdateConsumerOffsetRequest,
)
from replispec.wire.rocketmq.codes import RequestCode, ResponseCode
from replispec.wire.rocketmq.remoting import RemotingHeader
from tests.administrator.test_cluster import carried_out, settled
from tests.broker.simulated_set import NAME_SERVER, BrokerSet

T = TypeVar("T")
SENT = (3, 1, 0, 2)
GROUP = "g"


@pytest.fixture
def brokers() -> BrokerSet:
    """A set with a topic, and a group that has read one message of its first queue and one of its last."""
    found = BrokerSet()
    master, _ = found.pair()
    for queue, count in enumerate(SENT):
        for number in range(count):
            assert found.send(master, b"%d" % number, queue=queue)[0] == 0
    for queue in (0, 3):
        said = UpdateConsumerOffsetRequest(consumer_group=GROUP, topic="T", queue_id=queue, commit_offset=1)
        found.ask(master, RequestCode.UPDATE_CONSUMER_OFFSET, said)
    data = HeartbeatData(
        client_id="one",
        consumer_data_set=[
            ConsumerData(
                consume_from_where="CONSUME_FROM_LAST_OFFSET",
                consume_type="CONSUME_PASSIVELY",
                group_name=GROUP,
                message_model="CLUSTERING",
                subscription_data_set=[],
                unit_mode=False,
            )
        ],
        producer_data_set=[],
    )
    found.ask(master, RequestCode.HEART_BEAT, ClientHeartbeatRequest(), data.encode())
    settled(found)
    return found


def read(brokers: BrokerSet) -> dict[int, tuple[int, int]]:
    """Where each queue that the group has read ends, and where it is."""
    told = carried_out(brokers, progress((NAME_SERVER,), GROUP, "T")).queues
    return {each.number: (at.broker_offset or 0, at.consumer_offset or 0) for each, at in told.items()}


def test_queues_begin_and_end_where_messages_were_sent(brokers: BrokerSet) -> None:
    found = carried_out(brokers, topic_stats((NAME_SERVER,), "T"))
    assert {each.number: told.max_offset for each, told in found.queues.items()} == dict(enumerate(SENT))
    lines = consumer_text.topic_stats(found).text.splitlines()
    assert lines[1].split()[:4] == ["broker-a", "0", "0", "3"]
    assert lines[-1] == "Topic Put TPS: 0.0"


def test_a_group_is_where_it_said_and_behind_by_the_rest(brokers: BrokerSet) -> None:
    assert read(brokers) == {0: (3, 1), 1: (1, 0), 2: (0, 0), 3: (2, 1)}
    found = carried_out(brokers, progress((NAME_SERVER,), GROUP, "T"))
    assert consumer_text.progress(found).text.splitlines()[-2:] == [
        "Consume Diff Total: 4",
        "Consume Inflight Total: 0",
    ]


def test_all_groups_are_found_with_their_clients(brokers: BrokerSet) -> None:
    (one,) = carried_out(brokers, groups((NAME_SERVER,)))
    assert (one.group, one.behind) == (GROUP, 4)
    assert one.clients is not None
    assert [each.client_id for each in one.clients.connection_set or ()] == ["one"]
    row = consumer_text.groups([one]).rows[0]
    assert (row["clients"], row["diff"]) == (1, 4)


def test_a_group_reads_on_from_the_beginning_and_from_the_end(brokers: BrokerSet) -> None:
    found = carried_out(brokers, reset((NAME_SERVER,), Reset(GROUP, "T", 0)))
    assert found == {TopicQueue("T", "broker-a", number): 0 for number in range(4)}
    assert read(brokers)[0] == (3, 0)
    carried_out(brokers, reset((NAME_SERVER,), Reset(GROUP, "T", -1)))
    assert {number: at for number, (_, at) in read(brokers).items()} == dict(enumerate(SENT))


def test_where_a_broker_cannot_tell_consumers_their_group_is_moved_queue_by_queue(brokers: BrokerSet) -> None:
    found = carried_out(brokers, nobody_online(reset((NAME_SERVER,), Reset(GROUP, "T", 0))))
    assert isinstance(found, list)
    assert found[0] == Rollback(TopicQueue("T", "broker-a", 0), 3, 1, 0, 0)
    assert read(brokers)[0] == (3, 0)
    lines = consumer_text.reset(Reset(GROUP, "T", 0), "0", found).text.splitlines()
    assert lines[2].split() == ["broker-a", "0", "3", "1", "0", "0"]


def nobody_online(plan: Plan[T]) -> Plan[T]:
    """The same plan with brokers that tell consumers themselves, of which there are none."""
    moves = RequestCode.INVOKE_BROKER_TO_RESET_OFFSET
    absent = Command(RemotingHeader(code=ResponseCode.CONSUMER_NOT_ONLINE))
    asked = next(plan)
    while True:
        replies = iter((yield [each for each in asked if each.code != moves]))
        told = [Reply(each, absent) if each.code == moves else next(replies) for each in asked]
        try:
            asked = plan.send(told)
        except StopIteration as end:
            result: T = end.value
            return result


def test_a_group_is_moved_back_alone_where_that_is_wanted(brokers: BrokerSet) -> None:
    carried_out(brokers, reset((NAME_SERVER,), Reset(GROUP, "T", -1, force=False)))
    assert read(brokers) == {0: (3, 1), 1: (1, 0), 2: (0, 0), 3: (2, 1)}


def test_a_group_that_nobody_knows_is_refused(brokers: BrokerSet) -> None:
    with pytest.raises(NotAsWantedError, match="nobody holds the topic"):
        carried_out(brokers, progress((NAME_SERVER,), "nobody", None))
