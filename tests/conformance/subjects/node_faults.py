"""Trees of metastores that do it wrong: each overrides one choice of the good one."""

from __future__ import annotations

from collections.abc import Mapping

from replispec.wire.zookeeper.codes import ErrorCode
from replispec.wire.zookeeper.operations import AccessEntry
from tests.conformance.subjects.metastore import GoodMetastore
from tests.conformance.subjects.nodes import Nodes, Refusal, ScriptedNode, Told


class CountsTheLiving(Nodes):
    """The number of a sequential node is how many children there are."""

    def number(self, parent: ScriptedNode) -> str:
        return f"{len(parent.children):010d}"


class CountsFromOne(Nodes):
    """The first sequential node has the number 1."""

    def number(self, parent: ScriptedNode) -> str:
        return f"{parent.made + 1:010d}"


class WritesShortNumbers(Nodes):
    """Numbers have as many digits as they need."""

    def number(self, parent: ScriptedNode) -> str:
        return f"{parent.made}"


class LetsEphemeralsHaveChildren(Nodes):
    """Every node may have children."""

    def may_be_parent(self, parent: ScriptedNode) -> bool:  # noqa: ARG002
        return True


class MakesParents(Nodes):
    """A parent that is not there is made."""

    def orphan(self, path: str) -> None:
        self.all[path] = ScriptedNode(b"", self.zxid, self.zxid, self.zxid)


class KnowsNoNothing(Nodes):
    """Nothing is kept as empty bytes."""

    def kept(self, data: bytes | None) -> bytes | None:
        return data or b""


class TakesEmptyNames(Nodes):
    """Every path that begins with the root is one."""

    def is_path(self, path: str) -> bool:
        return path.startswith("/")


class RefusesDots(Nodes):
    """No name begins with a dot."""

    def is_path(self, path: str) -> bool:
        return super().is_path(path) and "/." not in path


class TakesEveryList(Nodes):
    """Lists of who may do what are not read."""

    def takes(self, acl: list[AccessEntry] | None) -> int:  # noqa: ARG002
        return 0


class TakesEveryScheme(Nodes):
    """Schemes are not known by name."""

    def takes(self, acl: list[AccessEntry] | None) -> int:
        return 0 if acl else super().takes(acl)


class TakesEveryFlag(Nodes):
    """Flags that mean nothing make a node."""

    def takes_flags(self, flags: int) -> bool:  # noqa: ARG002
        return True


class ComparesNoVersions(Nodes):
    """Every version is right."""

    def fits(self, node: ScriptedNode, version: int) -> bool:  # noqa: ARG002
        return True


class DeletesEveryVersion(Nodes):
    """Every version is right for who deletes."""

    def fits_for_deletion(self, node: ScriptedNode, version: int) -> bool:  # noqa: ARG002
        return True


class KnowsNoAnyVersion(Nodes):
    """-1 is a version as all others."""

    def fits(self, node: ScriptedNode, version: int) -> bool:
        return version == node.version


class TakesNewerVersions(Nodes):
    """A version that is not there yet is right."""

    def fits(self, node: ScriptedNode, version: int) -> bool:
        return version == -1 or version >= node.version


class DeletesTrees(Nodes):
    """With a node its children go."""

    def has_children(self, path: str, node: ScriptedNode) -> bool:  # noqa: ARG002
        for each in [each for each in self.all if each.startswith(f"{path}/")]:
            del self.all[each]
        return False


class ChangesParents(Nodes):
    """A child is a change of its parent's data."""

    def child_made(self, parent: ScriptedNode) -> None:
        super().child_made(parent)
        parent.mzxid = self.zxid


class CountsNoDeletions(Nodes):
    """A child that goes is no change of its parent's children."""

    def child_deleted(self, parent: ScriptedNode) -> None:
        pass


class ChangesChildren(Nodes):
    """New data are a change of the children."""

    def changed(self, node: ScriptedNode, data: bytes | None) -> None:
        super().changed(node, data)
        node.pzxid = self.zxid


class SkipsSameData(Nodes):
    """Data that are there already are no change."""

    def changed(self, node: ScriptedNode, data: bytes | None) -> None:
        if data != node.data:
            super().changed(node, data)


class RemembersVersions(Nodes):
    """A node that is made again goes on with its version."""

    def __init__(self) -> None:
        super().__init__()
        self.versions: dict[str, int] = {}

    def fits_for_deletion(self, node: ScriptedNode, version: int) -> bool:
        self.versions |= {path: each.version for path, each in self.all.items() if each is node}
        return super().fits_for_deletion(node, version)

    def first_version(self, path: str) -> int:
        return self.versions.get(path, 0)


class RefusesNothingAboutRoots(Nodes):
    """The root goes as any other node."""

    def delete(self, path: str | None, version: int) -> list[Told]:
        if path == "/":
            raise Refusal(ErrorCode.NOT_EMPTY)
        return super().delete(path, version)


def metastore_on(kind: type[Nodes]) -> type[GoodMetastore]:
    """A metastore on this tree."""
    return type(kind.__name__, (GoodMetastore,), {"nodes_kind": kind})


CAUGHT_ON_TREES: Mapping[type[Nodes], str] = {
    CountsTheLiving: "create/ZK-CREATE-1/6",
    CountsFromOne: "create/ZK-CREATE-1/5",
    WritesShortNumbers: "create/ZK-CREATE-1/7",
    LetsEphemeralsHaveChildren: "create/ZK-CREATE-1/4",
    MakesParents: "create/ZK-CREATE-1/3",
    KnowsNoNothing: "create/ZK-CREATE-1/10",
    TakesEmptyNames: "create/ZK-PATH-1/2",
    RefusesDots: "create/ZK-PATH-1/5",
    TakesEveryList: "create/ZK-ACL-1/1",
    TakesEveryScheme: "create/ZK-ACL-1/3",
    TakesEveryFlag: "create/ZK-CREATE-1/11",
    ComparesNoVersions: "change/ZK-SET-1/2",
    DeletesEveryVersion: "change/ZK-DELETE-1/2",
    KnowsNoAnyVersion: "change/ZK-SET-1/3",
    TakesNewerVersions: "change/ZK-DELETE-1/2",
    DeletesTrees: "change/ZK-DELETE-1/4",
    ChangesParents: "change/ZK-STAT-1/3",
    CountsNoDeletions: "change/ZK-STAT-1/4",
    ChangesChildren: "change/ZK-STAT-1/2",
    SkipsSameData: "change/ZK-SET-1/6",
    RemembersVersions: "change/ZK-SET-1/7",
    RefusesNothingAboutRoots: "change/ZK-DELETE-1/5",
}
"""Each with the case that names its fault."""
