"""One member of a group that agrees on a log, without a disk, a network or a clock.

What it is told are events of the generated machine `member`, which decides; the core keeps the log, sends
what the machine says to whom it says, and hands out what is to be done. Nothing leaves a member before what
it rests on is on the disk: whoever runs it persists what `ready` says, then sends, then applies.
Source: the shape of etcd's RawNode.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.primitives.immutable import immutable
from replispec.runtime.primitives.machines import assigned, edge_of
from replispec.runtime.primitives.timers import Timers
from replispec.runtime.raft import rules
from replispec.runtime.raft.followers import FedFollower
from replispec.runtime.raft.log import MemberLog
from replispec.runtime.raft.ready import DurableState, MemberReady, Message
from replispec.wire.raft.machines import member as machine
from replispec.wire.raft.machines import member_wire as wire
from replispec.wire.raft.machines.member import MACHINE, State
from replispec.wire.raft.member import RaftEntry
from replispec.wire.raft.options import MemberOptions

Chance = Callable[[int], int]
"""A random number from 0 to one less than this."""


@immutable
class KnownGroup:
    """A group as one of its members knows it: its name, the member's own number, who votes, and who only
    learns the log."""

    name: str
    member: int
    voters: frozenset[int]
    learners: frozenset[int] = frozenset()


class _Local:
    """What the machine asks of its role."""

    def __init__(self, group: str, log: MemberLog) -> None:
        self.group = group
        self.log = log


class GroupMember:
    """Made from what its disk holds: `state` and `log`.

    `options` say how long it waits and how much it sends, `chance` makes members wait differently.
    """

    def __init__(
        self, group: KnownGroup, state: DurableState, log: MemberLog, options: MemberOptions, chance: Chance
    ) -> None:
        self._group = group
        self._others = sorted((group.voters | group.learners) - {group.member})
        self._options = options
        self._chance = chance
        self._durable = state
        self.log = log
        self._local = _Local(group.name, log)
        self.applied = log.first - 1
        self._timers = Timers(MACHINE, self._with_chance())
        self._now_ms = 0
        self._begin()

    def _begin(self) -> None:
        """Be what the disk says, and nothing more."""
        self.state = MACHINE.initial
        durable = self._durable
        self.variables = replace(
            machine.Variables(term=durable.term, voted_for=durable.voted_for),
            id=self._group.member,
            voters=self._group.voters,
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
        self._tickets = 0
        self._asking: deque[int] = deque()
        # Questions that wait: of a round, each with up to where is to be applied; and those of no round yet.
        self._questions: deque[tuple[int, int, int]] = deque()
        self._put_off: list[int] = []
        self._reads: list[tuple[int, int]] = []
        self._unread: list[int] = []

    # What happens

    @property
    def is_leader(self) -> bool:
        """Whether this member may propose."""
        return self.state is State.LEADER

    @property
    def leader(self) -> int | None:
        """Whom this member takes for the leader of its term."""
        return self.variables.leader

    def begin(self, now_ms: int) -> None:
        """The time at which the member starts."""
        self._now_ms = now_ms
        self._timers.begin(now_ms)

    def tick(self, now_ms: int) -> None:
        """Tell the time, which never goes back."""
        self._now_ms = max(now_ms, self._now_ms)
        while (event := self._timers.ended(self._now_ms)) is not None:
            self._take(event)

    def deadline_ms(self) -> int | None:
        """When `tick` has something to do."""
        return self._timers.deadline_ms()

    def step(self, code: int, ext_fields: Mapping[str, str | None], body: bytes) -> None:
        """Take a message of another member. Raises RemoteProtocolError when it is none of this group."""
        event: Any = wire.event_of(code, ext_fields, body, self._local)
        if event is None:
            raise RemoteProtocolError(f"no message of a member of group {self._group.name!r} in this version")
        if event.member not in self._others:
            raise RemoteProtocolError(f"member {event.member} is not in group {self._group.name!r}")
        if type(event) is machine.EntriesReceived and not all(each.body_crc_holds for each in event.entries):
            raise RemoteProtocolError(f"an entry of member {event.member} is not what its checksum says")
        self._take(event)

    def propose(self, entries: Sequence[bytes]) -> int:
        """Put entries at the end of the log and return the place of the first.

        Raises LocalProtocolError when this member does not lead.
        """
        first = len(self.log) + 1
        self._proposed = list(entries)
        self._take(machine.Proposed(count=len(entries)))
        return first

    def read(self) -> int:
        """Ask to read what is agreed on up to now, and return a ticket, which a later MemberReady answers.

        Raises LocalProtocolError when this member does not lead.
        """
        self._tickets += 1
        ticket = self._tickets
        self._ask(ticket)
        return ticket

    def hand_over(self, member: int) -> None:
        """Have another voter lead, if it has the whole log now.

        Raises LocalProtocolError when this member does not lead.
        """
        self._take(machine.HandingOver(to=member))

    # What is to be done

    def ready(self) -> MemberReady | None:
        """What is to be done since the last call; None when nothing is, or until `persisted` or `refused`
        says what became of the last one."""
        if self._under_way is not None:
            return None
        state = DurableState(self.variables.term, self.variables.voted_for)
        entries = () if self.log.is_written else self.log.hand_out()
        committed = tuple(
            (index, self.log[index - 1]) for index in range(self.applied + 1, self.variables.commit + 1)
        )
        ready = MemberReady(
            None if state == self._durable else state,
            entries,
            tuple(self._messages),
            committed,
            tuple(self._reads),
            tuple(self._unread),
        )
        if ready == MemberReady():
            return None
        self._messages, self._reads, self._unread = [], [], []
        if ready.is_to_be_persisted:
            self._under_way = (ready, state, self.applied)
        self.applied = max(self.applied, self.variables.commit)
        return ready

    def persisted(self) -> None:
        """What `ready` handed out last is on the disk."""
        assert self._under_way is not None, "nothing was handed out"
        (_, self._durable, _), self._under_way = self._under_way, None
        self.log.persisted()
        self._tell_stable()

    def refused(self) -> None:
        """Nothing of it is on the disk: the member is what the disk says, leads no more, and whatever rested
        on it is neither sent nor applied."""
        assert self._under_way is not None, "nothing was handed out"
        ready, _, self.applied = self._under_way
        self.log.refused()
        self._give_up_reads()
        unread = [*ready.unread, *(ticket for ticket, _ in (*ready.reads, *self._reads)), *self._unread]
        tickets = self._tickets
        self._begin()
        self._unread, self._tickets = unread, tickets
        self._timers = Timers(MACHINE, self._with_chance())
        self._timers.begin(self._now_ms)

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
            self._give_up_reads()
        for name in edge.do:
            getattr(self, f"_do_{name}")(event)

    def _with_chance(self) -> MemberOptions:
        timeout_ms = self._options.election_timeout_ms
        return replace(self._options, election_timeout_ms=timeout_ms + self._chance(timeout_ms))

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
        return [each for each in self._others if each in self._group.voters]

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
        self._followers = {each: FedFollower(self.variables.last_index) for each in self._others}
        self._do_replicate(event)
        self._take(machine.Persisted(index=self.log.stable))

    def _do_note_term(self, _event: Any) -> None:
        """Whoever learns of a newer term by an answer has nothing to say."""

    def _do_note_no_majority(self, _event: Any) -> None:
        """Who leads no more hears of the next leader, or asks."""

    def _do_ask_to_lead(self, event: machine.HandingOver) -> None:
        self._tell(event.to, wire.ask_to_lead(self.variables, self._local))

    # The log

    def _do_append(self, event: machine.EntriesReceived) -> None:
        end = event.prev_index + len(event.entries)
        found = rules.conflict(self.log, event.prev_index, event.entries)
        if found is None and end <= len(self.log):
            return
        first = len(self.log) + 1 if found is None else found
        self.log.put(first - 1, event.entries[first - 1 - event.prev_index :])

    def _do_apply(self, _event: Any) -> None:
        """What is agreed on is handed out by `ready`, after it was persisted."""
        waiting, self._put_off = self._put_off, []
        for ticket in waiting:
            self._ask(ticket)

    def _do_accept_entries(self, event: machine.EntriesReceived) -> None:
        self._tell(event.member, wire.accept_entries(self.variables, event, self._local))

    def _do_refuse_entries(self, event: machine.EntriesReceived) -> None:
        self._tell(event.member, wire.refuse_entries(self.variables, event, self._local))

    def _do_append_proposed(self, _event: Any) -> None:
        term = self.variables.term
        self.log.put(len(self.log), [RaftEntry(term=term, data=data) for data in self._proposed])
        self._proposed = []

    def _do_replicate(self, _event: Any) -> None:
        for each in self._others:
            self._feed(each)

    def _feed(self, member: int) -> None:
        """Send a follower what it lacks, as far as messages may be on their way."""
        follower, end = self._followers[member], len(self.log)
        while follower.next <= end and follower.may_be_sent(self._options.entries_in_flight_max):
            if follower.next < self.log.first:
                return
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
        for each in self._others:
            follower = self._followers[each]
            follower.was_heard_of_long_ago()
            self._send(each, max(follower.next, self.log.first) - 1, ())

    def _do_note_answer(self, event: machine.EntriesAnswered) -> None:
        self._followers[event.member].accepted(event.index)
        self._feed(event.member)
        self._look_after_reads()

    def _do_go_back(self, event: machine.EntriesAnswered) -> None:
        matched = self.variables.matched.get(event.member, 0)
        self._followers[event.member].refused(event.index, matched)
        self._feed(event.member)
        self._look_after_reads()

    # Reading

    def _ask(self, ticket: int) -> None:
        self._asking.append(ticket)
        self._take(machine.ReadAsked())

    def _do_register_read(self, _event: Any) -> None:
        self._questions.append((self.variables.round, self.variables.commit, self._asking.popleft()))
        self._take(machine.ReadDue(round=self.variables.round))

    def _do_put_read_off(self, _event: Any) -> None:
        self._put_off.append(self._asking.popleft())

    def _look_after_reads(self) -> None:
        if self._questions:
            self._take(machine.ReadDue(round=self._questions[0][0]))

    def _do_answer_read(self, event: machine.ReadDue) -> None:
        while self._questions and self._questions[0][0] <= event.round:
            _, commit, ticket = self._questions.popleft()
            self._reads.append((ticket, commit))
        self._look_after_reads()

    def _give_up_reads(self) -> None:
        self._unread += self._put_off
        self._unread += (ticket for _, _, ticket in self._questions)
        self._put_off = []
        self._questions.clear()
