"""Writes mappings, and whose queues are, to the commit log, and says when the SyncStateSet has them.

A mapping is one record of a queue of the system topic that consumers never see. What waits for room in the
log is asked anew when there is some: what was recorded meanwhile counts.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, Protocol

from replispec.runtime.rocketmq.log import MessageStore, RoomListener
from replispec.runtime.rocketmq.remoting.server import Request
from replispec.runtime.storage import StorageFailed
from replispec.runtime.world import Level, Outbox
from replispec.wire.rocketmq import constants
from replispec.wire.rocketmq.codes import LogMagic
from replispec.wire.rocketmq.options import BrokerOptions
from replispec.wire.rocketmq.store import LogRecord

WAITING_MAX: Final = 1_000
"""Mappings that wait to be kept; further ones are refused until some are."""
RECORDED_AT_ONCE: Final = 16
"""Mappings that are recorded again because of one event."""

Handler = Callable[[Request], None]
Kept = Callable[[str, int], None]
"""Told that a record is kept, or why that is not known (empty when it is), and the time in milliseconds."""


class RecordedQueue(Protocol):
    """What the records of one queue say."""

    @property
    def queue(self) -> int:
        """The queue of the system topic."""
        ...

    def catch_up(self) -> None:
        """Take what the log has now."""
        ...


class MappingLog(Protocol):
    """What is asked of the broker before a mapping is recorded, and told after."""

    @property
    def serves(self) -> bool:
        """Whether this broker is master."""
        ...

    @property
    def awaits_room(self) -> bool:
        """Whether messages wait for the log's next file, which come first."""
        ...

    def wait_for_room(self, then: RoomListener) -> None:
        """Have a file made for what the log has reserved; `then` is told when it is there, or cannot be."""
        ...

    def stored(self, now_ms: int, /) -> None:
        """Records were appended to the log."""
        ...

    def announce_topics(self, now_ms: int, /) -> None:
        """Tell name servers which topics there are now."""
        ...


@dataclass(slots=True)
class _Waiting:
    kept: Kept
    end: int
    late_ms: int


