"""Who is alive: the newest heartbeat of every broker, and the connection that it came on.

It is the knowledge of one controller, not of its group: brokers send heartbeats to every controller, and
what decides something of it travels in the record. Source: apache/rocketmq rocketmq-all-5.4.0,
DefaultBrokerHeartbeatManager; other than there, the newest heartbeat counts with all that it says, its
connection included, so that neither a log that became shorter nor a connection that was replaced deceives.

A heartbeat in the name of a broker with an identity counts where it comes from that broker, as far as a
controller without authentication can tell: from the host that registered the id, or from that of its recorded
address. Of a broker that has been heard from none of these since this controller began the first connection
counts, as in Apache RocketMQ: addresses are translated on the way in some networks. So does another one from
its host while it is open: the members of a group that registered nobody know no more than that of who moves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from replispec.runtime.rocketmq.rules.addresses import canonical_address
from replispec.wire.rocketmq import constants
from replispec.wire.rocketmq.controller import BrokerHeartbeatRequest

UNREGISTERED_MAX: Final = 10_000
"""Brokers without identity that are remembered at a time."""

Key = tuple[str, int]
"""The name of a broker set and the id of a broker."""


@dataclass(slots=True)
class _Entry:
    connection: int
    host: str
    until_ms: int
    said: BrokerHeartbeatRequest


class Heartbeats:
    """The table. `now_ms` is set by its owner before anything is asked; `is_known` tells whether a broker
    has an identity, `address_of` the ADDRESS:PORT that is on record of it."""

    def __init__(
        self, is_known: Callable[[str, int], bool], address_of: Callable[[str, int], str | None]
    ) -> None:
        self.now_ms = 0
        self._is_known = is_known
        self._address_of = address_of
        # The host from which each broker was registered since this controller began.
        self._registered: dict[Key, str] = {}
        # Who was heard from where it is known to be, since then.
        self._vouched: set[Key] = set()
        self._entries: dict[Key, _Entry] = {}
        self._by_connection: dict[int, set[Key]] = {}
        self._unregistered: set[Key] = set()
        self._left: set[Key] = set()

    def admits(self, name: str, broker_id: int) -> bool:
        """Whether a heartbeat of this broker may be taken: it is none of too many strangers."""
        if len(self._unregistered) < UNREGISTERED_MAX:
            return True
        key = (name, broker_id)
        return key in self._entries or self._is_known(*key)

    def registered(self, peer: str, name: str, broker_id: int) -> None:
        """A broker was registered on a connection of this peer."""
        if self._is_known(name, broker_id):
            self._registered[name, broker_id] = host_of(peer)

    def heartbeat_received(
        self, connection: int, peer: str, name: str, broker_id: int, said: BrokerHeartbeatRequest
    ) -> bool:
        """Take a heartbeat that is admitted; false when it is a stranger's in the name of a broker.

        Of what it says only numbers are kept: no peer makes the table grow by long texts.
        """
        key, host = (name, broker_id), host_of(peer)
        if self._is_vouched(key, host):
            self._vouched.add(key)
        elif self._is_stranger(key, connection, host):
            return False
        said.broker_id, said.cluster_name = broker_id, None
        said.broker_name = said.broker_addr = None
        if said.unknown:
            said.unknown = {}
        timeout_ms = said.heartbeat_timeout_mills
        until_ms = self.now_ms + (constants.HEARTBEAT_TIMEOUT_MS if timeout_ms is None else timeout_ms)
        entry = self._entries.get(key)
        self._left.discard(key)
        if entry is None:
            if not self._is_known(*key):
                self._unregistered.add(key)
            self._entries[key] = _Entry(connection, host, until_ms, said)
            self._by_connection.setdefault(connection, set()).add(key)
            return True
        if entry.connection != connection:
            self._leave(entry.connection, key)
            self._by_connection.setdefault(connection, set()).add(key)
            entry.connection, entry.host = connection, host
        entry.until_ms = until_ms
        entry.said = said
        return True

    def _is_vouched(self, key: Key, host: str) -> bool:
        """Whether this is where the broker is known to be."""
        if self._registered.get(key) == host:
            return True
        address = self._address_of(*key)
        return address is not None and host_of(address) == host

    def _is_stranger(self, key: Key, connection: int, host: str) -> bool:
        """Whether somebody else speaks for a broker that is known, as far as can be told."""
        if not self._is_known(*key):
            return False
        entry = self._entries.get(key)
        is_other = entry is not None and entry.connection != connection and entry.host != host
        return key in self._vouched or is_other

    def is_alive(self, name: str, broker_id: int) -> bool:
        """Whether this broker's newest heartbeat still counts, the last millisecond included."""
        entry = self._entries.get((name, broker_id))
        return entry is not None and self.now_ms <= entry.until_ms

    def living(self, name: str, brokers: Iterable[int]) -> list[BrokerHeartbeatRequest]:
        """The newest heartbeats of those of these brokers that are alive, ascending by id."""
        found = [self._entries.get((name, broker)) for broker in sorted(brokers)]
        return [entry.said for entry in found if entry is not None and self.now_ms <= entry.until_ms]

    def expired(self) -> list[Key]:
        """Forget whose heartbeats stopped, and name them."""
        late = [key for key, entry in self._entries.items() if entry.until_ms < self.now_ms]
        for key in late:
            self._leave(self._entries.pop(key).connection, key)
            self._unregistered.discard(key)
        return late

    def closed(self, connection: int) -> list[Key]:
        """Forget whose newest heartbeat came on this connection, and name them."""
        gone = sorted(self._by_connection.pop(connection, ()))
        for key in gone:
            del self._entries[key]
            self._unregistered.discard(key)
        self._left.update(key for key in gone if self._is_known(*key))
        return gone

    def has_left(self, name: str, broker_id: int) -> bool:
        """Whether this broker was heard, then its connection ended, and nothing was heard of it since."""
        return (name, broker_id) in self._left

    def _leave(self, connection: int, key: Key) -> None:
        keys = self._by_connection[connection]
        keys.discard(key)
        if not keys:
            del self._by_connection[connection]


def host_of(address: str) -> str:
    """The host of an ADDRESS:PORT."""
    return canonical_address(address).rpartition(":")[0]
