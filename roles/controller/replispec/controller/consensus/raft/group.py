"""One member of a group of several controllers: the core of the agreement, and controllers' records in it.

Members are ids to a controller and numbers to the core. What the core hands out becomes records of the
journal and back; what the entries of its log say is read here alone. Who the group is to be is said by
records, too (`places`); whoever leads changes the members of the core to it, one at a time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from replispec.controller.consensus.interface import Entry, LogDamaged, Ready, Snapshot
from replispec.controller.consensus.raft.places import (
    ControllerGroup,
    MemberPlaces,
    founders,
    number_of,
    places,
)
from replispec.controller.consensus.rocketmq.formats import (
    check_order,
    check_term,
    event_of,
    state_of,
)
from replispec.event.v1.event_pb2 import ControllerEvent, GroupPlaces, MemberState
from replispec.runtime.documents.official_seam import encode
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.raft.core import Chance, GroupMember, KnownGroup
from replispec.runtime.raft.log import MemberLog
from replispec.runtime.raft.members import said_by
from replispec.runtime.raft.ready import DurableState
from replispec.runtime.raft.snapshots import MemberSnapshot
from replispec.wire.raft.codes import EntryKind
from replispec.wire.raft.machines.member import State
from replispec.wire.raft.member import RaftEntry
from replispec.wire.raft.options import MemberOptions
from replispec.wire.rocketmq.constants import EVENT_FORMAT, EVENT_GROUP_FORMAT, LOG_GROUP_FORMAT

__all__ = ["Chance", "GroupNode", "joined_state"]

_ROLES: Final = {
    State.FOLLOWER: "follower",
    State.PRE_CANDIDATE: "candidate",
    State.CANDIDATE: "candidate",
    State.LEADER: "leader",
}


def joined_state(identity: str, member: str, told: Mapping[str, str], *, term: int = 0) -> bytes:
    """What a member begins with that was told which group it is to join, and who that is; `term`: the newest
    that it knows of."""
    state = MemberState(format=LOG_GROUP_FORMAT, term=term, group=identity, member=member, told=places(told))
    return encode(state)


class GroupNode:
    """Made from what the disk holds: `kept`, what stands for the first records and the index of the last of
    them (None: nothing does), the other `records` by index, and `state`.

    On the disk no record stays that a snapshot stands for; in memory some do, for members that lack only
    them. What a snapshot says of the group is handed in by `restore`, then `check` looks at all of it. Raises
    LogDamaged when that is not what this member of this group writes.
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
        self._options = options or MemberOptions()
        self._number = number_of(group.member)
        found = _state(group, state, is_empty=kept is None and not records)
        self.identity = found.group
        """What the group is called for good."""
        founded = founders(self.identity)
        # Where members are reached: those that founded the group as it is configured, others as it was told,
        # all as records say it, be they agreed on or not. The address of an id stays.
        listed = {each: group.addresses[each] for each in founded if each in group.addresses}
        self._addresses = listed | {each.id: each.address for each in found.told}
        self._first_told = tuple(found.told)
        self._ids = {number_of(each): each for each in (*founded, *self._addresses)}
        self._places = MemberPlaces({})
        self._founders = founded
        # What `reached` was made of, and is.
        self._version = 0
        self._reached: tuple[object, Mapping[str, str]] = (None, {})
        self._handed_over_ms: int | None = None
        self._now_ms = 0
        known = DurableState(found.term, found.voted_for if found.HasField("voted_for") else None)
        snapshot = None if kept is None else _read(*kept)
        replaced, term = (0, 0) if snapshot is None else (snapshot.index, snapshot.term)
        entries = [self._entry(*each) for each in records]
        order = [(index, each.term) for (index, _), each in zip(records, entries, strict=True)]
        check_order(order, replaced, term)
        check_term(entries[-1].term if entries else term, known.term)
        self._recovered = replaced + len(entries)
        self._restored = None if snapshot is None else _handed_out(snapshot)
        self._core = GroupMember(
            # Who has joined knows nobody until the log says it.
            KnownGroup(self.identity, self._number, frozenset(map(number_of, () if found.told else founded))),
            known,
            MemberLog(entries, replaced, term, snapshot),
            self._options,
            chance,
        )
        self._proposal = 0
        self._waiting: list[ControllerEvent] = []
        # Entries that were handed out to be persisted, with what they say.
        self._events: dict[int, tuple[RaftEntry, ControllerEvent]] = {}
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
    def role(self) -> str:
        """leader, candidate or follower."""
        return _ROLES[self._core.state]

    @property
    def commit(self) -> int:
        """Up to which record it knows the group to agree."""
        return self._core.variables.commit

    @property
    def last_index(self) -> int:
        """The last record of its log."""
        return self._core.variables.last_index

    @property
    def term(self) -> int:
        """The newest term that it knows."""
        return self._core.variables.term

    def propose(self, event: ControllerEvent) -> int:
        """Put a record at the end of the log: all that wait are handed to the core at once."""
        self._proposal += 1
        event.format = EVENT_GROUP_FORMAT if event.HasField("group_places") else EVENT_FORMAT
        event.proposer, event.proposal = self._number, self._proposal
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
        whole = {each for each, index in known.matched.items() if index == known.last_index}
        if self.is_leader and (able := sorted(whole & known.voters - {self._number})):
            self._core.hand_over(able[0])

    def step(self, code: int, ext_fields: Mapping[str, str | None], body: bytes) -> None:
        """Take a message of another member."""
        self._core.step(code, ext_fields, body)

    def begin(self, now_ms: int) -> None:
        """The time at which the member starts."""
        self._now_ms = now_ms
        self._core.begin(now_ms)

    def tick(self, now_ms: int) -> None:
        """Tell the time."""
        self._now_ms = now_ms
        self._core.tick(now_ms)

    def deadline_ms(self) -> int | None:
        """When `tick` has something to do."""
        return self._core.deadline_ms()

    def ready(self) -> Ready | None:
        """What is to be done. What was proposed in a term in which this member leads no more is dropped."""
        if self._is_handed_out:
            return None
        waiting, self._waiting = self._waiting, []
        if self.is_leader:
            if mine := [encode(each) for each in waiting if each.term == self.term]:
                self._core.propose(mine)
            self._change_members()
        found = self._core.ready()
        if found is None:
            return None
        self._is_handed_out = found.is_to_be_persisted
        for index, entry in found.entries:
            self._events[index] = entry, self._said(index, entry)
        return Ready(
            [(index, entry.encode()) for index, entry in found.entries],
            None if found.state is None else self._kept(found.state),
            [(self._ids[number], each) for number, each in found.messages if number in self._ids],
            [self._agreed(*each) for each in found.committed],
            [ticket for ticket, _ in found.reads],
            None if found.snapshot is None else _handed_out(found.snapshot, installs=found.installs),
        )

    def persisted(self) -> None:
        """What was handed out last is on the disk."""
        self._is_handed_out = False
        self._core.persisted()

    def refused(self) -> None:
        """Nothing of it is: this member is what its disk says, and leads no more."""
        self._is_handed_out = False
        self._core.refused()

    # Who the group is

    @property
    def places(self) -> MemberPlaces:
        """Who the group is to be, as far as it is agreed on; before any record says it, who founded it."""
        if self._places.index:
            return self._places
        return MemberPlaces({each: self._addresses.get(each, "") for each in self._founders})

    @property
    def has_left(self) -> bool:
        """Whether it is agreed on that this member was removed."""
        known = self._core.variables
        is_in = self._number in known.voters or self._number in known.learners
        return not is_in and self._group.member in self._places.gone and known.members_index <= known.commit

    @property
    def reached(self) -> Mapping[str, str]:
        """Where each other one is reached to whom this member may have to speak: who is of the group by the
        log, or is to be, or has left and may not know it; and before the log says anything who was told."""
        known = self._core.variables
        made_of = (known.voters, known.learners, known.leaving, self._version)
        if made_of != self._reached[0]:
            numbers = known.voters | known.learners | ({known.leaving} - {None})
            ids = {self._ids[each] for each in numbers if each in self._ids}
            ids |= self._addresses.keys() - set(self._places.gone)
            found = {each: self._addresses.get(each, "") for each in sorted(ids - {self._group.member})}
            self._reached = made_of, {each: at for each, at in found.items() if at}
        return self._reached[1]

    @property
    def members(self) -> Mapping[str, tuple[str, bool, int | None]]:
        """Every member that the log names: where it is reached, whether it votes, and as the leader knows it
        how many entries it lacks."""
        known = self._core.variables
        found = {}
        for number in known.voters | known.learners:
            member = self._ids.get(number, str(number))
            lag = known.last_index - known.matched.get(number, 0) if self.is_leader else None
            found[member] = self._addresses.get(member, ""), number in known.voters, lag
        return found

    def is_changing(self, *, but: str) -> bool:
        """Whether the members that the log names are not yet who they are to be, one of them left aside."""
        now = self._core.members
        wanted = frozenset(map(number_of, self.places.members))
        open_ = (wanted ^ (now.voters | now.learners)) | now.joining
        return bool(open_ - {number_of(but)})

    def hand_over(self, member: str) -> None:
        """Have this one lead, if it has the whole log now."""
        self._core.hand_over(number_of(member))

    def learn(self, addresses: Mapping[str, str]) -> None:
        """Take the word of a member for where others are reached; what is known already stays."""
        new = {each: at for each, at in addresses.items() if at and not self._addresses.get(each)}
        if new:
            self._know(new)

    def restore(self, record: GroupPlaces | None, index: int) -> None:
        """Who the group is to be by a snapshot that this member becomes."""
        if record is not None:
            self._places = MemberPlaces.of(record, index)
            self._know(self._places.members)

    def check(self, snapshot: Snapshot | None = None, record: GroupPlaces | None = None) -> None:
        """Whether it is known where every member is reached: by the log, or by a snapshot and what it says of
        the group. Raises LogDamaged."""
        said = {} if record is None else {number_of(each.id): each.id for each in record.members}
        if snapshot is not None:
            if strangers := snapshot.members - self._ids.keys() - said.keys():
                raise LogDamaged(
                    f"the snapshot of the log is that of another group: its members with the numbers "
                    f"{sorted(strangers)} are none of {self.identity!r}"
                )
            return
        members = self._core.members
        numbers = (members.voters | members.learners) - {self._number}
        nowhere = [self._ids.get(each, str(each)) for each in numbers]
        nowhere = sorted(each for each in nowhere if not self._addresses.get(each))
        if nowhere:
            raise LogDamaged(
                f"neither the log nor controllerDLegerPeers says where {', '.join(nowhere)} of the group "
                f"{self.identity!r} is reached"
            )

    def _change_members(self) -> None:
        """As leader, make the members of the core who they are to be. What cannot be done yet is done later;
        who leads and is to leave has another one lead first."""
        if not self._places.index:
            return
        now = self._core.members
        wanted, have = frozenset(map(number_of, self._places.members)), now.voters | now.learners
        if wanted == have:
            return
        if missing := sorted(wanted - have):
            self._core.add(missing[0])
        elif others := sorted(have - wanted - {self._number}):
            self._core.remove(others[0])
        else:
            self._give_way()

    def _give_way(self) -> None:
        before, timeout_ms = self._handed_over_ms, self._options.election_timeout_ms
        if before is None or self._now_ms - before >= timeout_ms:
            self._handed_over_ms = self._now_ms
            self.leave()

    def _know(self, addresses: Mapping[str, str]) -> None:
        self._addresses |= addresses
        self._ids |= {number_of(each): each for each in addresses}
        self._version += 1

    # What entries say

    def _kept(self, state: DurableState) -> bytes:
        kept = MemberState(
            format=LOG_GROUP_FORMAT,
            term=state.term,
            group=self.identity,
            member=self._group.member,
            told=self._first_told,
        )
        if state.voted_for is not None:
            kept.voted_for = state.voted_for
        return encode(kept)

    def _agreed(self, index: int, entry: RaftEntry) -> Entry:
        """A record, and whose it is."""
        known = self._events.pop(index, None)
        event = known[1] if known is not None and known[0] is entry else self._said(index, entry)
        if event.HasField("group_places") and event.group_places.replaces == self._places.index:
            self._places = MemberPlaces.of(event.group_places, index)
            self._version += 1
        is_told = self.is_leader and index > self._recovered
        is_mine = is_told and event.proposer == self._number and event.term == self.term
        return Entry(index, event, event.proposal if is_mine else None, is_told)

    def _entry(self, index: int, data: bytes) -> RaftEntry:
        try:
            entry = RaftEntry.decode(data)
        except RemoteProtocolError as error:
            raise LogDamaged(f"record {index} of the log: {error}") from error
        if not entry.body_crc_holds:
            raise LogDamaged(f"record {index} of the log is not what its checksum says")
        self._said(index, entry)
        return entry

    def _said(self, index: int, entry: RaftEntry) -> ControllerEvent:
        """What an entry says, and where it says that members are reached."""
        event = _event(index, entry)
        if event.HasField("group_places"):
            self._know({each.id: each.address for each in event.group_places.members})
        return event


