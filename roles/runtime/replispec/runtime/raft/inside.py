"""One member of a group as it takes events: what the machine says becomes messages, a log, and questions.

`core` is what others see of it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any

from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.primitives.immutable import immutable
from replispec.runtime.primitives.machines import assigned, edge_of
from replispec.runtime.primitives.timers import Timers
from replispec.runtime.raft import rules
from replispec.runtime.raft.followers import FedFollower
from replispec.runtime.raft.log import MemberLog
from replispec.runtime.raft.members import GroupMembers
from replispec.runtime.raft.reads import Questions
from replispec.runtime.raft.ready import DurableState, MemberReady, Message
from replispec.runtime.raft.snapshots import MemberSnapshot, SentSnapshot
from replispec.wire.raft.codes import EntryKind
from replispec.wire.raft.machines import member as machine
from replispec.wire.raft.machines import member_wire as wire
from replispec.wire.raft.machines.member import MACHINE, State
from replispec.wire.raft.member import RaftEntry
from replispec.wire.raft.options import MemberOptions

Chance = Callable[[int], int]
"""A random number from 0 to one less than this."""


@immutable
class KnownGroup:
    """A group as one of its members knows it at first: its name, the member's own number, who votes, and who
    only learns the log. What the log or a snapshot says of the members counts instead; who is to join a group
    that exists knows nobody."""

    name: str
    member: int
    voters: frozenset[int]
    learners: frozenset[int] = frozenset()


class _Local:
    """What the machine asks of its role."""

    def __init__(self, group: str, log: MemberLog) -> None:
        self.group = group
        self.log = log


class MemberInside:
    """What `core.GroupMember` is made of; nobody else makes one."""

    def __init__(
        self, group: KnownGroup, state: DurableState, log: MemberLog, options: MemberOptions, chance: Chance
    ) -> None:
        self._group = group
        self._options = options
        self._chance = chance
        self._durable = state
        self.log = log
        self._local = _Local(group.name, log)
        self.applied = log.first - 1 if log.snapshot is None else log.snapshot.index
        self._timers = Timers(MACHINE, self._with_chance())
        self._now_ms = 0
        self._begin()

    def _begin(self) -> None:
        """Be what the disk says, and nothing more."""
        self.state = MACHINE.initial
        durable = self._durable
        members_index, members = self._said_members(len(self.log))
        self.variables = replace(
            machine.Variables(term=durable.term, voted_for=durable.voted_for),
            id=self._group.member,
            voters=members.voters,
            learners=members.learners,
            joining=members.joining,
            members_index=members_index,
            last_index=len(self.log),
            last_term=self.log.term_at(len(self.log)),
            commit=self.applied,
        )
        self._events: deque[Any] = deque()
        self._running = False
        # What was handed out and is not known to be on the disk, what is remembered after it, and up to where
        # was applied before.
        self._under_way: tuple[MemberReady, DurableState, int] | None = None
        self._followers: dict[int, FedFollower] = {}
        self._messages: list[tuple[int, Message]] = []
        self._proposed: list[bytes] = []
        self._questions = Questions()
        # Of a snapshot that comes: its parts so far, and what they became. The last snapshot that was sent.
        self._parts = bytearray()
        self._whole: MemberSnapshot | None = None
        self._sent: tuple[MemberSnapshot, bytes] | None = None

    # What it knows

    @property
    def is_leader(self) -> bool:
        """Whether this member may propose."""
        return self.state is State.LEADER

    @property
    def members(self) -> GroupMembers:
        """Who they are now, whether that is agreed on or not."""
        now = self.variables
        return GroupMembers(now.voters, now.learners, now.joining)

    def _said_members(self, index: int) -> tuple[int, GroupMembers]:
        """Who they are after this entry, and the place that says it; 0 when only the configuration does."""
        first = GroupMembers(self._group.voters, self._group.learners)
        return self.log.members_at(index) or (0, first)

    # One event

    def _take(self, event: Any) -> None:
        """Take an event, and then those that its effects raise."""
        self._events.append(event)
        if self._running:
            return
        self._running = True
        try:
            while self._events:
                self._one(self._events.popleft())
        finally:
            self._running = False
            self._events.clear()

    def _one(self, event: Any) -> None:
        edge = edge_of(MACHINE, self.state, self.variables, event, rules)
        if edge.blames_peer:
            raise RemoteProtocolError(f"member {event.member} broke the agreement: {edge.condition}")
        led = self.is_leader
        self.state, self.variables = edge.to, assigned(edge.assign, self.variables, event, rules)
        if edge.arms:
            self._timers.changed(self._with_chance(), self._now_ms)
        self._timers.follow(edge, self._now_ms)
        if led and not self.is_leader:
            self._questions.give_up()
        for name in edge.do:
            getattr(self, f"_do_{name}")(event)

    def _with_chance(self) -> MemberOptions:
        least_ms, spread_ms = self._options.election_timeout_ms, self._options.election_spread_ms
        return replace(self._options, election_timeout_ms=least_ms + self._chance(spread_ms))

    def _tell(self, member: int, call: Any) -> None:
        self._messages.append((member, call))

    def _tell_stable(self) -> None:
        if self.is_leader:
            self._take(machine.Persisted(index=self.log.stable))

    # Elections

    def _do_ask_pre_votes(self, _event: Any) -> None:
        for each in self._voting_others():
            self._tell(each, wire.ask_pre_votes(self.variables, self._local))

    def _do_ask_votes(self, _event: Any) -> None:
        for each in self._voting_others():
            self._tell(each, wire.ask_votes(self.variables, self._local))

    def _voting_others(self) -> Collection[int]:
        return [each for each in self._others() if each in self.variables.voters]

    def _others(self) -> Sequence[int]:
        """Whom a leader feeds: the other members, and who has left and may not know it."""
        now = self.variables
        leaving = frozenset() if now.leaving is None else frozenset({now.leaving})
        return sorted((now.voters | now.learners | leaving) - {now.id})

    def _do_grant_pre_vote(self, event: machine.PreVoteAsked) -> None:
        self._tell(event.member, wire.grant_pre_vote(self.variables, event, self._local))

    def _do_refuse_pre_vote(self, event: machine.PreVoteAsked) -> None:
        self._tell(event.member, wire.refuse_pre_vote(self.variables, self._local))

    def _do_grant_vote(self, event: machine.VoteAsked) -> None:
        self._tell(event.member, wire.grant_vote(self.variables, self._local))

    def _do_refuse_vote(self, event: machine.VoteAsked) -> None:
        self._tell(event.member, wire.refuse_vote(self.variables, self._local))

    def _do_begin_term(self, event: Any) -> None:
        self.log.put(len(self.log), [RaftEntry(term=self.variables.term)])
        self._followers = {}
        self._know_followers()
        self._do_replicate(event)
        self._take(machine.Persisted(index=self.log.stable))

    def _know_followers(self) -> None:
        """Whoever is new is asked first where its log parts."""
        last = self.variables.last_index
        self._followers = {each: self._followers.get(each) or FedFollower(last) for each in self._others()}

    def _do_note_term(self, _event: Any) -> None:
        """Whoever learns of a newer term by an answer has nothing to say."""

    def _do_note_no_majority(self, _event: Any) -> None:
        """Who leads no more hears of the next leader, or asks."""

    def _do_ask_to_lead(self, event: machine.HandingOver) -> None:
        self._tell(event.to, wire.ask_to_lead(self.variables, self._local))

    def _do_step_aside(self, _event: Any) -> None:
        """Whoever has most of the log leads next."""
        now = self.variables
        heir = max(sorted(now.voters), key=lambda each: now.matched.get(each, 0))
        self._tell(heir, wire.ask_to_lead(now, self._local))

    # The log

    def _do_append(self, event: machine.EntriesReceived) -> None:
        end = event.prev_index + len(event.entries)
        found = rules.conflict(self.log, event.prev_index, event.entries)
        if found is None and end <= len(self.log):
            return
        first = len(self.log) + 1 if found is None else found
        self.log.put(first - 1, event.entries[first - 1 - event.prev_index :])
        self._tell_members()

    def _tell_members(self) -> None:
        """Tell the machine who the members are by the log, if that is news."""
        index, members = self._said_members(len(self.log))
        if (index, members) != (self.variables.members_index, self.members):
            self._take(
                machine.MembersKnown(
                    index=index,
                    voters=members.voters,
                    learners=members.learners,
                    joining=members.joining,
                )
            )

    def _do_apply(self, _event: Any) -> None:
        """What is agreed on is handed out by `ready`, after it was persisted."""
        for ticket in self._questions.put_off_until_now():
            self._ask(ticket)

    def _do_accept_entries(self, event: machine.EntriesReceived) -> None:
        self._tell(event.member, wire.accept_entries(self.variables, event, self._local))

    def _do_refuse_entries(self, event: machine.EntriesReceived) -> None:
        self._tell(event.member, wire.refuse_entries(self.variables, event, self._local))

    def _do_append_proposed(self, _event: Any) -> None:
        term = self.variables.term
        self.log.put(len(self.log), [RaftEntry(term=term, data=data) for data in self._proposed])
        self._proposed = []

    def _do_append_members(self, _event: Any) -> None:
        entry = RaftEntry(term=self.variables.term, kind=EntryKind.MEMBERS, data=self.members.encode())
        self.log.put(len(self.log), [entry])
        self._know_followers()

    def _do_replicate(self, _event: Any) -> None:
        for each in self._others():
            self._feed(each)

    def _feed(self, member: int) -> None:
        """Send a follower what it lacks, as far as messages may be on their way."""
        follower, end = self._followers[member], len(self.log)
        if follower.next < self.log.first:
            self._feed_snapshot(member, follower)
            return
        follower.snapshot = None
        while follower.next <= end and follower.may_be_sent(self._options.entries_in_flight_max):
            entries = self.log.part(follower.next, end, self._options.entries_bytes_max)
            prev = follower.next - 1
            follower.sent(len(entries))
            self._send(member, prev, entries)

    def _send(self, member: int, prev: int, entries: Sequence[RaftEntry]) -> None:
        prev_term = self.log.term_at(prev)
        self._take(machine.Sending(to=member, prev_index=prev, prev_term=prev_term, entries=entries))

    def _do_send_entries(self, event: machine.Sending) -> None:
        self._tell(event.to, wire.send_entries(self.variables, event, self._local))

    def _do_beat(self, _event: Any) -> None:
        for each, follower in self._followers.items():
            follower.was_heard_of_long_ago()
            self._send(each, max(follower.next, self.log.first) - 1, ())
            snapshot = follower.snapshot
            if snapshot is not None and self._now_ms - snapshot.sent_ms >= self._options.election_timeout_ms:
                self._send_part(each, snapshot)
        self._know_followers()

    def _do_note_answer(self, event: machine.EntriesAnswered) -> None:
        self._followers[event.member].accepted(event.index)
        self._feed(event.member)
        self._look_after_reads()
        if event.member in self.variables.joining:
            lag_max = self._options.promotion_lag_max
            self._take(machine.MemberCaughtUp(member=event.member, lag_max=lag_max))

    def _do_go_back(self, event: machine.EntriesAnswered) -> None:
        matched = self.variables.matched.get(event.member, 0)
        self._followers[event.member].refused(event.index, matched)
        self._feed(event.member)
        self._look_after_reads()

    # Snapshots

    def _feed_snapshot(self, member: int, follower: FedFollower) -> None:
        """Begin to send a follower the snapshot, unless it is being sent one."""
        newest = self.log.snapshot
        if follower.snapshot is not None or newest is None:
            return
        if self._sent is None or self._sent[0] is not newest:
            self._sent = newest, newest.encode()
        follower.snapshot = SentSnapshot(newest.index, newest.term, self._sent[1])
        self._send_part(member, follower.snapshot)

    def _send_part(self, member: int, snapshot: SentSnapshot) -> None:
        snapshot.sent_ms = self._now_ms
        self._take(
            machine.PartSending(
                to=member,
                index=snapshot.index,
                last_term=snapshot.term,
                size=len(snapshot.whole),
                offset=snapshot.offset,
                part=snapshot.part(self._options.snapshot_part_bytes),
            )
        )

    def _do_send_part(self, event: machine.PartSending) -> None:
        self._tell(event.to, wire.send_part(self.variables, event, self._local))

    def _do_note_part(self, event: machine.PartAnswered) -> None:
        snapshot = self._followers[event.member].snapshot
        if snapshot is not None and snapshot.wants(event.index, event.offset):
            self._send_part(event.member, snapshot)

    def _do_ask_for_part(self, event: machine.PartReceived) -> None:
        self._tell(event.member, wire.ask_for_part(self.variables, event, self._local))

    def _do_keep_part(self, event: machine.PartReceived) -> None:
        if event.offset == 0:
            self._parts.clear()
        self._parts += event.part

    def _do_take_snapshot(self, event: machine.PartReceived) -> None:
        """Raises RemoteProtocolError when it is not what it says; then it may come again as a whole."""
        whole, self._parts = bytes(self._parts), bytearray()
        snapshot = MemberSnapshot.decode(whole)
        if (snapshot.index, snapshot.term) != (event.index, event.last_term):
            raise RemoteProtocolError(f"a snapshot of {snapshot.index} is sent as one of {event.index}")
        self._whole = snapshot
        self._take(machine.SnapshotTaken(member=event.member, index=snapshot.index, last_term=snapshot.term))

    def _do_install(self, _event: machine.SnapshotTaken) -> None:
        assert self._whole is not None, "no snapshot has come"
        self.log.install(self._whole)
        self._whole = None
        self._tell_members()

    def _do_accept_snapshot(self, event: machine.PartReceived | machine.SnapshotTaken) -> None:
        self._tell(event.member, wire.accept_snapshot(self.variables, self._local))

    # Reading

    def _ask(self, ticket: int) -> None:
        self._questions.asked(ticket)
        self._take(machine.ReadAsked())

    def _do_register_read(self, _event: Any) -> None:
        self._questions.register(self.variables.round, self.variables.commit)
        self._take(machine.ReadDue(round=self.variables.round))

    def _do_put_read_off(self, _event: Any) -> None:
        self._questions.put_off()

    def _look_after_reads(self) -> None:
        round_ = self._questions.oldest_round
        if round_ is not None:
            self._take(machine.ReadDue(round=round_))

    def _do_answer_read(self, event: machine.ReadDue) -> None:
        self._questions.settle(event.round)
        self._look_after_reads()
