"""The log of a controller: what is proposed is written together, then applied and answered, in order.

One write is under way at a time. What is proposed meanwhile goes out together in the next one. Nothing is
applied, and so nobody is answered, before it is on the disk. Without room a record counts as never proposed:
who asked is refused, what is on record is answered from, and the next proposal tries again.
"""

from __future__ import annotations

from typing import Protocol

from replispec.controller.consensus import Consensus, Ready, SingleNode
from replispec.event.v1.event_pb2 import ControllerEvent
from replispec.runtime.primitives.errors import LocalProtocolError
from replispec.runtime.storage import AppendRecords, JournalReader
from replispec.runtime.world import Level, Outbox, Persisted, Writes, Written
from replispec.wire.rocketmq import constants


class LogOwner(Protocol):
    """What follows from the log."""

    def apply(self, record: ControllerEvent, now_ms: int, *, is_new: bool) -> None:
        """This record is on the disk; `is_new`: since this start."""
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

    def __init__(self, outbox: Outbox, writes: Writes, journal: JournalReader, owner: LogOwner) -> None:
        self._outbox = outbox
        self._writes = writes
        self._journal = journal
        self._owner = owner
        self._consensus: Consensus | None = None
        self._under_way: Ready | None = None
        self._proposed = False
        self._is_full = False
        self._pause_ms = constants.LOG_RETRY_FIRST_MS
        self._again_ms: int | None = None

    def start(self) -> None:
        """Read what is there. Raises StorageFailed, and LogDamaged for what no controller wrote."""
        self._consensus = SingleNode(self._journal.records(), self._journal.state())

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
            for entry in ready.entries:
                self._owner.apply(entry.event, now_ms, is_new=False)
            self._outbox.note(Level.INFO, "log read", records=len(ready.entries))

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
            for entry in ready.entries:
                self._owner.apply(entry.event, event.now_ms, is_new=True)
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
