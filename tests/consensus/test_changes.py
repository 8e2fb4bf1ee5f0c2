"""Members that come and go, step by step."""

from __future__ import annotations

import pytest

from replispec.runtime.primitives.errors import LocalProtocolError, RemoteProtocolError
from replispec.runtime.raft.members import GroupMembers
from replispec.wire.raft.codes import EntryKind, RequestCode
from replispec.wire.raft.machines.member import HeartbeatDue, MemberCaughtUp, State
from replispec.wire.raft.member import RaftEntries, RaftEntriesAnswer, RaftEntry
from tests.consensus.scenes import Scene, are_entries
from tests.consensus.test_member import said


def voters(scene: Scene, member: int) -> list[int]:
    """Who votes, as a member knows it."""
    return sorted(scene.core(member).members.voters)


def test_whoever_joins_learns_the_log_and_then_votes() -> None:
    scene = Scene(3, strangers=(4,))
    scene.wants_to_lead(1)
    for data in (b"a", b"b", b"c"):
        scene.propose(1, data)
    scene.snapshot(1)
    scene.cut_off(4)
    assert scene.core(1).add(4) == 5
    scene.exchange()
    assert scene.core(1).members.joining == {4}
    scene.wants_to_lead(4)
    assert scene.core(4).state is State.FOLLOWER
    scene.heal()
    scene.beat(1)
    scene.beat(1)
    assert [voters(scene, each) for each in (1, 2, 3, 4)] == [[1, 2, 3, 4]] * 4
    scene.propose(1, b"d")
    scene.beat(1)
    assert scene.processes[4].application == scene.processes[1].application


def test_whoever_only_learns_is_never_promoted() -> None:
    scene = Scene(1, strangers=(2,))
    scene.wants_to_lead(1)
    assert scene.core(1).add(2, votes=False) == 2
    scene.exchange()
    scene.beat(1)
    assert scene.core(1).members == GroupMembers(frozenset({1}), frozenset({2}))
    assert scene.core(1).add(2) is None


def test_copies_of_learners_count_for_nothing() -> None:
    scene = Scene(3, learners=(4, 5))
    scene.wants_to_lead(1)
    scene.cut_off(2, 3)
    scene.propose(1, b"a")
    scene.beat(1)
    assert (scene.core(1).variables.matched[5], scene.core(1).variables.commit) == (2, 1)


def test_a_change_waits_for_the_one_before_and_for_an_entry_of_the_term() -> None:
    scene = Scene(3, strangers=(4, 5))
    scene.wants_to_lead(1, loses=are_entries)
    assert scene.core(1).is_leader
    assert scene.core(1).add(4) is None
    scene.beat(1)
    scene.beat(1)
    assert scene.core(1).add(4) == 2
    assert scene.core(1).add(5) is None
    assert scene.core(1).remove(3) is None
    scene.exchange()
    with pytest.raises(LocalProtocolError):
        scene.core(2).add(5)


def test_a_leader_that_leaves_leads_until_that_is_agreed_on_and_another_one_leads() -> None:
    scene = Scene(3)
    scene.wants_to_lead(1)
    scene.cut_off(2, 3)
    assert scene.core(1).remove(1) == 2
    scene.exchange()
    assert (scene.core(1).is_leader, scene.core(1).variables.commit) == (True, 1)
    scene.heal()
    scene.beat(1)
    scene.exchange()
    assert not scene.core(1).is_leader
    assert [each for each in (2, 3) if scene.core(each).is_leader] == [2]
    assert voters(scene, 3) == [2, 3]


def test_whoever_has_left_knows_it_and_asks_no_more() -> None:
    scene = Scene(3)
    scene.wants_to_lead(1)
    assert scene.core(1).remove(3) == 2
    scene.exchange()
    scene.beat(1)
    scene.beat(1)
    assert voters(scene, 3) == [1, 2]
    term = scene.core(1).variables.term
    scene.wants_to_lead(3)
    assert (scene.core(3).state, scene.core(1).variables.term) == (State.FOLLOWER, term)
    assert scene.core(1).variables.leaving is None


