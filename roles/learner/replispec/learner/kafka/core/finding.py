"""Who leads: asked of the brokers that are configured, one after the other until one answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from replispec.learner.kafka.core.export import PartitionName
from replispec.runtime.kafka.asking import AskedBroker
from replispec.runtime.primitives.exchanges import Message
from replispec.runtime.world import Level, Outbox
from replispec.wire.kafka.clients import ApacheMetadataRequest, ApacheMetadataResponse, ApacheMetadataTopic
from replispec.wire.kafka.constants import METADATA_ASKED

LeaderPlaces = Mapping[PartitionName, str | None]
"""HOST:PORT of the leader of each partition; None for one without."""


class LeaderFinder:
    """`found` is called with all partitions of the topics and the time."""

    def __init__(
        self,
        outbox: Outbox,
        servers: Sequence[str],
        topics: Sequence[str],
        found: Callable[[LeaderPlaces, int], None],
        *,
        timeout_ms: int,
        pause_ms: int,
    ) -> None:
        self._outbox = outbox
        self._topics = topics
        self._found = found
        self._pause_ms = pause_ms
        self._brokers: Final = [
            AskedBroker(outbox, each, "learner", self, timeout_ms=timeout_ms, pause_ms=pause_ms)
            for each in servers
        ]
        self._turn = 0
        self._is_asking = False
        self._due_ms: int | None = None

    @property
    def broker(self) -> AskedBroker:
        """Whom it asks, or asks next."""
        return self._brokers[self._turn]

    def ask_at(self, at_ms: int) -> None:
        """Ask at this time, or earlier."""
        self._due_ms = at_ms if self._due_ms is None else min(self._due_ms, at_ms)

    def ticked(self, now_ms: int) -> None:
        """Ask when it is due."""
        self.broker.ticked(now_ms)
        if self._due_ms is not None and now_ms >= self._due_ms and not self._is_asking:
            self._due_ms, self._is_asking = None, True
            self.broker.dial(now_ms)

    def deadline_ms(self) -> int | None:
        """When `ticked` has something to do."""
        due_ms = None if self._is_asking else self._due_ms
        return min((each for each in (due_ms, self.broker.deadline_ms()) if each is not None), default=None)

    def may_ask(self, now_ms: int) -> None:
        """See `replispec.runtime.kafka.asking.AskingHolder`."""
        topics = [ApacheMetadataTopic(each) for each in self._topics]
        asked = ApacheMetadataRequest(topics, allow_auto_topic_creation=False)
        self.broker.ask(asked, METADATA_ASKED, self._told, now_ms)

    def not_answered(self, now_ms: int) -> None:
        """See `replispec.runtime.kafka.asking.AskingHolder`. The next one is asked."""
        self._done()
        self._turn = (self._turn + 1) % len(self._brokers)
        self.ask_at(now_ms + self._pause_ms)

    def _done(self) -> None:
        self.broker.end()
        self._is_asking = False

    def _told(self, answer: Message, now_ms: int) -> None:
        assert isinstance(answer, ApacheMetadataResponse), "the answer to this question"
        self._done()
        places = {each.node_id: _address(each.host, each.port) for each in answer.brokers}
        found: dict[PartitionName, str | None] = {}
        for topic in answer.topics:
            if topic.name not in self._topics:
                continue
            if topic.error:
                self._outbox.note(Level.WARNING, "topic is not told", topic=topic.name, error=topic.error)
                self.ask_at(now_ms + self._pause_ms)
            for each in topic.partitions:
                found[topic.name, each.partition_index] = places.get(each.leader_id)
        if None in found.values():
            self.ask_at(now_ms + self._pause_ms)
        self._found(found, now_ms)


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
