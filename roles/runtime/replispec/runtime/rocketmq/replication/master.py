"""A master's side of replication: all replicas and learners that copy its log.

Source: RIP-44 "Replication solution", "SyncStateSet"; apache/rocketmq rocketmq-all-5.4.0,
AutoSwitchHAService, AutoSwitchHAConnection.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from replispec.runtime.rocketmq import rules
from replispec.runtime.rocketmq.log import MessageStore
from replispec.runtime.rocketmq.remoting import Shares, host_of
from replispec.runtime.rocketmq.replication.feed import Feed, SyncStateSetKeeper
from replispec.runtime.world import Accepted, Closed, Level, Outbox, Received, Writable
from replispec.wire.rocketmq.options import ReplicationOptions


class HaMaster:
    """Feeds every connection of the replication listener until `stop`.

    A new one is made for each time that this broker becomes master; its epoch is the store's last.
    `connections_max` bounds how many are open: the host that has most of them gives way, first those that
    have not said which replica they are of, and the oldest of those of all hosts for whoever has none.
    `ticked` is to be called when `deadline_ms` has come.
    """

    def __init__(
        self,
        outbox: Outbox,
        store: MessageStore,
        keeper: SyncStateSetKeeper,
        options: ReplicationOptions,
        *,
        connections_max: int = 256,
    ) -> None:
        self._outbox = outbox
        self._store = store
        self._keeper = keeper
        self._options = options
        self._feeds: dict[int, Feed] = {}
        self._shares = Shares[int](connections_max)

    # What the broker sees

    @property
    def feeds(self) -> Mapping[int, Feed]:
        """All replicas that are connected, by connection."""
        return self._feeds

    def feed_of(self, broker_id: int) -> Feed | None:
        """The connection of a replica, the newest if it has several; None when it is not connected."""
        found = [feed for feed in self._feeds.values() if feed.broker_id == broker_id]
        return found[-1] if found else None

    def acknowledged(self, members: Collection[int]) -> list[int]:
        """The log ends that those of these replicas told that are connected and have told one."""
        feeds = [self.feed_of(broker_id) for broker_id in members]
        return [feed.acknowledged for feed in feeds if feed is not None and feed.has_reported]

    def sending_from(self) -> list[int]:
        """From where on the log is being sent, of each replica that is not too far behind for it. One that
        was answered and has not reported may want any of it next."""
        first = self._store.log.first
        feeds = self._feeds.values()
        sending = [feed.next_offset for feed in feeds if feed.has_reported and feed.next_offset >= first]
        return sending + [first for feed in feeds if feed.is_answered and not feed.has_reported]

    def overdue(self, members: Collection[int], now_ms: int) -> list[int]:
        """Which of these members are to leave the SyncStateSet; the master itself is not to be among them."""
        found = []
        for broker_id in members:
            feed = self.feed_of(broker_id)
            if rules.must_leave(
                None if feed is None else feed.caught_up_ms,
                now_ms,
                self._options.ha_max_time_slave_not_catchup_ms,
                is_master=False,
                is_connected=feed is not None,
            ):
                found.append(broker_id)
        return found

    # What the broker tells

    def log_grew(self, now_ms: int) -> None:
        """Send what is new. To be called once for all that was stored together: when it is on the disk where
        the options ask for durability, else at once."""
        for feed in tuple(self._feeds.values()):
            feed.log_grew(now_ms)

    def epoch_began(self, now_ms: int) -> None:
        """This master was elected again, connections stay: tell the replicas of the new epoch."""
        for feed in tuple(self._feeds.values()):
            feed.epoch_began(now_ms)

    def confirm_offset_advanced(self, now_ms: int) -> None:
        """Consumers may see more."""
        for feed in tuple(self._feeds.values()):
            feed.confirmed(now_ms)

    def stop(self, now_ms: int) -> None:
        """Close all connections: the process ends, or this broker is no longer master."""
        for connection, feed in tuple(self._feeds.items()):
            self._forget(connection)
            feed.stop(now_ms)

    # What the world tells

    def serves(self, connection: int) -> bool:
        """Whether this connection is one of a replica of ours."""
        return connection in self._feeds

    def accepted(self, event: Accepted) -> None:
        """A replica has connected."""
        host = host_of(event.peer)
        if self._shares.is_full and not self._make_room(host, event.now_ms):
            self._outbox.note(Level.WARNING, "too many replication connections", peer=event.peer)
            self._outbox.close(event.connection)
            return
        self._shares.take(host, event.connection, is_loose=True)
        self._feeds[event.connection] = Feed(
            self._outbox,
            self._store,
            self._keeper,
            self._options,
            connection=event.connection,
            peer=event.peer,
            now_ms=event.now_ms,
            admits=self._admits,
        )

    def _make_room(self, host: str, now_ms: int) -> bool:
        """End a connection for one of this host; false when its own ones are too many."""
        going = self._shares.giving_way(host)
        if going is None:
            return False
        feed = self._forget(going)
        feed.stop(now_ms)
        self._ask_to_shrink(feed, now_ms)
        return True

    def _forget(self, connection: int) -> Feed:
        self._shares.drop(connection)
        return self._feeds.pop(connection)

    def received(self, event: Received) -> None:
        """Take the next bytes of a replica."""
        feed = self._feeds.get(event.connection)
        if feed is not None:
            is_new = feed.broker_id is None
            feed.received(event.data, event.now_ms)
            if is_new and feed.broker_id is not None:
                self._shares.keep(event.connection)
            self._forget_ended(event.now_ms)

    def writable(self, event: Writable) -> None:
        """A replica has taken bytes: send more."""
        feed = self._feeds.get(event.connection)
        if feed is not None:
            feed.writable(event.now_ms)

    def closed(self, event: Closed) -> None:
        """A replica is gone."""
        if event.connection in self._feeds:
            feed = self._forget(event.connection)
            feed.closed(event.reason, event.now_ms)
            self._ask_to_shrink(feed, event.now_ms)

    def ticked(self, now_ms: int) -> None:
        """Do what is due."""
        for feed in tuple(self._feeds.values()):
            feed.ticked(now_ms)
        self._forget_ended(now_ms)

    def deadline_ms(self) -> int | None:
        """When `ticked` has something to do."""
        times = [at_ms for feed in self._feeds.values() if (at_ms := feed.deadline_ms()) is not None]
        return min(times, default=None)

    def _admits(self, feed: Feed, broker_id: int) -> bool:
        """One connection for each id. A replica that dials again, from the same host, takes the place of a
        connection that it left behind; from another host only if nothing is heard on the other any more."""
        now_ms, host = feed.heard_ms, host_of(feed.peer)
        patience_ms = self._options.ha_housekeeping_interval_ms // 2
        for connection, other in tuple(self._feeds.items()):
            if other is feed or other.broker_id != broker_id:
                continue
            if host_of(other.peer) != host and now_ms < other.heard_ms + patience_ms:
                return False
            self._forget(connection)
            other.stop(now_ms)
        return True

    def _forget_ended(self, now_ms: int) -> None:
        ended = {connection: feed for connection, feed in self._feeds.items() if feed.has_ended}
        # All of them first: what follows from one tells all others.
        for connection in ended:
            self._forget(connection)
        for feed in ended.values():
            self._ask_to_shrink(feed, now_ms)

    def _ask_to_shrink(self, feed: Feed, now_ms: int) -> None:
        """A member leaves with its last connection."""
        broker_id = feed.broker_id
        if feed.wants_to_shrink and broker_id is not None and self.feed_of(broker_id) is None:
            self._keeper.request_shrink(broker_id, now_ms)
