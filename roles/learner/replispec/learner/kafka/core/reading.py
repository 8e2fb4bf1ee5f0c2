"""What is read of one leader: the committed records of its partitions, as nobody's replica."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, Protocol

from replispec.learner.kafka.core.export import PartitionName, cut_line, record_line
from replispec.runtime.kafka import batches
from replispec.runtime.kafka.asking import AskedBroker
from replispec.runtime.kafka.questions import FetchLimits, fetch_request, in_turn, offsets_request
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.primitives.exchanges import Message
from replispec.runtime.world import Level, Outbox
from replispec.wire.kafka.clients import (
    ApacheFetchPartition,
    ApacheFetchPartitionResponse,
    ApacheFetchResponse,
    ApacheListOffsetsResponse,
)
from replispec.wire.kafka.codes import BatchAttribute, ErrorCode
from replispec.wire.kafka.constants import (
    EARLIEST,
    FETCH_2_6,
    LATEST,
    LIST_OFFSETS_2_6,
    NO_TIME,
    NOT_KNOWN,
    READER,
)
from replispec.wire.kafka.options import KafkaFollowerOptions
from replispec.wire.kafka.records import RecordBatchFixed


class RecordsTaken(Protocol):
    """Who writes what is read."""

    @property
    def has_room(self) -> bool:
        """Whether more may be read."""
        ...

    def put(self, partition: PartitionName, end: int, line: bytes) -> None:
        """Write a line, after which the partition is at `end`."""
        ...

    def look_again(self, now_ms: int) -> None:
        """Ask who leads: this leader does not, or is gone."""
        ...


@dataclass(slots=True, eq=False)
class ReadPartition:
    """A partition that is read from `offset` on, not before `after_ms`; `is_outside`: the leader does not
    have that offset."""

    name: PartitionName
    offset: int
    after_ms: int = 0
    is_outside: bool = False
    begin: int = 0


class LeaderReading:
    """The partitions that are read of a leader at HOST:PORT."""

    def __init__(
        self, outbox: Outbox, address: str, taken: RecordsTaken, options: KafkaFollowerOptions
    ) -> None:
        self.partitions: Final[dict[PartitionName, ReadPartition]] = {}
        self._outbox = outbox
        self._taken = taken
        self._options = options
        self._asked: dict[PartitionName, ReadPartition] = {}
        self._last: PartitionName | None = None
        self.broker: Final = AskedBroker(
            outbox,
            address,
            "learner",
            self,
            timeout_ms=options.replica_socket_timeout_ms,
            pause_ms=options.replica_fetch_backoff_ms,
        )

    def may_ask(self, now_ms: int) -> None:
        """See `replispec.runtime.kafka.asking.AskingHolder`."""
        if not (self.broker.is_free and self._taken.has_room):
            return
        due = [each for each in in_turn(self.partitions, self._last) if now_ms >= each.after_ms]
        if outside := [each for each in due if each.is_outside]:
            self._ask_offsets(outside, EARLIEST, self._begin_told, now_ms)
        elif due:
            self._ask_records(due, now_ms)

    def deadline_ms(self) -> int | None:
        """When something may be asked, while nothing is."""
        if not (self.broker.is_free and self._taken.has_room):
            return None
        return min((each.after_ms for each in self.partitions.values()), default=None)

    def not_answered(self, now_ms: int) -> None:
        """See `replispec.runtime.kafka.asking.AskingHolder`."""
        self._asked = {}
        self._taken.look_again(now_ms)

    def leave(self, each: ReadPartition) -> None:
        """Read it no more here; what is answered about it is not heard."""
        self.partitions.pop(each.name, None)

    def _ask_records(self, partitions: Iterable[ReadPartition], now_ms: int) -> None:
        self._asked = {each.name: each for each in partitions}
        wanted = [(each.name[0], self._question(each.name[1], each.offset)) for each in self._asked.values()]
        asked = fetch_request(wanted, READER, FETCH_2_6, FetchLimits.of(self._options))
        self.broker.ask(asked, FETCH_2_6, self._records_told, now_ms)

    def _question(self, partition: int, offset: int) -> ApacheFetchPartition:
        return ApacheFetchPartition(
            partition=partition,
            current_leader_epoch=NOT_KNOWN,
            fetch_offset=offset,
            log_start_offset=NOT_KNOWN,
            partition_max_bytes=self._options.replica_fetch_max_bytes,
        )

    def _ask_offsets(
        self,
        partitions: Iterable[ReadPartition],
        time: int,
        then: Callable[[Message, int], None],
        now_ms: int,
    ) -> None:
        self._asked = {each.name: each for each in partitions}
        wanted = [(*name, NOT_KNOWN) for name in self._asked]
        asked = offsets_request(wanted, READER, LIST_OFFSETS_2_6, time)
        self.broker.ask(asked, LIST_OFFSETS_2_6, then, now_ms)

    # Answers

    def _records_told(self, answer: Message, now_ms: int) -> None:
        assert isinstance(answer, ApacheFetchResponse), "the answer to this question"
        for topic in answer.topics if not answer.error else ():
            for said in topic.partitions:
                each = self._answered(topic.topic, said.partition)
                if each is None:
                    continue
                if said.error == ErrorCode.OFFSET_OUT_OF_RANGE:
                    each.is_outside = True
                elif said.error:
                    self._refused(each, said.error, now_ms)
                else:
                    self._read(each, said, now_ms)
        self._rest_refused(now_ms)

    def _read(self, each: ReadPartition, said: ApacheFetchPartitionResponse, now_ms: int) -> None:
        data, before = said.records or b"", each.offset
        try:
            for batch in batches.batches_in(data, may_be_cut=True):
                if batches.next_offset(batch.head) > said.high_watermark:
                    raise RemoteProtocolError("a batch beyond the high watermark", offset=batch.start)
                if not RecordBatchFixed.crc_holds(data, batch.start, batch.end):
                    raise RemoteProtocolError("the checksum of a batch does not fit", offset=batch.start)
                self._take(each, data, batch)
        except RemoteProtocolError as error:
            self._pause(each, f"records are wrong: {error}", now_ms)
            return
        if data:
            self._last = each.name
            if each.offset == before:
                # Else the same would be asked for at once, and again.
                self._pause(each, "nothing of what came is new and whole", now_ms)

    def _take(self, each: ReadPartition, data: bytes | memoryview, batch: batches.Batch) -> None:
        """Take the records of a batch from the offset on; all of it, or RemoteProtocolError."""
        head = batch.head
        end = batches.next_offset(head)
        if end <= each.offset:
            return
        is_control = head.attributes & BatchAttribute.CONTROL
        found = [] if is_control else batches.records_of(data, batch)
        by_broker = head.attributes & BatchAttribute.APPEND_TIME
        for record in found:
            offset = head.base_offset + record.offset_delta
            if each.offset <= offset < end:
                time_ms = head.max_timestamp if by_broker else head.first_timestamp + record.timestamp_delta
                line = record_line(each.name, offset, max(time_ms, NO_TIME), record)
                self._taken.put(each.name, offset + 1, line)
                each.offset = offset + 1
        each.offset = end

    def _begin_told(self, answer: Message, now_ms: int) -> None:
        found = []
        for each, offset in self._offsets(answer, now_ms):
            each.begin = offset
            found.append(each)
        if found:
            self._ask_offsets(found, LATEST, self._end_told, now_ms)

    def _end_told(self, answer: Message, now_ms: int) -> None:
        for each, end in self._offsets(answer, now_ms):
            each.is_outside = False
            if each.offset > end:
                self._outbox.note(
                    Level.ERROR, "records were exported that are lost", partition=each.name, end=end
                )
                self._taken.put(each.name, end, cut_line(each.name, end))
                each.offset = end
            elif each.offset < each.begin:
                self._outbox.note(
                    Level.WARNING, "records are gone before they were read", partition=each.name
                )
                each.offset = each.begin

    def _offsets(self, answer: Message, now_ms: int) -> list[tuple[ReadPartition, int]]:
        assert isinstance(answer, ApacheListOffsetsResponse), "the answer to this question"
        found = []
        for topic in answer.topics:
            for said in topic.partitions:
                each = self._answered(topic.name, said.partition_index)
                if each is None:
                    continue
                if said.error or said.offset < 0:
                    self._refused(each, said.error, now_ms)
                else:
                    found.append((each, said.offset))
        self._rest_refused(now_ms)
        return found

    def _answered(self, topic: str, partition: int) -> ReadPartition | None:
        """Who waits for this; None when it is read elsewhere by now.

        Raises RemoteProtocolError for what was not asked, or is answered twice.
        """
        each = self._asked.pop((topic, partition), None)
        if each is None:
            raise RemoteProtocolError(f"an answer about {topic}-{partition}, which was not asked")
        return each if each.name in self.partitions else None

    def _rest_refused(self, now_ms: int) -> None:
        asked, self._asked = self._asked, {}
        for each in asked.values():
            self._pause(each, "no answer", now_ms)

    def _refused(self, each: ReadPartition, error: int, now_ms: int) -> None:
        self._pause(each, f"error {error}", now_ms)
        self._taken.look_again(now_ms)

    def _pause(self, each: ReadPartition, reason: str, now_ms: int) -> None:
        self._outbox.note(Level.INFO, "partition is not read", partition=each.name, reason=reason)
        each.after_ms = now_ms + self._options.replica_fetch_backoff_ms
