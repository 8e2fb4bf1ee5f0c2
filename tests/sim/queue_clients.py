"""Clients of logical queues in a simulated world: they send, read and commit through them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from replispec.runtime.rocketmq.client import (
    Begin,
    ConsumerNode,
    Failed,
    MessageToSend,
    ProducerNode,
    Reading,
    ReadMessage,
    Stored,
)
from replispec.runtime.rocketmq.client.asking import LookUp, Steps, looked_up
from replispec.runtime.rocketmq.client.client import Client
from replispec.runtime.rocketmq.client.routes import ClientQueue
from replispec.runtime.rocketmq.client.steps import commit, position
from replispec.runtime.rocketmq.remoting import Calls, Outcome
from replispec.runtime.rocketmq.remoting.calls import Failure
from replispec.runtime.sim import Rng, World
from replispec.runtime.world import Effect, Event, Member, Outbox
from replispec.wire.rocketmq.broker import SendMessageV2Request
from replispec.wire.rocketmq.codes import RequestCode, ResponseCode
from replispec.wire.rocketmq.constants import (
    CLIENT_TOPIC_QUEUES,
    MOCK_BROKER_GLOBAL,
    TEMPLATE_TOPIC,
    UNDECIDED,
)
from tests.playbook import deliver
from tests.sim.queue_world import BROKERS, HOSTS, NAME_SERVERS, TOPIC, address

AUDIT_MS: Final = 8_000
"""So long comes nothing where everything is read."""
OLD_VERSION: Final = 409
"""Release 4.9.8."""
OLD_QUEUES: Final = 4
TIMEOUT_MS: Final = 3_000
GROUP: Final = "readers"
STRANGERS: Final = "strangers"
"""A group that never says how far it has read."""


@dataclass
class QueueHistory:
    """What clients were told. Messages have numbers, which are their bodies."""

    sent: int = 0
    acknowledged: dict[int, tuple[int, int]] = field(default_factory=dict)
    """By number: the logical queue, and the offset in it, -1 where it was not decided."""
    of_before: dict[int, int] = field(default_factory=dict)
    """Likewise those of senders of before 5.0: the physical queue that they named."""
    read: dict[tuple[int, int], int] = field(default_factory=dict)
    """By logical queue and offset: the number of the message."""
    committed: dict[int, list[int]] = field(default_factory=dict)
    """By logical queue: what the group said, whether it was answered or not."""
    kept: dict[int, int] = field(default_factory=dict)
    """By logical queue: the last position that was acknowledged."""
    is_committing: bool = True
    goes_on: dict[int, int | None] = field(default_factory=dict)
    """By logical queue: where the group goes on, by what it was told when it said nothing more."""
    faults: list[str] = field(default_factory=list)

    def stored(self, number: int, came: Stored) -> None:
        """A producer was told where its message is."""
        if came.status == "SEND_OK":
            self.acknowledged[number] = came.queue.number, came.offset

    def heard(self, message: ReadMessage) -> None:
        """A consumer got a message."""
        place = message.queue.number, message.offset
        number = int(message.body.partition(b".")[0])
        if self.read.setdefault(place, number) != number:
            self.faults.append(f"queue {place[0]} offset {place[1]} was {self.read[place]}, is {number}")

    def last(self, index: int) -> int:
        """The greatest offset of a queue that a producer was told, and was decided; -1 for none."""
        return max((at for queue, at in self.acknowledged.values() if queue == index), default=UNDECIDED)


class GroupNode:
    """Says now and then how far its group has read each queue, always further, and asks for it."""

    def __init__(
        self, history: QueueHistory, rng: Rng, queues: Callable[[], int], broker: str = MOCK_BROKER_GLOBAL
    ) -> None:
        self._broker = broker
        self.may_begin: Callable[[int, int], bool] = lambda _index, _offset: False
        """Whether a group that never said so may be told that it is there, for nothing is read before."""
        self._history = history
        self._rng = rng
        self._queues = queues
        self.knows_the_newest = False
        """Whether it asks for the route anew before it says anything: who has read to there knows it."""
        self._outbox = Outbox()
        self._client = Client(self._outbox, NAME_SERVERS)
        self._due_ms = 0
        self._is_waiting: dict[int, bool] = {}

    @property
    def listeners(self) -> Mapping[str, str]:
        """None."""
        return {}

    def deadline_ms(self) -> int | None:
        """When something is to be done."""
        due = self._client.deadline_ms()
        return self._due_ms if due is None else min(self._due_ms, due)

    def receive(self, event: Event) -> Sequence[Effect]:
        """Take one event."""
        self._client.take(event)
        self._client.ticked(event.now_ms)
        if event.now_ms >= self._due_ms:
            self._due_ms = event.now_ms + self._rng.between(50, 400)
            self._ask(self._rng.below(max(1, self._queues())))
            self._client.ticked(event.now_ms)
        return self._outbox.take()

    def _ask(self, index: int) -> None:
        history, queue = self._history, ClientQueue(self._broker, index)
        if self._is_waiting.get(index):
            return
        if self._rng.happens(100):
            self._client.start(position(TOPIC, queue, STRANGERS), partial(self._told_of_nobody, index))
            return
        self._is_waiting[index] = True
        last, said = history.last(index), history.committed.setdefault(index, [])
        if history.is_committing and self._rng.happens(500) and last >= max(said, default=0):
            said.append(last + 1)
            steps = commit(TOPIC, queue, GROUP, last + 1)
            steps = _renewed_first(steps) if self.knows_the_newest else steps
            self._client.start(steps, partial(self._committed, index))
        else:
            self._client.start(position(TOPIC, queue, GROUP), partial(self._told, index))

    def _committed(self, index: int, came: int | Failed, _now_ms: int) -> None:
        self._is_waiting[index] = False
        if not isinstance(came, Failed):
            self._history.kept[index] = came

    def _told(self, index: int, came: int | Failed | None, _now_ms: int) -> None:
        self._is_waiting[index] = False
        if not isinstance(came, Failed) and not self._history.is_committing:
            self._history.goes_on[index] = came
        is_said = came is None or came in self._history.committed[index]
        if not isinstance(came, Failed) and not is_said and not self.may_begin(index, came or 0):
            self._history.faults.append(f"the group reads queue {index} on from {came}, which it never said")

    def _told_of_nobody(self, index: int, came: int | Failed | None, _now_ms: int) -> None:
        if isinstance(came, int):
            self._history.faults.append(f"a group that never read queue {index} goes on at {came}")


def _renewed_first(steps: Steps[int]) -> Steps[int]:
    route = yield from looked_up(TOPIC)
    yield LookUp(TOPIC, wrong=route)
    return (yield from steps)


class CallingNode:
    """Asks something now and then, within these times of the last question."""

    EVERY_MS = (50, 400)

    def __init__(self, rng: Rng, version: int = 0) -> None:
        self._rng = rng
        self._outbox = Outbox()
        self._calls = Calls(self._outbox, version=version)
        self._due_ms = 0

    @property
    def listeners(self) -> Mapping[str, str]:
        """None."""
        return {}

    def deadline_ms(self) -> int | None:
        """When something is to be done."""
        due = self._calls.deadline_ms()
        return self._due_ms if due is None else min(self._due_ms, due)

    def receive(self, event: Event) -> Sequence[Effect]:
        """Take one event."""
        deliver(self._calls, event)
        self._calls.ticked(event.now_ms)
        if event.now_ms >= self._due_ms:
            self._due_ms = event.now_ms + self._rng.between(*self.EVERY_MS)
            self._ask(event.now_ms)
        return self._outbox.take()

    def _ask(self, now_ms: int) -> None:
        raise NotImplementedError


class OldProducerNode(CallingNode):
    """A producer of release 4.9: it names a physical queue, of any broker, and no broker."""

    def __init__(self, clients: Clients, rng: Rng) -> None:
        super().__init__(rng, version=OLD_VERSION)
        self._clients = clients

    def _ask(self, now_ms: int) -> None:
        if self._clients.is_sending:
            self._send(now_ms)

    def _send(self, now_ms: int) -> None:
        number = self._clients.next_number()
        header = SendMessageV2Request(
            producer_group="old senders",
            topic=TOPIC,
            default_topic=TEMPLATE_TOPIC,
            default_topic_queue_nums=CLIENT_TOPIC_QUEUES,
            queue_id=self._rng.below(OLD_QUEUES),
            sys_flag=0,
            born_timestamp=now_ms,
            flag=0,
        )

        def told(outcome: Outcome, _now_ms: int) -> None:
            if not isinstance(outcome, Failure) and outcome.header.code == ResponseCode.SUCCESS:
                self._clients.history.of_before[number] = header.queue_id or 0

        self._calls.ask(
            address(self._rng.one_of(BROKERS)),
            RequestCode.SEND_MESSAGE_V2,
            told,
            now_ms=now_ms,
            timeout_ms=TIMEOUT_MS,
            ext_fields=header.to_ext_fields(),
            body=b"%d." % number,
        )


class Clients:
    """All clients of a world; they start when there is a topic."""

    def __init__(self, world: World, rng: Rng, queues: Callable[[], int], bytes_max: int) -> None:
        self.history = QueueHistory()
        self._bytes_max = bytes_max
        self.is_sending = True
        self.audited: list[tuple[int, int]] = []
        """Queue and offset of all that was read in the end."""
        self._world = world
        self._rng = rng
        self._queues = queues
        self.running: Sequence[str] = ("producer", "consumer", "group", "old producer")
        for name, make in self._makers().items():
            world.add(name, HOSTS[name], partial(_members, name, make))

    def _makers(self) -> dict[str, Callable[[], Any]]:
        rng = self._rng
        return {
            "producer": self._producer,
            "consumer": self._consumer,
            "auditor": self._auditor,
            "old producer": lambda: OldProducerNode(self, rng.fork()),
            "group": lambda: GroupNode(self.history, rng.fork(), self._queues),
        }

    def start(self) -> None:
        """Start all."""
        for name in self.running:
            self._world.start(name)
        self._world.after(1_000_000, self._look_after)

    def _look_after(self) -> None:
        """A consumer that a fault ended, or that has done enough, begins again."""
        process = self._world.processes["consumer"]
        node = process.nodes[0]
        assert isinstance(node, ConsumerNode)
        if node.is_done or self._rng.happens(100):
            self._world.kill("consumer")
            self._world.start("consumer")
        self._world.after(1_000_000, self._look_after)

    def next_number(self) -> int:
        """That of the next message, whoever sends it."""
        self.history.sent += 1
        return self.history.sent - 1

    def _messages(self, numbers: list[int]) -> Iterator[MessageToSend]:
        while self.is_sending:
            number = self.next_number()
            numbers.append(number)
            yield MessageToSend(TOPIC, b"%d" % number + b"." * self._rng.below(self._bytes_max))

    def _producer(self) -> ProducerNode:
        numbers: list[int] = []

        def heard(place: int, came: Stored | Failed, _now_ms: int) -> None:
            if isinstance(came, Stored):
                self.history.stored(numbers[place], came)

        pause_ms = self._rng.between(20, 60)
        messages = self._messages(numbers)
        return ProducerNode(NAME_SERVERS, messages, heard, group="senders", at_once=4, pause_ms=pause_ms)

    def audit(self) -> None:
        """Read everything from the beginning, until nothing more comes."""
        self.audited.clear()
        self._world.start("auditor")

    @property
    def is_audited(self) -> bool:
        """Whether that is done; it begins again where it failed."""
        (node,) = self._world.processes["auditor"].nodes
        assert isinstance(node, ConsumerNode)
        if node.is_done and node.failure is not None:
            self._world.kill("auditor")
            self.audit()
            return False
        return node.is_done

    def _auditor(self) -> ConsumerNode:
        return self._reader(Reading(TOPIC, idle_ms=AUDIT_MS, hold_ms=500), self.audited)

    def _consumer(self) -> ConsumerNode:
        begin = self._rng.one_of((Begin.EARLIEST, Begin.LATEST))
        return self._reader(Reading(TOPIC, begin, hold_ms=500), [])

    def _reader(self, reading: Reading, listed: list[tuple[int, int]]) -> ConsumerNode:
        last: dict[int, int] = {}

        def heard(message: ReadMessage, _now_ms: int) -> None:
            listed.append((message.queue.number, message.offset))
            index = message.queue.number
            if message.offset <= last.get(index, UNDECIDED):
                self.history.faults.append(f"queue {index}: {message.offset} was read after {last[index]}")
            last[index] = message.offset
            self.history.heard(message)

        return ConsumerNode(NAME_SERVERS, reading, heard, lambda *_: None, name="simulation")


def _members(name: str, make: Callable[[], Any], _storage: object) -> Sequence[Member]:
    return [Member(name, make())]
