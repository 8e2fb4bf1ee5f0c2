"""An administrator who works by the store alone, as Kafka's tools do: one wish after the other, each asked
for until it is known that the store has it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from replispec.runtime.world import Closed, Connected, Effect, Event, Outbox, Received, Started, Ticked
from replispec.runtime.zookeeper.client import MetastoreClient, SessionStanding
from replispec.wire.kafka import paths
from replispec.wire.kafka.nodes import (
    ApacheReassignedPartition,
    ApacheReassignmentNode,
    ApacheTopicNode,
    BrokerIds,
)
from replispec.wire.zookeeper.codes import ErrorCode
from replispec.wire.zookeeper.operations import GetDataRequest
from tests.sim_kafka.history import PartitionName

PAUSE_MS: Final = 150
FIRST: Final = ("/brokers", "/brokers/ids", "/brokers/topics", "/admin", "/admin/delete_topics", "/config")
PARENTS: Final = (*FIRST, "/config/topics", "/isr_change_notification")
Answered = Callable[[Any], None]


@dataclass(frozen=True, slots=True)
class TopicWish:
    """`kind`: create, delete, grow by one partition, move one, or move it elsewhere than was asked last."""

    kind: str
    topic: str
    replicas: Sequence[Sequence[int]] = ()
    partition: int = 0

    @property
    def key(self) -> PartitionName:
        """The partition that is moved."""
        return (self.topic, self.partition)


class WishingAdministrator:
    """`moved`: where each partition may have been asked to be last; `asked` counts the
    wishes that the store has."""

    listeners: Mapping[str, str] = {}

    def __init__(self, servers: Sequence[str], session_ms: int) -> None:
        self.moved: dict[PartitionName, list[list[int]]] = {}
        self.asked: dict[str, int] = {}
        self.wishes: deque[TopicWish] = deque()
        self._outbox = Outbox()
        self._client = MetastoreClient(self._outbox, servers, session_ms, stands=self._stands)
        self._begins_again = False
        self._is_asking = False
        self._has_parents = False
        self._act_at_ms = 0
        self._now_ms = 0

    def receive(self, event: Event) -> Sequence[Effect]:
        """Take one event and return its effects, in order."""
        self._now_ms = event.now_ms
        match event:
            case Started():
                self._client.begin(event.now_ms)
            case Connected():
                self._client.connected(event)
            case Received():
                self._client.received(event)
            case Closed():
                self._client.closed(event)
            case Ticked():
                self._client.ticked(event.now_ms)
                self._act()
            case _:
                pass
        if self._begins_again:
            self._begins_again = False
            self._client.begin(event.now_ms)
        return self._outbox.take()

    def deadline_ms(self) -> int | None:
        """When time matters."""
        deadline_ms = self._client.deadline_ms()
        return self._act_at_ms if deadline_ms is None else min(self._act_at_ms, deadline_ms)

    def _stands(self, standing: SessionStanding) -> None:
        if standing is SessionStanding.LOST:
            self._begins_again = True

    def _act(self) -> None:
        if self._now_ms < self._act_at_ms:
            return
        self._act_at_ms = self._now_ms + PAUSE_MS
        if self._is_asking or not self._client.session.is_connected:
            return
        if not self._has_parents:
            for path in PARENTS:
                self._client.create(path, None, self._parent_made)
        elif self.wishes:
            self._is_asking = True
            self._begin(self.wishes[0])

    def _parent_made(self, answer: Any) -> None:
        self._has_parents = answer.error in (ErrorCode.OK, ErrorCode.NODE_EXISTS)

    # One wish

    def _begin(self, wish: TopicWish) -> None:
        match wish.kind:
            case "create":
                # Not before what had this name is gone, as its wish is.
                self._read(paths.APACHE_TOPIC_DELETED.at(topic=wish.topic), partial(self._create, wish))
            case "delete":
                path = paths.APACHE_TOPIC_DELETED.at(topic=wish.topic)
                self._client.create(path, None, partial(self._ended, wish))
            case "grow":
                self._read(paths.APACHE_TOPIC.at(topic=wish.topic), partial(self._grow, wish))
            case "move":
                self._client.create(paths.APACHE_REASSIGNMENTS.at(), _moves(wish), partial(self._moved, wish))
            case "move elsewhere":
                self._read(paths.APACHE_REASSIGNMENTS.at(), partial(self._move_elsewhere, wish))

    def _read(self, path: str, then: Answered) -> None:
        self._client.read(GetDataRequest(path, False), then)

    def _create(self, wish: TopicWish, answer: Any) -> None:
        if answer.error != ErrorCode.NO_NODE:
            self._is_asking = False
            return
        self._client.create(paths.APACHE_TOPIC_CONFIG.at(topic=wish.topic), b"{}", lambda _: None)
        partitions = {str(number): BrokerIds(list(each)) for number, each in enumerate(wish.replicas)}
        node = ApacheTopicNode(partitions=partitions, version=1).encode()
        path = paths.APACHE_TOPIC.at(topic=wish.topic)
        self._client.create(path, node, partial(self._ended, wish))

    def _grow(self, wish: TopicWish, answer: Any) -> None:
        if answer.error == ErrorCode.NO_NODE:
            self._over(wish)
            return
        if answer.error != ErrorCode.OK:
            self._is_asking = False
            return
        node = ApacheTopicNode.decode(answer.message.data)
        assert node.partitions is not None
        if node.adding_replicas or node.removing_replicas:
            self._is_asking = False
        elif str(wish.partition) in node.partitions:
            self._over(wish)
        else:
            node.partitions[str(wish.partition)] = BrokerIds(list(wish.replicas[0]))
            path, version = paths.APACHE_TOPIC.at(topic=wish.topic), answer.message.stat.version
            self._client.set_data(path, node.encode(), version, partial(self._ended, wish))

    def _moved(self, wish: TopicWish, answer: Any) -> None:
        # Of another move, or of this one, whose answer was lost: then it is asked for once more.
        target = list(wish.replicas[0])
        if answer.error == ErrorCode.OK:
            self.moved[wish.key] = [target]
            self._over(wish)
        else:
            if answer.error != ErrorCode.NODE_EXISTS:
                self.moved.setdefault(wish.key, []).append(target)
            self._is_asking = False

    def _move_elsewhere(self, wish: TopicWish, answer: Any) -> None:
        if answer.error == ErrorCode.NO_NODE:
            self._over(wish)
            return
        if answer.error != ErrorCode.OK:
            self._is_asking = False
            return
        asked = ApacheReassignmentNode.decode(answer.message.data).partitions or []
        if [(each.topic, each.partition) for each in asked] != [wish.key]:
            self._over(wish)
            return
        path, version = paths.APACHE_REASSIGNMENTS.at(), answer.message.stat.version
        self._client.set_data(path, _moves(wish), version, partial(self._moved, wish))

    def _ended(self, wish: TopicWish, answer: Any) -> None:
        if answer.error in (ErrorCode.OK, ErrorCode.NODE_EXISTS):
            self._over(wish)
        else:
            self._is_asking = False

    def _over(self, wish: TopicWish) -> None:
        self.asked[wish.kind] = self.asked.get(wish.kind, 0) + 1
        self.wishes.popleft()
        self._is_asking = False


def _moves(wish: TopicWish) -> bytes:
    each = ApacheReassignedPartition(wish.topic, wish.partition, list(wish.replicas[0]))
    return ApacheReassignmentNode(1, [each]).encode()
