"""What each broker is still to be told: the newest of every partition, made into requests when it listens.

A round is told in this order: who lives, who leads, who is where, what is to be deleted. A partition that is
to be deleted and then led again takes two rounds. Source: apache/kafka 2.8.2, ControllerBrokerRequestBatch.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from replispec.controller.kafka.core.cluster import Cluster, LiveBroker
from replispec.controller.kafka.core.partition import LedPartition, PartitionKey
from replispec.controller.kafka.links import BrokerCommand
from replispec.runtime.primitives.exchanges import Message
from replispec.runtime.primitives.immutable import immutable
from replispec.wire.kafka import constants
from replispec.wire.kafka.apache import (
    ApacheLeaderAndIsr,
    ApacheLeaderAndIsrRequest,
    ApacheLeaderAndIsrTopic,
    ApacheLiveLeader,
    ApachePartition,
    ApacheStopReplicaRequest,
    ApacheStopReplicaTopic,
    ApacheUpdateMetadataBroker,
    ApacheUpdateMetadataEndpoint,
    ApacheUpdateMetadataPartition,
    ApacheUpdateMetadataRequest,
    ApacheUpdateMetadataTopic,
)

Each = TypeVar("Each")
Stopped = Callable[[int, Message], None]
"""Told the broker and its answer about replicas that it was to delete."""


@immutable
class CommandVersions:
    """In which versions brokers are commanded."""

    leader_and_isr: int
    stop_replica: int
    update_metadata: int


def versions_of(generation: str) -> CommandVersions:
    """Those for an inter.broker.protocol.version."""
    if generation == constants.COMMANDS_0_11:
        return CommandVersions(
            constants.LEADER_AND_ISR_0_11, constants.STOP_REPLICA_0_11, constants.UPDATE_METADATA_0_11
        )
    if generation == constants.COMMANDS_1_0:
        return CommandVersions(
            constants.LEADER_AND_ISR_1_0, constants.STOP_REPLICA_1_0, constants.UPDATE_METADATA_1_0
        )
    return CommandVersions(
        constants.LEADER_AND_ISR_2_2, constants.STOP_REPLICA_2_2, constants.UPDATE_METADATA_2_2
    )


@dataclass(slots=True, eq=False)
class _Round:
    led: dict[PartitionKey, LedPartition] = field(default_factory=dict)
    shown: dict[PartitionKey, LedPartition] = field(default_factory=dict)
    gone: dict[PartitionKey, LedPartition] = field(default_factory=dict)
    stopped: dict[PartitionKey, LedPartition] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class _Waiting:
    """What one broker is to be told. `told`: what it knows of who lives; see `Cluster.told`."""

    rounds: deque[_Round] = field(default_factory=lambda: deque([_Round()]))
    told: int = -1


class BrokerCommands:
    """For all brokers. `stopped` is told what they answer to deletions, `led` what to who leads."""

    def __init__(
        self,
        cluster: Cluster,
        versions: CommandVersions,
        controller: tuple[int, int],
        *,
        stopped: Stopped,
        led: Stopped,
    ) -> None:
        self._cluster = cluster
        self._versions = versions
        self._id, self._epoch = controller
        self._stopped = stopped
        self._led = led
        self._waiting: dict[int, _Waiting] = {}

    def begin(self, broker_id: int) -> None:
        """A broker has registered: it is told everything."""
        waiting = self._waiting[broker_id] = _Waiting()
        first = waiting.rounds[0]
        for partition in self._cluster.partitions():
            if partition.record is not None:
                first.shown[partition.key] = partition
                if broker_id in partition.assigned:
                    first.led[partition.key] = partition

    def end(self, broker_id: int) -> None:
        """A broker is gone."""
        self._waiting.pop(broker_id, None)

    def lead(self, partition: LedPartition) -> None:
        """Those who have a replica of a partition are to be told its record, and everybody where it is."""
        for broker_id in partition.assigned:
            waiting = self._waiting.get(broker_id)
            if waiting is not None:
                if partition.key in waiting.rounds[-1].stopped:
                    waiting.rounds.append(_Round())
                waiting.rounds[-1].led[partition.key] = partition
        self.show(partition)

    def show(self, partition: LedPartition) -> None:
        """Everybody is to be told where a partition is."""
        for waiting in self._waiting.values():
            waiting.rounds[-1].gone.pop(partition.key, None)
            waiting.rounds[-1].shown[partition.key] = partition

    def announce_deletion(self, partitions: Iterable[LedPartition]) -> None:
        """Everybody is to be told that these are no more."""
        for partition in partitions:
            for waiting in self._waiting.values():
                waiting.rounds[-1].shown.pop(partition.key, None)
                waiting.rounds[-1].gone[partition.key] = partition

    def stop(self, broker_id: int, partitions: Iterable[LedPartition]) -> None:
        """A broker is to delete its replicas of these."""
        waiting = self._waiting.get(broker_id)
        if waiting is not None:
            waiting.rounds[-1].stopped |= {each.key: each for each in partitions}

    def waiting(self) -> Sequence[int]:
        """The brokers that are to be told something."""
        return [broker_id for broker_id, each in self._waiting.items() if self._has_news(each)]

    def take(self, broker_id: int) -> Sequence[BrokerCommand]:
        """The requests of the next round for a broker, in order; nothing more is remembered of them."""
        waiting, broker = self._waiting[broker_id], self._cluster.brokers[broker_id]
        one = waiting.rounds.popleft()
        if not waiting.rounds:
            waiting.rounds.append(_Round())
        commands = []
        if waiting.told != self._cluster.told:
            first = one.shown if waiting.told < 0 else {}
            waiting.told = self._cluster.told
            commands.append(self._update_metadata(broker, first, {}))
        if one.led:
            commands.append(self._leader_and_isr(broker, one.led.values()))
        if one.shown or one.gone:
            commands.append(self._update_metadata(broker, one.shown, one.gone))
        if one.stopped:
            commands.append(self._stop_replica(broker, one.stopped.values()))
        return commands

    def _has_news(self, waiting: _Waiting) -> bool:
        one = waiting.rounds[0]
        return bool(one.led or one.shown or one.gone or one.stopped) or waiting.told != self._cluster.told

    # Requests

    def _leader_and_isr(self, broker: LiveBroker, partitions: Iterable[LedPartition]) -> BrokerCommand:
        version = self._versions.leader_and_isr
        is_nested = version >= constants.LEADER_AND_ISR_2_2
        states = {each.key: self._state(broker.broker_id, each, version) for each in partitions}
        leaders = sorted({each.leader for each in states.values()} & self._cluster.live)
        live_leaders = []
        for leader in leaders:
            listener = self._cluster.brokers[leader].listeners[0]
            live_leaders.append(ApacheLiveLeader(leader, listener.host, listener.port))
        message = ApacheLeaderAndIsrRequest(
            controller_id=self._id,
            controller_epoch=self._epoch,
            broker_epoch=broker.epoch if is_nested else None,
            partitions=None if is_nested else list(states.values()),
            topics=[ApacheLeaderAndIsrTopic(*each) for each in _by_topic(states)] if is_nested else None,
            live_leaders=live_leaders,
        )
        return BrokerCommand(message, version, lambda answer: self._led(broker.broker_id, answer))

    def _state(self, broker_id: int, partition: LedPartition, version: int) -> ApacheLeaderAndIsr:
        record, (topic, number) = partition.record, partition.key
        assert record is not None, "only what is on record is told"
        is_new = broker_id in partition.fresh
        partition.fresh.discard(broker_id)
        return ApacheLeaderAndIsr(
            topic_name=None if version >= constants.LEADER_AND_ISR_2_2 else topic,
            partition_index=number,
            controller_epoch=record.decided_by,
            leader=record.leader,
            leader_epoch=record.leader_epoch,
            isr=list(record.isr),
            zk_version=record.version,
            replicas=list(partition.assigned),
            is_new=is_new if version > constants.LEADER_AND_ISR_0_11 else None,
        )

    def _update_metadata(
        self,
        broker: LiveBroker,
        shown: Mapping[PartitionKey, LedPartition],
        gone: Mapping[PartitionKey, LedPartition],
    ) -> BrokerCommand:
        version = self._versions.update_metadata
        is_nested = version >= constants.UPDATE_METADATA_2_2
        states = {key: self._place(each, version, is_gone=False) for key, each in shown.items()}
        states |= {key: self._place(each, version, is_gone=True) for key, each in gone.items()}
        message = ApacheUpdateMetadataRequest(
            controller_id=self._id,
            controller_epoch=self._epoch,
            broker_epoch=broker.epoch if is_nested else None,
            partitions=None if is_nested else list(states.values()),
            topics=[ApacheUpdateMetadataTopic(*each) for each in _by_topic(states)] if is_nested else None,
            live_brokers=[_shown(each) for _, each in sorted(self._cluster.brokers.items())],
        )
        return BrokerCommand(message, version, lambda _: None)

    def _place(
        self, partition: LedPartition, version: int, *, is_gone: bool
    ) -> ApacheUpdateMetadataPartition:
        record, (topic, number) = partition.record, partition.key
        leader = constants.NO_LEADER if record is None else record.leader
        live, replicas = self._cluster.live, list(partition.assigned)
        is_first_form = version <= constants.UPDATE_METADATA_0_11
        return ApacheUpdateMetadataPartition(
            topic_name=None if version >= constants.UPDATE_METADATA_2_2 else topic,
            partition_index=number,
            controller_epoch=self._epoch if record is None else record.decided_by,
            leader=constants.LEADER_DELETED if is_gone else leader,
            leader_epoch=0 if record is None else record.leader_epoch,
            isr=[] if record is None else list(record.isr),
            zk_version=0 if record is None else record.version,
            replicas=replicas,
            offline_replicas=None if is_first_form else [each for each in replicas if each not in live],
        )

    def _stop_replica(self, broker: LiveBroker, partitions: Iterable[LedPartition]) -> BrokerCommand:
        version = self._versions.stop_replica
        is_nested = version >= constants.STOP_REPLICA_2_2
        keys = {each.key: each.key[1] for each in partitions}
        message = ApacheStopReplicaRequest(
            controller_id=self._id,
            controller_epoch=self._epoch,
            broker_epoch=broker.epoch if is_nested else None,
            delete_partitions=True,
            partitions=None if is_nested else [ApachePartition(*key) for key in keys],
            topics=[ApacheStopReplicaTopic(*each) for each in _by_topic(keys)] if is_nested else None,
        )
        return BrokerCommand(message, version, lambda answer: self._stopped(broker.broker_id, answer))


def _shown(broker: LiveBroker) -> ApacheUpdateMetadataBroker:
    endpoints = [
        ApacheUpdateMetadataEndpoint(each.port, each.host, each.name, each.protocol)
        for each in broker.listeners
    ]
    return ApacheUpdateMetadataBroker(broker.broker_id, endpoints, broker.rack)


def _by_topic(states: Mapping[PartitionKey, Each]) -> Iterable[tuple[str, list[Each]]]:
    """What is said of partitions, by topic."""
    topics: dict[str, list[Each]] = {}
    for (topic, _), each in states.items():
        topics.setdefault(topic, []).append(each)
    return topics.items()