def test_whoever_has_left_and_does_not_know_disturbs_nobody() -> None:
    scene = Scene(3)
    scene.wants_to_lead(1)
    scene.cut_off(3)
    scene.core(1).remove(3)
    scene.exchange()
    scene.heal()
    for _ in range(5):
        scene.wants_to_lead(3)
    assert scene.core(1).is_leader
    assert scene.core(1).variables.term == 1


def test_a_leader_that_left_and_began_again_may_be_the_only_one_to_go_on() -> None:
    scene = Scene(2)
    scene.wants_to_lead(1)
    scene.cut_off(2)
    assert scene.core(1).remove(1) == 2
    scene.exchange()
    scene.crash(1)
    scene.heal()
    scene.forgets_its_leader(2)
    scene.wants_to_lead(1)
    scene.wants_to_lead(2)
    assert scene.core(2).is_leader
    assert voters(scene, 2) == [2]


def test_a_change_that_is_cut_counts_no_more() -> None:
    scene = Scene(3)
    scene.wants_to_lead(1)
    scene.cut_off(1)
    scene.core(1).remove(3)
    scene.exchange()
    assert voters(scene, 1) == [1, 2]
    scene.forgets_its_leader(3)
    scene.wants_to_lead(2)
    scene.propose(2, b"a")
    scene.heal()
    scene.beat(2)
    scene.beat(2)
    assert voters(scene, 1) == [1, 2, 3]


def test_the_next_leader_knows_who_is_to_vote() -> None:
    scene = Scene(3, strangers=(4,))
    scene.wants_to_lead(1)
    scene.cut_off(4)
    scene.core(1).add(4)
    scene.exchange()
    scene.cut_off(1)
    scene.forgets_its_leader(3)
    scene.wants_to_lead(2)
    scene.heal()
    scene.beat(2)
    scene.beat(2)
    scene.beat(2)
    assert voters(scene, 2) == [1, 2, 3, 4]


def test_whoever_does_not_know_yet_that_it_votes_votes() -> None:
    scene = Scene(2, strangers=(3,))
    scene.wants_to_lead(1)
    scene.cut_off(3)
    scene.core(1).add(3)
    scene.exchange()
    scene.heal()
    scene.core(1)._take(HeartbeatDue())
    scene.exchange(lambda call: are_entries(call) and bool(RaftEntries.decode(call.body).entries))
    assert scene.core(3).leader == 1
    scene.cut_off(3)
    scene.core(1)._take(MemberCaughtUp(member=3, lag_max=9))
    scene.exchange()
    assert voters(scene, 2) == [1, 2, 3]
    scene.heal()
    scene.cut_off(1)
    assert voters(scene, 3) == []
    scene.forgets_its_leader(3)
    scene.wants_to_lead(2)
    assert scene.core(2).is_leader


def test_the_last_voter_stays() -> None:
    scene = Scene(1)
    scene.wants_to_lead(1)
    assert scene.core(1).remove(1) is None
    assert scene.core(1).remove(7) is None


def test_what_a_stranger_answers_counts_for_nothing() -> None:
    scene = Scene(3)
    scene.wants_to_lead(1, loses=are_entries)
    answer = RaftEntriesAnswer(version=1, group="group", member=9, term=1, accepted=True, index=1, round=0)
    scene.core(1).step(RequestCode.ENTRIES_ANSWER, answer.to_ext_fields(), b"")
    assert (scene.core(1).variables.matched.keys() <= {1}, scene.core(1).variables.commit) == (True, 0)


def test_an_entry_that_says_no_group_is_refused_by_name() -> None:
    scene = Scene(3)
    for data in (
        b"",
        b"\xff",
        GroupMembers(frozenset()).encode(),
        GroupMembers(frozenset({1}), frozenset({1})).encode(),
    ):
        entry = RaftEntry(term=1, kind=EntryKind.MEMBERS, data=data)
        body = RaftEntries([entry]).encode()
        with pytest.raises(RemoteProtocolError):
            scene.core(2).step(RequestCode.ENTRIES, said((0, 0, 1)).to_ext_fields(), body)
        assert len(scene.core(2).log) == 0
