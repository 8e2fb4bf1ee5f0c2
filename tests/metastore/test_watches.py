"""Who hears of what, and once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from replispec.metastore.zookeeper.core.tree import NodeTree
from replispec.metastore.zookeeper.core.values import (
    Create,
    Delete,
    Happened,
    OpenSession,
    Request,
    SetData,
    WriteNodes,
)
from replispec.metastore.zookeeper.core.watches import WatchedPart, Watches, missed
from tests.metastore.requests import HISTORIES

SESSION = 7


def test_a_watch_is_told_of_one_event_and_no_more() -> None:
    watches = Watches(10, 1_000_000)
    watches.add(1, WatchedPart.DATA, "/a")
    assert watches.happened(Happened.DATA_CHANGED, "/a") == (1,)
    assert watches.happened(Happened.DATA_CHANGED, "/a") == ()
    assert watches.count == 0


def test_who_watches_a_node_and_its_children_hears_once_that_it_is_gone() -> None:
    watches = Watches(10, 1_000_000)
    for watched in WatchedPart:
        watches.add(1, watched, "/a")
    watches.add(2, WatchedPart.CHILDREN, "/a")
    assert watches.happened(Happened.DELETED, "/a") == (1, 2)
    assert watches.count == 0


def test_a_new_child_is_no_news_of_its_parents_data() -> None:
    watches = Watches(10, 1_000_000)
    watches.add(1, WatchedPart.DATA, "/a")
    assert watches.happened(Happened.CHILDREN_CHANGED, "/a") == ()
    assert watches.count == 1


def test_a_connection_that_is_gone_is_told_nothing() -> None:
    watches = Watches(10, 1_000_000)
    watches.add(1, WatchedPart.DATA, "/a")
    watches.add(2, WatchedPart.DATA, "/a")
    watches.forget(1)
    assert watches.happened(Happened.DATA_CHANGED, "/a") == (2,)
    watches.forget(2)


def test_a_connection_watches_no_more_than_it_may() -> None:
    watches = Watches(2, 1_000_000)
    watches.add(1, WatchedPart.DATA, "/a")
    assert watches.has_room(1, "/b")
    assert not watches.has_room(1, "/b", "/c")
    assert watches.has_room(2, "/b", "/c")


def test_watches_take_no_more_bytes_than_they_may_and_give_back_what_they_took() -> None:
    watches, long = Watches(1_000, 10_000), "/" + "x" * 3_000
    for connection in (1, 2, 3):
        assert watches.has_room(connection, long)
        watches.add(connection, WatchedPart.DATA, long)
        watches.add(connection, WatchedPart.DATA, long)
    assert not watches.has_room(4, long)
    assert watches.happened(Happened.CREATED, long) == (1, 2, 3)
    assert watches.has_room(4, long, long, long)
    watches.add(4, WatchedPart.DATA, long)
    watches.forget(4)
    assert watches.has_room(4, long, long, long)


@given(history=HISTORIES, cut=st.integers(0, 40), paths=st.sets(st.sampled_from(("/a", "/a/b", "/b"))))
def test_who_comes_back_hears_of_all_that_it_would_have_heard(
    history: list[Request], cut: int, paths: set[str]
) -> None:
    """A client that was away is told of each node of which it would have been told, had it stayed; of one
    that went and came back it may be told that it changed, or that it is there."""
    tree, stayed = NodeTree(), Watches(100, 1_000_000)
    for zxid, request in enumerate(history[:cut], 1):
        tree.apply(zxid, zxid, request)
    since = tree.zxid
    there = {path for path in paths if tree.find(path) is not None}
    for path in paths:
        stayed.add(1, WatchedPart.DATA, path)
        if path in there:
            stayed.add(2, WatchedPart.CHILDREN, path)
    heard: set[tuple[int, str]] = set()
    for zxid, request in enumerate(history[cut:], since + 1):
        outcome = tree.apply(zxid, zxid, request)
        assert outcome is not None
        for happened, path in outcome.events:
            heard |= {(connection, path) for connection in stayed.happened(happened, path)}
    data, exist, child = tuple(there), tuple(paths - there), tuple(there)
    told = {
        (1 if watched is WatchedPart.DATA else 2, path)
        for happened, watched, path in missed(tree, since, data, exist, child)
        if happened is not None
    }
    gone_again = {(1, path) for path in exist if tree.find(path) is None}
    assert heard - gone_again == told


def test_what_did_not_change_is_watched_again() -> None:
    tree = NodeTree()
    tree.apply(1, 1, OpenSession(SESSION, b"p" * 16, 6_000))
    tree.apply(2, 2, WriteNodes(SESSION, (Create("/a", b""), Create("/b", b""), Create("/c", b""))))
    tree.apply(3, 3, WriteNodes(SESSION, (SetData("/a", b"x", -1), Delete("/c", -1), Create("/b/d", b""))))
    found = list(missed(tree, 2, ("/a", "/b", "/c"), ("/x",), ("/a", "/b")))
    assert found == [
        (Happened.DATA_CHANGED, WatchedPart.DATA, "/a"),
        (None, WatchedPart.DATA, "/b"),
        (Happened.DELETED, WatchedPart.DATA, "/c"),
        (None, WatchedPart.DATA, "/x"),
        (None, WatchedPart.CHILDREN, "/a"),
        (Happened.CHILDREN_CHANGED, WatchedPart.CHILDREN, "/b"),
    ]
