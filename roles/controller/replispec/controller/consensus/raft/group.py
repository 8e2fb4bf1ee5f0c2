"""One member of a group of several controllers: the core of the agreement, and controllers' records in it.

Members are ids to a controller and numbers to the core. What the core hands out becomes records of the
journal and back; what the entries of its log say is read here alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from replispec.controller.consensus.formats import (
    FORMAT,
    GROUP_FORMAT,
    check_order,
    check_term,
    event_of,
    state_of,
)
from replispec.controller.consensus.interface import Entry, LogDamaged, Ready, Snapshot
from replispec.event.v1.event_pb2 import ControllerEvent, MemberState
from replispec.runtime.documents.official_seam import encode
from replispec.runtime.primitives.binary import crc32
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.primitives.immutable import immutable
from replispec.runtime.raft.core import Chance, GroupMember, KnownGroup
from replispec.runtime.raft.log import MemberLog
from replispec.runtime.raft.members import said_by
from replispec.runtime.raft.ready import DurableState
from replispec.runtime.raft.snapshots import MemberSnapshot
from replispec.wire.raft.codes import EntryKind
from replispec.wire.raft.member import RaftEntry
from replispec.wire.raft.options import MemberOptions
from replispec.wire.rocketmq.constants import MEMBER_NUMBER_MAX


def number_of(member: str) -> int:
    """The number of a member: of its id alone, so that it stays the same whoever else is in the group."""
    return crc32(member.encode(), MEMBER_NUMBER_MAX)


@immutable
class ControllerGroup:
    """A group as it is configured: its name, the id of this member, and the ids of all."""

    name: str
    member: str
    members: Sequence[str]

    @property
    def on_wire(self) -> str:
        """The group as its messages and its logs name it: with its members, so that those that were given
        different lists take nothing of each other; they would count different majorities."""
        return f"{self.name}/{','.join(sorted(self.members))}"

    @property
    def is_distinct(self) -> bool:
        """Whether no two members have one number."""
        return len(set(map(number_of, self.members))) == len(self.members)


class GroupNode:
    """Made from what the disk holds: `kept`, what stands for the first records and the index of the last of
    them (None: nothing does), the other `records` by index, and `state`.

    On the disk no record stays that a snapshot stands for; in memory some do, for members that lack only
    them. Raises LogDamaged when that is not what this member of this group writes.
    """

    def __init__(
        self,
        group: ControllerGroup,
        kept: tuple[int, bytes] | None,
        records: Sequence[tuple[int, bytes]],
        state: bytes | None,
        chance: Chance,
        options: MemberOptions | None = None,
    ) -> None:
        self._group = group
        self._ids = {number_of(each): each for each in group.members}
        self._number = number_of(group.member)
        known = _known(group, state, is_empty=kept is None and not records)
        snapshot = None if kept is None else self._read(*kept)
        replaced, term = (0, 0) if snapshot is None else (snapshot.index, snapshot.term)
        entries = [_entry(*each) for each in records]
        places = [(index, each.term) for (index, _), each in zip(records, entries, strict=True)]
        check_order(places, replaced, term)
        check_term(entries[-1].term if entries else term, known.term)
        self._recovered = replaced + len(entries)
        self._restored = None if snapshot is None else _handed_out(snapshot)
        self._core = GroupMember(
            KnownGroup(group.on_wire, self._number, frozenset(self._ids)),
            known,
            MemberLog(entries, replaced, term, snapshot),
            options or MemberOptions(),
            chance,
        )
        self._proposal = 0
        self._waiting: list[ControllerEvent] = []
        self._is_handed_out = False

    @property
    def restored(self) -> Snapshot | None:
        """What stands for the first records since the start."""
        return self._restored

    @property
    def is_leader(self) -> bool:
        """Whether this member may propose."""
        return self._core.is_leader

    @property
    def leader(self) -> str | None:
        """Whom it takes for the leader."""
        return None if self._core.leader is None else self._ids.get(self._core.leader)

    @property
    def term(self) -> int:
        """The newest term that it knows."""
        return self._core.variables.term

    def propose(self, event: ControllerEvent) -> int:
        """Put a record at the end of the log: all that wait are handed to the core at once."""
        self._proposal += 1
        event.format, event.proposer, event.proposal = FORMAT, self._number, self._proposal
        event.term = self.term
        self._waiting.append(event)
        return self._proposal

    def read(self) -> int:
        """Ask the group whether this member still leads."""
        return self._core.read()

    def compact(self, index: int, data: bytes) -> None:
        """Let what the records up to this one have made replace them."""
        self._core.compact(index, data)

    def leave(self) -> None:
        """Have one lead that has the whole log; without one the others find somebody by themselves."""
        known = self._core.variables
        whole = [each for each, index in known.matched.items() if index == known.last_index]
        if self.is_leader and (able := sorted(set(whole) & set(self._ids) - {self._number})):
            self._core.hand_over(able[0])

    def step(self, code: int, ext_fields: Mapping[str, str | None], body: bytes) -> None:
        """Take a message of another member."""
        self._core.step(code, ext_fields, body)

    def begin(self, now_ms: int) -> None:
        """The time at which the member starts."""
        self._core.begin(now_ms)

    def tick(self, now_ms: int) -> None:
        """Tell the time."""
        self._core.tick(now_ms)

    def deadline_ms(self) -> int | None:
        """When `tick` has something to do."""
        return self._core.deadline_ms()

    def ready(self) -> Ready | None:
        """What is to be done. What was proposed in a term in which this member leads no more is dropped."""
        if self._is_handed_out:
            return None
        waiting, self._waiting = self._waiting, []
        if self.is_leader and (mine := [encode(each) for each in waiting if each.term == self.term]):
            self._core.propose(mine)
        found = self._core.ready()
        if found is None:
            return None
        self._is_handed_out = found.is_to_be_persisted
        return Ready(
            [(index, entry.encode()) for index, entry in found.entries],
            None if found.state is None else self._kept(found.state),
            # Whoever joined and is not listed cannot be reached.
            [(self._ids[number], each) for number, each in found.messages if number in self._ids],
            [self._agreed(*each) for each in found.committed],
            [ticket for ticket, _ in found.reads],
            None if found.snapshot is None else self._checked(found.snapshot, installs=found.installs),
        )

    def persisted(self) -> None:
        """What was handed out last is on the disk."""
        self._is_handed_out = False
        self._core.persisted()

    def refused(self) -> None:
        """Nothing of it is: this member is what its disk says, and leads no more."""
        self._is_handed_out = False
        self._core.refused()

    def _checked(self, snapshot: MemberSnapshot, *, installs: bool) -> Snapshot:
        if installs:
            self._check_listed(snapshot)
        return _handed_out(snapshot, installs=installs)

    def _read(self, index: int, whole: bytes) -> MemberSnapshot:
        try:
            found = MemberSnapshot.decode(whole)
        except RemoteProtocolError as error:
            raise LogDamaged(f"the snapshot of the log: {error}") from error
        if found.index != index:
            raise LogDamaged(f"the snapshot of the log is of record {found.index} and not of {index}")
        self._check_listed(found)
        return found

    def _check_listed(self, snapshot: MemberSnapshot) -> None:
        strangers = (snapshot.members.voters | snapshot.members.learners) - self._ids.keys()
        if strangers:
            raise LogDamaged(
                f"the snapshot of the log is that of another group: its members with the numbers "
                f"{sorted(strangers)} are none of {self._group.on_wire!r}"
            )

    def _kept(self, state: DurableState) -> bytes:
        kept = MemberState(
            format=GROUP_FORMAT, term=state.term, group=self._group.on_wire, member=self._group.member
        )
        if state.voted_for is not None:
            kept.voted_for = state.voted_for
        return encode(kept)

    def _agreed(self, index: int, entry: RaftEntry) -> Entry:
        """A record, and whose it is."""
        event = _event(index, entry)
        is_told = self.is_leader and index > self._recovered
        is_mine = is_told and event.proposer == self._number and event.term == self.term
        return Entry(index, event, event.proposal if is_mine else None, is_told)


def _known(group: ControllerGroup, state: bytes | None, *, is_empty: bool) -> DurableState:
    known = state_of(state)
    if known is None:
        if not is_empty:
            raise LogDamaged("there are records of a log, and no state of a member")
        return DurableState()
    if known.format != GROUP_FORMAT:
        raise LogDamaged(
            f"the log is that of a controller that was alone: a member of the group {group.on_wire!r} "
            f"cannot go on with it"
        )
    if (known.group, known.member) != (group.on_wire, group.member):
        raise LogDamaged(
            f"the log is that of member {known.member!r} of the group {known.group!r}, and this is member "
            f"{group.member!r} of {group.on_wire!r}"
        )
    return DurableState(known.term, known.voted_for if known.HasField("voted_for") else None)


def _handed_out(snapshot: MemberSnapshot, *, installs: bool = False) -> Snapshot:
    return Snapshot(snapshot.index, snapshot.term, snapshot.data, snapshot.encode(), installs)


def _entry(index: int, data: bytes) -> RaftEntry:
    try:
        entry = RaftEntry.decode(data)
    except RemoteProtocolError as error:
        raise LogDamaged(f"record {index} of the log: {error}") from error
    if not entry.body_crc_holds:
        raise LogDamaged(f"record {index} of the log is not what its checksum says")
    _event(index, entry)
    return entry


def _event(index: int, entry: RaftEntry) -> ControllerEvent:
    """What an entry says to a controller: nothing if a term begins by it, or if it names members. Raises
    LogDamaged for one that this release cannot read."""
    if entry.kind == EntryKind.DATA and entry.data:
        return event_of(index, entry.data)
    try:
        said_by(entry)
    except RemoteProtocolError as error:
        raise LogDamaged(f"record {index} of the log: {error}") from error
    return ControllerEvent(term=entry.term)
