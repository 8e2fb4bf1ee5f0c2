"""The tree of a metastore, against an independent one."""

from __future__ import annotations

from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replispec.metastore.zookeeper.core.copying import TreeCopy
from replispec.metastore.zookeeper.core.paths import names_a_node
from replispec.metastore.zookeeper.core.records import (
    MetastoreLogDamaged,
    decode_record,
    encode_part,
    encode_record,
    restore_part,
)
from replispec.metastore.zookeeper.core.tree import NodeTree
from replispec.metastore.zookeeper.core.values import (
    CheckVersion,
    CloseSession,
    Create,
    Delete,
    Happened,
    NodeStat,
    OpenSession,
    Request,
    SetData,
    TreeNode,
    TreeOutcome,
    TreeRefusal,
    WriteNodes,
    bytes_of,
)
from tests.metastore.model import Model, ModelNode
from tests.metastore.requests import HISTORIES, REQUESTS

SESSION = 7
OPEN = OpenSession(SESSION, b"p" * 16, 6_000)


def as_model(stat: NodeStat, data: bytes | None, made: int) -> ModelNode:
    """What is told of a node, in the model's words."""
    return ModelNode(
        data,
        stat.czxid,
        stat.mzxid,
        stat.pzxid,
        stat.ctime_ms,
        stat.mtime_ms,
        stat.version,
        stat.cversion,
        made,
        stat.ephemeral_owner,
    )


def everything(tree: NodeTree) -> object:
    """All that can be asked of a tree."""
    nodes = {
        path: (node.data, node.stat(), sorted(node.children), node.created) for path, node in tree.nodes()
    }
    sessions = {
        number: (each.password, each.timeout_ms, sorted(each.ephemerals))
        for number, each in tree.sessions.items()
    }
    return tree.zxid, tree.bytes, nodes, sessions


def there(tree: NodeTree, path: str) -> TreeNode:
    """A node that is there."""
    node = tree.find(path)
    assert node is not None, path
    return node


def restored(tree: NodeTree, copy: TreeCopy, size: int = 1_000) -> None:
    """Have a tree become a copy of another one, through the bytes of its parts."""
    tree.empty(copy.index)
    for part in copy.parts(size):
        restore_part(tree, copy.index, encode_part(copy.index, part))


def check_alike(tree: NodeTree, model: Model) -> None:
    """Whether a tree is what the model says."""
    told = {path: as_model(node.stat(), node.data, node.created) for path, node in tree.nodes()}
    assert told == {"/" + "/".join(names): node for names, node in model.nodes.items()}
    for names in model.nodes:
        node = there(tree, "/" + "/".join(names))
        assert sorted(node.children) == model.children(names)
        assert node.stat().num_children == len(node.children)
    assert set(tree.sessions) == model.sessions
    owned = {path: node.ephemeral_owner for path, node in tree.nodes() if node.ephemeral_owner}
    assert owned == {path: n for n, each in tree.sessions.items() for path in each.ephemerals}
    assert tree.bytes == sum(bytes_of(path, node.data) for path, node in tree.nodes())


def in_model_words(outcome: TreeOutcome) -> object:
    if outcome.refusal is not None:
        return outcome.refusal.name, outcome.refused_at
    return [(each.version, each.mzxid) if isinstance(each, NodeStat) else each for each in outcome.results]


def applied(*requests: Request) -> tuple[NodeTree, list[TreeOutcome]]:
    """A tree after these requests, a second apart, and what came of each."""
    tree, outcomes = NodeTree(), []
    for zxid, request in enumerate(requests, 1):
        outcome = tree.apply(zxid, zxid * 1_000, request)
        assert outcome is not None
        outcomes.append(outcome)
    return tree, outcomes


@given(history=HISTORIES)
def test_the_tree_does_what_the_model_does(history: list[Request]) -> None:
    tree, model = NodeTree(), Model()
    for zxid, request in enumerate(history, 1):
        outcome = tree.apply(zxid, zxid * 10, request)
        assert outcome is not None
        told = model.apply(zxid * 10, request)
        if isinstance(told, list):
            told = [(each.version, each.mzxid) if isinstance(each, ModelNode) else each for each in told]
        assert in_model_words(outcome) == told
        check_alike(tree, model)


