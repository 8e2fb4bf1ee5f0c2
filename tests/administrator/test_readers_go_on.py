"""Plain topics that get logical queues while they are read, and brokers that are away: each message once."""

from __future__ import annotations

from itertools import count

import pytest

from replispec.administrator.rocketmq import NotAsWantedError
from replispec.administrator.rocketmq.logical_migration import moved
from replispec.administrator.rocketmq.logical_queues import made, mapped
from replispec.administrator.rocketmq.topics import TopicWanted, updated
from replispec.runtime.rocketmq.client import ClientQueue, Failed, MessageToSend, ProducerNode, Stored
from replispec.wire.rocketmq.constants import LOGICAL_QUEUE_BROKER
from tests.administrator.own_brokers import CLUSTER, NAME_SERVER, TOPIC, Load, OwnBrokers

NAMES = [NAME_SERVER]
EPOCHS = count(1_700_000_000_000)


def plain(brokers: OwnBrokers) -> None:
    """The topic, plain, with two queues at each broker."""
    brokers.carried_out(updated(NAMES, TopicWanted(TOPIC, 2, 2, 6), cluster=CLUSTER, broker=None))
    brokers.world.run_for(2_000)


def enabled(brokers: OwnBrokers) -> None:
    """All its queues are logical ones."""
    _, missing = brokers.carried_out(mapped(NAMES, TOPIC, CLUSTER, next(EPOCHS)))
    assert missing is None


def bodies(load: Load) -> list[int]:
    """What was read."""
    return sorted(int(each.body) for each in load.read)


@pytest.mark.parametrize("moves", [(), ((0, 2), (2, 1)), ((0, 2), (0, 1))])
def test_who_reads_a_plain_topic_that_gets_logical_queues_reads_each_message_once(
    moves: tuple[tuple[int, int], ...],
) -> None:
    """Also where a queue has moved before the reader hears of any."""
    brokers = OwnBrokers(2)
    plain(brokers)
    load = Load(brokers)
    brokers.world.run_for(10_000)
    enabled(brokers)
    brokers.world.run_for(2_000)
    for index, target in moves:
        brokers.carried_out(moved(NAMES, TOPIC, index, f"broker{target}"))
    brokers.world.run_for(60_000)
    load.ends()
    assert all(isinstance(each, Stored) for each in load.came.values())
    assert bodies(load) == sorted(load.came)
    assert {each.queue.broker for each in load.read} == {"broker1", "broker2", LOGICAL_QUEUE_BROKER}
    again = Load(brokers)
    again.ends()
    assert bodies(again) == sorted(again.came), "the group goes on behind what it has read"


def test_a_broker_that_is_away_ends_no_consumer() -> None:
    """Longer than the group's places are asked for, which could not be kept there meanwhile."""
    brokers = OwnBrokers(2)
    plain(brokers)
    load = Load(brokers)
    brokers.world.run_for(3_000)
    brokers.world.kill("broker1")
    brokers.world.run_for(15_000)
    assert not load.consumer.is_done
    brokers.world.start("broker1")
    brokers.world.run_for(5_000)
    load.ends()
    stored = [number for number, each in load.came.items() if isinstance(each, Stored)]
    assert bodies(load) == sorted(stored)


def test_a_message_queue_that_a_program_names_is_no_logical_one_of_the_same_number() -> None:
    brokers = OwnBrokers(2)
    plain(brokers)
    enabled(brokers)
    brokers.world.run_for(2_000)
    came: list[Stored | Failed] = []
    message = MessageToSend(TOPIC, b"m", queue=ClientQueue("broker2", 0))
    node = ProducerNode(
        (NAME_SERVER,), iter([message]), lambda _, each, _now_ms: came.append(each), group="p"
    )
    brokers.runs(node)
    brokers.until(lambda: node.is_done)
    assert isinstance(came[0], Failed)


@pytest.mark.parametrize(("reads", "writes"), [(4, 1), (1, 4)])
def test_message_queues_that_are_not_both_read_and_written_are_made_no_logical_ones(
    reads: int, writes: int
) -> None:
    """Else what lies in those that are read alone is read by nobody, and of those that are written alone
    nobody may ever have them read."""
    brokers = OwnBrokers(2)
    plain(brokers)
    wanted = TopicWanted(TOPIC, reads, writes, 6)
    brokers.carried_out(updated(NAMES, wanted, cluster=CLUSTER, broker=None))
    with pytest.raises(NotAsWantedError, match=f"{reads} message queues that are read and {writes} that"):
        enabled(brokers)
    with pytest.raises(NotAsWantedError, match=f"{reads} message queues that are read and {writes} that"):
        brokers.carried_out(made(NAMES, wanted, CLUSTER, next(EPOCHS)))
    plain(brokers)
    enabled(brokers)
