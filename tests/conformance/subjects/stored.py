"""The messages that a scripted broker keeps: what was sent as records of a log, and what a pull is given."""

from __future__ import annotations

from collections.abc import Mapping

from replispec.runtime.primitives.frames import FrameBuffer
from replispec.wire.rocketmq.client import BatchMessage
from replispec.wire.rocketmq.codes import LogMagic
from replispec.wire.rocketmq.store import LogRecord
from replispec.wire.rocketmq.streams import MESSAGE_BATCH

LOGICAL = 64
_HOST = bytes((127, 0, 0, 1))
_SHORT = {"flag": "h", "sysFlag": "f", "bornTimestamp": "g", "properties": "i", "reconsumeTimes": "j"}


class Log:
    """A log of messages, found again by their queue and their offset there."""

    def __init__(self) -> None:
        self.records: dict[tuple[str, int, int], LogRecord] = {}
        self.size = 0

    def keep(self, place: tuple[str, int], offset: int, record: LogRecord) -> None:
        """A message is the one at an offset of a message queue."""
        record.topic, record.queue_id = place
        record.queue_offset, record.physical_offset = offset, self.size
        self.size += len(record.encode())
        self.records[*place, offset] = record

    def between(self, place: tuple[str, int], begin: int, end: int) -> list[LogRecord]:
        """The messages of a queue from an offset up to another one."""
        offsets = range(max(begin, 0), end)
        return [self.records[*place, each] for each in offsets if (*place, each) in self.records]


def written(records: list[LogRecord]) -> bytes:
    """What a pull is given."""
    return b"".join(each.encode() for each in records)


def record_of(header: Mapping[str, str], body: bytes) -> LogRecord:
    """What a send says of its message."""
    said = {name: header.get(short) or header.get(name) or "" for name, short in _SHORT.items()}
    return LogRecord(
        magic=LogMagic.MESSAGE_V1,
        flag=int(said["flag"] or 0),
        sys_flag=int(said["sysFlag"] or 0) & ~LOGICAL,
        born_timestamp=int(said["bornTimestamp"] or 0),
        born_ip=_HOST,
        store_timestamp=int(said["bornTimestamp"] or 0),
        store_ip=_HOST,
        reconsume_times=int(said["reconsumeTimes"] or 0),
        body=body,
        properties=said["properties"].encode(),
    )


def records_of(command: str, header: Mapping[str, str], body: bytes) -> list[LogRecord]:
    """The same of a send that may be a batch: its messages one behind the other."""
    if command != "SEND_BATCH_MESSAGE":
        return [record_of(header, body)]
    items = [BatchMessage.decode(each) for each in FrameBuffer(MESSAGE_BATCH).receive(body)]
    return [record_of(header, each.body) for each in items]
