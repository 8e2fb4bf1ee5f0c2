"""One member of a group that agrees on a log, without a disk, a network or a clock.

What it is told are events of the generated machine `member`, which decides; the core keeps the log, sends
what the machine says to whom it says, and hands out what is to be done. Nothing leaves a member before what
it rests on is on the disk: whoever runs it persists what `ready` says, then sends, then applies.
Source: the shape of etcd's RawNode.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from replispec.runtime.primitives.errors import LocalProtocolError, RemoteProtocolError
from replispec.runtime.primitives.timers import Timers
from replispec.runtime.raft.inside import Chance, KnownGroup, MemberInside
from replispec.runtime.raft.members import said_by
from replispec.runtime.raft.ready import DurableState, MemberReady
from replispec.runtime.raft.snapshots import MemberSnapshot
from replispec.wire.raft.machines import member as machine
from replispec.wire.raft.machines import member_wire as wire
from replispec.wire.raft.machines.member import MACHINE

__all__ = ["Chance", "GroupMember", "KnownGroup"]


class GroupMember(MemberInside):
    """Made from what its disk holds: `state` and `log`.

    `options` say how long it waits and how much it sends, `chance` makes members wait differently.
    """

    # What happens

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
        if event.member == self._group.member:
            raise RemoteProtocolError(f"whoever says this is not member {event.member}: that is this member")
        if type(event) is machine.EntriesReceived:
            for each in event.entries:
                if not each.body_crc_holds:
                    raise RemoteProtocolError(
                        f"an entry of member {event.member} is not what its checksum says"
                    )
                said_by(each)
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
        ticket = self._questions.ticket()
        self._ask(ticket)
        return ticket

    def hand_over(self, member: int) -> None:
        """Have another voter lead, if it has the whole log now.

        Raises LocalProtocolError when this member does not lead.
        """
        self._take(machine.HandingOver(to=member))

    # Who the members are

    def add(self, member: int, *, votes: bool = True) -> int | None:
        """Have a member join: it learns the log, and with `votes` it votes once it has caught up.

        Returns the place of the entry that says so. None when nothing is changed: the member is of the group
        already, or another change, or the first entry of this term, is not agreed on yet; then ask again.
        Its number must never have been that of another disk. Raises LocalProtocolError when this member does
        not lead.
        """
        return self._change(machine.MemberJoins(member=member, votes=votes))

    def remove(self, member: int) -> int | None:
        """Have a member leave, be it this one, which leads until that is agreed on.

        Returns the place of the entry that says so, or None as `add` does; the last voter cannot leave.
        Raises LocalProtocolError when this member does not lead.
        """
        return self._change(machine.MemberLeaves(member=member))

    def _change(self, event: Any) -> int | None:
        place = len(self.log) + 1
        self._take(event)
        return place if self.variables.members_index == place else None

    def compact(self, index: int, data: bytes) -> None:
        """Let a snapshot of the application replace the log up to an entry that it has applied.

        It is handed out to be persisted; some entries before are kept. An older one changes nothing, and
        neither does one of a place at which a new member does not know yet who the others were. Raises
        LocalProtocolError when the entry is not applied, or the snapshot is too large.
        """
        if index > self.applied:
            raise LocalProtocolError(f"a snapshot of {index}, but only {self.applied} entries are applied")
        newest = self.log.snapshot
        _, members = self._said_members(index)
        is_known = index >= self.log.first and bool(members.voters)
        if not is_known or (newest is not None and index <= newest.index):
            return
        snapshot = MemberSnapshot(index, self.log.term_at(index), members, data)
        snapshot.check_size()
        self.log.compact(snapshot, self._options.snapshot_keeps_entries)

    # What is to be done

    def ready(self) -> MemberReady | None:
        """What is to be done since the last call; None when nothing is, or until `persisted` or `refused`
        says what became of the last one."""
        if self._under_way is not None:
            return None
        state = DurableState(self.variables.term, self.variables.voted_for)
        written, applied = self.log.hand_out(), self.applied
        if written.snapshot is not None and written.installs:
            self.applied = written.snapshot.index
        committed = tuple(
            (index, self.log[index - 1]) for index in range(self.applied + 1, self.variables.commit + 1)
        )
        ready = MemberReady(
            None if state == self._durable else state,
            written.entries,
            tuple(self._messages),
            committed,
            *self._questions.hand_out(),
            written.snapshot,
            written.installs,
            written.kept_from,
        )
        if ready == MemberReady():
            return None
        self._messages = []
        if ready.is_to_be_persisted:
            self._under_way = (ready, state, applied)
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
        questions = self._questions
        questions.refused(ready)
        self._begin()
        self._questions = questions
        self._timers = Timers(MACHINE, self._with_chance())
        self._timers.begin(self._now_ms)
