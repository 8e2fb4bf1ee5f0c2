"""The design's requests at a broker: each is told to whoever serves Kafka's, and its answer said in its form.

Source: Kafka replication, detailed design V3, on_LeaderAndISRCommand, on_StopReplicaCommand,
on_ReplicaFetchRequest, on_broker_startup.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final

from replispec.broker.kafka.commands import ControllerCommands
from replispec.broker.kafka.core.replica import ReplicaKey
from replispec.broker.kafka.fetches import Fetches
from replispec.broker.kafka.store_view import PartitionsStoreView
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.primitives.immutable import immutable
from replispec.wire.kafka.apache import (
    ApacheLeaderAndIsr,
    ApacheLeaderAndIsrRequest,
    ApacheLeaderAndIsrResponse,
    ApachePartition,
    ApacheStopReplicaRequest,
    ApacheStopReplicaResponse,
)
from replispec.wire.kafka.clients import (
    ApacheFetchPartition,
    ApacheFetchRequest,
    ApacheFetchResponse,
    ApacheFetchTopic,
)
from replispec.wire.kafka.commands import DESIGN_RESPONSE_FRAME
from replispec.wire.kafka.constants import (
    COMMANDS_AS_TOLD,
    DESIGN_FETCH_AS,
    FIRST_CONTROLLER_EPOCH,
    NO_LEADER,
    STOPS_AS_TOLD,
)
from replispec.wire.kafka.design import (
    DesignLeaderAndIsr,
    DesignLeaderAndIsrRequest,
    DesignLeaderAndIsrResponse,
    DesignPartitionError,
    DesignReplicaFetchRequest,
    DesignReplicaFetchResponse,
    DesignStopReplicaRequest,
    DesignStopReplicaResponse,
)
from replispec.wire.kafka.requests import DesignRequestFrame

SayBytes = Callable[[bytes], None]


@immutable
class DesignLimits:
    """How much an answer to a fetch holds, and how long it may wait for anything."""

    fetch_bytes: int
    least_bytes: int
    wait_ms: int


class DesignRequests:
    """Serves them. `view` is what the store says, by which this broker begins."""

    def __init__(
        self,
        broker_id: int,
        commands: ControllerCommands,
        fetches: Fetches,
        view: PartitionsStoreView,
        limits: DesignLimits,
    ) -> None:
        self._broker_id: Final = broker_id
        self._commands = commands
        self._fetches = fetches
        self._view = view
        self._limits = limits

    def start(self, then: Callable[[], None]) -> None:
        """Have what the store says of this broker's replicas, and nothing else; `then`, once it is on the
        disk."""
        mine = sorted(self._view.assigned_to(self._broker_id))
        states = []
        for key in mine:
            found = self._view.records.get(key)
            if found is not None:
                record, version = found
                states.append(
                    ApacheLeaderAndIsr(
                        topic_name=key[0],
                        partition_index=key[1],
                        controller_epoch=record.decided_by,
                        leader=record.leader,
                        leader_epoch=record.leader_epoch,
                        isr=list(record.isr),
                        zk_version=version,
                        replicas=list(self._view.assigned(key)),
                    )
                )
        # What is not understood may be assigned to this broker: then everything is kept.
        kept = frozenset(mine) if self._view.understands_all else None
        epoch = max(self._commands.controller_epoch, FIRST_CONTROLLER_EPOCH)
        asked = _command(NO_LEADER, epoch, states)
        self._commands.take(asked, COMMANDS_AS_TOLD, lambda _: then(), kept=kept)

    def take(self, frame: DesignRequestFrame, now_ms: int, say: SayBytes) -> None:
        """Serve a request. Raises RemoteProtocolError when it breaks the protocol."""
        message, version = DESIGN_RESPONSE_FRAME.read_request(frame), frame.version_id
        match message:
            case DesignLeaderAndIsrRequest():
                self._lead(message, version, say)
            case DesignStopReplicaRequest():
                self._stop(message, version, say)
            case DesignReplicaFetchRequest():
                self._fetch(message, version, now_ms, say)
            case _:
                raise RemoteProtocolError(f"type {frame.request_type_id} is not served")

    # Commands

    def _lead(self, message: DesignLeaderAndIsrRequest, version: int, say: SayBytes) -> None:
        epoch = _epoch(message.controller_epoch)
        asked = _command(message.client_id, epoch, [self._state(each, epoch) for each in message.partitions])
        keys = [(each.topic, each.partition_id) for each in message.partitions]

        def told(body: bytes) -> None:
            answer = ApacheLeaderAndIsrResponse.decode(body, version=COMMANDS_AS_TOLD)
            errors = {(each.topic_name, each.partition_index): each.error for each in answer.errors}
            said = DesignLeaderAndIsrResponse(_errors(keys, errors, answer.error))
            say(said.encode(version=version))

        kept = frozenset(keys) if message.is_init else None
        self._commands.take(asked, COMMANDS_AS_TOLD, told, kept=kept)

    def _state(self, said: DesignLeaderAndIsr, epoch: int) -> ApacheLeaderAndIsr:
        key = (said.topic, said.partition_id)
        # Version 1 names no replicas: those of the store, or who is in sync and whoever is told.
        known = said.replicas or self._view.assigned(key) or dict.fromkeys((*said.isr, self._broker_id))
        return ApacheLeaderAndIsr(
            topic_name=said.topic,
            partition_index=said.partition_id,
            controller_epoch=epoch,
            leader=said.leader,
            leader_epoch=said.leader_epoch,
            isr=said.isr,
            zk_version=said.zk_version,
            replicas=list(known),
        )

    def _stop(self, message: DesignStopReplicaRequest, version: int, say: SayBytes) -> None:
        keys = [(each.topic, each.partition_id) for each in message.partitions]
        asked = ApacheStopReplicaRequest(
            controller_id=message.client_id,
            controller_epoch=_epoch(message.controller_epoch),
            delete_partitions=True,
            partitions=[ApachePartition(*key) for key in keys],
        )

        def told(body: bytes) -> None:
            answer = ApacheStopReplicaResponse.decode(body, version=STOPS_AS_TOLD)
            errors = {(each.topic_name, each.partition_index): each.error for each in answer.errors}
            said = DesignStopReplicaResponse(_errors(keys, errors, answer.error))
            say(said.encode(version=version))

        self._commands.take(asked, STOPS_AS_TOLD, told)

    # Fetches

    def _fetch(self, message: DesignReplicaFetchRequest, version: int, now_ms: int, say: SayBytes) -> None:
        wanted = ApacheFetchPartition(
            message.partition_id,
            fetch_offset=message.offset,
            partition_max_bytes=self._limits.fetch_bytes,
        )
        # Whoever is no replica reads what is committed.
        assigned = self._view.assigned((message.topic, message.partition_id))
        reader = message.replica_id if message.replica_id in assigned else NO_LEADER
        asked = ApacheFetchRequest(
            replica_id=reader,
            max_wait=self._limits.wait_ms,
            min_bytes=self._limits.least_bytes,
            max_bytes=self._limits.fetch_bytes,
            topics=[ApacheFetchTopic(message.topic, [wanted])],
        )
        self._fetches.take(asked, DESIGN_FETCH_AS, now_ms, partial(_say_fetched, version, say))


def _say_fetched(version: int, say: SayBytes, body: bytes) -> None:
    (topic,) = ApacheFetchResponse.decode(body, version=DESIGN_FETCH_AS).topics
    (found,) = topic.partitions
    said = DesignReplicaFetchResponse(found.error, found.high_watermark, bytes(found.records or b""))
    say(said.encode(version=version))


def _command(
    controller_id: int, epoch: int, states: Sequence[ApacheLeaderAndIsr]
) -> ApacheLeaderAndIsrRequest:
    return ApacheLeaderAndIsrRequest(
        controller_id=controller_id, controller_epoch=epoch, partitions=list(states), live_leaders=[]
    )


def _epoch(said: int | None) -> int:
    """That of version 1, in which controllers are not counted, is always the same."""
    return FIRST_CONTROLLER_EPOCH if said is None else said


def _errors(
    keys: Iterable[ReplicaKey], errors: dict[ReplicaKey, int], of_all: int
) -> list[DesignPartitionError]:
    """An answer of the design says of each partition how it went, and nothing of all of it."""
    return [DesignPartitionError(*key, of_all or errors.get(key, of_all)) for key in keys]
