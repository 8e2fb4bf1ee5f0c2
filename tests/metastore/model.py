"""The tree once more, as its rules are told to people: a value that is copied before every request.

It shares no code with the tree that is tested: children are found by looking at all paths, what a node has
seen happen is counted as it happens, and of a refused request the copy is thrown away.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from replispec.metastore.zookeeper.core.values import (
    CheckVersion,
    CloseSession,
    Create,
    Delete,
    OpenSession,
    Request,
    SetData,
)


@dataclass(frozen=True)
class ModelNode:
    """All of a node. `changes`: children that were made or removed; `made`: those that were made."""

    data: bytes | None
    czxid: int
    mzxid: int
    pzxid: int
    ctime: int
    mtime: int
    version: int = 0
    changes: int = 0
    made: int = 0
    owner: int = 0


class No(Exception):
    """A request is refused."""


@dataclass
class Model:
    """Nodes by their names from the root, and who has a session."""

    nodes: dict[tuple[str, ...], ModelNode] = field(
        default_factory=lambda: {(): ModelNode(b"", 0, 0, 0, 0, 0)}
    )
    sessions: set[int] = field(default_factory=set)
    zxid: int = 0

    def children(self, names: tuple[str, ...]) -> list[str]:
        """The names of a node's children, ascending."""
        return sorted(each[-1] for each in self.nodes if each and each[:-1] == names)

    def apply(self, now: int, request: Request) -> tuple[str, int] | list[object]:
        """What comes of a request: the refusal and its place, or a result for each change."""
        self.zxid += 1
        if isinstance(request, OpenSession):
            self.sessions.add(request.session)
            return []
        if request.session not in self.sessions:
            return "SESSION_EXPIRED", 0
        if isinstance(request, CloseSession):
            for names in [names for names, node in self.nodes.items() if node.owner == request.session]:
                self._remove(names)
            self.sessions.discard(request.session)
            return []
        before, results = dict(self.nodes), list[object]()
        for place, change in enumerate(request.changes):
            try:
                results.append(self._do(now, request.session, change))
            except No as no:
                self.nodes = before
                return str(no), place
        return results

    def _do(self, now: int, session: int, change: Create | Delete | SetData | CheckVersion) -> object:
        if isinstance(change, Create):
            return self._create(now, session, change)
        names = split(change.path)
        if isinstance(change, Delete) and not names:
            raise No("BAD_ARGUMENTS")
        node = self.nodes.get(names)
        if node is None:
            raise No("NO_NODE")
        if change.version >= 0 and change.version != node.version:
            raise No("BAD_VERSION")
        if isinstance(change, SetData):
            self.nodes[names] = replace(
                node, data=change.data, mzxid=self.zxid, mtime=now, version=node.version + 1
            )
            return self.nodes[names]
        if isinstance(change, Delete):
            if self.children(names):
                raise No("NOT_EMPTY")
            self._remove(names)
        return None

    def _create(self, now: int, session: int, change: Create) -> str:
        head, _, last = change.path.rpartition("/")
        above = split(head)
        if not last and not change.is_sequential:
            raise No("NODE_EXISTS" if change.path == "/" else "BAD_ARGUMENTS")
        if above not in self.nodes:
            raise No("NO_NODE")
        parent = self.nodes[above]
        if change.is_sequential:
            last += str(parent.made).rjust(10, "0")
        if (*above, last) in self.nodes:
            raise No("NODE_EXISTS")
        if parent.owner:
            raise No("NO_CHILDREN_FOR_EPHEMERALS")
        owner = session if change.is_ephemeral else 0
        self.nodes[*above, last] = ModelNode(
            change.data, self.zxid, self.zxid, self.zxid, now, now, owner=owner
        )
        self.nodes[above] = replace(parent, pzxid=self.zxid, changes=parent.changes + 1, made=parent.made + 1)
        return "/" + "/".join((*above, last))

    def _remove(self, names: tuple[str, ...]) -> None:
        del self.nodes[names]
        parent = self.nodes[names[:-1]]
        self.nodes[names[:-1]] = replace(parent, pzxid=self.zxid, changes=parent.changes + 1)


def split(path: str) -> tuple[str, ...]:
    """The names of a path."""
    return tuple(name for name in path.split("/") if name)
