"""Bringing log and epochs to the disk, many writes at a time, and making the log's files in time."""

from __future__ import annotations

from collections.abc import Callable

from replispec.runtime.rocketmq.log.message_store import MessageStore
from replispec.runtime.storage import MakeFile
from replispec.runtime.world import Level, Outbox, Persisted, Writes, Written
from replispec.wire.rocketmq import constants

Then = Callable[[int, int], None]
"""Called with the offset up to which the log is durable, and the time in milliseconds."""
RoomListener = Callable[[str, int], None]
"""Called when there is room for more bytes of the log, or with why there is none, and the milliseconds."""


class GroupCommit:
    """One write of the store under way at a time; what is put meanwhile goes with the next.

    One store has one of these, whoever writes it. Each listener is called after each write. Without room for
    the epochs, or for the log's next file, the same is tried again. Any other write that fails halts the
    process: what of it is there is unknown, and nothing of it may ever be acknowledged.
    """

    def __init__(self, outbox: Outbox, writes: Writes, store: MessageStore, *listeners: Then) -> None:
        self._outbox = outbox
        self._writes = writes
        self._store = store
        self._listeners = list(listeners)
        self._waiting: list[RoomListener] = []
        self._under_way = False
        self._making = False
        self._is_full = False
        self._stands_still = False
        self._again_ms: int | None = None
        # Since when no note was written, and when the next one is due.
        self._noted_ms: int | None = None
        self._note_ms: int | None = None

    def listen(self, then: Then) -> None:
        """Tell this one too, after those before."""
        self._listeners.append(then)

    def forget(self, then: Then) -> None:
        """Tell this one nothing more."""
        self._listeners.remove(then)

    def request(self) -> None:
        """Make everything that was put or cut durable soon, and see that there is a file for what follows."""
        for said in self._store.take_said():
            self._outbox.note(said.level, said.what, **said.values)
        if not self._under_way and not self._stands_still:
            operations = self._store.begin_write()
            if operations:
                self._under_way = True
                self._writes.persist(*operations, then=self._written)
        if self._again_ms is None:
            self._make()

    def wait_for_room(self, then: RoomListener) -> None:
        """Have the next file made, for what the log has reserved; `then` is told once."""
        self._waiting.append(then)
        self.request()
        self._make()

    def ticked(self, now_ms: int) -> None:
        """Try again what there was no room for."""
        if self._again_ms is not None and now_ms >= self._again_ms:
            self._again_ms = None
            self._stands_still = False
            self.request()
        if self._note_ms is not None and now_ms >= self._note_ms:
            self._note(now_ms)

    def deadline_ms(self) -> int | None:
        """When `ticked` has something to do."""
        times = (self._again_ms, self._note_ms)
        return min((each for each in times if each is not None), default=None)

    def _make(self) -> None:
        file = None if self._making else self._store.log.wanted_file()
        if file is not None:
            self._making = True
            self._writes.persist(file, then=lambda event: self._made(file, event))

    def _made(self, file: MakeFile, event: Written) -> None:
        self._making = False
        succeeded = isinstance(event, Persisted)
        self._store.log.made(file, succeeded=succeeded)
        if isinstance(event, Persisted):
            self._room_is_there()
        elif event.is_full:
            self._no_room(event.reason, event.now_ms)
        else:
            self._outbox.halt(f"the commit log cannot have another file: {event.reason}")
            return
        waiting, self._waiting = self._waiting, []
        for then in waiting:
            then("" if isinstance(event, Persisted) else event.reason, event.now_ms)
        self.request()

    def _written(self, event: Written) -> None:
        self._under_way = False
        if isinstance(event, Persisted):
            self._room_is_there()
            durable = self._store.end_write()
            self.request()
            self._note_soon(event.now_ms)
            for then in tuple(self._listeners):
                then(durable, event.now_ms)
        elif event.is_full:
            self._stands_still = True
            self._store.no_room()
            self._no_room(event.reason, event.now_ms)
        else:
            self._outbox.halt(f"the commit log cannot be brought to the disk: {event.reason}")

    def stop(self) -> None:
        """The process ends: have noted how far the log is on the disk."""
        self._note(self._noted_ms or 0, stops=True)

    def _note_soon(self, now_ms: int) -> None:
        """What is on the disk is noted there within an interval of flushes, and once an interval."""
        if self._note_ms is None and self._store.note_lags:
            due_ms = now_ms if self._noted_ms is None else max(now_ms, self._noted_ms + constants.FLUSH_MS)
            self._note_ms = due_ms
            if due_ms <= now_ms:
                self._note(now_ms)

    def _note(self, now_ms: int, *, stops: bool = False) -> None:
        self._note_ms = None
        notes = self._store.wanted_notes(stops=stops)
        if notes:
            self._noted_ms = now_ms
            # Whatever becomes of it, what the files then hold is true.
            self._writes.persist(*notes, then=self._notes_written)

    def _notes_written(self, event: Written) -> None:
        if isinstance(event, Persisted):
            self._store.notes_written()
        else:
            self._store.notes_failed()

    def _room_is_there(self) -> None:
        if self._is_full:
            self._is_full = False
            self._outbox.note(Level.INFO, "room for the commit log again")

    def _no_room(self, reason: str, now_ms: int) -> None:
        if not self._is_full:
            self._is_full = True
            self._outbox.note(Level.ERROR, "no room for the commit log", reason=reason)
        self._again_ms = now_ms + constants.RETRY_MS
