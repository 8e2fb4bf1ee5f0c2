"""One group, step by step: what schedules by chance seldom reach, and what no member of ours says."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import pytest

from replispec.runtime.primitives.errors import LocalProtocolError, RemoteProtocolError
from replispec.runtime.primitives.headers import Header
from replispec.runtime.raft.core import GroupMember, KnownGroup
from replispec.runtime.raft.log import MemberLog
from replispec.runtime.raft.ready import DurableState
from replispec.wire.raft.codes import RequestCode
from replispec.wire.raft.constants import GROUP_VERSION, TERMS_AHEAD_MAX
from replispec.wire.raft.machines.member import State
from replispec.wire.raft.member import (
    RaftEntries,
    RaftEntriesAnswer,
    RaftEntriesRequest,
    RaftEntry,
    RaftSnapshotPart,
    RaftSnapshotPartAnswer,
    RaftSnapshotPartRequest,
    RaftVoteAnswer,
    RaftVoteRequest,
)
from replispec.wire.raft.options import MemberOptions
from tests.consensus.scenes import Scene, are_entries, is_a_vote


def test_a_group_of_one_leads_at_once_and_agrees_when_its_disk_has_it() -> None:
    scene = Scene(members=1)
    scene.wants_to_lead(1)
    scene.propose(1, b"a")
    assert scene.applied(1) == [b"", b"a"]


@pytest.mark.parametrize("members", [3, 5])
def test_a_majority_elects_and_agrees_whoever_else_is_gone(members: int) -> None:
    scene = Scene(members)
    gone = range(members // 2 + 2, members + 1)
    scene.cut_off(*gone)
    scene.wants_to_lead(1)
    scene.propose(1, b"a")
    scene.beat(1)
    here = [each for each in range(1, members + 1) if each not in gone]
    assert [scene.applied(each) for each in here] == [[b"", b"a"]] * len(here)
    scene.heal()
    scene.beat(1)
    scene.beat(1)
    assert all(scene.applied(each) == [b"", b"a"] for each in gone)


def test_a_minority_agrees_on_nothing_and_its_leader_leads_no_more() -> None:
    scene = Scene(3)
    scene.wants_to_lead(1)
    scene.cut_off(1)
    scene.propose(1, b"lost")
    assert scene.applied(1) == [b""]
    scene.hears_nobody(1)
    assert scene.core(1).state is State.FOLLOWER
    with pytest.raises(LocalProtocolError):
        scene.core(1).propose([b"b"])


def test_what_only_an_old_leader_has_is_cut() -> None:
    scene = Scene(3)
    scene.wants_to_lead(1)
    scene.cut_off(1)
    scene.propose(1, b"lost")
    scene.forgets_its_leader(3)
    scene.wants_to_lead(2)
    scene.propose(2, b"kept")
    scene.heal()
    scene.beat(2)
    scene.beat(2)
    assert scene.applied(1) == [b"", b"", b"kept"]


def test_entries_of_an_older_term_are_agreed_on_with_one_of_the_new_term_only() -> None:
    """Figure 8 of the paper: a majority has an entry of term 1, and another one still replaces it."""
    scene = Scene(3)
    scene.wants_to_lead(1)
    scene.cut_off(1)
    scene.propose(1, b"old")
    scene.forgets_its_leader(2)
    scene.wants_to_lead(3, loses=are_entries)
    scene.heal()
    scene.cut_off(3)
    scene.hears_nobody(1)
    # Of what the new leader sends, member 2 gets the old entry and not the one of the new term.
    scene.forgets_its_leader(2)
    scene.wants_to_lead(1)
    scene.wants_to_lead(1, loses=are_entries)
    scene.feed(1, 2, up_to=2)
    assert [entry.term for entry in scene.core(2).log] == [1, 1]
    assert scene.core(1).variables.commit == 1
    scene.heal()
    scene.cut_off(1)
    scene.forgets_its_leader(2)
    scene.hears_nobody(3)
    scene.wants_to_lead(3)
    scene.wants_to_lead(3)
    scene.propose(3, b"new")
    scene.beat(3)
    assert scene.applied(2)[-1] == b"new"
    assert b"old" not in scene.applied(2)


def test_a_leader_that_nobody_hears_answers_no_read() -> None:
    scene = Scene(3)
    scene.wants_to_lead(1)
    assert scene.read(1) == [1]
    scene.cut_off(1)
    assert scene.read(1) == []
    scene.forgets_its_leader(3)
    scene.wants_to_lead(2)
    scene.propose(2, b"newer")
    assert scene.read(1) == []
    scene.heal()
    scene.beat(2)
    assert not scene.core(1).is_leader
    assert scene.unread == {1: [2, 3]}


def test_an_answer_of_an_older_term_says_nothing_of_the_log_now() -> None:
    scene = Scene(3)
    scene.wants_to_lead(1)
    scene.cut_off(3)
    scene.propose(1, b"a")
    late = scene.kept_back(2, RequestCode.ENTRIES_ANSWER, lambda: scene.propose(1, b"b"))
    assert scene.core(1).variables.commit == 3
    scene.cut_off(2)
    scene.hears_nobody(1)
    scene.heal()
    scene.cut_off(2)
    scene.forgets_its_leader(3)
    scene.wants_to_lead(1, loses=are_entries)
    scene.hand(1, late)
    assert scene.core(1).variables.matched.get(2, 0) == 0


def test_a_vote_outlives_the_process_that_gave_it() -> None:
    scene = Scene(3)
    scene.cut_off(2)
    scene.wants_to_lead(1, loses=is_a_vote)
    assert scene.disk(3).state == DurableState(1, 1)
    scene.crash(3)
    scene.crash(1)
    assert scene.core(3).variables.voted_for == 1


def test_whoever_hears_a_leader_helps_nobody_to_replace_it_but_whom_it_names() -> None:
    scene = Scene(3)
    scene.wants_to_lead(1)
    scene.beat(1)
    scene.wants_to_lead(2)
    assert scene.core(1).is_leader
    scene.beat(1)
    scene.core(1).hand_over(3)
    scene.exchange()
    assert scene.core(3).is_leader
    assert scene.core(1).variables.leader == 3


def test_a_full_disk_lets_a_member_say_nothing_and_lead_no_more() -> None:
    scene = Scene(3)
    scene.wants_to_lead(1)
    ticket = scene.core(1).read()
    scene.core(1).propose([b"no room"])
    ready = scene.core(1).ready()
    assert ready is not None
    assert ready.is_to_be_persisted
    scene.core(1).refused()
    assert (scene.core(1).state, len(scene.core(1).log)) == (State.FOLLOWER, 1)
    after = scene.core(1).ready()
    assert after is not None
    assert (after.unread, after.messages, after.committed) == ((ticket,), (), ())


def test_whoever_only_learns_has_the_log_and_no_vote() -> None:
    scene = Scene(3, learners=(4,))
    scene.wants_to_lead(4)
    assert scene.core(4).state is State.FOLLOWER
    scene.cut_off(2, 3)
    scene.wants_to_lead(1)
    assert not scene.core(1).is_leader
    scene.heal()
    scene.wants_to_lead(1)
    scene.propose(1, b"a")
    scene.beat(1)
    assert scene.applied(4) == [b"", b"a"]


def said(of: Iterable[int], *, version: int = 1, group: str = "group", member: int = 1) -> RaftEntriesRequest:
    """A message with entries after this place and term."""
    prev_index, prev_term, term = of
    return RaftEntriesRequest(
        version=version,
        group=group,
        member=member,
        term=term,
        prev_index=prev_index,
        prev_term=prev_term,
        commit=0,
        round=0,
    )


def alone(voters: Collection[int] = (1, 2, 3)) -> GroupMember:
    """A member that has heard nothing yet."""
    group = KnownGroup("group", 2, frozenset(voters))
    member = GroupMember(group, DurableState(), MemberLog(()), MemberOptions(), lambda _: 0)
    member.begin(0)
    return member


@pytest.mark.parametrize(
    ("header", "says"),
    [
        (said((0, 0, 1), version=2), "version"),
        (said((0, 0, 1), group="another"), "group 'group'"),
        (said((0, 0, 1), member=2), "member 2"),
    ],
)
def test_who_is_not_of_the_group_is_told_so(header: RaftEntriesRequest, says: str) -> None:
    with pytest.raises(RemoteProtocolError, match=says):
        alone().step(RequestCode.ENTRIES, header.to_ext_fields(), b"")


def test_bytes_that_are_no_entries_change_nothing() -> None:
    member = alone()
    whole = RaftEntries([RaftEntry(term=1, data=b"a")]).encode()
    for body in (whole[:-1], whole + b"\0", b"\xff" * 8, whole[:-1] + b"b"):
        with pytest.raises(RemoteProtocolError):
            member.step(RequestCode.ENTRIES, said((0, 0, 1)).to_ext_fields(), body)
    assert (len(member.log), member.variables.term) == (0, 0)
    for place in ((-1, 0, 1), (1 << 62, 1, 1)):
        member.step(RequestCode.ENTRIES, said(place).to_ext_fields(), whole)
        assert len(member.log) == 0


@pytest.mark.parametrize("term", [TERMS_AHEAD_MAX + 2, (1 << 63) - 1])
@pytest.mark.parametrize("name", ["vote", "transfer", "pre_vote", "entries", "part", "answers"])
def test_no_message_leaves_a_group_without_a_next_term(name: str, term: int) -> None:
    scene = Scene(3)
    scene.wants_to_lead(1)
    for each in (1, 2):
        before = (scene.core(each).variables, scene.disk(each).state)
        for code, header, body in far_ahead(name, term):
            with pytest.raises(RemoteProtocolError, match="member 3 broke the agreement"):
                scene.core(each).step(code, header.to_ext_fields(), body)
        assert (scene.core(each).variables, scene.disk(each).state) == before
    scene.forgets_its_leader(3)
    scene.wants_to_lead(2)
    scene.propose(2, b"a")
    assert scene.applied(2)[-1] == b"a"


def far_ahead(name: str, term: int) -> list[tuple[int, Header, bytes]]:
    """What member 3 says in a term that no elections have made: each a code, a header and a body."""
    version, group, member = GROUP_VERSION, "group", 3
    vote = RaftVoteRequest(
        version, group, member, term, 9, 1, is_pre=name == "pre_vote", is_transfer=name == "transfer"
    )
    part = RaftSnapshotPartRequest(version, group, member, term, index=9, last_term=1, size=1, offset=0)
    said_so: dict[str, list[tuple[int, Header, bytes]]] = {
        "entries": [
            (RequestCode.ENTRIES, said((0, 0, term), member=member), RaftEntries([]).encode()),
        ],
        "part": [(RequestCode.SNAPSHOT_PART, part, RaftSnapshotPart(data=b"a").encode())],
        "answers": [
            (RequestCode.VOTE_ANSWER, RaftVoteAnswer(version, group, member, term, is_pre=True), b""),
            (RequestCode.VOTE_ANSWER, RaftVoteAnswer(version, group, member, term), b""),
            (
                RequestCode.ENTRIES_ANSWER,
                RaftEntriesAnswer(version, group, member, term, accepted=True, index=1, round=0),
                b"",
            ),
            (
                RequestCode.SNAPSHOT_PART_ANSWER,
                RaftSnapshotPartAnswer(version, group, member, term, index=1, offset=0),
                b"",
            ),
        ],
    }
    return said_so.get(name, [(RequestCode.VOTE, vote, b"")])


def test_whoever_cuts_what_was_agreed_on_is_blamed() -> None:
    scene = Scene(3)
    scene.wants_to_lead(1)
    scene.beat(1)
    body = RaftEntries([RaftEntry(term=9)]).encode()
    with pytest.raises(RemoteProtocolError, match="member 3 broke the agreement"):
        scene.core(2).step(RequestCode.ENTRIES, said((0, 0, 9), member=3).to_ext_fields(), body)
    assert scene.applied(2) == [b""]


def test_whoever_leads_again_counts_copies_anew() -> None:
    """A follower that had entries in an earlier office of the leader may have cut them since."""
    scene = Scene(3)
    scene.wants_to_lead(1)
    scene.propose(1, b"a")
    assert scene.core(1).variables.matched[2] == 2
    scene.hears_nobody(1)
    scene.cut_off(1, 2)
    scene.hears_nobody(1)
    scene.heal()
    scene.wants_to_lead(1, loses=are_entries)
    assert scene.core(1).is_leader
    assert scene.core(1).variables.matched.keys() <= {1}


def test_a_vote_that_comes_late_is_of_its_own_term() -> None:
    scene = Scene(5)
    scene.cut_off(4, 5)
    late = scene.kept_back(3, RequestCode.VOTE_ANSWER, lambda: scene.wants_to_lead(1, loses=is_a_vote))
    scene.wants_to_lead(1, loses=is_a_vote)
    assert (scene.core(1).state, scene.core(1).variables.term) == (State.CANDIDATE, 2)
    for _ in range(3):
        scene.hand(1, late)
    assert (scene.core(1).state, scene.core(1).variables.granted) == (State.CANDIDATE, frozenset({1}))
