"""The records in bytes of a log that come in runs: each must be whole, where it says it is, and undamaged;
and those that the answer to a pull gives."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.primitives.frames import FrameBuffer
from replispec.wire.rocketmq.codes import LogMagic, RequestCode
from replispec.wire.rocketmq.store import LogBlankFixed, LogRecord, OffsetMessageId, OffsetMessageIdV6
from replispec.wire.rocketmq.streams import COMMIT_LOG

_HEAD_BYTES = len(LogBlankFixed(0, 0).encode())
_RECORD_BYTES_MAXIMUM = 1 << 24
_IPV4_BYTES = 4
# Between a property's name and its value, and after the value.
_NAME_ENDS, _VALUE_ENDS = "\x01", "\x02"
_RECORDS = (LogMagic.MESSAGE_V1, LogMagic.MESSAGE_V2)
_ID = "message_id"
PULLS = frozenset((RequestCode.PULL_MESSAGE, RequestCode.LITE_PULL_MESSAGE))
"""What is answered with records of the log."""


class LogRecords:
    """Walks the records of consecutive runs, from a border that is known or looks like a record.

    `fault` says of the first record that is none what is wrong with it; nothing is read behind it. `last` is
    the record that was whole last.
    """

    def __init__(self, borders: Collection[int]) -> None:
        self.fault = ""
        self.last: LogRecord | None = None
        self._borders = borders
        self._held = bytearray()
        self._at: int | None = None  # where in the log the held bytes begin; None: at no known border
        self._end = 0  # where in the log the next run is to begin

    def add(self, offset: int, data: bytes) -> None:
        """Take a run of the log; one that does not follow the run before begins anew."""
        if self.fault:
            return
        if self._at is None or offset != self._end:
            self._held.clear()
            self._at = offset if offset in self._borders or _looks_like_one(data) else None
        self._end = offset + len(data)
        if self._at is not None:
            self._held += data[max(self._at - offset, 0) :]
            self._at = self._walked(self._at)

    def _walked(self, at: int) -> int:
        """Take the whole records off the held bytes; returns where in the log the rest begins."""
        taken = 0
        while len(self._held) - taken >= _HEAD_BYTES and not self.fault:
            head = LogBlankFixed.decode(self._held, taken)
            if not _is_head(head):
                self.fault = "no record begins where the one before ends"
                break
            if head.magic in _RECORDS:
                if len(self._held) - taken < head.total_size:
                    break
                self.fault = self._read(bytes(self._held[taken : taken + head.total_size]), at + taken)
            taken += head.total_size  # what fills a file need not be here yet: it is passed over
        del self._held[:taken]
        return at + taken

    def _read(self, data: bytes, offset: int) -> str:
        """Take one whole record; returns what is wrong with it, or nothing."""
        try:
            record = LogRecord.decode(data)
        except RemoteProtocolError:
            return "a record does not decode"
        if record.physical_offset != offset:
            return "a record says that it lies elsewhere"
        if not record.body_crc_holds:
            return "the body of a record is not what its checksum says"
        self.last = record
        return ""


def pulled_records(data: bytes) -> list[Mapping[str, object]]:
    """The records that the answer to a pull gives, one behind the other, without where in the log they lie,
    which is of no account to who reads a queue.

    Raises RemoteProtocolError for what is no run of whole, undamaged records.
    """
    frames = FrameBuffer(COMMIT_LOG)
    found = [LogRecord.decode(each) for each in frames.receive(data)]
    if frames.waiting_bytes:
        raise RemoteProtocolError(f"{frames.waiting_bytes} bytes behind the last whole record")
    if not all(each.body_crc_holds for each in found):
        raise RemoteProtocolError("the body of a record is not what its checksum says")
    return [{name: shown for name, shown in shown_record(each).items() if name != _ID} for each in found]


def _is_head(head: LogBlankFixed) -> bool:
    if head.magic == LogMagic.BLANK:
        return head.total_size >= _HEAD_BYTES
    return head.magic in _RECORDS and _HEAD_BYTES <= head.total_size <= _RECORD_BYTES_MAXIMUM


def _looks_like_one(data: bytes) -> bool:
    return len(data) >= _HEAD_BYTES and _is_head(LogBlankFixed.decode(data, 0))


def shown_record(record: LogRecord) -> Mapping[str, object]:
    """A record as cases compare it: its texts as texts, and the id that its producer was told."""
    kind = OffsetMessageId if len(record.store_ip) == _IPV4_BYTES else OffsetMessageIdV6
    where = kind(record.store_ip, record.store_port, record.physical_offset)
    return {
        "topic": record.topic,
        "queue_id": record.queue_id,
        "queue_offset": record.queue_offset,
        "flag": record.flag,
        "sys_flag": record.sys_flag,
        "born_timestamp": record.born_timestamp,
        "reconsume_times": record.reconsume_times,
        "prepared_transaction_offset": record.prepared_transaction_offset,
        _ID: where.encode().hex().upper(),
        "properties": _properties(record.properties),
        "body": record.body.decode("utf-8", "replace"),
    }


def _properties(data: bytes) -> Mapping[str, str] | str:
    """The properties by their names; as they stand when they are none."""
    text = data.decode("utf-8", "replace")
    pairs = [each.partition(_NAME_ENDS) for each in text.split(_VALUE_ENDS) if each]
    return {name: value for name, _, value in pairs} if all(mark for _, mark, _ in pairs) else text