@given(history=HISTORIES, request=REQUESTS)
def test_a_record_that_comes_again_changes_nothing(history: list[Request], request: Request) -> None:
    tree, _ = applied(*history, request)
    before = everything(tree)
    for zxid, each in enumerate((*history, request), 1):
        assert tree.apply(zxid, 1, each) is None
    assert everything(tree) == before


@given(history=HISTORIES)
def test_a_refused_request_leaves_the_tree_as_it_was(history: list[Request]) -> None:
    tree, model = NodeTree(), Model()
    for zxid, request in enumerate(history, 1):
        before = everything(tree)
        outcome = tree.apply(zxid, zxid, request)
        model.apply(zxid, request)
        assert outcome is not None
        if outcome.refusal is not None:
            assert everything(tree)[1:] == before[1:]  # type: ignore[index]
            assert outcome.events == ()


@settings(max_examples=50)
@given(history=HISTORIES, more=HISTORIES)
def test_a_snapshot_stands_for_its_records(history: list[Request], more: list[Request]) -> None:
    tree, _ = applied(*history)
    other = NodeTree()
    restored(other, tree.copy())
    assert everything(other) == everything(tree)
    for zxid, request in enumerate(more, tree.zxid + 1):
        assert other.apply(zxid, zxid, request) == tree.apply(zxid, zxid, request)
    assert everything(other) == everything(tree)


@given(request=REQUESTS)
def test_what_is_written_of_a_request_is_the_request(request: Request) -> None:
    assert decode_record(1, encode_record(request, 12_345)) == (12_345, request)


@pytest.mark.parametrize("damage", [b"\x08\x02", b"\x08\x01", b"\xff", b"\x08\x01\x22\x00\xa0\x06\x01"])
def test_a_record_that_no_metastore_wrote_is_told_with_its_place(damage: bytes) -> None:
    with pytest.raises(MetastoreLogDamaged, match="record 17"):
        decode_record(17, damage)


def test_an_end_of_a_session_takes_its_ephemerals_in_one_record() -> None:
    tree, outcomes = applied(
        OPEN,
        WriteNodes(SESSION, (Create("/p", b""),)),
        WriteNodes(SESSION, (Create("/p/a", b"", is_ephemeral=True), Create("/p/b", b"", is_ephemeral=True))),
        CloseSession(SESSION, is_expired=True),
    )
    assert not there(tree, "/p").children
    assert [path for happened, path in outcomes[-1].events if happened is Happened.DELETED] == [
        "/p/a",
        "/p/b",
    ]
    assert there(tree, "/p").stat().pzxid == 4
    assert there(tree, "/p").stat().cversion == 4


def test_all_of_a_request_or_nothing_of_it_is_done() -> None:
    tree, outcomes = applied(
        OPEN,
        WriteNodes(SESSION, (Create("/a", b"1"), Create("/a/b", b""), Delete("/a", -1))),
        WriteNodes(SESSION, (Create("/a", b"1"), SetData("/a", b"2", 0), Delete("/a", 1))),
    )
    assert (outcomes[1].refusal, outcomes[1].refused_at) == (TreeRefusal.NOT_EMPTY, 2)
    assert outcomes[2].refusal is None
    assert tree.size == 1


def test_a_sequential_name_ends_in_how_many_were_made_and_no_number_comes_again() -> None:
    tree, outcomes = applied(
        OPEN,
        WriteNodes(SESSION, (Create("/q", b""),)),
        WriteNodes(SESSION, (Create("/q/n-", b"", is_sequential=True),)),
        WriteNodes(SESSION, (Delete("/q/n-0000000000", -1),)),
        WriteNodes(SESSION, (Create("/q/", b"", is_sequential=True),)),
    )
    assert outcomes[2].results == ("/q/n-0000000000",)
    assert outcomes[4].results == ("/q/0000000001",)
    assert there(tree, "/q").stat().cversion == 3


