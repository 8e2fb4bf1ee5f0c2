"""Which clients belong to which group, so that consumers can share the queues.

Source: apache/rocketmq rocketmq-all-5.4.0, ClientManageProcessor, ConsumerManager.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from replispec.wire.rocketmq.client import HeartbeatData

GROUPS_MAX: Final = 1_000
"""Groups that one client may belong to; those beyond are not noted."""


class Clients:
    """Members of consumer groups by their connections. `changed` is told each connection of a group of
    which a member came or left, with the group's name."""

    def __init__(self, changed: Callable[[int, str], None]) -> None:
        self._changed = changed
        self._groups: dict[str, dict[int, str]] = {}

    def heard(self, connection: int, data: HeartbeatData) -> None:
        """A client says which groups it belongs to."""
        client = data.client_id or ""
        for each in (data.consumer_data_set or [])[:GROUPS_MAX]:
            group = each.group_name or ""
            members = self._groups.setdefault(group, {})
            if members.get(connection) != client:
                members[connection] = client
                self._tell(group, but=None)

    def left(self, connection: int, group: str) -> None:
        """A client leaves one group."""
        members = self._groups.get(group, {})
        if members.pop(connection, None) is not None:
            if not members:
                del self._groups[group]
            self._tell(group, but=connection)

    def closed(self, connection: int) -> None:
        """A connection is gone, and its client from all groups."""
        for group in [name for name, members in self._groups.items() if connection in members]:
            self.left(connection, group)

    def members(self, group: str) -> list[str]:
        """The ids of a group's clients."""
        return sorted(set(self._groups.get(group, {}).values()))

    def _tell(self, group: str, *, but: int | None) -> None:
        for connection in tuple(self._groups.get(group, {})):
            if connection != but:
                self._changed(connection, group)
