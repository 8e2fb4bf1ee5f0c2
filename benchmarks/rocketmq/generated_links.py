"""Connections of a generated capture: what each end sends, in segments, and the truth about its frames."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from tests.replay.pcap_writer import ACK, FIN, PUSH, SYN, Endpoint, Packet

SEGMENT_BYTES = 1448


@dataclass(slots=True)
class GeneratedSide:
    """What one end of a connection sends, and the truth about it."""

    endpoint: Endpoint
    initial: int
    sent: int = 0
    frames: int = 0
    digest: hashlib._Hash = field(default_factory=hashlib.sha256)

    def note(self, size: int, key: int | None) -> None:
        """The next frame is this long."""
        self.digest.update(line(self.sent, size, key))
        self.frames += 1
        self.sent += size


def line(sequence: int, size: int, key: int | None) -> bytes:
    """What is hashed of one frame."""
    return f"{sequence} {size} {'' if key is None else key}\n".encode()


@dataclass(slots=True)
class GeneratedLink:
    """One connection; `done` counts exchanges of a client and records of the log sent to a replica."""

    client: GeneratedSide
    server: GeneratedSide
    seen_opened: bool
    opened: bool = False
    closed: bool = False
    done: int = 0
    limit: int = 0

    def packet(self, *, from_client: bool, flags: int = ACK) -> Packet:
        """A packet without payload, at the place where the sender's bytes have come to."""
        mine, theirs = (self.client, self.server) if from_client else (self.server, self.client)
        begun = flags & SYN == 0
        return Packet(
            mine.endpoint,
            theirs.endpoint,
            mine.initial + mine.sent + begun,
            flags=flags,
            acknowledgment=theirs.initial + theirs.sent + 1 if flags & ACK else 0,
        )

    def open(self) -> Iterator[Packet]:
        """The three-way handshake, unless the capture began later."""
        self.opened = True
        if self.seen_opened:
            yield self.packet(from_client=True, flags=SYN)
            yield self.packet(from_client=False, flags=SYN | ACK)
            yield self.packet(from_client=True)

    def close(self) -> Iterator[Packet]:
        """FIN from both sides."""
        self.closed = True
        yield self.packet(from_client=True, flags=FIN | ACK)
        yield self.packet(from_client=False, flags=FIN | ACK)

    def send(self, data: bytes, key: int | None, *, from_client: bool) -> Iterator[Packet]:
        """One frame in segments."""
        first = self.packet(from_client=from_client, flags=ACK | PUSH)
        (self.client if from_client else self.server).note(len(data), key)
        for at in range(0, len(data), SEGMENT_BYTES):
            part = data[at : at + SEGMENT_BYTES]
            yield replace(first, sequence=first.sequence + at, payload=part)

    def truth(self) -> Iterator[tuple[str, dict[str, object]]]:
        """Of each direction its name, and its frames, their bytes and their digest."""
        for mine, theirs in ((self.client, self.server), (self.server, self.client)):
            name = f"{mine.endpoint[0]}:{mine.endpoint[1]}>{theirs.endpoint[0]}:{theirs.endpoint[1]}"
            yield (
                name,
                {
                    "frames": mine.frames,
                    "bytes": mine.sent,
                    "sha256": mine.digest.hexdigest(),
                    "from_start": self.seen_opened,
                },
            )
