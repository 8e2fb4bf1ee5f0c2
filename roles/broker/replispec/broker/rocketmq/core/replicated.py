"""The log of a broker among those of its set, fed to replicas or copied from a master, and what is safe.

Source: RIP-44 "Replication solution", "ConfirmOffset"; apache/rocketmq rocketmq-all-5.4.0,
AutoSwitchHAService, GroupTransferService.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from replispec.broker.rocketmq.core.role import Role
from replispec.runtime.rocketmq import rules
from replispec.runtime.rocketmq.log import GroupCommit, MessageStore, Retention, RoomListener
from replispec.runtime.rocketmq.remoting.calls import Calls
from replispec.runtime.rocketmq.replication import DigestCheck, HaMaster, HaReplica, is_durable, is_plain
from replispec.runtime.storage import FilesReader
from replispec.runtime.world import (
    Accepted,
    Closed,
    Connected,
    Level,
    Outbox,
    Received,
    Writable,
    Writes,
)
from replispec.wire.rocketmq import constants
from replispec.wire.rocketmq.client import HaClientRuntimeInfo, HaConnectionRuntimeInfo, HaRuntimeInfo
from replispec.wire.rocketmq.options import BrokerOptions


class ReplicatedOwner(Protocol):
    """What the log tells the broker."""

    def safe(self, offset: int, durable: int) -> None:
        """What lies before `offset` may be acknowledged, and what lies before `durable` is on the disk."""
        ...

    def hold(self, end: int, /) -> int:
        """The log is to begin at an offset: up to where it may be deleted now."""
        ...

    def shown(self) -> None:
        """More messages may be shown to consumers."""
        ...

    def serving(self, now_ms: int, /) -> None:
        """This broker may serve as master: its log and its epoch are on the disk."""
        ...

    def master_lost(self, now_ms: int, /) -> None:
        """The connection to the master ended, or was not made."""
        ...

    def compared_from(self, now_ms: int, /) -> Sequence[int]:
        """From where on replicas are about to copy that compared their logs not long ago."""
        ...


class Replicated:
    """Log, epochs and replication of one broker, in whichever role. As a master it keeps the SyncStateSet."""

    def __init__(
        self,
        outbox: Outbox,
        writes: Writes,
        files: FilesReader,
        store: MessageStore,
        options: BrokerOptions,
        role: Role,
        calls: Calls,
        owner: ReplicatedOwner,
    ) -> None:
        self._outbox = outbox
        self._options = options
        self._role = role
        self._owner = owner
        self.store = store
        self._commit = GroupCommit(outbox, writes, store, self._flushed_to)
        self._check = DigestCheck(outbox, calls, store, options.comparison, role, self._log_differs)
        self.retention = Retention(
            outbox, files, store, self._commit, options.retention, self.safe_to_delete, owner.hold
        )
        self._is_becoming = False
        # Replicas that came while this broker was becoming master, and what they said.
        self._early: dict[int, list[Accepted | Received]] = {}
        self._master: HaMaster | None = None
        self._replica: HaReplica | None = None
        self._confirmed = self._held = 0
        self._served_from = 0
        # Whether this master has heard since it began from all whose word makes the confirm offset.
        self._knows = False
        self._flush_ms: int | None = None
        self._grown = False
        self._indexing = False
        self._now_ms = 0

    # Roles

    def start(self, now_ms: int) -> None:
        """Bring what was found to the disk, and make room for what is going to come."""
        self._commit.request()
        self.retention.start(now_ms)

    @property
    def is_sure(self) -> bool:
        """Whether the log has all that this broker acknowledged before its process began."""
        return is_durable(self._options.replication) and self.store.log.opened_whole

    @property
    def serves(self) -> bool:
        """Whether this broker is master and everything is on the disk that makes it one."""
        return self._master is not None and not self._is_becoming

    @property
    def is_copying(self) -> bool:
        """Whether bytes of a master may come to the log."""
        return self._replica is not None and self._replica.is_copying

    @property
    def knows_confirmed(self) -> bool:
        """Whether this is a master that knows what is confirmed of its log."""
        return self._knows and self.serves

    def serve_as_master(self, epoch: int, now_ms: int, *, resumed: bool) -> None:
        """Feed replicas as soon as log and epoch are on the disk. Raises StorageFailed."""
        self._now_ms = now_ms
        self._knows = False
        if self._replica is not None:
            self._replica.stop(now_ms)
            self._replica = None
        if resumed:
            self.store.resume_as_master()
        else:
            self.store.begin_as_master(epoch)
        self._served_from = self.store.log.end
        self._confirmed = self._held = min(self._confirmed, self._served_from)
        self._is_becoming = True
        self._commit.request()
        self._serve_when_written(now_ms)

    def _serve_when_written(self, now_ms: int) -> None:
        if not self._is_becoming or not self.store.is_clean:
            return
        self._is_becoming = False
        if self._master is None:
            self._master = HaMaster(self._outbox, self.store, self, self._options.replication)
        else:
            self._master.epoch_began(now_ms)
        self._grown = True
        early, self._early = self._early, {}
        for connection, events in early.items():
            for event in events:
                if isinstance(event, Accepted):
                    self._master.accepted(event)
                else:
                    self._master.received(event)
            self._outbox.resume(connection)
        self._owner.serving(now_ms)

    def wait_for_room(self, then: RoomListener) -> None:
        """Have a file made for what the log has reserved."""
        self._commit.wait_for_room(then)

    def copy_as_replica(self, now_ms: int) -> None:
        """Stop feeding replicas, and copy from the broker that `follow` names."""
        self._now_ms = now_ms
        self._is_becoming = False
        # An epoch that is announced and not on the disk yet will be another broker's.
        self.store.epochs.keep(self.store.epochs.entries)
        for connection in self._early:
            self._outbox.close(connection)
        self._early.clear()
        if self._master is not None:
            self._master.stop(now_ms)
            self._master = None
        if self._replica is not None:
            self._replica.stop(now_ms)
        self._replica = HaReplica(
            self._outbox,
            self.store,
            self._commit,
            self,
            self._options.replication,
            broker_id=self._role.broker_id,
            comparison=self._check,
            plain=is_plain(self._options.tls),
        )

    def _log_differs(self, now_ms: int) -> None:
        """The master's log is another one: what is copied behind it would make it no better."""
        if self._replica is not None:
            self._replica.stop(now_ms)

    def let_go(self, now_ms: int) -> None:
        """As a replica, copy nothing more; `copy_as_replica` begins again."""
        if self._replica is not None:
            self._replica.stop(now_ms)

    def follow(self, ha_address: str, now_ms: int) -> None:
        """The master replicates at this address."""
        if self._replica is not None:
            self._replica.follow(ha_address, now_ms)

    def stop(self, now_ms: int) -> None:
        """The process ends."""
        self._commit.stop()
        if self._master is not None:
            self._master.stop(now_ms)
        if self._replica is not None:
            self._replica.stop(now_ms)

    # What was stored, and what is safe

    def stored(self) -> None:
        """Messages were appended to the log; `settle` handles them once for all."""
        self._grown = True

    def settle(self, now_ms: int) -> None:
        """To be called when all of an event is done."""
        if self._grown:
            self._grown = False
            self._now_ms = now_ms
            if is_durable(self._options.replication):
                self._commit.request()
            elif self._flush_ms is None:
                self._flush_ms = now_ms + constants.FLUSH_MS
            if self._master is not None:
                self._master.log_grew(now_ms)
            self.count(now_ms)

    def count(self, now_ms: int) -> None:
        """As a master, find what is safe and what is confirmed."""
        self._now_ms = now_ms
        if self._master is None:
            return
        others = self._role.counted - {self._role.broker_id}
        acknowledged = self._master.acknowledged(others)
        end = self.store.log.flushed if is_durable(self._options.replication) else self.store.log.end
        safe = rules.acknowledged_offset(
            end,
            acknowledged,
            len(others),
            all_acknowledge=self._options.all_ack_in_sync_state_set,
            in_sync_replicas=self._options.in_sync_replicas,
        )
        is_large_enough = rules.may_store(self._role.members_at_least, self._options.min_in_sync_replicas)
        if is_large_enough:
            held = rules.acknowledged_offset(
                end, acknowledged, len(others), all_acknowledge=True, in_sync_replicas=1
            )
            self._held = max(self._held, held)
        self._owner.safe(safe if is_large_enough else 0, self.store.log.flushed)
        confirmed = rules.confirm_offset(
            end,
            acknowledged,
            len(others),
            all_acknowledge=self._options.all_ack_in_sync_state_set,
            previous=self._confirmed,
        )
        has_all = len(acknowledged) == len(others) or not self._options.all_ack_in_sync_state_set
        self._knows = self._knows or has_all
        if confirmed > self._confirmed:
            self._confirmed = confirmed
            self._index()
            self._master.confirm_offset_advanced(now_ms)

    def _flushed_to(self, _durable: int, now_ms: int) -> None:
        self._serve_when_written(now_ms)
        if self._master is not None:
            self._master.log_grew(now_ms)
        self.count(now_ms)

    def _index(self) -> None:
        self._indexing = not self.store.index_up_to(self._confirmed)
        self._owner.shown()

    def safe_to_delete(self, needs_room: bool, /) -> int:
        """Up to where the log is confirmed, and all members of the set have it, and no queue loses count
        without it. While a master does not hear from a member, it deletes nothing: either comes soon. What a
        replica or learner is just copying stays, too, unless room is needed."""
        deletable = min(self._confirmed, self.store.deletable)
        if self._master is None:
            return deletable
        others = self._role.counted - {self._role.broker_id}
        held = self._master.acknowledged(others)
        if len(held) < len(others):
            return 0
        sending = [] if needs_room else self._wanted_next()
        return min(deletable, *held, *sending, self.store.log.end)

    def _wanted_next(self) -> Sequence[int]:
        """From where on replicas and learners copy, or are about to once their logs are compared."""
        sending = [] if self._master is None else self._master.sending_from()
        return [*sending, *self._owner.compared_from(self._now_ms)]

    # The SyncStateSet, for the master's side of replication

    @property
    def confirm_offset(self) -> int:
        """Up to where messages may be shown to consumers."""
        return self._confirmed

    @property
    def kept_offset(self) -> int:
        """Up to where all members of the SyncStateSet have the log, whatever messages wait for."""
        return self._confirmed if self._master is None else self._held

    @property
    def served_from(self) -> int:
        """Where the log ended when this broker began to serve as master: all of it may be acknowledged."""
        return self._served_from

    def is_member(self, broker_id: int) -> bool:
        """Whether this replica is in the set, or in one that was asked for."""
        return broker_id in self._role.counted

    def acknowledged(self, _broker_id: int, _offset: int, now_ms: int) -> None:
        """A replica has reported the end of its log."""
        self.count(now_ms)

    def request_expand(self, broker_id: int, now_ms: int) -> None:
        """A replica has caught up."""
        self._role.caught_up(broker_id, now_ms)

    def request_shrink(self, broker_id: int, now_ms: int) -> None:
        """The last connection of a replica ended."""
        self._role.lagging((broker_id,), now_ms)

    # The master's word, for the replica's side

    def confirmed(self, offset: int, _now_ms: int) -> None:
        """The master has said what may be shown."""
        if offset != self._confirmed:
            self._confirmed = offset
            self._index()

    def truncated(self, offset: int, _now_ms: int) -> None:
        """The log was cut."""
        self._confirmed = min(self._confirmed, offset)
        self._held = min(self._held, offset)

    # What the world tells

    def accepted(self, event: Accepted) -> None:
        """Somebody wants to copy."""
        if self._is_becoming and self._master is None:
            self._outbox.pause(event.connection)
            self._early[event.connection] = [event]
        elif self._master is None:
            self._outbox.note(Level.INFO, "no master: a replica was sent away", peer=event.peer)
            self._outbox.close(event.connection)
        else:
            self._master.accepted(event)

    def owns(self, connection: int) -> bool:
        """Whether a connection is one of replication."""
        serves = self._master is not None and self._master.serves(connection)
        copies = self._replica is not None and self._replica.owns(connection)
        return serves or copies or connection in self._early

    def take(self, event: Connected | Received | Closed | Writable) -> None:
        """Something happened on a connection of ours."""
        self._now_ms = event.now_ms
        if event.connection in self._early:
            if isinstance(event, Received):
                self._early[event.connection].append(event)
            elif isinstance(event, Closed):
                del self._early[event.connection]
            return
        side = self._replica if event.connection < 0 else self._master
        match event:
            case Connected():
                if isinstance(side, HaReplica):
                    side.connected(event)
            case Writable():
                if isinstance(side, HaMaster):
                    side.writable(event)
            case Received():
                if side is not None:
                    side.received(event)
            case Closed():
                self._closed(event, side)

    def _closed(self, event: Closed, side: HaMaster | HaReplica | None) -> None:
        if side is not None:
            side.closed(event)
        if isinstance(side, HaReplica):
            self._owner.master_lost(event.now_ms)

    def ticked(self, now_ms: int) -> None:
        """Do what is due."""
        self._now_ms = now_ms
        if self._indexing:
            self._index()
        if self._flush_ms is not None and now_ms >= self._flush_ms:
            self._flush_ms = None
            self._commit.request()
        self._commit.ticked(now_ms)
        self.retention.ticked(now_ms)
        self._check.ticked(now_ms)
        if self._replica is not None:
            self._replica.ticked(now_ms)
        if self._master is not None:
            self._master.ticked(now_ms)

    def check_members(self, now_ms: int) -> None:
        """As a master, find the members that no longer keep up."""
        if self._master is not None:
            others = self._role.members - {self._role.broker_id}
            if overdue := self._master.overdue(sorted(others), now_ms):
                self._role.lagging(overdue, now_ms)

    def lags(self, broker_id: int) -> bool:
        """Whether this member is gone, or does not keep up."""
        return self._master is not None and bool(self._master.overdue((broker_id,), self._now_ms))

    def may_join(self, broker_id: int) -> bool:
        """Whether this replica is connected now, and has what a member must have."""
        feed = None if self._master is None else self._master.feed_of(broker_id)
        return feed is not None and feed.may_join

    def deadline_ms(self) -> int | None:
        """When `ticked` has something to do."""
        times = [0 if self._indexing else None, self._flush_ms, self._commit.deadline_ms()]
        times += [self.retention.deadline_ms(), self._check.deadline_ms()]
        if self._master is not None:
            times.append(self._master.deadline_ms())
        if self._replica is not None:
            times.append(self._replica.deadline_ms())
        return min((each for each in times if each is not None), default=None)

    def feeds(self) -> Mapping[int, int]:
        """As a master, up to where each connected replica has reported the log."""
        feeds = () if self._master is None else self._master.feeds.values()
        return {feed.broker_id: feed.acknowledged for feed in feeds if feed.broker_id is not None}

    def status(self) -> HaRuntimeInfo:
        """How replication is, for administrators."""
        end = self.store.log.end
        copied = HaClientRuntimeInfo(0, 0, self._replica.address if self._replica else None, 0, 0, 0)
        if self._master is None:
            copied.max_offset = end
            return HaRuntimeInfo(copied, [], 0, False, 0)
        feeds = [
            HaConnectionRuntimeInfo(
                feed.peer,
                end - feed.acknowledged,
                feed.broker_id in self._role.members,
                feed.acknowledged,
                feed.next_offset,
                0,
            )
            for feed in self._master.feeds.values()
        ]
        return HaRuntimeInfo(copied, feeds, sum(bool(feed.in_sync) for feed in feeds), True, end)
