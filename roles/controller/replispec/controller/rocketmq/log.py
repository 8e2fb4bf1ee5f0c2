"""The log of a controller: what is proposed is written together, then applied and answered, in order.

One write is under way at a time. What is proposed meanwhile goes out together in the next one. Nothing is
applied, and so nobody is answered, before it is on the disk. Without room a record counts as never proposed:
who asked is refused, what is on record is answered from, and the next proposal tries again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from replispec.controller.consensus import Consensus, LogDamaged, Ready, SingleNode
from replispec.event.v1.event_pb2 import BrokerSetState, ControllerEvent, ControllerSnapshot
from replispec.runtime.documents.official_seam import decode, encode
from replispec.runtime.primitives.errors import LocalProtocolError, RemoteProtocolError
from replispec.runtime.storage import AppendRecords, JournalReader, ReplaceRecords
from replispec.runtime.world import Level, Outbox, Persisted, PersistFailed, Writes, Written
from replispec.wire.rocketmq import constants

SNAPSHOT_BYTES_MAX: Final = 1 << 31
"""What 10,000 broker sets of 1,000 brokers take, and more."""


class LogOwner(Protocol):
    """What follows from the log."""

    def apply(self, record: ControllerEvent, now_ms: int, *, is_new: bool) -> None:
        """This record is on the disk; `is_new`: since this start."""
        ...

    def restore(self, sets: Sequence[BrokerSetState]) -> None:
        """This is what the records before those that follow have made. Raises RemoteProtocolError."""
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


class ControllerLog:
    """Proposes to the group, and has persisted what the group says."""

    def __init__(
        self, outbox: Outbox, writes: Writes, journal: JournalReader, owner: LogOwner, snapshot_records: int
    ) -> None:
        self._outbox = outbox
        self._writes = writes
        self._journal = journal
        self._owner = owner
        self._consensus: Consensus | None = None
        self._snapshot_records = snapshot_records
        # How many records were applied, and how many of them a snapshot has replaced, or is to replace.
        self._applied = self._replaced = 0
        self._under_way: Ready | None = None
        self._proposed = False
        self._is_full = False
        self._pause_ms = constants.LOG_RETRY_FIRST_MS
        self._again_ms: int | None = None

    def start(self) -> None:
        """Read what is there. Raises StorageFailed, and LogDamaged for what no controller wrote."""
        kept = self._journal.snapshot()
        term = 0
        if kept is not None:
            term = self._restore(*kept)
        self._consensus = SingleNode(
            self._journal.records(), self._journal.state(), replaced=self._replaced, term=term
        )

    def _restore(self, index: int, data: bytes) -> int:
        """Begin with a snapshot; returns the term of the last record in it."""
        try:
            found = decode(ControllerSnapshot, data, unknown_allowed=False, limit_bytes=SNAPSHOT_BYTES_MAX)
            if (found.format, found.index) != (constants.SNAPSHOT_FORMAT, index):
                raise LogDamaged(
                    f"the snapshot is of format {found.format} and of record {found.index}, this release "
                    f"reads {constants.SNAPSHOT_FORMAT}, and record {index} is missing"
                )
            self._owner.restore(found.sets)
        except RemoteProtocolError as error:
            raise LogDamaged(f"the snapshot of the log: {error}") from error
        self._applied = self._replaced = index
        return found.term

    @property
    def is_writing(self) -> bool:
        """Whether something is proposed and not known to be on the disk."""
        return self._under_way is not None

    def propose(self, record: ControllerEvent) -> int:
        """Put a record at the end and return the number of the proposal; see `commit`."""
        if self._consensus is None:
            raise LocalProtocolError("a proposal before the log was read")
        self._proposed = True
        return self._consensus.propose(record)

    def commit(self, now_ms: int) -> None:
        """Have what was proposed written, unless a write is under way. To be called once for all that one
        event brought."""
        while self._consensus is not None and self._under_way is None:
            if self._again_ms is not None and not self._proposed:
                return
            ready = self._consensus.ready()
            if ready is None:
                return
            if ready.records or ready.state is not None:
                self._under_way, self._proposed = ready, False
                self._writes.persist(AppendRecords(ready.records, ready.state), then=self._written)
                return
            self._outbox.note(Level.INFO, "log read", records=len(ready.entries), replaced=self._replaced)
            self._apply(ready, now_ms, is_new=False)

    def _apply(self, ready: Ready, now_ms: int, *, is_new: bool) -> None:
        for entry in ready.entries:
            self._owner.apply(entry.event, now_ms, is_new=is_new)
            self._applied = entry.index
        if self._applied - self._replaced >= self._snapshot_records:
            self._replace(ready.entries[-1].event.term)

    def _replace(self, term: int) -> None:
        """Keep what the records have made instead of them. Whatever becomes of it, the log says the same."""
        self._replaced = self._applied
        found = ControllerSnapshot(
            format=constants.SNAPSHOT_FORMAT, index=self._applied, term=term, sets=self._owner.states()
        )
        data = encode(found, limit_bytes=SNAPSHOT_BYTES_MAX)
        self._writes.persist(ReplaceRecords(self._applied, data), then=self._was_replaced)

    def _was_replaced(self, event: Written) -> None:
        if isinstance(event, PersistFailed) and not event.is_full:
            self._owner.log_failed(f"the log of the controller cannot be written: {event.reason}")

    def ticked(self, now_ms: int) -> None:
        """Try a full disk again."""
        if self._again_ms is not None and now_ms >= self._again_ms:
            self._again_ms = None
            self._owner.settled(now_ms)

    def deadline_ms(self) -> int | None:
        """When `ticked` has something to do."""
        return self._again_ms

    def _written(self, event: Written) -> None:
        ready, self._under_way = self._under_way, None
        assert ready is not None, "a write ended that was not asked for"
        assert self._consensus is not None
        if isinstance(event, Persisted):
            self._consensus.persisted()
            self._room_is_there()
            self._apply(ready, event.now_ms, is_new=True)
            self._owner.settled(event.now_ms)
        elif event.is_full:
            self._consensus.refused()
            self._no_room(event.reason, event.now_ms)
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
        if self._again_ms is None:
            self._again_ms = now_ms + self._pause_ms
            self._pause_ms = min(2 * self._pause_ms, constants.LOG_RETRY_LAST_MS)
