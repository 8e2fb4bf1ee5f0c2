"""The remoting side of the HA master: its epochs for anybody, and one more message for a producer."""

from __future__ import annotations

from replispec.runtime.rocketmq.framing import Command
from replispec.wire.rocketmq.broker import SendMessageResponse, SendMessageV2Request
from replispec.wire.rocketmq.codes import RequestCode
from replispec.wire.rocketmq.controller import EpochEntry, EpochEntryCache
from replispec.wire.rocketmq.store import LogRecord, OffsetMessageId
from tests.conformance.subjects.answering import Answering
from tests.conformance.subjects.ha_master import BROKER_SET, CLUSTER, GoodHaMaster, LocalHost
from tests.conformance.subjects.records import Answer

OPEN_END = 2**63 - 1


class HaBroker(Answering):
    """Answers 1007 and 310."""

    def __init__(self, master: GoodHaMaster) -> None:
        super().__init__()
        self.master = master
        self.handlers |= {
            RequestCode.GET_BROKER_EPOCH_CACHE: self.epoch_cache,
            RequestCode.SEND_MESSAGE_V2: self.send_message,
        }

    def epoch_cache(self, _request: Command) -> Answer:
        """1007: the epochs as the handshake shows them, with their ends."""
        entries = self.master.epochs
        ends = [entry.start_offset for entry in entries[1:]] + [OPEN_END]
        shown = [
            EpochEntry(end, entry.epoch, entry.start_offset) for entry, end in zip(entries, ends, strict=True)
        ]
        return Answer(body=EpochEntryCache(0, BROKER_SET, CLUSTER, shown, len(self.master.log)).encode())

    def send_message(self, request: Command) -> Answer:
        """310: the message as one more record at the end of the log."""
        ask = SendMessageV2Request.from_ext_fields(request.header.ext_fields or {})
        offset = self.master.append(self.record(ask, request.body))
        self.master.advance_confirm()
        message_id = OffsetMessageId(LocalHost, 0, offset).encode().hex().upper()
        return Answer(header=SendMessageResponse(msg_id=message_id, queue_id=0, queue_offset=offset))

    def record(self, ask: SendMessageV2Request, body: bytes) -> LogRecord:
        """What of a record the producer says."""
        return LogRecord(
            queue_id=ask.queue_id or 0,
            flag=ask.flag or 0,
            sys_flag=ask.sys_flag or 0,
            born_timestamp=ask.born_timestamp or 0,
            reconsume_times=ask.reconsume_times or 0,
            body=body,
            topic=ask.topic or "",
            properties=(ask.properties or "").encode(),
        )
