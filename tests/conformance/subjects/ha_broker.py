"""The remoting side of the HA master: its epochs for anybody, and one more message for a producer."""

from __future__ import annotations

from replispec.runtime.rocketmq.framing import Command
from replispec.wire.rocketmq.broker import SendMessageResponse
from replispec.wire.rocketmq.codes import RequestCode
from replispec.wire.rocketmq.controller import EpochEntry, EpochEntryCache
from replispec.wire.rocketmq.store import OffsetMessageId
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

    def send_message(self, _request: Command) -> Answer:
        """310: one more record at the end of the log, whatever the message says."""
        offset = self.master.append()
        self.master.advance_confirm()
        message_id = OffsetMessageId(LocalHost, 0, offset).encode().hex().upper()
        return Answer(header=SendMessageResponse(msg_id=message_id, queue_id=0, queue_offset=offset))