def _state(group: ControllerGroup, state: bytes | None, *, is_empty: bool) -> MemberState:
    known = state_of(state)
    if known is None:
        if not is_empty:
            raise LogDamaged("there are records of a log, and no state of a member")
        return MemberState(group=group.founded, member=group.member)
    if known.format != LOG_GROUP_FORMAT:
        raise LogDamaged(
            f"the log is that of a controller that was alone: a member of the group {group.name!r} "
            f"cannot go on with it"
        )
    if not group.is_of(known.group) or known.member != group.member:
        raise LogDamaged(
            f"the log is that of member {known.member!r} of the group {known.group!r}, and this is member "
            f"{group.member!r} of a group {group.name!r}"
        )
    return known


def _read(index: int, whole: bytes) -> MemberSnapshot:
    try:
        found = MemberSnapshot.decode(whole)
    except RemoteProtocolError as error:
        raise LogDamaged(f"the snapshot of the log: {error}") from error
    if found.index != index:
        raise LogDamaged(f"the snapshot of the log is of record {found.index} and not of {index}")
    return found


def _handed_out(snapshot: MemberSnapshot, *, installs: bool = False) -> Snapshot:
    members = snapshot.members.voters | snapshot.members.learners
    return Snapshot(snapshot.index, snapshot.term, snapshot.data, snapshot.encode(), installs, members)


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
