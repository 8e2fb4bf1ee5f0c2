"""Clients of logical queues of RIP-21 in a simulated world: those that know them, and those that do not."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.rocketmq.queues.forms import queues_heard
from replispec.runtime.rocketmq.remoting import Outcome
from replispec.runtime.rocketmq.remoting.calls import Failure
from replispec.runtime.sim import Rng, World
from replispec.wire.rocketmq.broker import (
    GetRouteInfoRequest,
    PullMessageRequest,
    SendMessageV2Request,
    TopicRouteData,
)
from replispec.wire.rocketmq.codes import PullFlag, RequestCode, ResponseCode, RouteFlag
from replispec.wire.rocketmq.constants import (
    ALL_TAGS,
    CLIENT_TOPIC_QUEUES,
    LOGICAL_QUEUE_BROKER,
    SELF_TEST_TOPIC,
    TAG_EXPRESSION,
    TEMPLATE_TOPIC,
)
from tests.sim.client import number_of, records
from tests.sim.queue_clients import (
    OLD_QUEUES,
    OLD_VERSION,
    TIMEOUT_MS,
    CallingNode,
    Clients,
    GroupNode,
)
from tests.sim.queue_world import BROKERS, NAME_SERVERS, TOPIC, Place, address

PULLED_AT_ONCE: Final = 32
FILLING_BYTES: Final = 3_800


class OldConsumerNode(CallingNode):
    """A consumer of release 4.9: it reads message queues, of any broker, and knows of nothing else."""

    EVERY_MS = (100, 500)

    def __init__(self, read: dict[Place, int], faults: list[str], rng: Rng) -> None:
        super().__init__(rng, version=OLD_VERSION)
        self._read = read
        self._faults = faults
        self._next: dict[tuple[str, int], int] = {}

    def _ask(self, now_ms: int) -> None:
        broker, queue_id = self._rng.one_of(BROKERS), self._rng.below(OLD_QUEUES)
        name = broker[:-1]
        offset = self._next.get((name, queue_id), 0)
        header = PullMessageRequest(
            consumer_group="old readers",
            topic=TOPIC,
            queue_id=queue_id,
            queue_offset=offset,
            max_msg_nums=PULLED_AT_ONCE,
            sys_flag=int(PullFlag.SUBSCRIPTION),
            commit_offset=0,
            suspend_timeout_millis=0,
            subscription=ALL_TAGS,
            sub_version=0,
            expression_type=TAG_EXPRESSION,
        )
        self._calls.ask(
            address(broker),
            RequestCode.PULL_MESSAGE,
            partial(self._pulled, name, queue_id, offset),
            now_ms=now_ms,
            timeout_ms=TIMEOUT_MS,
            ext_fields=header.to_ext_fields(),
        )

    def _pulled(self, name: str, queue_id: int, offset: int, outcome: Outcome, _now_ms: int) -> None:
        if isinstance(outcome, Failure) or outcome.header.code != ResponseCode.SUCCESS:
            said = {} if isinstance(outcome, Failure) else outcome.header.ext_fields or {}
            if not isinstance(outcome, Failure) and outcome.header.code == ResponseCode.PULL_OFFSET_MOVED:
                self._next[name, queue_id] = max(offset, int(said.get("nextBeginOffset") or 0))
            return
        for record in records(outcome.body):
            place, number = (name, queue_id, record.queue_offset), number_of(record)
            if record.queue_id != queue_id:
                self._faults.append(f"queue {queue_id} of {name} was read, and {number} is of another one")
            if self._read.setdefault(place, number) != number:
                self._faults.append(f"{place} was {self._read[place]}, is {number}")
            self._next[name, queue_id] = max(self._next.get((name, queue_id), 0), record.queue_offset + 1)


class FillerNode(CallingNode):
    """Fills the log of a broker with messages of another topic, so that files of it are deleted."""

    EVERY_MS = (30, 60)

    def __init__(self, rng: Rng, broker: Callable[[], str]) -> None:
        super().__init__(rng)
        self._broker = broker

    def _ask(self, now_ms: int) -> None:
        broker = self._broker()
        if not broker:
            return
        header = SendMessageV2Request(
            producer_group="fillers",
            topic=SELF_TEST_TOPIC,
            default_topic=TEMPLATE_TOPIC,
            default_topic_queue_nums=CLIENT_TOPIC_QUEUES,
            queue_id=0,
            sys_flag=0,
            born_timestamp=now_ms,
            flag=0,
        )
        self._calls.ask(
            address(broker),
            RequestCode.SEND_MESSAGE_V2,
            lambda _outcome, _now_ms: None,
            now_ms=now_ms,
            timeout_ms=TIMEOUT_MS,
            ext_fields=header.to_ext_fields(),
            body=bytes(FILLING_BYTES),
        )


class RouterNode(CallingNode):
    """Asks for the route all the time, as one that knows logical queues: once they were told nobody is told
    the plain one, nor fewer of them than there are, nor what cannot be."""

    def __init__(self, told: Callable[[], None], faults: list[str], rng: Rng) -> None:
        super().__init__(rng)
        self._tells = told
        self._was_told = False
        self._most = 0
        self._faults = faults

    def _ask(self, now_ms: int) -> None:
        header = GetRouteInfoRequest(topic=TOPIC, sys_flag=RouteFlag.LOGICAL_QUEUE)
        self._calls.ask(
            NAME_SERVERS[0],
            RequestCode.GET_ROUTEINFO_BY_TOPIC,
            self._told,
            now_ms=now_ms,
            timeout_ms=TIMEOUT_MS,
            ext_fields=header.to_ext_fields(),
        )

    def _told(self, outcome: Outcome, _now_ms: int) -> None:
        if isinstance(outcome, Failure) or outcome.header.code != ResponseCode.SUCCESS:
            return
        said = TopicRouteData.decode(outcome.body).logical_queues_info
        if not said:
            if self._was_told:
                self._faults.append("the plain route is told after logical queues")
            return
        self._was_told = True
        self._tells()
        try:
            queues = queues_heard(said, TOPIC)
        except RemoteProtocolError as error:
            self._faults.append(f"logical queues are told that cannot be: {error}")
            return
        if len(queues) < self._most:
            self._faults.append(f"{len(queues)} logical queues are told, and {self._most} were before")
        self._most = max(self._most, len(queues))


class LogicalClients(Clients):
    """All clients of a world of logical queues."""

    def __init__(
        self,
        world: World,
        rng: Rng,
        queues: Callable[[], int],
        bytes_max: int,
        may_begin: Callable[[int, int], bool],
    ) -> None:
        self._may_begin = may_begin
        self.group_knows_the_newest = False
        self.read_as_before: dict[Place, int] = {}
        super().__init__(world, rng, queues, bytes_max)
        self.running = (*self.running, "old consumer")
        self.is_told = False
        """Whether logical queues were told since somebody said that they were not."""
        self._is_started = False

    def start(self) -> None:
        """The one that asks for routes first, the others when it is told logical queues: whoever asked before
        would take the topic for a plain one."""
        self._world.start("router")

    def told(self) -> None:
        """A name server tells logical queues."""
        self.is_told = True
        if not self._is_started:
            self._is_started = True
            self._world.after(0, super().start)

    def _makers(self) -> dict[str, Callable[[], Any]]:
        rng, history = self._rng, self.history
        return {
            **super()._makers(),
            "group": self._group,
            "old consumer": lambda: OldConsumerNode(self.read_as_before, history.faults, rng.fork()),
            "router": lambda: RouterNode(self.told, history.faults, rng.fork()),
        }

    def _group(self) -> GroupNode:
        node = GroupNode(self.history, self._rng.fork(), self._queues, LOGICAL_QUEUE_BROKER)
        node.may_begin = self._may_begin
        node.knows_the_newest = self.group_knows_the_newest
        return node
