"""Producer and consumer beside a broker set of ours: what was acknowledged is read once, where it was."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from replispec.runtime.rocketmq.client import (
    Begin,
    ClientQueue,
    ConsumerNode,
    Failed,
    MessageToSend,
    ProducerNode,
    Reading,
    ReadMessage,
    Stored,
)
from replispec.runtime.world import Member
from tests.broker.simulated_set import NAME_SERVER, BrokerSet

NodeT = TypeVar("NodeT", ProducerNode, ConsumerNode)
TOPIC = "TopicP"


def beside(brokers: BrokerSet, node: NodeT) -> NodeT:
    """The node in a process of its own, started."""
    name = f"client{len(brokers.world.processes)}"
    brokers.world.add(name, "10.0.0.9", lambda _storage: [Member(name, node)])
    brokers.world.start(name)
    return node


class Sending:
    """A producer of some messages, and what came of them."""

    def __init__(self, brokers: BrokerSet, bodies: Iterator[bytes], *, at_once: int = 1) -> None:
        self.came: dict[int, Stored | Failed] = {}
        messages = (MessageToSend(TOPIC, body, key=body.decode()) for body in bodies)
        node = ProducerNode((NAME_SERVER,), messages, self._heard, group="p", at_once=at_once)
        self.node = beside(brokers, node)

    def _heard(self, number: int, came: Stored | Failed, _now_ms: int) -> None:
        self.came[number] = came

    @property
    def places(self) -> list[tuple[ClientQueue, int]]:
        """Where all were stored."""
        sent = [each for _, each in sorted(self.came.items())]
        return [(each.queue, each.offset) for each in sent if isinstance(each, Stored)]


def read(brokers: BrokerSet, reading: Reading) -> tuple[list[ReadMessage], ConsumerNode]:
    """What a consumer reads."""
    found: list[ReadMessage] = []

    def heard(message: ReadMessage, _now_ms: int) -> None:
        found.append(message)

    node = ConsumerNode((NAME_SERVER,), reading, heard, lambda _queue, _why: None, name="reader")
    beside(brokers, node)
    brokers.until(lambda: node.is_done)
    return found, node


def bodies(count: int, start: int = 0) -> Iterator[bytes]:
    return (b"%d" % number for number in range(start, start + count))


def test_a_topic_is_made_by_sending_and_every_message_is_read_where_it_was_stored() -> None:
    brokers = BrokerSet()
    brokers.pair()
    brokers.world.run_for(35_000)
    sending = Sending(brokers, bodies(100), at_once=8)
    brokers.until(lambda: sending.node.is_done)
    assert len(sending.places) == 100
    assert {queue.number for queue, _ in sending.places} == {0, 1, 2, 3}
    brokers.world.run_for(35_000)
    found, node = read(brokers, Reading(TOPIC, count=100))
    assert node.failure is None
    assert sorted((each.queue, each.offset) for each in found) == sorted(sending.places)
    assert {each.key for each in found} == {str(number) for number in range(100)}


def test_a_group_goes_on_where_it_was_and_without_one_nothing_is_remembered() -> None:
    brokers = BrokerSet()
    brokers.pair()
    brokers.world.run_for(35_000)
    sending = Sending(brokers, bodies(20))
    brokers.until(lambda: sending.node.is_done)
    brokers.world.run_for(35_000)
    first, _ = read(brokers, Reading(TOPIC, group="g", count=12))
    second, _ = read(brokers, Reading(TOPIC, group="g", idle_ms=3_000))
    keys = [each.key for each in (*first, *second)]
    assert sorted(keys, key=int) == [str(number) for number in range(20)]
    for _ in range(2):
        again, _ = read(brokers, Reading(TOPIC, idle_ms=3_000))
        assert len(again) == 20
    assert read(brokers, Reading(TOPIC, begin=Begin.LATEST, idle_ms=3_000))[0] == []


def test_a_topic_that_nobody_has_is_a_failure_of_the_consumer() -> None:
    brokers = BrokerSet()
    brokers.pair()
    brokers.world.run_for(35_000)
    found, node = read(brokers, Reading("nobody", count=1))
    assert found == []
    assert "no route to nobody" in str(node.failure)


def test_what_was_acknowledged_over_a_fail_over_is_read_once() -> None:
    brokers = BrokerSet()
    brokers.pair()
    brokers.world.run_for(35_000)
    sending = Sending(brokers, bodies(400))
    brokers.until(lambda: len(sending.came) > 100)
    brokers.world.kill("broker1")
    brokers.until(lambda: sending.node.is_done, at_most_ms=600_000)
    brokers.start("broker1")
    brokers.until(lambda: brokers.members(2) == {1, 2})
    brokers.world.run_for(35_000)
    found, _ = read(brokers, Reading(TOPIC, idle_ms=3_000))
    places = {(each.queue, each.offset): each.key for each in found}
    assert len(places) == len(found)
    acknowledged = {
        (came.queue, came.offset): str(number)
        for number, came in sending.came.items()
        if isinstance(came, Stored)
    }
    assert len(acknowledged) > 100
    assert acknowledged.items() <= places.items()
