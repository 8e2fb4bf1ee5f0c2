"""Which clients belong to which group, so that consumers can share the queues.

Source: apache/rocketmq rocketmq-all-5.4.0, ClientManageProcessor, ConsumerManager.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from replispec.runtime.primitives.bindings import TEXT_MAX
from replispec.runtime.rocketmq.remoting import Shares, host_of
from replispec.wire.rocketmq.client import ConsumerData, ProducerData
from replispec.wire.rocketmq.constants import CLIENT_EXPIRY_MS

GROUPS_MAX: Final = 1_000
"""Groups that one client may belong to; those beyond are not noted."""
MEMBERS_MAX: Final = 100_000
"""Members of all groups; beyond that the host that has most of them gives way to others."""


@dataclass(frozen=True, slots=True)
class ClientSaid:
    """Who sent a heartbeat: HOST:PORT as the broker sees it, its own id, and the language and the release of
    its header."""

    address: str
    client: str
    language: str
    version: int


@dataclass(frozen=True, slots=True)
class GroupClient:
    """A member of one group: who it is, when it was heard last, and how it consumes if it does, without
    what it subscribes to."""

    heard: ClientSaid
    heard_ms: int
    consumer: ConsumerData = field(default_factory=ConsumerData)


class MembersOfGroups:
    """Members of groups by their connections."""

    def __init__(self) -> None:
        self._groups: dict[str, dict[int, GroupClient]] = {}
        self._joined: dict[int, set[str]] = {}
        self._shares = Shares[tuple[int, str]](MEMBERS_MAX)

    def join(self, connection: int, group: str, client: GroupClient) -> bool:
        """A client is in a group; whether that is another group now. Longer names than anybody needs are not
        noted, and who comes when there is no room may find none."""
        host = host_of(client.heard.address)
        is_short = max(len(client.heard.client), len(group)) <= TEXT_MAX
        return (
            is_short and self._admits(connection, host, group) and self._join(connection, host, group, client)
        )

    def left(self, connection: int, group: str) -> bool:
        """A client leaves one group; whether it was in it."""
        joined = self._joined.get(connection, set())
        if group not in joined:
            return False
        joined.discard(group)
        if not joined:
            del self._joined[connection]
        self._shares.drop((connection, group))
        members = self._groups[group]
        del members[connection]
        if not members:
            del self._groups[group]
        return True

    def closed(self, connection: int) -> None:
        """A connection is gone, and its client from all groups."""
        for group in sorted(self._joined.get(connection, ())):
            self.left(connection, group)

    def members(self, group: str) -> list[str]:
        """The ids of a group's clients."""
        return sorted({each.heard.client for each in self._groups.get(group, {}).values()})

    def connection_of(self, group: str, client: str) -> int | None:
        """The newest connection of a client of a group; None where it has none."""
        members = self._groups.get(group, {})
        return next((each for each in reversed(members) if members[each].heard.client == client), None)

    def described(self, group: str) -> list[GroupClient]:
        """A group's clients, in the order of their joining."""
        return list(self._groups.get(group, {}).values())

    def groups(self) -> list[str]:
        """The groups that have a client, ascending."""
        return sorted(self._groups)

    def sizes(self) -> Iterator[tuple[str, int]]:
        """Every group, and how many connections its clients have."""
        for group, members in self._groups.items():
            yield group, len(members)

    def _admits(self, connection: int, host: str, group: str) -> bool:
        joined = self._joined.get(connection, ())
        if group in joined or not self._shares.is_full:
            return group in joined or len(joined) < GROUPS_MAX
        going = self._shares.giving_way(host)
        if going is not None and len(joined) < GROUPS_MAX:
            self.left(*going)
        return not self._shares.is_full

    def _join(self, connection: int, host: str, group: str, client: GroupClient) -> bool:
        joined = self._joined.setdefault(connection, set())
        if group not in joined:
            joined.add(group)
            self._shares.take(host, (connection, group))
        members = self._groups.setdefault(group, {})
        known = members.get(connection)
        members[connection] = client
        return known is None or known.heard.client != client.heard.client


class Clients(MembersOfGroups):
    """Members of consumer groups, and beside them those of producer groups. Whoever keeps this asks with
    `take_news` for those that have to be told that a member of their group came or left."""

    def __init__(self) -> None:
        super().__init__()
        self.producers: Final = MembersOfGroups()
        # Groups that changed, and connections of the first of them that are to be told of it.
        self._changed: dict[str, None] = {}
        self._telling: tuple[str, list[int]] | None = None
        # When each connection was heard last, the longest silence first.
        self._heard: dict[int, int] = {}

    def heartbeat_received(
        self,
        connection: int,
        heard: ClientSaid,
        groups: Sequence[ConsumerData],
        now_ms: int,
        producers: Sequence[ProducerData] = (),
    ) -> None:
        """A client says which groups it belongs to."""
        self._heard.pop(connection, None)
        self._heard[connection] = now_ms
        heard = replace(heard, language=heard.language[:TEXT_MAX])
        for consumer in groups[:GROUPS_MAX]:
            group = consumer.group_name or ""
            if self.join(connection, group, GroupClient(heard, now_ms, _how(consumer))):
                self._changed[group] = None
        for producer in producers[:GROUPS_MAX]:
            self.producers.join(connection, producer.group_name or "", GroupClient(heard, now_ms))

    def left(self, connection: int, group: str) -> bool:
        """A client leaves one group of consumers; whether it was in it."""
        was_in_it = super().left(connection, group)
        if was_in_it:
            self._changed[group] = None
        return was_in_it

    def closed(self, connection: int) -> None:
        """A connection is gone, and its client from all groups."""
        self._heard.pop(connection, None)
        super().closed(connection)
        self.producers.closed(connection)

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


def _how(consumer: ConsumerData) -> ConsumerData:
    return ConsumerData(
        consume_from_where=_cut(consumer.consume_from_where),
        consume_type=_cut(consumer.consume_type),
        message_model=_cut(consumer.message_model),
    )


def _cut(word: str | None) -> str | None:
    """A word that is not known may be as long as its peer likes."""
    return None if word is None else word[:TEXT_MAX]
