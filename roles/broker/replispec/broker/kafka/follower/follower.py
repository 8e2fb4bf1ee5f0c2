"""All partitions that a broker follows, and a connection to each of their leaders."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, Protocol

from replispec.broker.kafka.follower.generations import FollowerVersions
from replispec.broker.kafka.follower.leader_link import LeaderLink
from replispec.broker.kafka.follower.partition import FollowedKey, FollowedPartition
from replispec.runtime.kafka.log import PartitionLog
from replispec.runtime.primitives.immutable import immutable
from replispec.runtime.world import Closed, Connected, Level, Outbox, Received
from replispec.wire.kafka.machines.fetcher import State
from replispec.wire.kafka.options import KafkaFollowerOptions


@immutable
class LeaderAddress:
    """Who leads, and where it listens: HOST:PORT."""

    broker_id: int
    address: str


class FollowedFigures(NamedTuple):
    """A partition that is followed: where its log ends, up to where the leader has said that it is committed,
    and whether it copies."""

    log_end: int
    high_watermark: int
    is_copying: bool


class FollowingOptions(Protocol):
    """Options of a role that follows."""

    @property
    def follower(self) -> KafkaFollowerOptions:
        """Those of following."""
        ...


class PartitionsFollower:
    """See the package. `flush` is called when a write of the folder is wanted, `broken` when the disk failed
    a log, which is not followed any more then."""

    def __init__(
        self,
        outbox: Outbox,
        broker_id: int,
        versions: FollowerVersions,
        options: FollowingOptions,
        *,
        flush: Callable[[], None],
        broken: Callable[[PartitionLog, str], None],
    ) -> None:
        self.says_epoch: Final = versions.says_epoch
        self.bytes_max: Final = options.follower.replica_fetch_max_bytes
        self.flush: Final = flush
        self._outbox = outbox
        self._broker_id = broker_id
        self._versions = versions
        self._options = options
        self._broken = broken
        self._links: dict[LeaderAddress, LeaderLink] = {}
        # Where each partition is followed.
        self._places: dict[FollowedKey, LeaderAddress] = {}

    def follow(self, log: PartitionLog, leader: LeaderAddress, leader_epoch: int, now_ms: int) -> None:
        """Make this log its leader's, in this epoch."""
        key = (log.topic, log.partition)
        self._leave(key, leader)
        link = self._links.get(leader)
        if link is None:
            link = self._links[leader] = LeaderLink(
                self._outbox,
                leader.address,
                self._broker_id,
                self._versions,
                self._options.follower,
                self._given_up,
            )
            link.broker.dial(now_ms)
        each = link.partitions.get(key)
        if each is None or each.log is not log:
            each = link.partitions[key] = FollowedPartition(self._outbox, log, self, self._options)
        self._places[key] = leader
        each.follow(leader_epoch, now_ms, by_epoch=self._versions.epochs is not None)
        link.may_ask(now_ms)

    def stop(self, topic: str, partition: int) -> None:
        """Put nothing into this log any more; nothing happens when it is not followed."""
        self._leave((topic, partition), None)

    def stop_all(self) -> None:
        """Follow nobody."""
        for key in tuple(self._places):
            self._leave(key, None)

    def figures(self, topic: str, partition: int) -> FollowedFigures | None:
        """How a partition is; None when it is not followed."""
        key = (topic, partition)
        leader = self._places.get(key)
        if leader is None:
            return None
        link = self._links[leader]
        each = link.partitions[key]
        is_copying = link.broker.is_connected and each.state in (State.FETCHING, State.FLUSHING)
        return FollowedFigures(each.log.end, each.log.high_watermark, is_copying)

    def _leave(self, key: FollowedKey, new: LeaderAddress | None) -> None:
        old = self._places.get(key)
        if old is None or old == new:
            return
        del self._places[key]
        link = self._links[old]
        link.partitions.pop(key).stop()
        if not link.partitions:
            del self._links[old]
            link.broker.end()

    def _given_up(self, each: FollowedPartition, reason: str) -> None:
        self._outbox.note(Level.ERROR, "the disk failed what is followed", topic=each.key[0], reason=reason)
        self._leave(each.key, None)
        self._broken(each.log, reason)

    # Events

    def connected(self, event: Connected) -> bool:
        """False when the connection is none of these."""
        link = self._link_of(event.connection)
        if link is not None:
            link.broker.connected(event)
        return link is not None

    def received(self, event: Received) -> bool:
        """False when the connection is none of these."""
        link = self._link_of(event.connection)
        if link is not None:
            link.broker.received(event)
        return link is not None

    def closed(self, event: Closed) -> bool:
        """False when the connection is none of these."""
        link = self._link_of(event.connection)
        if link is not None:
            link.broker.closed(event)
        return link is not None

    def written(self, now_ms: int) -> None:
        """A write of the folder is done: what is on the disk may be asked beyond."""
        for link in self._links.values():
            for each in link.partitions.values():
                each.written(now_ms)
            link.may_ask(now_ms)

    def ticked(self, now_ms: int) -> None:
        """Do what is due."""
        for link in tuple(self._links.values()):
            for each in link.partitions.values():
                each.ticked(now_ms)
            link.broker.ticked(now_ms)
            link.may_ask(now_ms)

    def deadline_ms(self) -> int | None:
        """When `ticked` has something to do."""
        times = [link.broker.deadline_ms() for link in self._links.values()]
        for link in self._links.values():
            times.extend(each.deadline_ms() for each in link.partitions.values())
        return min((each for each in times if each is not None), default=None)

    def _link_of(self, connection: int) -> LeaderLink | None:
        return next((link for link in self._links.values() if link.broker.owns(connection)), None)
