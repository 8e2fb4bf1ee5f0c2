"""Snapshots, step by step: what is sent instead of a log, and what of it is taken."""

from __future__ import annotations

import pytest

from replispec.runtime.primitives.errors import LocalProtocolError, RemoteProtocolError
from replispec.runtime.raft.members import GroupMembers
from replispec.runtime.raft.ready import Message
from replispec.runtime.raft.snapshots import MemberSnapshot
from replispec.wire.raft.codes import RequestCode
from replispec.wire.raft.constants import SNAPSHOT_BYTES_MAX
from replispec.wire.raft.member import RaftSnapshot, RaftSnapshotPart, RaftSnapshotPartRequest
from tests.consensus.scenes import Scene

MEMBERS = GroupMembers(frozenset({1, 2, 3}))


def is_a_part(call: Message) -> bool:
    """Whether a leader sends some of a snapshot."""
    return call.code == RequestCode.SNAPSHOT_PART


def behind(scene: Scene, member: int) -> None:
    """A member misses what is agreed on and then replaced by a snapshot of the leader, member 1."""
    scene.wants_to_lead(1)
    scene.cut_off(member)
    for data in (b"a", b"b", b"c"):
        scene.propose(1, data)
    scene.snapshot(1)
    scene.heal()


def are_alike(scene: Scene) -> bool:
    """Whether all have applied the same, in the same order."""
    return len({(each.application.index, each.application.sum) for each in scene.processes.values()}) == 1


def test_a_follower_behind_a_snapshot_gets_it_and_what_comes_after() -> None:
    scene = Scene(3)
    behind(scene, 3)
    assert (scene.core(1).log.first, scene.disk(1).entries) == (5, [])
    scene.propose(1, b"d")
    scene.beat(1)
    scene.beat(1)
    assert scene.applied(3) == [b"d"]
    assert scene.disk(3).snapshot is not None
    assert are_alike(scene)
    scene.crash(3)
    scene.propose(1, b"e")
    scene.beat(1)
    assert are_alike(scene)


def test_whoever_gets_a_snapshot_while_a_newer_one_is_taken_gets_that_next() -> None:
    scene = Scene(3)
    behind(scene, 3)
    scene.core(1)._do_beat(None)
    scene.exchange(is_a_part)
    scene.cut_off(3)
    scene.propose(1, b"d")
    scene.propose(1, b"e")
    scene.snapshot(1)
    scene.heal()
    scene.long_after(1)
    scene.beat(1)
    assert (scene.core(1).log.first, scene.core(3).log.first) == (7, 7)
    assert are_alike(scene)


def test_an_answer_that_comes_late_is_no_reason_to_send_a_snapshot_again() -> None:
    scene = Scene(3)
    behind(scene, 3)
    first = scene.kept_back(3, RequestCode.SNAPSHOT_PART_ANSWER, lambda: scene.beat(1))
    assert are_alike(scene)
    scene.hand(1, first)
    scene.exchange()
    assert are_alike(scene)


def test_what_is_lost_of_a_snapshot_is_sent_again_after_a_while() -> None:
    scene = Scene(3)
    behind(scene, 3)
    scene.core(1)._do_beat(None)
    scene.exchange(is_a_part)
    scene.beat(1)
    assert scene.processes[3].application.index == 0
    scene.long_after(1)
    assert are_alike(scene)


def test_a_leader_that_takes_over_sends_its_own_snapshot() -> None:
    scene = Scene(3)
    behind(scene, 3)
    parts = [0]

    def second_is_lost(call: Message) -> bool:
        parts[0] += is_a_part(call)
        return is_a_part(call) and parts[0] > 1

    scene.core(1)._do_beat(None)
    scene.exchange(second_is_lost)
    assert scene.core(3).variables.incoming_end > 0
    scene.snapshot(2)
    scene.hears_nobody(1)
    scene.forgets_its_leader(3)
    scene.wants_to_lead(2)
    scene.beat(2)
    scene.beat(2)
    assert scene.core(2).is_leader
    assert are_alike(scene)


