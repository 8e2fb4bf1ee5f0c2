"""Messages with a delay level: they lie in the log under a topic of their own, and the master of the moment
puts each into its topic when its time has come, on the machine `delayed_messages`.

How far each level is delivered is said by the log itself: a record of the places from which a turn goes on
stands right before the messages that it delivers. Wherever the log is cut, what is behind the last such
record tells which of them are there, and nothing is left out or delivered twice.

Source: RIP-44 "Switching process"; apache/rocketmq rocketmq-all-5.4.0, ScheduleMessageService.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final, Protocol

from replispec.broker.rocketmq.core.copied import CopiedTable
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.primitives.texts import decimal_of
from replispec.runtime.rocketmq import rules
from replispec.runtime.rocketmq.log import MessageStore, QueueEntry, RoomListener
from replispec.runtime.rocketmq.log.properties import properties_of
from replispec.runtime.rocketmq.membership import MachineRunner, Nothing
from replispec.runtime.storage import StorageFailed
from replispec.runtime.world import Level, Outbox
from replispec.wire.rocketmq import constants
from replispec.wire.rocketmq.broker import DataVersion
from replispec.wire.rocketmq.client import DelayOffsetTable
from replispec.wire.rocketmq.codes import LogMagic
from replispec.wire.rocketmq.machines import delayed_messages as machine
from replispec.wire.rocketmq.options import BrokerOptions
from replispec.wire.rocketmq.store import LogRecord


class DeliveryLog(Protocol):
    """What is asked of the broker before messages are delivered, and told after."""

    @property
    def disk_is_full(self) -> bool:
        """Whether its disk is used by more than it may be."""
        ...

    @property
    def awaits_room(self) -> bool:
        """Whether messages wait for the log's next file, which come first."""
        ...

    def wait_for_room(self, then: RoomListener) -> None:
        """Have a file made for what the log has reserved; `then` is told when it is there, or cannot be."""
        ...

    def stored(self, now_ms: int, /) -> None:
        """Messages were appended to the log."""
        ...


@dataclass(frozen=True, slots=True)
class _Head:
    """The next message of a level, and when it may be due."""

    level: int
    position: int
    record: LogRecord
    due_ms: int


