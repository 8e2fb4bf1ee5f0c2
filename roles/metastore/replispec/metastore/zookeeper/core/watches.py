"""Who is to hear of what: each watch once, of one connection.

Watches belong to connections, not to sessions, and lie on no disk: a client says them again on its next
connection. Source: apache/zookeeper 3.5.9, WatchManager, DataTree.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator

from replispec.metastore.zookeeper.core.tree import NodeTree
from replispec.metastore.zookeeper.core.values import Happened
from replispec.wire.zookeeper.constants import NODE_BYTES


class WatchedPart(enum.Enum):
    """What of a node is watched: itself with its data, or which children it has."""

    DATA = enum.auto()
    CHILDREN = enum.auto()


_HEARD_BY = {
    Happened.CREATED: (WatchedPart.DATA,),
    Happened.DATA_CHANGED: (WatchedPart.DATA,),
    Happened.DELETED: (WatchedPart.DATA, WatchedPart.CHILDREN),
    Happened.CHILDREN_CHANGED: (WatchedPart.CHILDREN,),
}
"""Which watches an event meets; a connection that has both hears of it once."""

_Key = tuple[WatchedPart, str]


class Watches:
    """All watches; one connection has at most `each_max`, and those of all take `bytes_max` at most."""

    def __init__(self, each_max: int, bytes_max: int) -> None:
        self._each_max = each_max
        self._bytes_max = bytes_max
        self._bytes = 0
        # Connections in the order in which they began to watch.
        self._by_node: dict[_Key, dict[int, None]] = {}
        self._by_connection: dict[int, dict[_Key, None]] = {}
        self.count = 0

    def has_room(self, connection: int, *paths: str) -> bool:
        """Whether a connection may watch these, too."""
        has_place = len(self._by_connection.get(connection, ())) + len(paths) <= self._each_max
        return has_place and self._bytes + sum(map(_bytes_of, paths)) <= self._bytes_max

    def add(self, connection: int, watched: WatchedPart, path: str) -> None:
        """Tell a connection once of what happens next to a node."""
        key = watched, path
        mine = self._by_connection.setdefault(connection, {})
        if key not in mine:
            mine[key] = None
            self._by_node.setdefault(key, {})[connection] = None
            self.count += 1
            self._bytes += _bytes_of(path)

    def happened(self, event: Happened, path: str) -> tuple[int, ...]:
        """The connections that are to hear of an event; they do not watch the node any more."""
        heard: dict[int, None] = {}
        for watched in _HEARD_BY[event]:
            key = watched, path
            for connection in self._by_node.pop(key, ()):
                self._by_connection[connection].pop(key)
                self.count -= 1
                self._bytes -= _bytes_of(path)
                heard[connection] = None
        return tuple(heard)

    def forget(self, connection: int) -> None:
        """A connection is gone."""
        for key in self._by_connection.pop(connection, ()):
            others = self._by_node[key]
            del others[connection]
            self.count -= 1
            self._bytes -= _bytes_of(key[1])
            if not others:
                del self._by_node[key]


def _bytes_of(path: str) -> int:
    """What a watch counts for."""
    return NODE_BYTES + len(path)


def missed(
    tree: NodeTree, since_zxid: int, data: tuple[str, ...], exist: tuple[str, ...], child: tuple[str, ...]
) -> Iterator[tuple[Happened | None, WatchedPart, str]]:
    """Of nodes that a client watched on a connection before and knows up to a zxid: what happened to each
    meanwhile, in the order in which it says them; None: nothing, it is watched again. `exist` were watched
    while they were not there."""
    for path in data:
        node = tree.find(path)
        if node is None:
            yield Happened.DELETED, WatchedPart.DATA, path
        else:
            is_new = node.mzxid > since_zxid
            yield Happened.DATA_CHANGED if is_new else None, WatchedPart.DATA, path
    for path in exist:
        yield None if tree.find(path) is None else Happened.CREATED, WatchedPart.DATA, path
    for path in child:
        node = tree.find(path)
        if node is None:
            yield Happened.DELETED, WatchedPart.CHILDREN, path
        else:
            is_new = node.pzxid > since_zxid
            yield Happened.CHILDREN_CHANGED if is_new else None, WatchedPart.CHILDREN, path