def test_entries_that_are_kept_spare_a_snapshot() -> None:
    scene = Scene(3)
    scene.core(1)._options = scene.core(1)._options.__class__(snapshot_keeps_entries=8)
    behind(scene, 3)
    assert (scene.core(1).log.first, scene.disk(1).snapshot is not None) == (1, True)
    scene.beat(1)
    assert are_alike(scene)
    assert scene.disk(3).snapshot is None
    scene.crash(1)
    assert (scene.core(1).applied, scene.processes[1].application.index) == (4, 4)


def test_only_what_is_applied_is_replaced() -> None:
    scene = Scene(3)
    scene.wants_to_lead(1)
    with pytest.raises(LocalProtocolError, match="only 1 entries are applied"):
        scene.core(1).compact(2, b"")
    scene.core(1).compact(1, b"")
    scene.exchange()
    scene.core(1).compact(1, b"another")
    ready = scene.core(1).ready()
    assert ready is None
    assert scene.core(1).log.snapshot == MemberSnapshot(1, 1, MEMBERS, b"")


def test_a_full_disk_keeps_the_log_that_a_snapshot_was_to_replace() -> None:
    scene = Scene(3)
    behind(scene, 3)
    scene.propose(1, b"d")
    scene.processes[1].snapshot()
    ready = scene.core(1).ready()
    assert ready is not None
    assert ready.snapshot is not None
    scene.core(1).refused()
    assert (scene.core(1).log.first, len(scene.core(1).log), scene.core(1).applied) == (5, 5, 5)


def told(scene: Scene, whole: bytes, *, index: int = 2, size: int | None = None) -> None:
    """Member 2 gets a snapshot from member 1, in one part."""
    header = RaftSnapshotPartRequest(
        version=1,
        group="group",
        member=1,
        term=1,
        index=index,
        last_term=1,
        size=len(whole) if size is None else size,
        offset=0,
    )
    body = RaftSnapshotPart(whole).encode()
    scene.core(2).step(RequestCode.SNAPSHOT_PART, header.to_ext_fields(), body)


def test_a_snapshot_that_is_not_what_it_says_is_refused_by_name() -> None:
    scene = Scene(3)
    whole = MemberSnapshot(2, 1, MEMBERS, b"2 7 of it").encode()
    newer = RaftSnapshot.decode(whole)
    newer.version = 2
    nobody = MemberSnapshot(2, 1, GroupMembers(frozenset()), b"").encode()
    for bad, says in (
        (whole[:-1], "needed"),
        (whole + b"\0", "left"),
        (whole[:-1] + b"x", "checksum"),
        (newer.encode(), "version 2; this release reads version 1"),
        (nobody, "no group"),
    ):
        with pytest.raises(RemoteProtocolError, match=says):
            told(scene, bad)
        assert (len(scene.core(2).log), scene.core(2).variables.commit) == (0, 0)
        assert not scene.core(2)._parts
    with pytest.raises(RemoteProtocolError, match="a snapshot of 2 is sent as one of 3"):
        told(scene, whole, index=3)
    for size in (len(whole) - 1, SNAPSHOT_BYTES_MAX + 1):
        with pytest.raises(RemoteProtocolError, match="broke the agreement"):
            told(scene, whole, size=size)
    told(scene, whole)
    scene.exchange()
    assert (scene.processes[2].application.index, len(scene.core(2).log)) == (2, 2)


def test_a_snapshot_older_than_what_is_agreed_on_changes_nothing() -> None:
    scene = Scene(3)
    scene.wants_to_lead(1)
    scene.propose(1, b"a")
    scene.propose(1, b"b")
    scene.beat(1)
    told(scene, MemberSnapshot(2, 1, MEMBERS, b"2 7 of another life").encode())
    scene.exchange()
    assert scene.processes[2].application.index == 3
    assert are_alike(scene)
