"""The tree as it was at one record, handed out part by part while it changes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, Protocol

from replispec.metastore.zookeeper.core.values import SessionOnRecord, TreeNode, bytes_of

_SESSIONS_AT_ONCE: Final = 1024
"""Sessions of one part; each is about as large as a node without data."""

Part = tuple[Sequence[tuple[int, SessionOnRecord]], Sequence[tuple[str, TreeNode]]]
"""Sessions by their numbers, and nodes by their paths."""


class CopiedTree(Protocol):
    """The tree, as far as a copy needs it."""

    def find(self, path: str) -> TreeNode | None:
        """A node, not to be changed."""
        ...


class TreeCopy:
    """All that the records up to `index` have made. Whoever changes a node says so before (`keep`): what was
    not handed out yet is kept as it is. It costs a pointer for each node, and what changes meanwhile."""

    def __init__(
        self,
        index: int,
        tree: CopiedTree,
        sessions: Sequence[tuple[int, SessionOnRecord]],
        paths: Sequence[str],
    ) -> None:
        self.index: Final = index
        self._tree = tree
        self._sessions = sessions
        self._paths: Iterator[str] = iter(paths)
        self._kept: dict[str, TreeNode] = {}

    def keep(self, path: str, node: TreeNode) -> None:
        """This node is about to change, or to be removed."""
        if node.copied != self.index and node.czxid <= self.index:
            node.copied = self.index
            self._kept.setdefault(path, node.image())

    def parts(self, size: int) -> Iterator[Part]:
        """Parts of about so many bytes each: the oldest sessions first, then nodes, each after its parent."""
        for at in range(0, len(self._sessions), _SESSIONS_AT_ONCE):
            yield self._sessions[at : at + _SESSIONS_AT_ONCE], ()
        nodes: list[tuple[str, TreeNode]] = []
        left = size
        for path in self._paths:
            node = self._taken(path)
            nodes.append((path, node))
            left -= bytes_of(path, node.data)
            if left <= 0:
                yield (), nodes
                nodes, left = [], size
        if nodes:
            yield (), nodes

    def _taken(self, path: str) -> TreeNode:
        kept = self._kept.pop(path, None)
        if kept is not None:
            return kept
        node = self._tree.find(path)
        assert node is not None, f"{path} was removed, and not kept"
        node.copied = self.index
        return node
