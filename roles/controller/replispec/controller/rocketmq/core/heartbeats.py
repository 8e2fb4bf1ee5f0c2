"""Who is alive: the newest heartbeat of every broker, and the connection that it came on.

It is the knowledge of one controller, not of its group: brokers send heartbeats to every controller, and
what decides something of it travels in the record. Source: apache/rocketmq rocketmq-all-5.4.0,
DefaultBrokerHeartbeatManager; other than there, the newest heartbeat counts with all that it says, its
connection included, so that neither a log that became shorter nor a connection that was replaced deceives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from replispec.wire.rocketmq import constants
from replispec.wire.rocketmq.controller import BrokerHeartbeatRequest

UNREGISTERED_MAX: Final = 10_000
"""Brokers without identity that are remembered at a time."""

Key = tuple[str, int]
"""The name of a broker set and the id of a broker."""


@dataclass(slots=True)
class _Entry:
    connection: int
    until_ms: int
    said: BrokerHeartbeatRequest


class Heartbeats:
    """The table. `now_ms` is set by its owner before anything is asked; `is_known` tells whether a broker
    has an identity."""

    def __init__(self, is_known: Callable[[str, int], bool]) -> None:
        self.now_ms = 0
        self._is_known = is_known
        self._entries: dict[Key, _Entry] = {}
        self._by_connection: dict[int, set[Key]] = {}
        self._unregistered: set[Key] = set()

    def admits(self, name: str, broker_id: int) -> bool:
        """Whether a heartbeat of this broker may be taken: it is none of too many strangers."""
        if len(self._unregistered) < UNREGISTERED_MAX:
            return True
        key = (name, broker_id)
        return key in self._entries or self._is_known(*key)

    def heartbeat_received(
        self, connection: int, name: str, broker_id: int, said: BrokerHeartbeatRequest
    ) -> None:
        """Take a heartbeat that is admitted.

        Of what it says only numbers are kept: no peer makes the table grow by long texts.
        """
        key = (name, broker_id)
        said.cluster_name = said.broker_name = said.broker_addr = None
        if said.unknown:
            said.unknown = {}
        timeout_ms = said.heartbeat_timeout_mills
        until_ms = self.now_ms + (constants.HEARTBEAT_TIMEOUT_MS if timeout_ms is None else timeout_ms)
        entry = self._entries.get(key)
        if entry is None:
            if not self._is_known(*key):
                self._unregistered.add(key)
            self._entries[key] = _Entry(connection, until_ms, said)
            self._by_connection.setdefault(connection, set()).add(key)
            return
        if entry.connection != connection:
            self._leave(entry.connection, key)
            self._by_connection.setdefault(connection, set()).add(key)
            entry.connection = connection
        entry.until_ms = until_ms
        entry.said = said

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
        return gone

    def _leave(self, connection: int, key: Key) -> None:
        keys = self._by_connection[connection]
        keys.discard(key)
        if not keys:
            del self._by_connection[connection]
