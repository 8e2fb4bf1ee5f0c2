"""Nodes that replicate and do nothing else: a master without a controller, a replica without a broker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from replispec.runtime.rocketmq.log import GroupCommit, MessageStore
from replispec.runtime.rocketmq.replication import HaMaster, HaReplica
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
    Stopping,
    Ticked,
    Writable,
    Writes,
)
from replispec.wire.rocketmq.options import ReplicationOptions

LISTENER = "ha"


class LoneMaster:
    """A SyncStateSet of the master alone: whoever wants in is never taken in."""

    def __init__(self, store: MessageStore) -> None:
        self._store = store

    @property
    def confirm_offset(self) -> int:
        """Everything: nobody else is to be asked."""
        return self._store.log.flushed

    @property
    def served_from(self) -> int:
        """It has served as long as there is a log."""
        return 0

    def is_member(self, broker_id: int) -> bool:  # noqa: ARG002
        return False

    def acknowledged(self, broker_id: int, offset: int, now_ms: int) -> None:
        pass

    def request_expand(self, broker_id: int, now_ms: int) -> None:
        pass

    def request_shrink(self, broker_id: int, now_ms: int) -> None:
        pass


class BareMaster:
    """Serves the log that its store has."""

    def __init__(self, store: MessageStore, address: str = "127.0.0.1:0") -> None:
        self._outbox = Outbox()
        self._address = address
        self.ha = HaMaster(self._outbox, store, LoneMaster(store), ReplicationOptions())

    @property
    def listeners(self) -> Mapping[str, str]:
        return {LISTENER: self._address}

    def receive(self, event: Event) -> Sequence[Effect]:
        match event:
            case Accepted():
                self.ha.accepted(event)
            case Received():
                self.ha.received(event)
            case Writable():
                self.ha.writable(event)
            case Closed():
                self.ha.closed(event)
            case Ticked(now_ms):
                self.ha.ticked(now_ms)
            case Stopping(now_ms):
                self.ha.stop(now_ms)
            case Started() | Connected() | Persisted() | PersistFailed():
                pass
        return self._outbox.take()

    def deadline_ms(self) -> int | None:
        return self.ha.deadline_ms()


class BareReplica:
    """Follows one master for ever."""

    def __init__(self, store: MessageStore, master: str, settings: ReplicationOptions | None = None) -> None:
        self._outbox = Outbox()
        self._store = store
        self._master = master
        self._writes = Writes(self._outbox)
        self._commit = GroupCommit(self._outbox, self._writes, store)
        self.ha = HaReplica(
            self._outbox,
            store,
            self._commit,
            self,
            settings or ReplicationOptions(),
            broker_id=2,
            is_learner=False,
        )

    @property
    def listeners(self) -> Mapping[str, str]:
        return {}

    def confirmed(self, offset: int, now_ms: int) -> None:
        pass

    def truncated(self, offset: int, now_ms: int) -> None:
        pass

    def receive(self, event: Event) -> Sequence[Effect]:
        match event:
            case Started(now_ms):
                self.ha.follow(self._master, now_ms)
            case Connected():
                self.ha.connected(event)
            case Received():
                self.ha.received(event)
            case Closed():
                self.ha.closed(event)
            case Persisted() | PersistFailed():
                self._writes.answered(event)
            case Ticked(now_ms):
                self.ha.ticked(now_ms)
            case Stopping(now_ms):
                self.ha.stop(now_ms)
            case Accepted() | Writable():
                pass
        return self._outbox.take()

    def deadline_ms(self) -> int | None:
        return self.ha.deadline_ms()
