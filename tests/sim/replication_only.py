"""Replication alone: brokers that store, copy and acknowledge, and an arbiter that says who is master.

The arbiter does what a controller does, without a wire: it elects members of the SyncStateSet alone, and
whoever is elected is the whole set at first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from replispec.runtime.rocketmq.log import GroupCommit, MessageStore, Placed
from replispec.runtime.rocketmq.replication import HaMaster, HaReplica
from replispec.runtime.sim import Rng
from replispec.runtime.storage import Files, StorageFailed
from replispec.runtime.world import (
    Accepted,
    Closed,
    Connected,
    Effect,
    Event,
    Outbox,
    Persisted,
    PersistFailed,
    Received,
    Started,
    Writable,
    Writes,
)
from replispec.wire.rocketmq.codes import LogMagic
from replispec.wire.rocketmq.options import ReplicationOptions
from replispec.wire.rocketmq.store import LogRecord
from tests.sim.client import number_of

FILE_BYTES = 4_096
SETTINGS = ReplicationOptions(
    ha_send_heartbeat_interval_ms=500,
    ha_housekeeping_interval_ms=3_000,
    ha_reconnect_interval_ms=300,
    ha_transfer_batch_size=512,
    ha_max_time_slave_not_catchup_ms=2_000,
)
MESSAGE_BYTES_MAX = 400
LOOPBACK = bytes((127, 0, 0, 1))


@dataclass
class Arbiter:
    """Who is master in which epoch, and the SyncStateSet; brokers are numbers from 1."""

    addresses: Mapping[int, str]
    epoch: int = 0
    master: int = 0
    members: tuple[int, ...] = ()
    # Where each acknowledged message lies in the log.
    acknowledged: dict[int, int] = field(default_factory=dict)
    sent: int = 0
    is_sending: bool = True

    def elect(self, broker: int) -> None:
        """Make a member master; of an empty set, anybody."""
        assert broker in self.members or not self.members
        self.epoch += 1
        self.master = broker
        self.members = (broker,)

    def alter(self, epoch: int, members: tuple[int, ...]) -> None:
        """What a master asks for; who is master no more is refused."""
        if epoch == self.epoch:
            self.members = members


class Copier:
    """A broker reduced to replication. It learns from the arbiter after a while."""

    def __init__(self, broker: int, files: Files, arbiter: Arbiter, rng: Rng) -> None:
        self._broker = broker
        self.arbiter = arbiter
        self._rng = rng
        self._outbox = Outbox()
        self._writes = Writes(self._outbox)
        self.store = MessageStore(files, file_bytes=FILE_BYTES)
        self._commit = GroupCommit(self._outbox, self._writes, self.store, self._durable)
        self._is_becoming = False
        self._replica: HaReplica | None = None
        self._master: HaMaster | None = None
        self.epoch = 0
        self.members: tuple[int, ...] = ()
        self.ends: dict[int, int] = {}
        self.served_from = 0
        self._pending: list[Placed] = []
        self._look_ms = 0
        self._put_ms = 0
        self.confirm_offset = 0

    @property
    def listeners(self) -> Mapping[str, str]:
        """The one of replication."""
        return {"ha": self.arbiter.addresses[self._broker]}

    def deadline_ms(self) -> int | None:
        """The next thing to do."""
        times = [self._look_ms, self._put_ms]
        times += [part.deadline_ms() or 2**62 for part in (self._master, self._replica) if part is not None]
        return min(times)

    def receive(self, event: Event) -> Sequence[Effect]:
        """Take one event."""
        now_ms = event.now_ms
        match event:
            case Accepted() if self._master is not None:
                self._master.accepted(event)
            case Accepted():
                self._outbox.close(event.connection)
            case Persisted() | PersistFailed():
                self._writes.answered(event)
            case Started():
                self._look_ms = self._put_ms = now_ms
                self._commit.request()
            case Connected() | Received() | Writable() | Closed():
                self._on_connection(event)
        try:
            self._tick(now_ms)
        except StorageFailed as error:
            self._outbox.halt(str(error))
        return self._outbox.take()

    def _on_connection(self, event: Connected | Received | Writable | Closed) -> None:
        replica, master = self._replica, self._master
        if replica is not None and replica.owns(event.connection):
            match event:
                case Connected():
                    replica.connected(event)
                case Received():
                    replica.received(event)
                case Closed():
                    replica.closed(event)
        elif master is not None and master.serves(event.connection):
            match event:
                case Received():
                    master.received(event)
                case Writable():
                    master.writable(event)
                case Closed():
                    master.closed(event)

    def _tick(self, now_ms: int) -> None:
        if now_ms >= self._look_ms:
            self._look_ms = now_ms + self._rng.between(50, 1_000)
            if self.arbiter.epoch > self.epoch:
                self._obey(now_ms)
        for part in (self._master, self._replica):
            if part is not None:
                part.ticked(now_ms)
        if self._master is not None:
            for broker in self._master.overdue(
                [each for each in self.members if each != self._broker], now_ms
            ):
                self.request_shrink(broker, now_ms)
            if now_ms >= self._put_ms and self.arbiter.is_sending:
                self._put(now_ms)
        if now_ms >= self._put_ms:
            self._put_ms = now_ms + self._rng.between(10, 60)

    def _obey(self, now_ms: int) -> None:
        self.epoch = self.arbiter.epoch
        self._is_becoming = False
        self.store.epochs.keep(self.store.epochs.entries)
        if self._master is not None:
            self._master.stop(now_ms)
            self._master = None
            self._pending.clear()
        if self.arbiter.master == self._broker:
            if self._replica is not None:
                self._replica.stop(now_ms)
                self._replica = None
            self.store.begin_as_master(self.epoch)
            self.served_from = self.store.log.end
            self.members = self.arbiter.members
            self.ends.clear()
            self._is_becoming = True
            self._commit.request()
            self._serve(now_ms)
        else:
            if self._replica is None:
                self._replica = HaReplica(
                    self._outbox, self.store, self._commit, self, SETTINGS, broker_id=self._broker
                )
            self._replica.follow(self.arbiter.addresses[self.arbiter.master], now_ms)

    def _serve(self, _now_ms: int) -> None:
        if self._is_becoming and self.store.is_clean:
            self._is_becoming = False
            self._master = HaMaster(self._outbox, self.store, self, SETTINGS)

    def _put(self, now_ms: int) -> None:
        if not self.store.log.reserve([MESSAGE_BYTES_MAX]):
            self._commit.request()
            return
        number = self.arbiter.sent
        self.arbiter.sent += 1
        body = b"%d" % number + b"." * self._rng.below(200)
        placed = self.store.put(
            LogRecord(
                magic=LogMagic.MESSAGE_V1, born_ip=LOOPBACK, store_ip=LOOPBACK, body=body, topic="copies"
            )
        )
        self._pending.append(placed)
        self._commit.request()
        assert self._master is not None
        self._master.log_grew(now_ms)

    def _durable(self, _end: int, now_ms: int) -> None:
        self._serve(now_ms)
        if self._master is not None:
            self._master.log_grew(now_ms)
            self.confirm(now_ms)

    # What the replication asks of a master

    def is_member(self, broker_id: int) -> bool:
        """Whether a replica is in the set."""
        return broker_id in self.members

    def acknowledged(self, broker_id: int, offset: int, now_ms: int) -> None:
        """A replica told its end."""
        self.ends[broker_id] = offset
        self.confirm(now_ms)

    def request_expand(self, broker_id: int, now_ms: int) -> None:
        """Take it in, if this is still the master."""
        self.alter((*self.members, broker_id), now_ms)

    def request_shrink(self, broker_id: int, now_ms: int) -> None:
        """Take it out, likewise."""
        self.alter(tuple(each for each in self.members if each != broker_id), now_ms)

    def alter(self, members: tuple[int, ...], now_ms: int) -> None:
        """Ask the arbiter for another set; who is master no more is refused."""
        if self.arbiter.epoch == self.epoch:
            self.members = tuple(sorted(set(members)))
            self.arbiter.alter(self.epoch, self.members)
            self.confirm(now_ms)

    def own_end(self) -> int:
        """Up to where this broker itself has the log for good."""
        return self.store.log.flushed

    def confirm(self, now_ms: int) -> None:
        """Acknowledge what all members have on their disks."""
        ends = [self.ends.get(each, 0) for each in self.members if each != self._broker]
        confirm = min([self.own_end(), *ends])
        if confirm <= self.confirm_offset:
            return
        self.confirm_offset = confirm
        while self._pending and self._pending[0].offset + self._pending[0].size <= confirm:
            placed = self._pending.pop(0)
            self.arbiter.acknowledged[number_of(placed.record)] = placed.offset
        if self._master is not None:
            self._master.confirm_offset_advanced(now_ms)

    # What the replication tells a replica

    def confirmed(self, offset: int, now_ms: int) -> None:  # noqa: ARG002
        """What consumers may see."""
        self.confirm_offset = offset

    def truncated(self, offset: int, now_ms: int) -> None:
        """The log was cut."""
