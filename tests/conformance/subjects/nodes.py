"""The tree of a scripted metastore; wrong ones override one choice of it each."""

from __future__ import annotations

from dataclasses import dataclass, field

from replispec.wire.zookeeper.codes import CreateFlags, ErrorCode, WatchEvent
from replispec.wire.zookeeper.operations import AccessEntry, CreateRequest, Stat

Told = tuple[int, str]
EPHEMERAL = (CreateFlags.EPHEMERAL, CreateFlags.EPHEMERAL_SEQUENTIAL)
SEQUENTIAL = (CreateFlags.PERSISTENT_SEQUENTIAL, CreateFlags.EPHEMERAL_SEQUENTIAL)
ROOT = "/"
CONTROL = "\x1f"


class Refusal(Exception):
    """A request is refused."""

    def __init__(self, error: int) -> None:
        super().__init__(error)
        self.error = error


@dataclass
class ScriptedNode:
    """One node."""

    data: bytes | None
    czxid: int
    mzxid: int
    pzxid: int
    owner: int = 0
    version: int = 0
    cversion: int = 0
    made: int = 0
    children: set[str] = field(default_factory=set)

    def stat(self) -> Stat:
        """What is told of it."""
        return Stat(
            czxid=self.czxid,
            mzxid=self.mzxid,
            ctime=self.czxid + 1,
            mtime=self.mzxid + 1,
            version=self.version,
            cversion=self.cversion,
            ephemeral_owner=self.owner,
            data_length=len(self.data or b""),
            num_children=len(self.children),
            pzxid=self.pzxid,
        )


class Nodes:
    """All nodes by their paths, and the newest change."""

    step = 1

    def __init__(self) -> None:
        self.zxid = 0
        self.all = {ROOT: ScriptedNode(b"", 0, 0, 0)}

    # What a fault overrides

    def is_path(self, path: str) -> bool:
        """Whether this names a node."""
        names = path[1:].split(ROOT)
        return path.startswith(ROOT) and not any(name in ("", ".", "..") or name <= CONTROL for name in names)

    def takes(self, acl: list[AccessEntry] | None) -> int:
        """The error of a list of who may do what; 0: it is taken."""
        if acl is None:
            return ErrorCode.MARSHALLING_ERROR
        return 0 if acl and all(each.scheme == "world" for each in acl) else ErrorCode.INVALID_ACL

    def takes_flags(self, flags: int) -> bool:
        """Whether flags mean something."""
        return flags in CreateFlags.__members__.values()

    def number(self, parent: ScriptedNode) -> str:
        """The end of the name of a sequential node."""
        return f"{parent.made:010d}"

    def fits(self, node: ScriptedNode, version: int) -> bool:
        """Whether a node has the version."""
        return version in (-1, node.version)

    def fits_for_deletion(self, node: ScriptedNode, version: int) -> bool:
        """Whether a node has the version that is demanded of one that is to go."""
        return self.fits(node, version)

    def may_be_parent(self, parent: ScriptedNode) -> bool:
        """Whether a node may have children."""
        return not parent.owner

    def orphan(self, path: str) -> None:  # noqa: ARG002
        """The parent of a node that is to be made is not there."""
        raise Refusal(ErrorCode.NO_NODE)

    def kept(self, data: bytes | None) -> bytes | None:
        """What a node holds."""
        return data

    def has_children(self, path: str, node: ScriptedNode) -> bool:  # noqa: ARG002
        """Whether a node cannot go for its children."""
        return bool(node.children)

    def child_made(self, parent: ScriptedNode) -> None:
        """A child is new."""
        parent.cversion += 1
        parent.made += 1
        parent.pzxid = self.zxid

    def child_deleted(self, parent: ScriptedNode) -> None:
        """A child is gone."""
        parent.cversion += 1
        parent.pzxid = self.zxid

    def changed(self, node: ScriptedNode, data: bytes | None) -> None:
        """Data are replaced."""
        node.data, node.mzxid = self.kept(data), self.zxid
        node.version += 1

    def first_version(self, path: str) -> int:  # noqa: ARG002
        """The version of a new node."""
        return 0

    # What stays

    def begin(self) -> None:
        """A change begins."""
        self.zxid += self.step

    def there(self, path: str | None) -> ScriptedNode:
        """The node of a path. Raises Refusal."""
        node = self.all.get(path or "")
        if node is None:
            raise Refusal(ErrorCode.NO_NODE)
        return node

    def of_session(self, owner: int) -> list[str]:
        """The nodes that go with a session."""
        return [path for path, node in self.all.items() if node.owner == owner]

    def create(self, said: CreateRequest, session: int) -> tuple[str, list[Told]]:
        """Make a node. Raises Refusal."""
        path = said.path or ""
        sequential = said.flags in SEQUENTIAL
        if not self.takes_flags(said.flags) or not (path == ROOT or self.is_path(path + "0" * sequential)):
            raise Refusal(ErrorCode.BAD_ARGUMENTS)
        if error := self.takes(said.acl):
            raise Refusal(error)
        above = path.rpartition(ROOT)[0] or ROOT
        if above not in self.all:
            self.orphan(above)
        parent = self.all[above]
        path += self.number(parent) if sequential else ""
        if path in self.all:
            raise Refusal(ErrorCode.NODE_EXISTS)
        if not self.may_be_parent(parent):
            raise Refusal(ErrorCode.NO_CHILDREN_FOR_EPHEMERALS)
        node = ScriptedNode(self.kept(said.data), self.zxid, self.zxid, self.zxid)
        node.version = self.first_version(path)
        node.owner = session if said.flags in EPHEMERAL else 0
        self.all[path] = node
        parent.children.add(path.rpartition(ROOT)[2])
        self.child_made(parent)
        return path, [(WatchEvent.CREATED, path), (WatchEvent.CHILDREN_CHANGED, above)]

    def delete(self, path: str | None, version: int) -> list[Told]:
        """Delete a node. Raises Refusal."""
        if path == ROOT:
            raise Refusal(ErrorCode.BAD_ARGUMENTS)
        node = self.there(path)
        assert path is not None
        if not self.fits_for_deletion(node, version):
            raise Refusal(ErrorCode.BAD_VERSION)
        if self.has_children(path, node):
            raise Refusal(ErrorCode.NOT_EMPTY)
        above, _, name = path.rpartition(ROOT)
        parent = self.all[above or ROOT]
        del self.all[path]
        parent.children.discard(name)
        self.child_deleted(parent)
        return [(WatchEvent.DELETED, path), (WatchEvent.CHILDREN_CHANGED, above or ROOT)]

    def set_data(self, path: str | None, data: bytes | None, version: int) -> list[Told]:
        """Replace data. Raises Refusal."""
        node = self.there(path)
        if not self.fits(node, version):
            raise Refusal(ErrorCode.BAD_VERSION)
        self.changed(node, data)
        return [(WatchEvent.DATA_CHANGED, path or "")]

    def check(self, path: str | None, version: int) -> None:
        """Demand a version. Raises Refusal."""
        if not self.fits(self.there(path), version):
            raise Refusal(ErrorCode.BAD_VERSION)
