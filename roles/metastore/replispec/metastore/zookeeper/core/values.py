"""What may be asked of the tree, and what comes of it."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from replispec.runtime.primitives.immutable import immutable
from replispec.wire.zookeeper.constants import NO_SESSION, NODE_BYTES


class TreeRefusal(enum.Enum):
    """Why a change or a question is refused, by the protocol's name of the error."""

    BAD_ARGUMENTS = enum.auto()
    BAD_VERSION = enum.auto()
    INVALID_ACL = enum.auto()
    NO_CHILDREN_FOR_EPHEMERALS = enum.auto()
    NODE_EXISTS = enum.auto()
    NO_NODE = enum.auto()
    NOT_EMPTY = enum.auto()
    SESSION_EXPIRED = enum.auto()
    SYSTEM_ERROR = enum.auto()

    @property
    def effect(self) -> str:
        """The effect of a machine that refuses so."""
        return f"refuse_{self.name.lower()}"

    @property
    def is_of_all(self) -> bool:
        """Whether a request is refused so as a whole, whatever it consists of."""
        return self in (TreeRefusal.SESSION_EXPIRED, TreeRefusal.SYSTEM_ERROR)


class TreeRefused(Exception):
    """A change or a question is refused."""

    def __init__(self, refusal: TreeRefusal) -> None:
        super().__init__(refusal.name)
        self.refusal = refusal


class Happened(enum.Enum):
    """What happened to a node, as those hear it who watch it."""

    CREATED = enum.auto()
    DELETED = enum.auto()
    DATA_CHANGED = enum.auto()
    CHILDREN_CHANGED = enum.auto()


@immutable
class Create:
    """Make a node; `data` None is none, which is not the same as empty."""

    path: str
    data: bytes | None
    is_ephemeral: bool = False
    is_sequential: bool = False


@immutable
class Delete:
    """Remove a node, if `version` is its version or negative as ANY_VERSION is."""

    path: str
    version: int


@immutable
class SetData:
    """Replace what a node holds, if `version` fits."""

    path: str
    data: bytes | None
    version: int


@immutable
class CheckVersion:
    """Change nothing, but refuse if `version` does not fit."""

    path: str
    version: int


Change = Create | Delete | SetData | CheckVersion


@immutable
class WriteNodes:
    """What a session wants to change: all of it or nothing."""

    session: int
    changes: tuple[Change, ...]


@immutable
class OpenSession:
    """A session begins."""

    session: int
    password: bytes
    timeout_ms: int


@immutable
class CloseSession:
    """A session ends, and its ephemeral nodes with it."""

    session: int
    is_expired: bool = False


Request = WriteNodes | OpenSession | CloseSession


@immutable
class NodeStat:
    """All about a node but its name and its data. Times are milliseconds since 1970."""

    czxid: int
    mzxid: int
    ctime_ms: int
    mtime_ms: int
    version: int
    cversion: int
    ephemeral_owner: int
    data_length: int
    num_children: int
    pzxid: int


Result = str | NodeStat | None
"""What a change gives: the path of a node that was made, what a node with new data is, or nothing."""


@immutable
class TreeOutcome:
    """What came of a request. `refusal` at the place `refused_at` of its changes: nothing was changed; else
    `results` has one for each change. `events` are what happened, in order, to be told to those who watch."""

    results: tuple[Result, ...] = ()
    events: tuple[tuple[Happened, str], ...] = ()
    refusal: TreeRefusal | None = None
    refused_at: int = 0


@dataclass(slots=True, eq=False)
class TreeNode:
    """One node. `created`: how many children of it were ever made; `copied`: the copy of the tree that has it
    already, by its index."""

    data: bytes | None
    czxid: int
    mzxid: int
    pzxid: int
    ctime_ms: int
    mtime_ms: int
    version: int = 0
    created: int = 0
    ephemeral_owner: int = NO_SESSION
    copied: int = 0
    children: dict[str, None] = field(default_factory=dict)

    def image(self) -> TreeNode:
        """The same without its children, which may change by itself."""
        return TreeNode(
            self.data,
            self.czxid,
            self.mzxid,
            self.pzxid,
            self.ctime_ms,
            self.mtime_ms,
            self.version,
            self.created,
            self.ephemeral_owner,
        )

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


def bytes_of(path: str, data: bytes | None) -> int:
    """What a node counts for in the size of a tree."""
    return NODE_BYTES + len(path) + len(data or b"")
