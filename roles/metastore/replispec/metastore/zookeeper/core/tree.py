"""The tree of nodes and its sessions, as the records of the log make them: a function of the log alone.

Source: apache/zookeeper 3.5.9, PrepRequestProcessor (checks and their order), DataTree (what is counted).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import assert_never

from replispec.metastore.zookeeper.core.paths import check_path, numbered, parent_of
from replispec.metastore.zookeeper.core.values import (
    Change,
    CheckVersion,
    CloseSession,
    Create,
    Delete,
    Happened,
    NodeStat,
    OpenSession,
    Request,
    Result,
    SetData,
    TreeOutcome,
    TreeRefusal,
    TreeRefused,
    WriteNodes,
)
from replispec.wire.zookeeper.constants import ANY_VERSION, NO_SESSION, NODE_BYTES, ROOT

_NOTHING_SAID = TreeOutcome()


@dataclass(slots=True, eq=False)
class TreeNode:
    """One node. `created`: how many children of it were ever made."""

    data: bytes | None
    czxid: int
    mzxid: int
    pzxid: int
    ctime_ms: int
    mtime_ms: int
    version: int = 0
    created: int = 0
    ephemeral_owner: int = NO_SESSION
    children: dict[str, None] = field(default_factory=dict)

    def stat(self) -> NodeStat:
        """What clients are told. The cversion counts each child that was made and each that was removed."""
        return NodeStat(
            czxid=self.czxid,
            mzxid=self.mzxid,
            ctime_ms=self.ctime_ms,
            mtime_ms=self.mtime_ms,
            version=self.version,
            cversion=2 * self.created - len(self.children),
            ephemeral_owner=self.ephemeral_owner,
            data_length=len(self.data or b""),
            num_children=len(self.children),
            pzxid=self.pzxid,
        )


@dataclass(slots=True, eq=False)
class SessionOnRecord:
    """A session that lives, and what of the tree goes with it."""

    password: bytes
    timeout_ms: int
    ephemerals: dict[str, None] = field(default_factory=dict)


class NodeTree:
    """All that the records up to `zxid` have made. Only `apply` changes it."""

    def __init__(self) -> None:
        self.zxid = 0
        self.bytes = 0
        """What paths and data take, with NODE_BYTES more for each node."""
        self.sessions: dict[int, SessionOnRecord] = {}
        self._nodes: dict[str, TreeNode] = {}
        self._put(ROOT, TreeNode(b"", 0, 0, 0, 0, 0))
        # While a request is applied: how to take back what it has changed so far, and what happened.
        self._undo: list[Callable[[], object]] = []
        self._events: list[tuple[Happened, str]] = []

    @property
    def size(self) -> int:
        """How many nodes there are."""
        return len(self._nodes)

    # What may be asked.

    def data(self, path: str) -> tuple[bytes | None, NodeStat]:
        """What a node holds. Raises Refused."""
        node = self._there(path)
        return node.data, node.stat()

    def stat(self, path: str) -> NodeStat:
        """What a node is. Raises Refused."""
        return self._there(path).stat()

    def children(self, path: str) -> tuple[Sequence[str], NodeStat]:
        """The names of a node's children, ascending. Raises Refused."""
        node = self._there(path)
        return sorted(node.children), node.stat()

    def find(self, path: str) -> TreeNode | None:
        """A node, not to be changed."""
        return self._nodes.get(path)

    def nodes(self) -> Iterator[tuple[str, TreeNode]]:
        """Every node, each after its parent."""
        yield from self._nodes.items()

    # What changes it.

    def apply(self, zxid: int, time_ms: int, request: Request) -> TreeOutcome | None:
        """Have one record take effect and return what came of it; None of one that the tree has already."""
        if zxid <= self.zxid:
            return None
        assert zxid == self.zxid + 1, f"record {zxid} after {self.zxid}"
        self.zxid = zxid
        match request:
            case WriteNodes():
                return self._write(request, time_ms)
            case OpenSession(session, password, timeout_ms):
                # One that is there stays what it is, with all that goes with it.
                self.sessions.setdefault(session, SessionOnRecord(password, timeout_ms))
                return _NOTHING_SAID
            case CloseSession(session):
                return self._close(session)
            case _:
                assert_never(request)

    def refuses(self, request: WriteNodes) -> TreeOutcome | None:
        """The refusal with which a request would meet now, which then need not be on record; None: none."""
        outcome = self._write(request, 0)
        for take_back in reversed(self._undo):
            take_back()
        self._undo = []
        return None if outcome.refusal is None else outcome

    def restore(
        self,
        zxid: int,
        sessions: Iterable[tuple[int, SessionOnRecord]],
        nodes: Mapping[str, TreeNode],
    ) -> None:
        """Become what a snapshot says: nodes after their parents, without children and ephemerals, which
        follow. Raises KeyError when a parent or a session is missing."""
        self.zxid, self.bytes = zxid, 0
        self.sessions = dict(sessions)
        self._nodes = {}
        for path, node in nodes.items():
            if path != ROOT:
                parent = parent_of(path)
                self._nodes[parent].children[_name(path, parent)] = None
            if node.ephemeral_owner != NO_SESSION:
                self.sessions[node.ephemeral_owner].ephemerals[path] = None
            self._put(path, node)
        self._nodes[ROOT]

    def _write(self, request: WriteNodes, time_ms: int) -> TreeOutcome:
        self._undo, self._events = [], []
        session = self.sessions.get(request.session)
        if session is None:
            return TreeOutcome(refusal=TreeRefusal.SESSION_EXPIRED)
        results: list[Result] = []
        try:
            for change in request.changes:
                results.append(self._change(change, request.session, session, time_ms))  # noqa: PERF401
        except TreeRefused as refused:
            for take_back in reversed(self._undo):
                take_back()
            self._undo = []
            return TreeOutcome(refusal=refused.refusal, refused_at=len(results))
        return TreeOutcome(tuple(results), tuple(self._events))

    def _change(self, change: Change, owner: int, session: SessionOnRecord, time_ms: int) -> Result:
        match change:
            case SetData(path, data, version):
                return self._set_data(path, data, version, time_ms)
            case Create():
                return self._create(change, owner, session, time_ms)
            case Delete(path, version):
                if path == ROOT:
                    raise TreeRefused(TreeRefusal.BAD_ARGUMENTS)
                self._remove(path, _fits(self._there(path), version))
                return None
            case CheckVersion(path, version):
                _fits(self._there(path), version)
                return None
            case _:
                assert_never(change)

    def _create(self, change: Create, owner: int, session: SessionOnRecord, time_ms: int) -> str:
        path = change.path
        # Of a sequential one the number may be the whole name.
        check_path(numbered(path, 0) if change.is_sequential else path)
        above = parent_of(path) if path != ROOT or change.is_sequential else ROOT
        parent = self._nodes.get(above)
        if parent is None:
            raise TreeRefused(TreeRefusal.NO_NODE)
        if change.is_sequential:
            path = numbered(path, parent.created)
        if path in self._nodes:
            raise TreeRefused(TreeRefusal.NODE_EXISTS)
        if parent.ephemeral_owner != NO_SESSION:
            raise TreeRefused(TreeRefusal.NO_CHILDREN_FOR_EPHEMERALS)
        node = TreeNode(change.data, self.zxid, self.zxid, self.zxid, time_ms, time_ms)
        if change.is_ephemeral:
            node.ephemeral_owner = owner
            session.ephemerals[path] = None
        name, pzxid = _name(path, above), parent.pzxid
        parent.children[name] = None
        parent.created += 1
        parent.pzxid = self.zxid
        self._put(path, node)

        def take_back() -> None:
            self._take(path, node)
            session.ephemerals.pop(path, None)
            del parent.children[name]
            parent.created -= 1
            parent.pzxid = pzxid

        self._undo.append(take_back)
        self._events += ((Happened.CREATED, path), (Happened.CHILDREN_CHANGED, above))
        return path

    def _remove(self, path: str, node: TreeNode) -> None:
        if node.children:
            raise TreeRefused(TreeRefusal.NOT_EMPTY)
        above = parent_of(path)
        parent = self._nodes[above]
        name, pzxid, siblings = _name(path, above), parent.pzxid, parent.children
        owner = self.sessions.get(node.ephemeral_owner)
        if owner is not None:
            del owner.ephemerals[path]
        del siblings[name]
        parent.pzxid = self.zxid
        self._take(path, node)

        def take_back() -> None:
            self._put(path, node)
            if owner is not None:
                owner.ephemerals[path] = None
            siblings[name] = None
            parent.pzxid = pzxid

        self._undo.append(take_back)
        self._events += ((Happened.DELETED, path), (Happened.CHILDREN_CHANGED, above))

    def _set_data(self, path: str, data: bytes | None, version: int, time_ms: int) -> NodeStat:
        node = _fits(self._there(path), version)
        before = (node.data, node.mzxid, node.mtime_ms, node.version)
        self.bytes += len(data or b"") - len(node.data or b"")
        node.data, node.mzxid, node.mtime_ms = data, self.zxid, time_ms
        node.version += 1

        def take_back() -> None:
            self.bytes += len(before[0] or b"") - len(node.data or b"")
            node.data, node.mzxid, node.mtime_ms, node.version = before

        self._undo.append(take_back)
        self._events.append((Happened.DATA_CHANGED, path))
        return node.stat()

    def _close(self, number: int) -> TreeOutcome:
        session = self.sessions.get(number)
        if session is None:
            return TreeOutcome(refusal=TreeRefusal.SESSION_EXPIRED)
        self._undo, self._events = [], []
        for path in tuple(session.ephemerals):
            self._remove(path, self._nodes[path])
        del self.sessions[number]
        return TreeOutcome(events=tuple(self._events))

    def _there(self, path: str) -> TreeNode:
        node = self._nodes.get(path)
        if node is None:
            check_path(path)
            raise TreeRefused(TreeRefusal.NO_NODE)
        return node

    def _put(self, path: str, node: TreeNode) -> None:
        self._nodes[path] = node
        self.bytes += bytes_of(path, node.data)

    def _take(self, path: str, node: TreeNode) -> None:
        del self._nodes[path]
        self.bytes -= bytes_of(path, node.data)


def bytes_of(path: str, data: bytes | None) -> int:
    """What a node counts for in the size of a tree."""
    return NODE_BYTES + len(path) + len(data or b"")


def _fits(node: TreeNode, version: int) -> TreeNode:
    """The node, if this is its version or any is. Raises Refused."""
    if version not in (ANY_VERSION, node.version):
        raise TreeRefused(TreeRefusal.BAD_VERSION)
    return node


def _name(path: str, above: str) -> str:
    return path[len(above) + (above != ROOT) :]
