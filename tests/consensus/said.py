"""What a whole group has said and done so far, against which every step is compared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from replispec.runtime.raft.core import GroupMember
from replispec.runtime.raft.members import GroupMembers, said_by
from replispec.runtime.raft.ready import MemberReady, Message
from replispec.wire.raft.codes import EntryKind, RequestCode
from replispec.wire.raft.constants import REPLACED_TERM
from replispec.wire.raft.member import RaftEntry, RaftVoteAnswer
from tests.consensus.processes import Application, Broken, Process


@dataclass
class Said:
    """The promises of a group; each look raises Broken when one of them does not hold."""

    leaders: dict[int, int] = field(default_factory=dict)
    votes: dict[tuple[int, int], int] = field(default_factory=dict)
    entries: dict[tuple[int, int], tuple[int, bytes]] = field(default_factory=dict)
    agreed: list[RaftEntry] = field(default_factory=list)
    # The sum of the application after each place, from 0 on.
    sums: list[Application] = field(default_factory=lambda: [Application()])
    # Of each question: how much was agreed on when it was asked.
    questions: dict[tuple[int, int], int] = field(default_factory=dict)

    def look(self, processes: Mapping[int, Process]) -> None:
        """The promises that show in what members hold."""
        for me, process in processes.items():
            core = process.core
            variables = core.variables
            if core.is_leader:
                self._look_at_leader(me, core)
            end = len(core.log)
            if (variables.last_index, variables.last_term) != (end, core.log.term_at(end)):
                raise Broken("a member knows its log", f"{me}: {variables.last_index} of {end}")
            if core.members != _members_by(process):
                raise Broken("a member knows its group", f"{me}: {core.members}")
            self._look_at_commit(me, core)

    def _look_at_leader(self, me: int, core: GroupMember) -> None:
        now = core.variables
        is_gone = me in now.learners or now.members_index <= now.commit
        if now.term not in self.leaders and me not in now.voters and is_gone:
            raise Broken("only voters are elected", f"{me} leads {sorted(now.voters)}")
        if self.leaders.setdefault(now.term, me) != me:
            raise Broken("one leader a term", f"{self.leaders[now.term]} and {me} lead in term {now.term}")
        if now.term == max(self.leaders):
            self._look_at_log(me, core)
        begin = max(now.commit, len(self.agreed)) + 1
        open_ = [index for index in range(begin, len(core.log) + 1) if _changes(core.log[index - 1])]
        if len(open_) > 1:
            raise Broken("one change at a time", f"{me} has changes at {open_}")

    def _look_at_log(self, me: int, core: GroupMember) -> None:
        """Whoever leads in the newest term has all that was agreed on."""
        for index, entry in enumerate(self.agreed, 1):
            if index > len(core.log) or core.log.term_at(index) not in (entry.term, REPLACED_TERM):
                raise Broken("leaders are complete", f"{me} lacks entry {index} of term {entry.term}")

    def _look_at_commit(self, me: int, core: GroupMember) -> None:
        """What a leader counts as agreed on is so for all; a follower takes only that for agreed on."""
        for index in range(len(self.agreed) + 1, core.variables.commit + 1):
            if not core.is_leader and me in core.variables.voters:
                raise Broken("followers do not hurry", f"{me} takes entry {index} for agreed on")
            entry = core.log[index - 1]
            self.agreed.append(entry)
            after = Application(self.sums[-1].index, self.sums[-1].sum)
            after.apply(entry)
            self.sums.append(after)

    def look_at_message(self, me: int, to: int, call: Message) -> None:
        """A vote is given once a term."""
        if call.code == RequestCode.VOTE_ANSWER and isinstance(call.header, RaftVoteAnswer):
            answer = call.header
            if answer.granted and not answer.is_pre:
                term = answer.term or 0
                if self.votes.setdefault((me, term), to) != to:
                    raise Broken("one vote a term", f"{me} votes twice in term {term}")

    def look_at_entries(self, process: Process, ready: MemberReady) -> None:
        """One entry at a place and of a term is the same wherever it is, and so is what is before it."""
        disk, me = process.disk, process.group.member
        if ready.installs and ready.snapshot is not None:
            snapshot = ready.snapshot
            first, before = snapshot.index + 1, snapshot.term
            if snapshot.index > len(self.agreed) or self.agreed[snapshot.index - 1].term != snapshot.term:
                raise Broken("one state", f"{me} installs a snapshot of {snapshot.index}")
        elif ready.entries and not disk.base_index < ready.entries[0][0] <= disk.end + 1:
            raise Broken("logs match", f"{me} writes {ready.entries[0][0]} after {disk.end}")
        elif ready.entries:
            first, before = ready.entries[0][0], disk.term_at(ready.entries[0][0] - 1)
        else:
            return
        for index, entry in ready.entries:
            if index != first:
                raise Broken("logs match", f"{me} writes {index} instead of {first}")
            known = self.entries.setdefault((index, entry.term), (before, entry.data))
            if known != (before, entry.data):
                raise Broken("logs match", f"{me} has another entry {index}")
            first, before = index + 1, entry.term

    def look_at_applied(self, me: int, application: Application) -> None:
        """What was applied is what was agreed on, by all and in this order."""
        if application.index >= len(self.sums) or self.sums[application.index] != application:
            raise Broken("one state", f"{me} has applied something else up to {application.index}")

    def look_at_read(self, me: int, ticket: int, index: int) -> None:
        """What is read is no older than the question."""
        asked = self.questions.pop((me, ticket))
        if index < asked:
            raise Broken("reads are fresh", f"{me} reads up to {index}, {asked} were agreed on")


def _changes(entry: RaftEntry) -> bool:
    return entry.kind == EntryKind.MEMBERS


def _members_by(process: Process) -> GroupMembers:
    """Who the members are by what a member has, looked for anew."""
    log = process.core.log
    agreed = 0 if log.snapshot is None else log.snapshot.index
    for index in range(len(log), max(agreed, log.first - 1), -1):
        if (found := said_by(log[index - 1])) is not None:
            return found
    group = process.group
    return GroupMembers(group.voters, group.learners) if log.snapshot is None else log.snapshot.members
