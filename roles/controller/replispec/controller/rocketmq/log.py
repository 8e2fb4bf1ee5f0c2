"""The log of a controller: what is proposed is written together, then applied and answered, in order.

One write is under way at a time. What is proposed meanwhile goes out together in the next one. Nothing is
applied, and so nobody is answered, before it is on the disk. Without room a record counts as never proposed:
who asked is refused, and alone what is on record is answered from, and the next proposal tries again; of a
group another member leads then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, Protocol

from replispec.controller.consensus import (
    Consensus,
    Entry,
    LogDamaged,
    Message,
    Ready,
    Snapshot,
)
from replispec.controller.consensus.raft import Chance, ControllerGroup, GroupNode, joined_state
from replispec.controller.consensus.rocketmq import SingleNode, term_alone
from replispec.controller.rocketmq.core.broker_set import BrokerSet
from replispec.event.v1.event_pb2 import BrokerSetState, ControllerEvent, ControllerSnapshot, GroupPlaces
from replispec.runtime.documents.official_seam import decode, encode
from replispec.runtime.primitives.errors import LocalProtocolError, RemoteProtocolError
from replispec.runtime.storage import AppendRecords, JournalReader, Operation, ReplaceRecords
from replispec.runtime.world import Level, Outbox, Persisted, PersistFailed, Writes, Written
from replispec.wire.raft.options import MemberOptions
from replispec.wire.rocketmq import constants

_FORMATS: Final = (constants.SNAPSHOT_FORMAT, constants.SNAPSHOT_GROUP_FORMAT)
SNAPSHOT_BYTES_MAX: Final = 1 << 31
"""What 10,000 broker sets of 1,000 brokers take, and more."""


class _Incoming(NamedTuple):
    """What a snapshot says: of which term its last record is, the broker sets, and who the group is to be by
    the record at a place (None: nothing says it)."""

    term: int = 0
    sets: Sequence[BrokerSet] = ()
    places: GroupPlaces | None = None
    places_index: int = 0


class LogOwner(Protocol):
    """What follows from the log."""

    def apply(self, entry: Entry, now_ms: int) -> None:
        """This record is agreed on, and on the disk."""
        ...

    def send(self, member: str, message: Message, now_ms: int) -> None:
        """Tell another member of the group."""
        ...

    def allow(self, reads: Sequence[int]) -> None:
        """Questions with these tickets may be answered now."""
        ...

    def led(self, leader: str | None, term: int, now_ms: int, *, is_leader: bool) -> None:
        """Somebody else leads the group now, this member (`is_leader`), or nobody. Whoever waits for an
        answer of this member as it led before waits in vain."""
        ...

    def reaches(self, members: Mapping[str, str], now_ms: int) -> None:
        """These are the other members of the group, and where each is reached."""
        ...

    def left(self) -> None:
        """This member was removed from the group, which is agreed on."""
        ...

    def read(self, states: Sequence[BrokerSetState]) -> Sequence[BrokerSet]:
        """What a snapshot says, to be restored or not. Raises RemoteProtocolError."""
        ...

    def restore(self, sets: Sequence[BrokerSet]) -> None:
        """This, and nothing else, is what the records before those that follow have made."""
        ...

    def states(self) -> Sequence[BrokerSetState]:
        """What all records that were applied have made."""
        ...

    def refuse(self, proposal: int, reason: str) -> None:
        """The record of this proposal is not on the disk, and will not be."""
        ...

    def settled(self, now_ms: int) -> None:
        """A write has ended well: what was held back until it was known may be looked at."""
        ...

    def log_failed(self, reason: str) -> None:
        """What is on the disk is unknown: nothing may be decided any more."""
        ...


class LogStanding(NamedTuple):
    """Where a log stands, and who leads: for people. `lags`: records that each other member lacks, as the
    leader knows; `written`, `refused`: writes since the process began."""

    role: str
    leader: str | None
    term: int
    commit: int
    applied: int
    last: int
    replaced: int
    members: Sequence[str]
    voters: int
    lags: Mapping[str, int]
    is_full: bool
    written: int
    refused: int


class ControllerLog:
    """Proposes to the group, and has persisted what the group says. `group`: None for a controller that is
    alone; `chance` makes members of a group wait differently, as `options` say."""

    def __init__(
        self,
        outbox: Outbox,
        writes: Writes,
        journal: JournalReader,
        owner: LogOwner,
        *,
        snapshot_records: int,
        group: ControllerGroup | None,
        chance: Chance,
        options: MemberOptions,
    ) -> None:
        self._outbox = outbox
        self._writes = writes
        self._journal = journal
        self._owner = owner
        self._consensus: Consensus | None = None
        self._snapshot_records = snapshot_records
        self._group = group
        self._chance = chance
        self._options = options
        # Whom this member took for the leader when that was last told, in which term, and whether it led.
        self._led: tuple[str | None, int, bool] = (None, 0, False)
        # The newest proposal, and the newest of which it is known what became of it.
        self._last_proposal = self._last_settled = 0
        # How many records were applied, and how many of them a snapshot has replaced, or is to replace.
        self._applied = self._replaced = self._applied_term = 0
        self._under_way: Ready | None = None
        # What a snapshot of another member says that is being written.
        self._incoming = _Incoming()
        self._member: GroupNode | None = None
        self.is_joining = False
        self._reached: Mapping[str, str] = {}
        self._proposed = False
        self._is_full = False
        self._writes_done = self._writes_refused = 0
        self._pause_ms = constants.LOG_RETRY_FIRST_MS
        self._again_ms: int | None = None

    def start(self, now_ms: int) -> None:
        """Read what is there. Raises StorageFailed, and LogDamaged for what no controller wrote."""
        kept, state, records = self._journal.snapshot(), self._journal.state(), self._journal.records()
        if self._group is not None:
            if self._group.joins and kept is None and state is None and not records:
                return
            self._consensus = self._begun(self._group, kept, records, state)
        else:
            # Another one's snapshot is named as such, before it is read as that of a controller alone.
            term_alone(state)
            found = _Incoming() if kept is None else self._read(*kept)
            if kept is not None:
                self._restore(kept[0], found)
            self._consensus = SingleNode(records, state, replaced=self._replaced, term=found.term)
        self._consensus.begin(now_ms)
        if records:
            self._outbox.note(Level.INFO, "log read", records=len(records), replaced=self._replaced)

    def _begun(
        self,
        group: ControllerGroup,
        kept: tuple[int, bytes] | None,
        records: Sequence[tuple[int, bytes]],
        state: bytes | None,
    ) -> GroupNode:
        """A member of a group, from what its disk holds. Raises LogDamaged."""
        member = GroupNode(group, kept, records, state, self._chance, self._options)
        if (restored := member.restored) is not None:
            found = self._read_of_group(restored)
            self._restore(restored.index, found)
            member.check(restored, found.places)
            member.restore(found.places, found.places_index)
        member.check()
        if others := sorted(group.addresses.keys() - member.members.keys() - {group.member}):
            self._outbox.note(
                Level.WARNING,
                "controllerDLegerPeers is not the group: what the log says counts",
                not_members=others,
                members=sorted(member.members),
            )
        self._member = member
        return member

    @property
    def member(self) -> GroupNode | None:
        """The member of a group; None when the controller is alone, or has not joined one yet."""
        return self._member

    def join(self, identity: str, told: Mapping[str, str]) -> None:
        """Begin as a member of this group, once that is on the disk."""
        assert self._group is not None
        group, state = self._group, joined_state(identity, self._group.member, told)
        self.is_joining = True

        def written(event: Written) -> None:
            self.is_joining = False
            if isinstance(event, Persisted):
                self._consensus = self._begun(group, None, (), state)
                self._consensus.begin(event.now_ms)
            elif not event.is_full:
                self._owner.log_failed(f"the log of the controller cannot be written: {event.reason}")

        self._writes.persist(AppendRecords((), state), then=written)

    def _read(self, index: int, data: bytes) -> _Incoming:
        """What a snapshot says. Raises LogDamaged."""
        try:
            found = decode(ControllerSnapshot, data, unknown_allowed=False, limit_bytes=SNAPSHOT_BYTES_MAX)
            if found.format not in _FORMATS or found.index != index:
                raise LogDamaged(
                    f"the snapshot is of format {found.format} and of record {found.index}, this release "
                    f"reads {' and '.join(map(str, _FORMATS))}, and record {index} is missing"
                )
            places = found.group_places if found.HasField("group_places") else None
            return _Incoming(found.term, self._owner.read(found.sets), places, found.group_places_index)
        except RemoteProtocolError as error:
            raise LogDamaged(f"the snapshot of the log: {error}") from error

    def _read_of_group(self, kept: Snapshot) -> _Incoming:
        found = self._read(kept.index, kept.data)
        if found.term != kept.term:
            raise LogDamaged(
                f"the snapshot of the log is of term {found.term}, and its last record of {kept.term}"
            )
        return found

    def _restore(self, index: int, found: _Incoming) -> None:
        """Go on from a snapshot."""
        self._owner.restore(found.sets)
        self._applied = self._replaced = index
        self._applied_term = found.term

    @property
    def is_writing(self) -> bool:
        """Whether something is proposed and not known to be agreed on."""
        is_open = self._group is not None and self._last_proposal > self._last_settled
        return is_open or self._under_way is not None

    def propose(self, record: ControllerEvent) -> int:
        """Put a record at the end and return the number of the proposal; see `commit`."""
        if self._consensus is None:
            raise LocalProtocolError("a proposal before the log was read")
        self._proposed = True
        self._last_proposal = self._consensus.propose(record)
        return self._last_proposal

    @property
    def leads(self) -> bool:
        """Whether this member leads now; its owner may be about to be told that it does not."""
        return self._consensus is not None and self._consensus.is_leader

    def standing(self) -> LogStanding:
        """Where it stands now; whoever is alone leads, once the log is read."""
        member, own = self._member, "" if self._group is None else self._group.member
        found = LogStanding(
            role="unknown" if self._group is not None or self._consensus is None else "leader",
            leader="itself" if self._group is None and self._consensus is not None else None,
            term=0 if self._consensus is None else self._consensus.term,
            commit=self._applied,
            applied=self._applied,
            last=self._applied,
            replaced=self._replaced,
            members=[own] if own else [],
            voters=1 if self._group is None else 0,
            lags={},
            is_full=self._is_full,
            written=self._writes_done,
            refused=self._writes_refused,
        )
        if member is None:
            return found
        members = member.members
        return found._replace(
            role=member.role,
            leader=member.leader,
            commit=member.commit,
            last=member.last_index,
            members=sorted(members),
            voters=sum(votes for _, votes, _ in members.values()),
            lags={each: lag for each, (_, _, lag) in members.items() if lag is not None and each != own},
        )

    def read(self) -> int:
        """Ask the group whether this member still leads, and return the ticket that `allow` names then."""
        if self._consensus is None:
            raise LocalProtocolError("a question before the log was read")
        return self._consensus.read()

    def leave(self) -> None:
        """The process ends: if this member leads its group, another one is to."""
        if self._consensus is not None:
            self._consensus.leave()

    def step(self, code: int, ext_fields: Mapping[str, str | None], body: bytes) -> None:
        """Take a message of another member. Raises RemoteProtocolError when it is none of this group."""
        if self._consensus is not None:
            self._consensus.step(code, ext_fields, body)

    def commit(self, now_ms: int) -> None:
        """Have what was proposed written, unless a write is under way. To be called once for all that one
        event brought."""
        if self._consensus is None:
            return
        try:
            self._go_on(self._consensus, now_ms)
        except LogDamaged as error:
            self._owner.log_failed(f"the log of the controller cannot be read: {error}")
            return
        if self._member is not None:
            self._tell_who_leads(self._consensus, now_ms)
            self._tell_who_is_reached(self._member, now_ms)

    def _go_on(self, consensus: Consensus, now_ms: int) -> None:
        while self._under_way is None:
            if self._again_ms is not None and not self._proposed:
                return
            ready = consensus.ready()
            if ready is None:
                return
            if ready.is_to_be_persisted:
                self._persist(ready)
                return
            self._do(ready, now_ms)

    def _persist(self, ready: Ready) -> None:
        self._under_way, self._proposed = ready, False
        operation: Operation = AppendRecords(ready.records, ready.state)
        if (kept := ready.snapshot) is not None:
            if kept.installs:
                # One that cannot be read is not written either: this member stays what it is.
                self._incoming = self._read_of_group(kept)
                assert self._member is not None
                self._member.check(kept, self._incoming.places)
            operation = ReplaceRecords(kept.index, kept.kept, ready.records, ready.state, kept.installs)
        self._writes.persist(operation, then=self._written)

    def _do(self, ready: Ready, now_ms: int) -> None:
        """What `ready` says rests on nothing that is not on the disk."""
        for member, message in ready.messages:
            self._owner.send(member, message, now_ms)
        if ready.snapshot is not None and ready.snapshot.installs:
            found, self._incoming = self._incoming, _Incoming()
            self._restore(ready.snapshot.index, found)
            if self._member is not None:
                self._member.restore(found.places, found.places_index)
            sets = len(found.sets)
            self._outbox.note(Level.INFO, "snapshot taken over", replaced=self._replaced, sets=sets)
        for entry in ready.entries:
            self._owner.apply(entry, now_ms)
            self._applied, self._applied_term = entry.index, entry.event.term
            self._last_settled = max(self._last_settled, entry.proposal or 0)
        if self._applied - self._replaced >= self._snapshot_records:
            self._replace(self._applied_term)
        if ready.entries:
            self._owner.settled(now_ms)
        if ready.reads:
            self._owner.allow(ready.reads)

    def _tell_who_leads(self, consensus: Consensus, now_ms: int) -> None:
        found = (consensus.leader, consensus.term, consensus.is_leader)
        if found != self._led:
            self._led = found
            if not consensus.is_leader:
                self._last_settled = self._last_proposal
            self._owner.led(consensus.leader, consensus.term, now_ms, is_leader=consensus.is_leader)

    def _tell_who_is_reached(self, member: GroupNode, now_ms: int) -> None:
        if member.has_left:
            self._owner.left()
        elif (reached := member.reached) is not self._reached:
            self._reached = reached
            self._owner.reaches(reached, now_ms)

    def keep_snapshot(self) -> int:
        """Keep what the records have made instead of them now; of which record, by its place."""
        if self._applied > self._replaced:
            self._replace(self._applied_term)
        return self._replaced

    def _replace(self, term: int) -> None:
        """Keep what the records have made instead of them. Whatever becomes of it, the log says the same."""
        self._replaced = self._applied
        found = ControllerSnapshot(
            format=constants.SNAPSHOT_FORMAT, index=self._applied, term=term, sets=self._owner.states()
        )
        if self._member is not None and (places := self._member.places).index:
            found.format = constants.SNAPSHOT_GROUP_FORMAT
            found.group_places.CopyFrom(places.record())
            found.group_places_index = places.index
        if self._group is None:
            data = encode(found, limit_bytes=SNAPSHOT_BYTES_MAX)
            self._writes.persist(ReplaceRecords(self._applied, data), then=self._was_replaced)
            return
        assert self._consensus is not None
        try:
            self._consensus.compact(self._applied, encode(found, limit_bytes=SNAPSHOT_BYTES_MAX))
        except LocalProtocolError as error:
            self._outbox.note(Level.WARNING, "no snapshot kept: the log grows", reason=str(error))

    def _was_replaced(self, event: Written) -> None:
        if isinstance(event, PersistFailed) and not event.is_full:
            self._owner.log_failed(f"the log of the controller cannot be written: {event.reason}")

    def tell_time(self, now_ms: int) -> None:
        """Let time pass for the group, before anything else that happens at this time."""
        if self._consensus is not None:
            self._consensus.tick(now_ms)

    def ticked(self, now_ms: int) -> None:
        """Try a full disk again."""
        if self._again_ms is not None and now_ms >= self._again_ms:
            self._again_ms = None
            self._owner.settled(now_ms)

    def deadline_ms(self) -> int | None:
        """When `ticked` has something to do."""
        own_ms = None if self._consensus is None else self._consensus.deadline_ms()
        if own_ms is None or self._again_ms is None:
            return own_ms if self._again_ms is None else self._again_ms
        return min(own_ms, self._again_ms)

    def _written(self, event: Written) -> None:
        ready, self._under_way = self._under_way, None
        assert ready is not None, "a write ended that was not asked for"
        assert self._consensus is not None
        self._writes_done += isinstance(event, Persisted)
        self._writes_refused += not isinstance(event, Persisted)
        if isinstance(event, Persisted):
            self._consensus.persisted()
            self._room_is_there()
            self._do(ready, event.now_ms)
        elif event.is_full:
            self._consensus.refused()
            self._no_room(event.reason, event.now_ms)
            if self._group is None:
                for entry in ready.entries:
                    self._owner.refuse(entry.event.proposal, event.reason)
        else:
            self._owner.log_failed(f"the log of the controller cannot be written: {event.reason}")

    def _room_is_there(self) -> None:
        if self._is_full:
            self._is_full = False
            self._outbox.note(Level.INFO, "room for the log again: changes are taken")
        self._pause_ms, self._again_ms = constants.LOG_RETRY_FIRST_MS, None

    def _no_room(self, reason: str, now_ms: int) -> None:
        if not self._is_full:
            self._is_full = True
            self._outbox.note(Level.ERROR, "no room for the log: changes are refused", reason=reason)
        if self._again_ms is None and self._group is None:
            self._again_ms = now_ms + self._pause_ms
            self._pause_ms = min(2 * self._pause_ms, constants.LOG_RETRY_LAST_MS)
