"""What may be asked of the tree, and what comes of it."""

from __future__ import annotations

import enum

from replispec.runtime.primitives.immutable import immutable


class TreeRefusal(enum.Enum):
    """Why a change or a question is refused, by the protocol's name of the error."""

    BAD_ARGUMENTS = enum.auto()
    BAD_VERSION = enum.auto()
    INVALID_ACL = enum.auto()
    NO_CHILDREN_FOR_EPHEMERALS = enum.auto()
    NODE_EXISTS = enum.auto()
    NO_NODE = enum.auto()
    NOT_EMPTY = enum.auto()
    RUNTIME_INCONSISTENCY = enum.auto()
    SESSION_EXPIRED = enum.auto()
    SYSTEM_ERROR = enum.auto()
    UNIMPLEMENTED = enum.auto()


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
