"""Commands as the design has them: who leads, with INIT when a broker hears of it first, and what to delete.

Source: Kafka replication, detailed design V3, "LeaderAndISRRequest", "StopReplicaRequest",
on_controller_failover.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from replispec.controller.kafka.core.cluster import Cluster
from replispec.controller.kafka.core.commands import CommandRound, ToldOfAnswers
from replispec.controller.kafka.core.partition import LedPartition, PartitionKey
from replispec.controller.kafka.links import BrokerCommand
from replispec.runtime.kafka.stores.forms import LiveBroker
from replispec.runtime.primitives.exchanges import Message
from replispec.wire.kafka.constants import DESIGN_VERSION_2
from replispec.wire.kafka.design import (
    DesignLeaderAndIsr,
    DesignLeaderAndIsrRequest,
    DesignPartition,
    DesignStopReplicaRequest,
)


class DesignCommands:
    """See `CommandForm`. `controller` is its id and its epoch, `ack_timeout_ms` how long it waits."""

    def __init__(
        self, cluster: Cluster, version: int, controller: tuple[int, int], ack_timeout_ms: int
    ) -> None:
        self._cluster = cluster
        self._version = version
        self._id, epoch = controller
        self._epoch = epoch if version >= DESIGN_VERSION_2 else None
        self._ack_timeout_ms = ack_timeout_ms

    def requests(
        self,
        broker: LiveBroker,
        one: CommandRound,
        told: ToldOfAnswers,
        *,
        is_first: bool,
        who_lives_changed: bool,  # noqa: ARG002
    ) -> Sequence[BrokerCommand]:
        """See `CommandForm`: who lives and who is where stands in the store."""
        commands = []
        if one.led or is_first:
            commands.append(self._leader_and_isr(broker, one.led.values(), told, is_first=is_first))
        if one.stopped:
            commands.append(self._stop_replica(broker, one.stopped.values(), told))
        return commands

    def errors(self, answer: Message) -> tuple[int, dict[PartitionKey, int]]:
        """See `CommandForm`: nothing is said of an answer as a whole."""
        return 0, {(each.topic, each.partition_id): each.error for each in getattr(answer, "errors", ())}

    def _leader_and_isr(
        self,
        broker: LiveBroker,
        partitions: Iterable[LedPartition],
        told: ToldOfAnswers,
        *,
        is_first: bool,
    ) -> BrokerCommand:
        """What INIT does not name is deleted: it is said only by who has understood all of the broker's."""
        message = DesignLeaderAndIsrRequest(
            client_id=self._id,
            controller_epoch=self._epoch,
            ack_timeout=self._ack_timeout_ms,
            is_init=is_first and self._cluster.knows_all_of(broker.broker_id),
            partitions=[self._state(each) for each in partitions],
        )
        return BrokerCommand(message, self._version, lambda answer: told.led(broker.broker_id, answer))

    def _state(self, partition: LedPartition) -> DesignLeaderAndIsr:
        record, (topic, number) = partition.record, partition.key
        assert record is not None, "only what is on record is told"
        is_ours = self._version >= DESIGN_VERSION_2
        return DesignLeaderAndIsr(
            topic=topic,
            partition_id=number,
            leader=record.leader,
            leader_epoch=record.leader_epoch,
            isr=list(record.isr),
            zk_version=record.version,
            replicas=list(partition.assigned) if is_ours else None,
            topic_generation=self._cluster.topics[topic].generation if is_ours else None,
        )

    def _stop_replica(
        self, broker: LiveBroker, partitions: Iterable[LedPartition], told: ToldOfAnswers
    ) -> BrokerCommand:
        message = DesignStopReplicaRequest(
            client_id=self._id,
            controller_epoch=self._epoch,
            ack_timeout=self._ack_timeout_ms,
            partitions=[DesignPartition(*each.key) for each in partitions],
        )
        return BrokerCommand(message, self._version, lambda answer: told.stopped(broker.broker_id, answer))
