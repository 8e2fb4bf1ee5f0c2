"""Commands as Apache Kafka has them: who leads, who is where, what is to be deleted, in three requests.

Source: apache/kafka 2.8.2, ControllerBrokerRequestBatch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from replispec.controller.kafka.core.cluster import Cluster
from replispec.controller.kafka.core.commands import CommandRound, ToldOfAnswers
from replispec.controller.kafka.core.partition import LedPartition, PartitionKey
from replispec.controller.kafka.links import BrokerCommand
from replispec.runtime.kafka.stores.forms import LiveBroker
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


class ApacheCommands:
    """See `CommandForm`. `controller` is its id and its epoch."""

    def __init__(self, cluster: Cluster, versions: CommandVersions, controller: tuple[int, int]) -> None:
        self._cluster = cluster
        self._versions = versions
        self._id, self._epoch = controller

    def requests(
        self,
        broker: LiveBroker,
        one: CommandRound,
        told: ToldOfAnswers,
        *,
        is_first: bool,
        who_lives_changed: bool,
    ) -> Sequence[BrokerCommand]:
        """See `CommandForm`."""
        commands = []
        if who_lives_changed:
            commands.append(self._update_metadata(broker, one.shown if is_first else {}, {}))
        if one.led:
            commands.append(self._leader_and_isr(broker, one.led.values(), told))
        if one.shown or one.gone:
            commands.append(self._update_metadata(broker, one.shown, one.gone))
        if one.stopped:
            commands.append(self._stop_replica(broker, one.stopped.values(), told))
        return commands

    def errors(self, answer: Message) -> tuple[int, dict[PartitionKey, int]]:
        """See `CommandForm`."""
        errors = {
            (each.topic_name, each.partition_index): each.error for each in getattr(answer, "errors", ())
        }
        return getattr(answer, "error", 0), errors

    def _leader_and_isr(
        self, broker: LiveBroker, partitions: Iterable[LedPartition], told: ToldOfAnswers
    ) -> BrokerCommand:
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
        return BrokerCommand(message, version, lambda answer: told.led(broker.broker_id, answer))

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

    def _stop_replica(
        self, broker: LiveBroker, partitions: Iterable[LedPartition], told: ToldOfAnswers
    ) -> BrokerCommand:
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
        return BrokerCommand(message, version, lambda answer: told.stopped(broker.broker_id, answer))


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
