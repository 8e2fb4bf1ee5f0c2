"""A small HA master that behaves as the clauses demand: the suite is tested against it.

One broker set's master with a commit log of three epochs in memory. It is a core: bytes and times in, effects
out. Its SyncStateSet is kept by a controller in the same process. Where Apache RocketMQ differs from a clause
it follows the clause: runs are labelled truthfully, a report beyond the log ends the connection.
Source: RIP-44; apache/rocketmq 5.1.1 to 5.5.0, AutoSwitchHAConnection, AutoSwitchHAService.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.rocketmq.framing import Command, FrameBuffer
from replispec.wire.rocketmq.codes import HaConnectionState, LogMagic, RequestCode
from replispec.wire.rocketmq.controller import AlterSyncStateSetRequest, SyncStateSet
from replispec.wire.rocketmq.ha import (
    HaEpochEntry,
    HaHandshakeAnswer,
    HaHandshakeId,
    HaReport,
    HaTransferHeader,
)
from replispec.wire.rocketmq.remoting import RemotingHeader
from replispec.wire.rocketmq.store import LogRecord
from replispec.wire.rocketmq.streams import HA_REPLICA
from tests.conformance.subjects.controller_admin import GoodController
from tests.conformance.subjects.records import Alive, BrokerSet, Effect, Hangup, Member, Reply

CLUSTER, BROKER_SET, MASTER, TOPIC = "ha-cluster", "ha-set", 1, "subjects"
RECORDS_PER_EPOCH = (7, 5, 9)
FOR_EVER_S = 1e9
HANDSHAKE, TRANSFER = HaConnectionState.HANDSHAKE, HaConnectionState.TRANSFER
LocalHost = bytes((127, 0, 0, 1))


@dataclass(slots=True)
class Link:
    """One replica's connection."""

    received_s: float
    wrote_s: float
    wake: Callable[[], None]
    """Asks for a `tick` soon, when there is more to send."""
    phase: HaConnectionState = HANDSHAKE
    answered: bool = False
    broker_id: int = 0
    learner: bool = False
    acknowledged: int = -1
    caught_up_s: float | None = None
    """When the replica had last caught up with the log; None before its first report."""
    next_offset: int = 0


class HaReader:
    """Messages out of the bytes of one replica."""

    def __init__(self) -> None:
        self._frames = FrameBuffer(HA_REPLICA)

    @property
    def waiting_bytes(self) -> int:
        """Bytes of a message that is not whole yet."""
        return self._frames.waiting_bytes

    def receive(self, data: bytes) -> list[HaHandshakeId | HaReport]:
        """The messages that these bytes complete. Raises RemoteProtocolError: then the connection ends."""
        return [self.decode(frame) for frame in self._frames.receive(data)]

    def decode(self, frame: bytes) -> HaHandshakeId | HaReport:
        """The message that one whole frame is; a handshake by address is not this generation's."""
        if len(frame) == len(HaReport().encode()):
            return HaReport.decode(frame)
        return HaHandshakeId.decode(frame)


def log_record(offset: int, number: int, message: LogRecord | None = None) -> bytes:
    """A record of the commit log, to lie at this offset: of this message, or one of its own."""
    made = message or LogRecord(body=f"message {number}".encode().ljust(80, b"."), topic=TOPIC)
    placed = replace(made, magic=LogMagic.MESSAGE_V1, queue_offset=number, physical_offset=offset)
    return replace(placed, born_ip=LocalHost, store_ip=LocalHost).encode()