class Delays:
    """Delivers what waits. `table` is what replicas are told, and Apache's brokers read."""

    def __init__(
        self,
        outbox: Outbox,
        store: MessageStore,
        options: BrokerOptions,
        master: DeliveryLog,
        table: CopiedTable[DelayOffsetTable],
        is_topic: Callable[[str], bool],
    ) -> None:
        self._outbox = outbox
        self._store = store
        self._master = master
        self._table = table
        self._delays_ms: Final = rules.delay_levels(options.message_delay_level)
        self._period_ms: Final = options.flush_delay_offset_interval_ms
        self._runner = MachineRunner(machine.MACHINE, self)
        self._is_topic = is_topic
        self.delivered_count = 0
        # Where each level goes on; of those only that have messages which are not delivered, the next ones.
        self._places: dict[int, int] = {}
        self._open: dict[int, _Head | None] = {}
        self._looked: _Head | None = None
        self._turn: list[_Head] = []
        # Places that count once the log is confirmed up to an offset, and those that do.
        self._unconfirmed: deque[tuple[int, dict[int, int]]] = deque()
        self._confirmed: dict[int, int] = {}
        self._awaits_room = False
        self._again_ms: int | None = None
        self._tell_ms: int | None = None

    @property
    def levels(self) -> int:
        """How many delay levels there are."""
        return len(self._delays_ms)

    def waits(self, level: int) -> None:
        """A message of this level was stored."""
        self._open.setdefault(level, None)

    def settle(self, confirmed: int, now_ms: int, *, serves: bool) -> None:
        """The log is confirmed up to an offset: deliver what is due, if this broker `serves` as master."""
        if serves != (self._runner.state is machine.State.DELIVERING):
            self._runner.take(machine.OfficeTaken() if serves else machine.OfficeLeft(), now_ms)
        while self._unconfirmed and self._unconfirmed[0][0] <= confirmed:
            places = self._unconfirmed.popleft()[1]
            if places != self._confirmed and self._tell_ms is None:
                self._tell_ms = now_ms + self._period_ms
            self._confirmed = places
        if self._open and not self._awaits_room and (self._again_ms is None or now_ms >= self._again_ms):
            self._again_ms = None
            self._deliver_due(now_ms)
        if self._tell_ms is not None and now_ms >= self._tell_ms:
            self._tell(now_ms)

    def deadline_ms(self) -> int | None:
        """When `settle` has something to do."""
        times = [] if self._tell_ms is None else [self._tell_ms]
        if self._again_ms is not None:
            times.append(self._again_ms)
        elif not self._awaits_room:
            times += [head.due_ms for head in self._open.values() if head is not None]
        return min(times, default=None)

    # What is due

    def _deliver_due(self, now_ms: int) -> None:
        self._turn = []
        for level in list(self._open):
            self._look(level, now_ms)
            if len(self._turn) >= constants.DELIVERED_AT_ONCE:
                # The others come first next time.
                self._open[level] = self._open.pop(level)
                break
        if self._turn:
            self._put(self._turn, now_ms)

    def _look(self, level: int, now_ms: int) -> None:
        """Take what is due of one level into this turn."""
        at = self._places.get(level, 0)
        while len(self._turn) < constants.DELIVERED_AT_ONCE:
            head = self._open[level]
            if head is None or head.position != at:
                head = self._head(level, at)
            self._open[level] = self._looked = head
            if head is None:
                if at >= self._bounds(level)[1]:
                    del self._open[level]
                return
            if now_ms < head.due_ms:
                return
            count = len(self._turn)
            due = machine.Due(head.record.store_timestamp, self._delays_ms[level - 1], now_ms)
            self._runner.take(due, now_ms)
            if len(self._turn) == count:
                return
            at += 1

    def _head(self, level: int, position: int) -> _Head | None:
        """The message at a position of a level; None while it is not confirmed."""
        queue = self._store.index.queues.get((constants.SCHEDULE_TOPIC, level - 1))
        return None if queue is None else self._read(level, position, queue.at(position))

    def _read(self, level: int, position: int, entry: QueueEntry | None) -> _Head | None:
        data = None if entry is None else self._store.log.read(entry.offset, entry.size)
        return None if data is None else _Head(level, position, LogRecord.decode(data), 0)

    def _bounds(self, level: int) -> tuple[int, int]:
        """Where the messages of a level begin and end in its queue."""
        found = self._store.index.bounds(constants.SCHEDULE_TOPIC, level - 1)
        return found.first, found.end

    # Effects of the machine

    def find_places(self, _event: machine.OfficeTaken) -> Nothing:
        """Where each level goes on: what the log says, or a master that said nothing in the log."""
        known = self._said_by_the_log()
        told = (self._table.table.offset_table if self._table.table is not None else None) or {}
        self._places, self._open = {}, {}
        for level in range(1, self.levels + 1):
            first, end = self._bounds(level)
            self._places[level] = min(max(known.get(level, 0), told.get(level, 0), first), end)
            if end > self._places[level]:
                self._open[level] = None
        self._unconfirmed.clear()
        self._confirmed = {level: place for level, place in told.items() if place > 0}
        self._unconfirmed.append((self._store.log.end, self._begun()))
        return ()

    def rest(self, _event: machine.OfficeLeft) -> Nothing:
        """Deliver nothing more."""
        if self._tell_ms is not None:
            self._tell(self._runner.now_ms)
        self._open.clear()
        self._unconfirmed.clear()
        self._awaits_room, self._again_ms = False, None
        return ()

    def deliver(self, _event: machine.Due) -> Nothing:
        """The message that is looked at comes to its topic with this turn."""
        assert self._looked is not None, "a message is looked at"
        self._turn.append(self._looked)
        return ()

    def await_time(self, event: machine.Due) -> Nothing:
        """It is looked at again when it is due."""
        head = self._looked
        assert head is not None, "a message is looked at"
        due_ms = rules.due_at(event.stored_ms, event.delay_ms, event.now_ms)
        self._open[head.level] = replace(head, due_ms=due_ms)
        return ()

    # The log

    def _said_by_the_log(self) -> dict[int, int]:
        """Where the last turn began, and what is there of the messages that it delivered."""
        queue = self._store.index.queues.get((constants.MAPPING_TOPIC, constants.DELIVERED_QUEUE))
        entry = None if queue is None else queue.stored(queue.end - 1)
        data = None if entry is None else self._store.log.read(entry.offset, entry.size)
        if entry is None or data is None:
            return {}
        try:
            said = DelayOffsetTable.decode(LogRecord.decode(data).body).offset_table or {}
        except RemoteProtocolError as error:
            reason = str(error)
            self._outbox.note(Level.WARNING, "how far messages are delivered cannot be read", reason=reason)
            return {}
        behind = self._store.log.records(entry.offset + entry.size, self._store.log.end)
        for placed in islice(behind, constants.DELIVERED_AT_ONCE):
            level, position = _waited(placed.record)
            if position < said.get(level, 0) or not self._is_of(placed.record, level, position):
                break
            said[level] = position + 1
        return said

    def _is_of(self, record: LogRecord, level: int, position: int) -> bool:
        """Whether this is what waited there: anybody may have named a place in a message."""
        queue = self._store.index.queues.get((constants.SCHEDULE_TOPIC, level - 1))
        head = None if queue is None else self._read(level, position, queue.stored(position))
        if head is None:
            return False
        wanted = self._made(head, record.store_timestamp)
        return (wanted.topic, wanted.body, wanted.properties) == (
            record.topic,
            record.body,
            record.properties,
        )

    def _put(self, turn: Sequence[_Head], now_ms: int) -> None:
        """Store what this turn delivers, behind the record of where it begins."""
        records = [self._made_place(now_ms), *(self._made(head, now_ms) for head in turn)]
        # What is for no topic is passed over, however long the name of that is, and so is what fits no file.
        sizes = [len(each.encode()) for each in records if each is records[0] or self._is_topic(each.topic)]
        fitting = [each for each in sizes if each <= self._store.log.record_bytes_max]
        if self._master.disk_is_full:
            self._again_ms = now_ms + constants.DELIVERY_AGAIN_MS
            return
        if self._master.awaits_room or not self._store.log.reserve(fitting):
            self._awaits_room = True
            self._master.wait_for_room(self._room_changed)
            return
        try:
            self._store.put(records[0])
            for head, record in zip(turn, records[1:], strict=True):
                self._deliver_one(head, record)
        except StorageFailed as error:
            self._again_ms = now_ms + constants.DELIVERY_AGAIN_MS
            self._outbox.note(Level.ERROR, "delayed messages cannot be delivered", reason=str(error))
            if self._store.log.broken:
                self._outbox.halt(f"the commit log is broken: {error}")
        else:
            # More may be due: these were as many as one event may bring.
            self._again_ms = now_ms if len(turn) >= constants.DELIVERED_AT_ONCE else None
        self._unconfirmed.append((self._store.log.end, self._begun()))
        self._master.stored(now_ms)

    def _deliver_one(self, head: _Head, record: LogRecord) -> None:
        """Store one message; one that can be stored in no topic keeps nobody else waiting. Raises
        StorageFailed."""
        reason = "" if self._is_topic(record.topic) else "it is for no topic"
        try:
            if not reason:
                self._store.put(record)
        except ValueError as error:
            reason = str(error)
        if reason:
            values = {"delay_level": head.level, "position": head.position, "reason": reason}
            self._outbox.note(Level.ERROR, "a delayed message is passed over", **values)
        self._places[head.level] = head.position + 1
        self.delivered_count += not reason

    def _room_changed(self, reason: str, now_ms: int) -> None:
        """The log has another file, or cannot have one."""
        self._awaits_room = False
        self._again_ms = now_ms + (constants.DELIVERY_AGAIN_MS if reason else 0)

    def _made(self, head: _Head, now_ms: int) -> LogRecord:
        record = head.record
        found = properties_of(record.properties)
        queue = found.get(constants.REAL_QUEUE_PROPERTY, "")
        said = rules.as_delivered(record.properties.decode(errors="replace"), head.level, head.position)
        properties = said.encode()
        if len(properties) > constants.PROPERTIES_BYTES_MAX:
            # A broker of Apache's stored it without room for where it waited: that is not said of this one.
            properties = record.properties
        return replace(
            record,
            topic=found.get(constants.REAL_TOPIC_PROPERTY, ""),
            queue_id=decimal_of(queue, constants.QUEUE_ID_MAX) or 0,
            properties=properties,
            store_timestamp=now_ms,
        )

    def _begun(self) -> dict[int, int]:
        """Where each level goes on of which something was delivered."""
        return {level: place for level, place in sorted(self._places.items()) if place > 0}

    def _made_place(self, now_ms: int) -> LogRecord:
        return LogRecord(
            magic=LogMagic.MESSAGE_V1,
            queue_id=constants.DELIVERED_QUEUE,
            born_timestamp=now_ms,
            born_ip=bytes(4),
            store_timestamp=now_ms,
            store_ip=bytes(4),
            body=DelayOffsetTable(offset_table=self._begun()).encode(),
            topic=constants.MAPPING_TOPIC,
        )

    def _tell(self, now_ms: int) -> None:
        """Write down how far confirmed messages are delivered, for replicas and brokers of Apache's."""
        self._tell_ms = None
        if self._confirmed:
            version = DataVersion(sum(self._confirmed.values()), 0, now_ms)
            self._table.adopt(DelayOffsetTable(version, self._confirmed))


def _waited(record: LogRecord) -> tuple[int, int]:
    """The level and the position where a message says that it had waited; below all others for one that says
    nothing."""
    said = properties_of(record.properties).get(constants.WAITED_PROPERTY, "")
    level, position = map(decimal_of, said.partition(":")[::2])
    return (0, constants.UNDECIDED) if level is None or position is None else (level, position)
