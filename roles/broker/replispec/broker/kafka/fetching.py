"""Copies what other brokers lead: the package `follower`, told by the commands of the controller."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from replispec.broker.kafka.core.places import ToldPlace
from replispec.broker.kafka.core.replica import LocalReplica, ReplicaKey
from replispec.broker.kafka.follower import LeaderAddress, PartitionsFollower, versions_of
from replispec.broker.kafka.keeping import LogKeeper
from replispec.runtime.world import Level, Outbox
from replispec.wire.kafka.options import KafkaBrokerOptions


class CopiedPartitions:
    """See `ReplicaFetching`; `generation` says how leaders are followed. Whatever is put into logs is written
    with the rest, after each event."""

    def __init__(
        self,
        outbox: Outbox,
        options: KafkaBrokerOptions,
        generation: str,
        keeper: LogKeeper,
        now_ms: Callable[[], int],
    ) -> None:
        self._outbox = outbox
        self._now_ms = now_ms
        self.follower: Final = PartitionsFollower(
            outbox,
            options.broker_id,
            versions_of(generation),
            options,
            flush=lambda: None,
            broken=lambda _, reason: keeper.fail(reason),
        )

    def follow(self, replica: LocalReplica, leader: ToldPlace | None) -> None:
        """See `ReplicaFetching`."""
        known = replica.known
        if leader is None or replica.log is None:
            self.stop(replica.key)
            self._outbox.note(Level.WARNING, "follows nobody", partition=replica.key, leader=known.leader)
            return
        address = LeaderAddress(known.leader, f"{leader.host}:{leader.port}")
        self.follower.follow(replica.log, address, known.leader_epoch, self._now_ms())

    def stop(self, key: ReplicaKey) -> None:
        """See `ReplicaFetching`."""
        self.follower.stop(*key)