class Recorder:
    """Records mappings of all forms, one after the other."""

    def __init__(
        self,
        outbox: Outbox,
        store: MessageStore,
        options: BrokerOptions,
        master: MappingLog,
        hand_on: Callable[[Request, Handler], None],
    ) -> None:
        self._outbox = outbox
        self._store = store
        self._options = options
        self._master = master
        self._hand_on = hand_on
        self.store_ip = bytes(4)
        self.store_port = options.listen_port
        self._waiting: deque[_Waiting] = deque()
        # Who waits for the log's next file, in the order in which they came.
        self._held: deque[Kept] = deque()
        self._awaits_room = False

    @property
    def awaits_room(self) -> bool:
        """Whether a mapping waits for the log's next file."""
        return self._awaits_room

    @property
    def is_full(self) -> bool:
        """Whether as many wait as may."""
        return len(self._waiting) + len(self._held) >= WAITING_MAX

    def record(self, table: RecordedQueue, body: bytes, now_ms: int, kept: Kept, again: Kept) -> None:
        """Write what somebody sets. While there is no room he waits, and is told with `again` when there is
        some, or cannot be."""
        if self.is_full:
            kept("too many wait for it", now_ms)
        elif self._awaits_room:
            self._held.append(again)
        else:
            end = self._written(table, body, now_ms, kept)
            if end == constants.UNDECIDED:
                self._held.appendleft(again)
            elif end is not None:
                self.wait(end, kept, now_ms)

    def asks_again(self, request: Request, handler: Handler, kept: Kept) -> Kept:
        """What has a request served anew when there is room: what was recorded meanwhile counts."""

        def again(reason: str, now_ms: int) -> None:
            if reason:
                kept(reason, now_ms)
            else:
                self._hand_on(request, handler)

        return again

    def wait(self, end: int, kept: Kept, now_ms: int) -> None:
        """Tell when the SyncStateSet has the log up to here."""
        self._waiting.append(_Waiting(kept, end, now_ms + self._options.slave_timeout_ms))

    def record_alone(self, table: RecordedQueue, body: bytes, now_ms: int, kept: Kept) -> bool:
        """Write what nobody asked for; whether it is written. Whoever tells it tells it again later."""
        if self._awaits_room or len(self._waiting) >= WAITING_MAX:
            return False
        end = self._written(table, body, now_ms, kept)
        if end is None or end == constants.UNDECIDED:
            return False
        self.wait(end, kept, now_ms)
        return True

    def record_again(self, table: RecordedQueue, wanted: Iterable[tuple[str, bytes]], now_ms: int) -> None:
        """As a master, record mappings that no record holds, or of which it is about to be deleted."""
        if not self._master.serves:
            return
        for topic, body in wanted:
            if self._awaits_room:
                return
            try:
                if self._append(table, body, now_ms) is None:
                    return
            except (ValueError, StorageFailed) as error:
                self._outbox.note(Level.ERROR, "a mapping cannot be recorded", topic=topic, reason=str(error))
                return

    def _written(self, table: RecordedQueue, body: bytes, now_ms: int, kept: Kept) -> int | None:
        """Where the record ends; UNDECIDED where there is no room yet, None where it cannot be kept, which is
        told then."""
        try:
            end = self._append(table, body, now_ms)
        except ValueError as error:
            kept(str(error), now_ms)
        except StorageFailed as error:
            kept(str(error), now_ms)
            if self._store.log.broken:
                self._outbox.halt(f"the commit log is broken: {error}")
        else:
            return constants.UNDECIDED if end is None else end
        return None

    def _append(self, table: RecordedQueue, body: bytes, now_ms: int) -> int | None:
        """Write a record; returns where it ends, None when there is no room yet. Raises ValueError for one
        that is too long, StorageFailed."""
        record = self._made(table.queue, body, now_ms)
        if self._master.awaits_room or not self._store.log.reserve([len(record.encode())]):
            self._awaits_room = True
            self._master.wait_for_room(self._room_changed)
            return None
        placed = self._store.put(record)
        table.catch_up()
        self._master.stored(now_ms)
        return placed.offset + placed.size

    def _made(self, queue: int, body: bytes, now_ms: int) -> LogRecord:
        host, port = self.store_ip, self.store_port
        return LogRecord(
            magic=LogMagic.MESSAGE_V1,
            queue_id=queue,
            born_timestamp=now_ms,
            born_ip=host,
            born_port=port,
            store_timestamp=now_ms,
            store_ip=host,
            store_port=port,
            body=body,
            topic=constants.MAPPING_TOPIC,
        )

    def _room_changed(self, reason: str, now_ms: int) -> None:
        """The log has another file, or cannot have one."""
        self._awaits_room = False
        held, self._held = self._held, deque()
        for again in held:
            again(reason, now_ms)

    def kept(self, offset: int, now_ms: int) -> None:
        """The SyncStateSet has the log up to here. Who waits again for what he is told is told later."""
        over: list[Kept] = []
        while self._waiting and self._waiting[0].end <= offset:
            over.append(self._waiting.popleft().kept)
        for kept in over:
            kept("", now_ms)

    def refuse_all(self, reason: str, now_ms: int) -> None:
        """This broker stops, or is no longer master: whether what was set is kept is not known."""
        lost = [*(one.kept for one in self._waiting), *self._held]
        self._waiting.clear()
        self._held.clear()
        for kept in lost:
            kept(reason, now_ms)

    def ticked(self, now_ms: int) -> None:
        """Tell those that waited too long."""
        while self._waiting and now_ms >= self._waiting[0].late_ms:
            self._waiting.popleft().kept("it is stored, and not acknowledged in time", now_ms)

    def deadline_ms(self) -> int | None:
        """When `ticked` has something to do."""
        return self._waiting[0].late_ms if self._waiting else None