class GoodHaMaster:
    """Every case that must pass does. `now_s` is any clock in seconds."""

    heartbeat_s = 5.0
    housekeeping_s = 20.0
    not_caught_up_s = 15.0
    examine_s = 5.0
    batch_bytes = 512

    def __init__(self, now_s: Callable[[], float], controller: GoodController) -> None:
        self.now_s = now_s
        self.controller = controller
        self.log = bytearray()
        self.epochs: list[HaEpochEntry] = []
        self.links: list[Link] = []
        for epoch, records in enumerate(RECORDS_PER_EPOCH, start=1):
            self.epochs.append(HaEpochEntry(epoch, len(self.log)))
            for _ in range(records):
                self.append()
        self.confirm = len(self.log)
        self.broker_set = self.introduce()

    def introduce(self) -> BrokerSet:
        """The set at the controller, of which this is the living master for ever."""
        name = BROKER_SET
        broker_set = BrokerSet(name, CLUSTER, {MASTER: Member("127.0.0.1:10911", "127.0.0.1:10911;1")})
        broker_set.master, broker_set.master_epoch = MASTER, self.epochs[-1].epoch
        broker_set.in_sync, broker_set.in_sync_epoch = [MASTER], self.epochs[-1].epoch
        self.controller.sets[name], self.controller.granted[name] = broker_set, MASTER
        self.controller.alive[name, MASTER] = Alive(0, self.now_s(), FOR_EVER_S, 0, 0, 0)
        return broker_set

    def append(self, message: LogRecord | None = None) -> int:
        """Store one more message; returns where it lies."""
        offset = len(self.log)
        self.log += log_record(offset, offset, message)
        for link in self.links:
            link.wake()
        return offset

    # What arrives

    def opened(self, wake: Callable[[], None]) -> Link:
        """A replica has connected."""
        link = Link(self.now_s(), self.now_s(), wake)
        self.links.append(link)
        return link

    def closed(self, link: Link, waiting_bytes: int) -> list[Effect]:  # noqa: ARG002
        """A connection has ended; a member without one leaves the SyncStateSet."""
        self.links.remove(link)
        self.shrink(link)
        return []

    def reader(self) -> HaReader:
        """What makes messages of a replica's bytes."""
        return HaReader()

    def receive(self, link: Link, message: HaHandshakeId | HaReport) -> list[Effect]:
        """Take one message; returns what is to be done, in order."""
        link.received_s = self.now_s()
        if isinstance(message, HaHandshakeId):
            return self.sent(link, self.take_handshake(link, message))
        return self.sent(link, self.take_report(link, message.max_offset))

    def sent(self, link: Link, messages: list[bytes]) -> list[Effect]:
        """The effects that send these messages."""
        if messages:
            link.wrote_s = self.now_s()
        return [Reply(message) for message in messages]

    def take_handshake(self, link: Link, message: HaHandshakeId) -> list[bytes]:
        """A handshake, the first one or another, is answered; sending waits for the next report."""
        link.phase, link.answered = HANDSHAKE, True
        link.broker_id, link.learner = message.broker_id, message.async_learner
        return [self.answer().encode()]

    def answer(self) -> HaHandshakeAnswer:
        """The end of the log and all epochs."""
        return HaHandshakeAnswer(len(self.log), self.epochs[-1].epoch, list(self.epochs))

    def take_report(self, link: Link, end: int) -> list[bytes]:
        """The first report decides from where is sent; each may let the replica join."""
        self.check_answered(link)
        self.check_possible(end)
        if link.phase is HANDSHAKE:
            link.phase, link.next_offset = TRANSFER, self.start(link, end)
        link.acknowledged = end
        if end >= len(self.log):
            link.caught_up_s = self.now_s()
        elif link.caught_up_s is None:
            link.caught_up_s = self.now_s() - self.not_caught_up_s
        self.expand(link)
        self.advance_confirm()
        return self.batches(link)

    def check_answered(self, link: Link) -> None:
        """A report without a handshake ends the connection."""
        if not link.answered:
            raise RemoteProtocolError("a report before a handshake")

    def check_possible(self, end: int) -> None:
        """A replica has no more than its master."""
        if not 0 <= end <= len(self.log):
            raise RemoteProtocolError(f"a log end of {end}, mine is {len(self.log)}")

    # What is sent

    def start(self, link: Link, end: int) -> int:  # noqa: ARG002
        """Where sending starts after this first report; the log is one file."""
        return end

    def batches(self, link: Link) -> list[bytes]:
        """All that is to be sent, in runs."""
        messages = []
        while link.phase is TRANSFER and link.next_offset < len(self.log):
            run = self.run(link)
            messages.append(self.encode_run(run))
            link.next_offset += len(run.body)
        return messages

    def encode_run(self, run: HaTransferHeader) -> bytes:
        """A run, or a heartbeat, as bytes."""
        return run.encode()

    def run(self, link: Link) -> HaTransferHeader:
        """The next run: it ends with the batch, the epoch or the log."""
        at = link.next_offset
        end = min(at + self.batch_bytes, self.epoch_end(at))
        return self.header(at, bytes(self.log[at:end]))

    def header(self, at: int, body: bytes) -> HaTransferHeader:
        """A run, or a heartbeat without bytes, that starts at this offset."""
        entry = self.label(at)
        return HaTransferHeader(at, entry.epoch, entry.start_offset, self.confirm, body)

    def label(self, at: int) -> HaEpochEntry:
        """The epoch that the byte at this offset belongs to."""
        return [entry for entry in self.epochs if entry.start_offset <= at][-1]

    def epoch_end(self, at: int) -> int:
        """Where the epoch of this byte ends."""
        return min(
            [entry.start_offset for entry in self.epochs if entry.start_offset > at] or [len(self.log)]
        )

    # Time

    def deadline_s(self, link: Link) -> float:
        """When `tick` is to be called at the latest."""
        ends = [link.received_s + self.housekeeping_s]
        if link.phase is TRANSFER:
            ends.append(link.wrote_s + self.heartbeat_s)
        if link.caught_up_s is not None and link.broker_id in self.broker_set.in_sync:
            ends.append(link.caught_up_s + self.not_caught_up_s)
        return min((end for end in ends if end > self.now_s()), default=math.inf)

    def tick(self, link: Link) -> list[Effect]:
        """Time has passed, or the log has grown."""
        now_s = self.now_s()
        if now_s >= link.received_s + self.housekeeping_s:
            return [Hangup()]
        if link.caught_up_s is not None:
            if link.acknowledged >= len(self.log):
                link.caught_up_s = now_s
            elif now_s >= link.caught_up_s + self.not_caught_up_s:
                self.shrink(link)
        messages = self.batches(link)
        if not messages and link.phase is TRANSFER and now_s >= link.wrote_s + self.heartbeat_s:
            messages = [self.encode_run(self.heartbeat(link))]
        return self.sent(link, messages)

    def heartbeat(self, link: Link) -> HaTransferHeader:
        """A header without bytes: the next offset to send."""
        return self.header(link.next_offset, b"")

    # The SyncStateSet and the confirm offset

    def may_join(self, link: Link) -> bool:
        """Whether this replica is to become a member."""
        reached = max(self.confirm, self.epochs[-1].start_offset)
        return not link.learner and link.acknowledged >= reached

    def expand(self, link: Link) -> None:
        """Ask the controller to take a replica in that has caught up."""
        if link.broker_id not in self.broker_set.in_sync and self.may_join(link):
            self.alter([*self.broker_set.in_sync, link.broker_id])

    def shrink(self, link: Link) -> None:
        """Ask the controller to take a replica out, unless it has another connection."""
        others = [other.broker_id for other in self.links if other is not link]
        left = [broker for broker in self.broker_set.in_sync if broker != link.broker_id]
        if left != self.broker_set.in_sync and link.broker_id not in (MASTER, *others):
            self.alter(left)
            self.advance_confirm()

    def examine(self) -> None:
        """Every `examine_s`: ask the controller to take out members that are not connected."""
        connected = [MASTER, *(link.broker_id for link in self.links)]
        left = [broker for broker in self.broker_set.in_sync if broker in connected]
        if left != self.broker_set.in_sync:
            self.alter(left)
            self.advance_confirm()

    def alter(self, members: list[int]) -> int:
        """1001; returns the code of the answer."""
        header = AlterSyncStateSetRequest(
            BROKER_SET, master_broker_id=MASTER, master_epoch=self.broker_set.master_epoch
        )
        body = SyncStateSet(broker_ids=members, sync_state_set_epoch=self.broker_set.in_sync_epoch)
        request = RemotingHeader(
            code=RequestCode.CONTROLLER_ALTER_SYNC_STATE_SET, ext_fields=header.to_ext_fields()
        )
        return int(self.controller.answer_to(Command(request, body.encode())).code)

    def advance_confirm(self) -> None:
        """The smallest log end of all members; it stays while one of them is not connected."""
        ends = {link.broker_id: link.acknowledged for link in self.links if link.acknowledged >= 0}
        members = [broker for broker in self.broker_set.in_sync if broker != MASTER]
        if all(broker in ends for broker in members):
            self.confirm = max(self.confirm, min([ends[broker] for broker in members] + [len(self.log)]))