def test_no_data_is_not_the_same_as_empty_data() -> None:
    tree, _ = applied(OPEN, WriteNodes(SESSION, (Create("/n", None), Create("/e", b""))))
    assert [there(tree, path).data for path in ("/n", "/e")] == [None, b""]
    other = NodeTree()
    restored(other, tree.copy())
    assert [there(other, path).data for path in ("/n", "/e")] == [None, b""]


@given(
    before=HISTORIES,
    after=st.lists(REQUESTS, min_size=1, max_size=40),
    size=st.sampled_from((1, 400, 900)),
    each=st.integers(1, 8),
)
def test_a_copy_is_the_tree_as_it_was_however_that_changes_meanwhile(
    before: list[Request], after: list[Request], size: int, each: int
) -> None:
    """`each`: how many requests come between two parts."""
    tree, other = NodeTree(), NodeTree()
    for zxid, request in enumerate(before, 1):
        tree.apply(zxid, zxid, request)
    was, copy, changes = everything(tree), tree.copy(), iter(after)
    other.empty(copy.index)
    parts = copy.parts(size)
    while True:
        for request in islice(changes, each):
            if isinstance(request, WriteNodes):
                tree.refuses(request)
            tree.apply(tree.zxid + 1, 1, request)
        if (part := next(parts, None)) is None:
            break
        restore_part(other, copy.index, encode_part(copy.index, part))
    assert everything(other) == was


@pytest.mark.parametrize("done", range(6))
def test_what_changes_behind_a_copy_is_in_it_as_it_was(done: int) -> None:
    """`done`: how many parts are handed out before the changes."""
    nodes = tuple(Create(path, b"old") for path in ("/a", "/b", "/c", "/d"))
    tree, _ = applied(OPEN, WriteNodes(SESSION, (*nodes, Create("/e", b"", is_ephemeral=True))))
    was, copy, other = everything(tree), tree.copy(), NodeTree()
    parts = copy.parts(1)
    read = [encode_part(copy.index, next(parts)) for _ in range(done)]
    for request in (
        WriteNodes(SESSION, (SetData("/a", b"new", 0), Create("/b/x", b""), Delete("/c", -1))),
        WriteNodes(SESSION, (Create("/c", b"again"), SetData("/c", b"once more", 0))),
        WriteNodes(SESSION, (Delete("/d", -1), Create("/f", b""), Delete("/none", -1))),
        CloseSession(SESSION),
    ):
        tree.apply(tree.zxid + 1, 2, request)
    other.empty(copy.index)
    for data in (*read, *(encode_part(copy.index, each) for each in parts)):
        restore_part(other, copy.index, data)
    assert everything(other) == was


def test_a_session_that_is_there_is_not_begun_anew() -> None:
    tree, _ = applied(
        OPEN,
        WriteNodes(SESSION, (Create("/e", b"", is_ephemeral=True),)),
        OpenSession(SESSION, b"q" * 16, 9_000),
        CloseSession(SESSION),
    )
    assert tree.size == 1


def test_who_has_no_session_changes_nothing() -> None:
    tree, outcomes = applied(WriteNodes(SESSION, (Create("/a", b"", is_ephemeral=True),)))
    assert outcomes[0].refusal is TreeRefusal.SESSION_EXPIRED
    assert tree.size == 1


@pytest.mark.parametrize(
    "path",
    ["", "a", "a/b", "/a/", "//", "/a//b", "/.", "/a/..", "/a/./b", "/a\x00", "/\x1f", "/\ue000", "/\uffff"],
)
def test_what_is_no_path_is_refused_everywhere(path: str) -> None:
    assert not names_a_node(path)
    _, outcomes = applied(
        OPEN,
        WriteNodes(SESSION, (Create(path, b""),)),
        WriteNodes(SESSION, (Delete(path, -1),)),
        WriteNodes(SESSION, (SetData(path, b"", -1),)),
        WriteNodes(SESSION, (CheckVersion(path, -1),)),
    )
    assert {each.refusal for each in outcomes[1:]} == {TreeRefusal.BAD_ARGUMENTS}


@pytest.mark.parametrize("path", ["/", "/a", "/.a", "/a b", "/ä", "/a./..b", "/日本"])
def test_what_is_a_path_is_taken(path: str) -> None:
    assert names_a_node(path)
