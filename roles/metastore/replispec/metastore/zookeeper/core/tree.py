"""The tree of nodes and its sessions, as the records of the log make them: a function of the log alone.

Source: apache/zookeeper 3.5.9, PrepRequestProcessor (checks and their order), DataTree (what is counted).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import assert_never

from replispec.metastore.zookeeper.core.copying import TreeCopy
from replispec.metastore.zookeeper.core.deciding import decide, refusal_of
from replispec.metastore.zookeeper.core.paths import names_a_node, numbered, parent_of
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
    SessionOnRecord,
    SetData,
    TreeNode,
    TreeOutcome,
    TreeRefusal,
    TreeRefused,
    WriteNodes,
    bytes_of,
)
from replispec.wire.zookeeper.constants import ANY_VERSION, NO_SESSION, ROOT
from replispec.wire.zookeeper.machines.metastore_operation import (
    CheckDue,
    CreateDue,
    RemoveDue,
    ReplaceDue,
)
from replispec.wire.zookeeper.machines.metastore_request import WriteDue

_NOTHING_SAID = TreeOutcome()


class NodeTree:
    """All that the records up to `zxid` have made. Only `apply` changes it."""

    def __init__(self) -> None:
        self.zxid = 0
        self.bytes = 0
        """What paths and data take, with NODE_BYTES more for each node."""
        self.sessions: dict[int, SessionOnRecord] = {}
        self._nodes: dict[str, TreeNode] = {}
        self._put(ROOT, TreeNode(b"", 0, 0, 0, 0, 0))
        self._copy: TreeCopy | None = None
        # While a request is applied: how to take back what it has changed so far, and what happened.
        self._undo: list[Callable[[], object]] = []
        self._events: list[tuple[Happened, str]] = []

    @property
    def size(self) -> int:
        """How many nodes there are."""
        return len(self._nodes)

    # What may be asked.

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

    def copy(self) -> TreeCopy:
        """What it is now, to be handed out while it changes; the one before gets nothing more."""
        self._copy = TreeCopy(self.zxid, self, list(self.sessions.items()), list(self._nodes))
        return self._copy

    def copied(self) -> None:
        """The copy is whole, or nobody wants it any more."""
        self._copy = None

    def empty(self, zxid: int) -> None:
        """Become what a copy of this index says, of which all parts follow."""
        self.zxid, self.bytes = zxid, 0
        self.sessions, self._nodes = {}, {}

    def restore(
        self, sessions: Iterable[tuple[int, SessionOnRecord]], nodes: Iterable[tuple[str, TreeNode]]
    ) -> None:
        """Take over a part of a copy: sessions, and nodes after their parents and sessions, without children
        and ephemerals, which follow. Raises KeyError when a parent or a session is missing."""
        self.sessions.update(sessions)
        for path, node in nodes:
            if path != ROOT:
                parent = parent_of(path)
                self._nodes[parent].children[_name(path, parent)] = None
            if node.ephemeral_owner != NO_SESSION:
                self.sessions[node.ephemeral_owner].ephemerals[path] = None
            self._put(path, node)

    def _write(self, request: WriteNodes, time_ms: int) -> TreeOutcome:
        self._undo, self._events = [], []
        session = self.sessions.get(request.session)
        refusal = refusal_of(WriteDue(session is not None))
        if session is None or refusal is not None:
            return TreeOutcome(refusal=refusal)
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
                self._delete(path, version)
                return None
            case CheckVersion(path, version):
                node = self._nodes.get(path)
                decide(CheckDue(_fits(path, node), node is not None, _has(node, version)))
                return None
            case _:
                assert_never(change)

    def _create(self, change: Create, owner: int, session: SessionOnRecord, time_ms: int) -> str:
        path = change.path
        # Of a sequential one the number may be the whole name.
        fits = names_a_node(numbered(path, 0) if change.is_sequential else path)
        above = parent_of(path) if fits and (path != ROOT or change.is_sequential) else ROOT
        parent = self._nodes.get(above)
        if fits and parent is not None and change.is_sequential:
            path = numbered(path, parent.created)
        of_ephemeral = parent is not None and parent.ephemeral_owner != NO_SESSION
        decide(CreateDue(fits, parent is not None, path in self._nodes, of_ephemeral))
        assert parent is not None, "a node below none"
        node = TreeNode(change.data, self.zxid, self.zxid, self.zxid, time_ms, time_ms)
        if change.is_ephemeral:
            node.ephemeral_owner = owner
            session.ephemerals[path] = None
        name, pzxid = _name(path, above), parent.pzxid
        self._keep(above, parent)
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

    def _delete(self, path: str, version: int) -> None:
        node = self._nodes.get(path)
        is_there, has_children = node is not None, node is not None and bool(node.children)
        decide(RemoveDue(path == ROOT, _fits(path, node), is_there, _has(node, version), has_children))
        assert node is not None, "a node that is none is removed"
        self._remove(path, node)

    def _remove(self, path: str, node: TreeNode) -> None:
        above = parent_of(path)
        parent = self._nodes[above]
        name, pzxid, siblings = _name(path, above), parent.pzxid, parent.children
        self._keep(above, parent)
        self._keep(path, node)
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
        node = self._nodes.get(path)
        decide(ReplaceDue(_fits(path, node), node is not None, _has(node, version)))
        assert node is not None, "a node that is none is changed"
        self._keep(path, node)
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

    def _keep(self, path: str, node: TreeNode) -> None:
        """Before a node changes: who copies the tree keeps it as it is."""
        if self._copy is not None:
            self._copy.keep(path, node)

    def _put(self, path: str, node: TreeNode) -> None:
        self._nodes[path] = node
        self.bytes += bytes_of(path, node.data)

    def _take(self, path: str, node: TreeNode) -> None:
        del self._nodes[path]
        self.bytes -= bytes_of(path, node.data)


def _fits(path: str, node: TreeNode | None) -> bool:
    """Whether a path names a node, be it there or not."""
    return node is not None or names_a_node(path)


def _has(node: TreeNode | None, version: int) -> bool:
    """Whether a node has this version, or any will do."""
    return node is not None and version in (ANY_VERSION, node.version)


def _name(path: str, above: str) -> str:
    return path[len(above) + (above != ROOT) :]
