"""The brokers of a generated broker group: their logs, addresses and connections."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field

from replispec.wire.rocketmq.codes import LogMagic, MessageFlag
from replispec.wire.rocketmq.store import LogRecord, OffsetMessageId
from replispec.wire.rocketmq.streams import COMMIT_LOG
from tests.replay.pcap_writer import Endpoint
from tests.replay.traffic import Link

PRODUCER = "10.0.0.4"
MESSAGE_SIZE = 100


@dataclass(slots=True)
class Broker:
    """One broker: its commit log, its epochs as (epoch, start offset), and its connections.

    `log` holds the bytes from `base` on: what lies before was written and is not needed any more.
    """

    number: int
    subnet: int
    learner: bool = False
    machine: int | None = None  # The last number of its address, where that is not its id.
    log: bytearray = field(default_factory=bytearray)
    base: int = 0
    epochs: list[tuple[int, int]] = field(default_factory=list)
    reported: int = 0
    to_controller: Link | None = None
    to_name_server: Link | None = None
    from_controller: Link | None = None
    replication: Link | None = None

    @property
    def host(self) -> str:
        last = self.number if self.machine is None else self.machine
        return f"10.{self.subnet >> 8}.{self.subnet & 255}.{last}"

    @property
    def end(self) -> int:
        """Where its log ends."""
        return self.base + len(self.log)

    def part(self, offset: int, size: int) -> bytes:
        """Bytes of its log."""
        return bytes(self.log[offset - self.base :][:size])

    def cut(self, end: int) -> None:
        """Forget the bytes of its log from an offset on."""
        del self.log[max(end - self.base, 0) :]
        self.base = min(self.base, end)

    @property
    def endpoint(self) -> Endpoint:
        return (self.host, 10_911)

    @property
    def replication_endpoint(self) -> Endpoint:
        return (self.host, 10_912)

    @property
    def address(self) -> str:
        return text(self.endpoint)

    def message_id(self, offset: int) -> str:
        """The id that the broker gives to the message stored at this offset."""
        address = ipaddress.ip_address(self.host).packed
        return OffsetMessageId(address, self.endpoint[1], offset).encode().hex().upper()

    def store(self) -> tuple[int, bytes]:
        """Store a new message; the offset at which it lies, and the message."""
        offset = self.end
        message = f"message {offset} ".encode().ljust(MESSAGE_SIZE, b".")
        born, stored = (ipaddress.ip_address(each) for each in (PRODUCER, self.host))
        record = LogRecord(
            magic=LogMagic.MESSAGE_V1,
            # How wide the addresses are is said by flags; a reader finds the body by them.
            sys_flag=(born.version == 6) * MessageFlag.BORN_HOST_IPV6
            | (stored.version == 6) * MessageFlag.STORE_HOST_IPV6,
            physical_offset=offset,
            born_ip=born.packed,
            store_ip=stored.packed,
            store_port=self.endpoint[1],
            body=message,
            topic="TopicA",
        )
        self.log += record.encode()
        return offset, message

    def epoch_end(self, entry: tuple[int, int]) -> int:
        """Where an epoch of this broker ends in its log."""
        later = [start for epoch, start in self.epochs if epoch > entry[0]]
        return min(later, default=self.end)


def text(endpoint: Endpoint) -> str:
    """An endpoint as the protocol writes it, ip:port."""
    return f"{endpoint[0]}:{endpoint[1]}"


def whole_records(log: bytearray) -> int:
    """Bytes of a commit log up to the end of its last complete record."""
    at = 0
    while at < len(log):
        size = COMMIT_LOG.measure(log, at, len(log))
        if size < 0 or at + size > len(log):
            break
        at += size
    return at
