"""Rules of the agreement, broken one at a time: what the schedules must find, and with which seed they do.

    python -m tests.consensus.mutants [SEEDS]

prints for each the first seed of so many that finds it, and the promise that was broken.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from replispec.runtime.raft import core, inside, rules
from replispec.runtime.raft.core import GroupMember
from replispec.runtime.raft.followers import FedFollower
from replispec.runtime.raft.log import MemberLog
from replispec.runtime.raft.ready import DurableState
from replispec.runtime.raft.snapshots import MemberSnapshot, SentSnapshot
from replispec.wire.raft.machines import member
from replispec.wire.raft.member import RaftEntry
from tests.consensus.processes import Broken, Process
from tests.consensus.schedule import Schedule, broken_by

STEPS = 500
SEEDS_MAX = 300
Edge = Any
Mutant = Callable[[], AbstractContextManager[None]]


def _edges(event: type | set[type], changed: Callable[[Edge], Edge | None]) -> Mutant:
    """The machine with its edges of these events changed; None for an edge that is not there."""

    @contextmanager
    def broken() -> Iterator[None]:
        # Another rule may be broken already.
        now = vars(inside)["MACHINE"]
        table: dict[Any, Any] = dict(now.transitions)
        events = event if isinstance(event, set) else {event}
        for pair, edges in now.transitions.items():
            if pair[1] in events:
                table[pair] = tuple(each for edge in edges if (each := changed(edge)) is not None)
        assert table != now.transitions, "nothing was changed"
        with patch.object(inside, "MACHINE", replace(now, transitions=table)):
            yield

    return broken


def _guarded(
    edge: Edge, words: str, guard: Callable[[Any, Any, Any], bool], *also: str, without: str = "never"
) -> Edge:
    """The edge with another guard, where its own has all of these words in it, and none of the others."""
    fits = all(word in edge.condition for word in (words, *also)) and without not in edge.condition
    return replace(edge, guard=guard) if fits else edge


def _without(words: str) -> Callable[[Edge], Edge | None]:
    """No edge of which the guard has these words in it."""
    return lambda edge: None if words in edge.condition else edge


def _assigned(edge: Edge, name: str, value: Callable[[Any, Any, Any], Any]) -> Edge:
    """The edge with another new value of a variable, where it gives it one."""
    return replace(edge, assign={**edge.assign, name: value}) if name in edge.assign else edge


def _patched(*patches: Any) -> Mutant:
    """What is patched, all of it at once."""

    @contextmanager
    def broken() -> Iterator[None]:
        with ExitStack() as stack:
            for each in patches:
                stack.enter_context(each())
            yield

    return broken


def _rule(name: str, function: Callable[..., Any]) -> Mutant:
    return _patched(lambda: patch.object(rules, name, function))


def _of(where: type, name: str, function: Any) -> Mutant:
    return _patched(lambda: patch.object(where, name, function))


def _longer_first(variables: Any, event: Any, _rules: Any) -> bool:
    return bool(event.term > variables.term and event.last_index >= variables.last_index)


def _granted_at_any_time(_variables: Any, event: Any, _rules: Any) -> bool:
    return bool(event.granted)


def _reached_by_one(voters: Collection[int], marks: Mapping[int, int]) -> int:
    return max((marks.get(voter, 0) for voter in voters), default=0)


def _follows_by_place(log: Sequence[RaftEntry], prev_index: int, _prev_term: int) -> bool:
    return 0 <= prev_index <= len(log)


def _uncut(self: GroupMember, event: Any) -> None:
    """What differs stays."""
    first = max(len(self.log) - event.prev_index, 0)
    self.log.put(len(self.log), event.entries[first:])


def _cut_anyway(self: GroupMember, event: Any) -> None:
    """Whatever is behind what comes is cut, also when the same comes twice."""
    self.log.put(event.prev_index, event.entries)


def _always_grows(edge: Edge) -> Edge:
    edge = _assigned(edge, "last_index", lambda _, event, __: event.prev_index + len(event.entries))
    last = "last_term"
    return _assigned(edge, last, lambda _, event, the: the.last_term(event.entries, event.prev_term))


def _sent_before(self: Schedule, _process: Process) -> None:
    """Messages leave first, and the disk is written later."""
    for each in self.processes.values():
        if each.waiting is not None:
            self.finish(each)
            continue
        each.waiting = each.core.ready()
        if each.waiting is not None:
            for to, call in each.waiting.messages:
                self.say(each.group.member, to, call)
            each.waiting = replace(each.waiting, messages=())


def _refused_as_written(self: GroupMember) -> None:
    """A full disk is taken for one that has written."""
    self.persisted()


def _both(*mutants: Mutant) -> Mutant:
    @contextmanager
    def broken() -> Iterator[None]:
        with ExitStack() as stack:
            for each in mutants:
                stack.enter_context(each())
            yield

    return broken


def _votes(guard: Callable[[Any, Any, Any], bool]) -> Mutant:
    """Votes, and what they would be, are given when this holds of whoever asks."""
    words = "event.last_term", guard, "event.term > term"
    return _edges({member.VoteAsked, member.PreVoteAsked}, lambda edge: _guarded(edge, *words))


PUT = MemberLog.put
COMPACT = MemberLog.compact
REACHED = rules.reached


def _put_and_forget(log: MemberLog, prev: int, entries: Sequence[RaftEntry]) -> None:
    """What was handed out already is not handed out again, though it was cut."""
    before = log._unwritten
    PUT(log, prev, entries)
    log._unwritten = before


def _put_and_keep_members(log: MemberLog, prev: int, entries: Sequence[RaftEntry]) -> None:
    """Who the members are stays, though the entry that said so was cut."""
    before = list(log._members)
    PUT(log, prev, entries)
    log._members = [*before, *(each for each in log._members if each not in before)]


def _installed_at(base: Callable[[MemberLog, MemberSnapshot], tuple[int, int]]) -> Any:
    def install(log: MemberLog, snapshot: MemberSnapshot) -> None:
        index, term = base(log, snapshot)
        INSTALL(log, snapshot)
        log._now.base_index, log._now.base_term = index, term

    return install


INSTALL = MemberLog.install


def _next_by_place(now: Any, event: Any, _rules: Any) -> bool:
    """Whatever comes of the same snapshot is the next part."""
    is_same = (event.term, event.index) == (now.incoming_term, now.incoming_index)
    return bool(event.part) and (is_same or event.offset == 0)


ACCEPTED = FedFollower.accepted


def _accepted_and_sent_on(follower: FedFollower, index: int) -> None:
    snapshot = follower.snapshot
    ACCEPTED(follower, index)
    follower.snapshot = snapshot


def _changes(without: str, may: Callable[[Any], bool]) -> Mutant:
    """Changes of the members are made whenever this holds."""

    def changed(edge: Edge) -> Edge:
        guard = edge.guard
        if guard is None or without not in edge.condition:
            return edge
        # What else the guard asks is asked as if nothing were open.
        return replace(
            edge,
            guard=lambda now, event, the: (
                may(now) and guard(replace(now, members_index=0, term_start=0), event, the)
            ),
        )

    return _edges({member.MemberJoins, member.MemberCaughtUp, member.MemberLeaves}, changed)


def _asks_at_once(edge: Edge) -> Edge | None:
    """Whoever hears no leader begins a term, a voter or not."""
    if "id in learners" in edge.condition:
        return None
    if "ask_pre_votes" not in edge.do:
        return edge
    assign = {
        "term": lambda now, _, __: now.term + 1,
        "voted_for": lambda now, _, __: now.id,
        "granted": lambda now, _, __: frozenset({now.id}),
        "leader": lambda *_: None,
    }
    return replace(edge, to=member.State.CANDIDATE, do=("ask_votes",), assign=assign)


MUTANTS: Mapping[str, Mutant] = {
    "a vote is not persisted": _patched(
        lambda: patch.object(core, "DurableState", lambda term=0, _voted=None: DurableState(term))
    ),
    "a term is not persisted": _patched(
        lambda: patch.object(core, "DurableState", lambda _term=0, voted=None: DurableState(0, voted))
    ),
    "messages leave before the disk has what they rest on": _of(Schedule, "write", _sent_before),
    "a full disk is taken for one that has written": _of(GroupMember, "refused", _refused_as_written),
    "a member votes twice in a term": _edges(
        member.VoteAsked,
        lambda edge: _guarded(edge, "voted_for == none", lambda now, event, _: event.term == now.term),
    ),
    "a vote ignores what the log lacks": _votes(lambda now, event, _: event.term > now.term),
    "logs are compared by their length first": _votes(_longer_first),
    "votes of an older term count": _edges(
        member.VoteAnswered,
        lambda edge: _guarded(edge, "event.granted and event.term == term", _granted_at_any_time),
    ),
    "half of the voters elect": _rule(
        "is_majority", lambda voters, members: 2 * len(voters & members) + 1 >= len(voters)
    ),
    "one copy is enough": _rule("reached", _reached_by_one),
    "entries of an older term count by their copies": _edges(
        member.EntriesAnswered,
        lambda edge: _guarded(
            edge,
            "term_start",
            lambda now, event, the: (
                event.accepted
                and the.reached(now.voters, {**now.matched, event.member: event.index}) > now.commit
            ),
            without="not in voters",
        ),
    ),
    "answers of an older term count": _edges(member.EntriesAnswered, _without("event.term < term")),
    "copies of an earlier office count": _edges(
        member.VoteAnswered, lambda edge: _assigned(edge, "matched", lambda now, _, __: now.matched)
    ),
    "the entry before is not compared": _rule("follows", lambda log, prev, _: prev <= len(log)),
    "the entry before is compared by its place": _rule("follows", _follows_by_place),
    "what differs is not cut": _of(GroupMember, "_do_append", _uncut),
    "what comes twice cuts": _both(
        _of(GroupMember, "_do_append", _cut_anyway), _edges(member.EntriesReceived, _always_grows)
    ),
    "a follower agrees beyond what it has compared": _edges(
        member.EntriesReceived,
        lambda edge: _assigned(edge, "commit", lambda now, event, _: max(now.commit, event.commit)),
    ),
    "entries of an older leader are taken": _edges(member.EntriesReceived, _without("event.term < term")),
    "who takes entries is not bound to their term": _edges(
        member.EntriesReceived, lambda edge: _assigned(edge, "term", lambda now, _, __: now.term)
    ),
    "a read asks nobody": _edges(member.ReadDue, lambda edge: _guarded(edge, "reached", lambda *_: True)),
    "a read is answered before an entry of the term is agreed on": _edges(
        member.ReadAsked, lambda edge: _guarded(edge, "term_start", lambda *_: True)
    ),
    "answers of earlier rounds answer a read": _edges(
        member.ReadAsked,
        lambda edge: _assigned(
            _assigned(edge, "round", lambda *_: 1), "echoed", lambda now, _, __: {**now.echoed, now.id: 1}
        ),
    ),
    "who was led once votes for nobody": _edges(
        member.ElectionDue, lambda edge: _assigned(edge, "leader", lambda now, _, __: now.leader)
    ),
    "a newer term is not heard of": _edges(member.EntriesAnswered, _without("event.term > term")),
    "a follower that lacks entries is sent the same again": _of(
        FedFollower, "refused", lambda self, _index, _matched: self.was_heard_of_long_ago()
    ),
    "what was cut while it was written stays": _of(MemberLog, "put", _put_and_forget),
    # Snapshots.
    "a snapshot is installed without its last place": _of(
        MemberLog, "install", _installed_at(lambda log, _: (log._now.base_index, log._now.base_term))
    ),
    "a snapshot is installed without its last term": _of(
        MemberLog, "install", _installed_at(lambda _, snapshot: (snapshot.index, 0))
    ),
    "a snapshot is taken without its members": _of(GroupMember, "_tell_members", lambda _: None),
    "a snapshot replaces what is newer": _edges(member.PartReceived, _without("event.index <= commit")),
    "a part that comes twice is kept twice": _edges(
        member.PartReceived,
        lambda edge: _guarded(edge, "incoming_end", _next_by_place, "event.offset == 0"),
    ),
    "more is let go than a snapshot replaces": _of(
        MemberLog, "compact", lambda self, snapshot, _kept: COMPACT(self, snapshot, -2)
    ),
    "a snapshot is not sent": _of(GroupMember, "_feed_snapshot", lambda *_: None),
    "a follower is sent one snapshot for ever": _of(FedFollower, "accepted", _accepted_and_sent_on),
    "a part that is lost is not sent again": _of(SentSnapshot, "wants", lambda *_: False),
    # Changes of the members.
    "two changes are made at once": _changes("members_index", lambda now: now.commit >= now.term_start),
    "a change is made before an entry of the term is agreed on": _changes(
        "term_start", lambda now: now.members_index <= now.commit
    ),
    "a change counts though it was cut": _of(MemberLog, "put", _put_and_keep_members),
    "copies of learners count": _rule(
        "reached", lambda voters, marks: REACHED(voters | frozenset(marks), marks)
    ),
    "whoever learns asks for votes": _edges(member.ElectionDue, _without("id in learners")),
    "whoever was removed disturbs": _both(
        _edges(member.ElectionDue, _asks_at_once), _edges(member.VoteAsked, _without("is_transfer"))
    ),
    "whoever was removed is not heard until that is agreed on": _edges(
        member.ElectionDue,
        lambda edge: _guarded(edge, "id in learners", lambda now, *_: now.id not in now.voters),
    ),
    "a leader that was removed leads on": _edges(member.EntriesAnswered, _without("id not in voters")),
    "the last voter leaves": _edges(
        member.MemberLeaves,
        lambda edge: _guarded(
            edge,
            "size",
            lambda now, event, _: (
                now.members_index <= now.commit >= now.term_start and event.member in now.voters
            ),
        ),
    ),
    "whoever hears no leader and does not vote still knows one": _edges(
        member.ElectionDue,
        lambda edge: replace(edge, assign={}) if "id in learners" in edge.condition else edge,
    ),
}


FOUND: Mapping[str, int] = {
    "a vote is not persisted": 55,
    "a term is not persisted": 24,
    "messages leave before the disk has what they rest on": 72,
    "a full disk is taken for one that has written": 150,
    "a member votes twice in a term": 1,
    "a vote ignores what the log lacks": 2,
    "logs are compared by their length first": 65,
    "votes of an older term count": 57,
    "half of the voters elect": 0,
    "one copy is enough": 1,
    "entries of an older term count by their copies": 54,
    "copies of an earlier office count": 132,
    "the entry before is not compared": 2,
    "the entry before is compared by its place": 2,
    "what differs is not cut": 0,
    "what comes twice cuts": 0,
    "a follower agrees beyond what it has compared": 1,
    "entries of an older leader are taken": 2,
    "who takes entries is not bound to their term": 1,
    "a read asks nobody": 80,
    "a read is answered before an entry of the term is agreed on": 1,
    "answers of earlier rounds answer a read": 80,
    "who was led once votes for nobody": 1,
    "a newer term is not heard of": 13,
    "a follower that lacks entries is sent the same again": 1,
    "what was cut while it was written stays": 1,
    "a snapshot is installed without its last place": 3,
    "a snapshot is installed without its last term": 3,
    "a snapshot is taken without its members": 0,
    "a snapshot replaces what is newer": 45,
    "a part that comes twice is kept twice": 3,
    "more is let go than a snapshot replaces": 0,
    "a snapshot is not sent": 3,
    "a part that is lost is not sent again": 3,
    "two changes are made at once": 1,
    "a change counts though it was cut": 41,
    "copies of learners count": 90,
    "whoever learns asks for votes": 0,
    "whoever was removed disturbs": 4,
    "whoever was removed is not heard until that is agreed on": 246,
    "a leader that was removed leads on": 192,
    "the last voter leaves": 80,
}
"""The first seed that finds each."""


def members_of(seed: int) -> int:
    """How many members the group of a seed has."""
    return 5 if seed % 4 == 3 else 3


def found_by(mutant: Mutant, seeds: int) -> tuple[int, Broken] | None:
    """The first seed of so many of which the schedule finds the mutant, and what it finds."""
    with mutant():
        for seed in range(seeds):
            broken = broken_by(seed, STEPS, members_of(seed))
            if broken is not None:
                return seed, broken
    return None


def main() -> None:
    """The command line."""
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else SEEDS_MAX
    for name, mutant in MUTANTS.items():
        sys.stdout.write(f"{name}: {found_by(mutant, seeds)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
