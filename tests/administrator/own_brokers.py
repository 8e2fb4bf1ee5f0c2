"""Our own brokers, three sets of one, with controller and name server, and plans carried out among them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from replispec.administrator.rocketmq import AdministratorNode, NotAsWantedError
from replispec.administrator.rocketmq.plans import Asking, Plan, Reply
from replispec.runtime.rocketmq.client import (
    ConsumerNode,
    Failed,
    MessageToSend,
    ProducerNode,
    Reading,
    ReadMessage,
    Stored,
)
from replispec.runtime.world import Member
from replispec.wire.rocketmq.options import RetentionOptions
from tests.broker.simulated_set import NAME_SERVER, BrokerSet

T = TypeVar("T")
TOPIC, CLUSTER, OTHER = "TopicL", "C", "Other"
ALL_HOURS = ";".join(f"{hour:02}" for hour in range(24))


class CutOffError(NotAsWantedError):
    """The administrator ended here."""


class OwnBrokers(BrokerSet):
    """Brokers `broker1`, `broker2`, ..., each a set of its own."""

    def __init__(self, count: int, *, young: Sequence[int] = ()) -> None:
        super().__init__()
        self.addresses = {f"broker{number}": "" for number in range(1, count + 1)}
        for number in range(1, count + 1):
            self.joins(number, deletes_soon=number in young)

    def joins(self, number: int, *, deletes_soon: bool = False) -> None:
        """One more, which serves. `deletes_soon`: files of its log go as soon as they are full."""
        soon = RetentionOptions(file_reserved_time=0, delete_when=ALL_HOURS)
        more: dict[str, Any] = {"retention": soon} if deletes_soon else {}
        name = f"broker{number}"
        self.addresses[name] = self.add_broker(number, broker_name=name, **more)
        self.start(name)
        self.until(lambda: self.broker(number).serves)
        self.world.run_for(1_000)

    def carried_out(self, plan: Plan[T], *, cut: int | None = None, late: bool = False) -> T:
        """What a plan comes to. With `cut` its administrator ends at that step, or after it (`late`). Raises
        NotAsWantedError."""
        node = AdministratorNode(plan if cut is None else _cut(plan, cut, late=late))
        self.runs(node)
        self.until(lambda: node.is_done)
        return node.result()

    def at_once(self, *plans: Plan[T]) -> list[T | NotAsWantedError]:
        """What plans come to that are carried out at the same time."""
        nodes: list[AdministratorNode[T]] = [AdministratorNode(plan) for plan in plans]
        for each in nodes:
            self.runs(each)
        self.until(lambda: all(each.is_done for each in nodes))
        came: list[T | NotAsWantedError] = []
        for node in nodes:
            try:
                came.append(node.result())
            except NotAsWantedError as error:
                came.append(error)
        return came

    def runs(self, node: Any) -> None:
        """A node, in a process of its own."""
        name = f"node{len(self.world.processes)}"
        self.world.add(name, f"10.0.9.{len(self.world.processes)}", lambda _storage: [Member(name, node)])
        self.world.start(name)

    def writes(self, number: int, queue: int, count: int) -> None:
        """Messages are stored in a message queue."""
        for _ in range(count):
            code, _ = self.send(self.addresses[f"broker{number}"], b"m", topic=TOPIC, queue=queue)
            assert code == 0

    def fills(self, number: int) -> None:
        """A broker stores so much of another topic that older messages go."""
        for _ in range(40):
            self.send(self.addresses[f"broker{number}"], bytes(4_000), topic=OTHER)
        self.world.run_for(25_000)


def _cut(plan: Plan[T], steps: int, *, late: bool) -> Plan[T]:
    """A plan that ends before a step, or after it."""
    asked: Sequence[Asking] = next(plan)
    for _ in range(steps):
        replies: Sequence[Reply] = yield asked
        try:
            asked = plan.send(replies)
        except StopIteration as end:
            result: T = end.value
            return result
    if late:
        yield asked
    raise CutOffError("cut off")


class Load:
    """A producer that sends as long as it is let, and a consumer of all that is sent."""

    def __init__(self, brokers: OwnBrokers, pause_ms: int = 50) -> None:
        self._brokers = brokers
        self._is_over = False
        self.came: dict[int, Stored | Failed] = {}
        self.read: list[ReadMessage] = []
        self.producer = ProducerNode(
            (NAME_SERVER,), self._messages(), self._heard, group="p", pause_ms=pause_ms
        )
        self.consumer = ConsumerNode(
            (NAME_SERVER,),
            Reading(TOPIC, group="g", idle_ms=20_000),
            lambda message, _now_ms: self.read.append(message),
            lambda _queue, _why: None,
            name="reader",
        )
        brokers.runs(self.producer)
        brokers.runs(self.consumer)

    def ends(self) -> None:
        """Nothing more is sent, and everything is read."""
        self._is_over = True
        self._brokers.until(lambda: self.producer.is_done)
        self._brokers.until(lambda: self.consumer.is_done, at_most_ms=180_000)
        assert self.consumer.failure is None

    def _messages(self) -> Iterator[MessageToSend]:
        number = 0
        while not self._is_over:
            yield MessageToSend(TOPIC, b"%d" % number)
            number += 1

    def _heard(self, number: int, came: Stored | Failed, _now_ms: int) -> None:
        self.came[number] = came


__all__ = ["CLUSTER", "NAME_SERVER", "TOPIC", "Callable", "CutOffError", "Load", "OwnBrokers"]
