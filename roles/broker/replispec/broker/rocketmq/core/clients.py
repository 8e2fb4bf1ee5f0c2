"""Which clients belong to which group, so that consumers can share the queues.

Source: apache/rocketmq rocketmq-all-5.4.0, ClientManageProcessor, ConsumerManager.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from replispec.runtime.primitives.bindings import TEXT_MAX
from replispec.wire.rocketmq.client import ConsumerData
from replispec.wire.rocketmq.constants import CLIENT_EXPIRY_MS

GROUPS_MAX: Final = 1_000
"""Groups that one client may belong to; those beyond are not noted."""
MEMBERS_MAX: Final = 100_000
"""Members of all groups; those beyond are not noted."""


class Clients:
    """Members of consumer groups by their connections. Whoever keeps this asks with `take_news` for those
    that have to be told that a member of their group came or left."""

    def __init__(self) -> None:
        # Groups that changed, and connections of the first of them that are to be told of it.
        self._changed: dict[str, None] = {}
        self._telling: tuple[str, list[int]] | None = None
        self._groups: dict[str, dict[int, str]] = {}
        self._joined: dict[int, set[str]] = {}
        self._members = 0
        # When each connection was heard last, the longest silence first.
        self._heard: dict[int, int] = {}

    def heartbeat_received(
        self, connection: int, client: str, groups: Sequence[ConsumerData], now_ms: int
    ) -> None:
        """A client says which groups it belongs to. Longer names than anybody needs are not noted."""
        self._heard.pop(connection, None)
        self._heard[connection] = now_ms
        for each in groups[:GROUPS_MAX]:
            group = each.group_name or ""
            if max(len(client), len(group)) <= TEXT_MAX and self._admits(connection, group):
                self._join(connection, group, client)

    def left(self, connection: int, group: str) -> None:
        """A client leaves one group."""
        joined = self._joined.get(connection, set())
        if group not in joined:
            return
        joined.discard(group)
        if not joined:
            del self._joined[connection]
        self._members -= 1
        members = self._groups[group]
        del members[connection]
        if not members:
            del self._groups[group]
        self._changed[group] = None

    def closed(self, connection: int) -> None:
        """A connection is gone, and its client from all groups."""
        self._heard.pop(connection, None)
        for group in sorted(self._joined.get(connection, ())):
            self.left(connection, group)

    def silent(self, now_ms: int) -> list[int]:
        """Connections of which no heartbeat came any more, for too long."""
        found = []
        for connection, heard_ms in self._heard.items():
            if now_ms < heard_ms + CLIENT_EXPIRY_MS:
                break
            found.append(connection)
        return found

    def deadline_ms(self) -> int | None:
        """When a connection may be silent for too long."""
        oldest_ms = next(iter(self._heard.values()), None)
        return None if oldest_ms is None else oldest_ms + CLIENT_EXPIRY_MS

    def members(self, group: str) -> list[str]:
        """The ids of a group's clients."""
        return sorted(set(self._groups.get(group, {}).values()))

    @property
    def has_news(self) -> bool:
        """Whether somebody has to be told of a change."""
        return bool(self._changed) or self._telling is not None

    def take_news(self, count_max: int) -> Iterator[tuple[str, list[int]]]:
        """Groups that changed, each with connections of members, of which there are at most so many together;
        the others are for the next time. Several changes of one group until then are one."""
        while count_max > 0 and self.has_news:
            if self._telling is None:
                group = next(iter(self._changed))
                del self._changed[group]
                self._telling = group, list(self._groups.get(group, ()))
            group, connections = self._telling
            told = connections[-count_max:]
            del connections[-count_max:]
            if not connections:
                self._telling = None
            count_max -= max(1, len(told))
            yield group, told

    def _admits(self, connection: int, group: str) -> bool:
        joined = self._joined.get(connection, ())
        return group in joined or (len(joined) < GROUPS_MAX and self._members < MEMBERS_MAX)

    def _join(self, connection: int, group: str, client: str) -> None:
        joined = self._joined.setdefault(connection, set())
        self._members += group not in joined
        joined.add(group)
        members = self._groups.setdefault(group, {})
        if members.get(connection) != client:
            members[connection] = client
            self._changed[group] = None
