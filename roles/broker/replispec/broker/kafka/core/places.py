"""Where brokers and partitions are, as the controller told it: what clients are told of it in turn.

Source: apache/kafka 2.8.2, MetadataCache.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from replispec.runtime.primitives.immutable import immutable
from replispec.wire.kafka.apache import (
    ApacheUpdateMetadataBroker,
    ApacheUpdateMetadataPartition,
    ApacheUpdateMetadataRequest,
)
from replispec.wire.kafka.constants import LEADER_DELETED, NO_LEADER, PLAIN_PROTOCOL_NUMBER


@immutable
class ToldPlace:
    """Where a broker that lives listens."""

    host: str
    port: int
    rack: str | None


class ToldPlaces:
    """All that the newest controller told. `controller_id` is its broker id, NO_LEADER before any."""

    def __init__(self) -> None:
        self.controller_id = NO_LEADER
        self.brokers: Mapping[int, ToldPlace] = {}
        self.topics: dict[str, dict[int, ApacheUpdateMetadataPartition]] = {}

    def told(self, request: ApacheUpdateMetadataRequest) -> None:
        """Go by a command."""
        self.controller_id = request.controller_id
        self.brokers = dict(_places(request.live_brokers))
        for topic, each in _partitions(request):
            if each.leader == LEADER_DELETED:
                self._forget(topic, each.partition_index)
            else:
                self.topics.setdefault(topic, {})[each.partition_index] = each

    def knows(self, topic: str, partition: int) -> bool:
        """Whether there is such a partition."""
        return partition in self.topics.get(topic, ())

    def _forget(self, topic: str, partition: int) -> None:
        known = self.topics.get(topic, {})
        known.pop(partition, None)
        if not known:
            self.topics.pop(topic, None)


def _places(brokers: Sequence[ApacheUpdateMetadataBroker]) -> Iterable[tuple[int, ToldPlace]]:
    for broker in brokers:
        for each in broker.endpoints:
            if each.security_protocol == PLAIN_PROTOCOL_NUMBER:
                yield broker.broker_id, ToldPlace(each.host, each.port, broker.rack)
                break


def _partitions(
    request: ApacheUpdateMetadataRequest,
) -> Iterable[tuple[str, ApacheUpdateMetadataPartition]]:
    for each in request.partitions or ():
        yield each.topic_name or "", each
    for topic in request.topics or ():
        for each in topic.partitions:
            yield topic.topic_name, each
