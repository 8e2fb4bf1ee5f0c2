"""What happens to the packets of a capture between the wire and the file: other orders, other times.

Works on captures of Ethernet with IPv4 or IPv6: classic pcap, and little-endian pcapng in nanoseconds, as the
captures of the project are.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

FILE_HEADER, RECORD_HEADER, ETHERNET = 24, 16, 14
MICROSECONDS = 0xA1B2C3D4
SECTION, PACKET = 0x0A0D0D0A, 6
SYN = 2
NANOSECONDS_ETHERNET = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262_144, 1)
IPV4, IPV6, TCP = 0x0800, 0x86DD, 6


@dataclass(frozen=True, slots=True)
class Seen:
    """One packet of a capture: when it was seen (ns), its bytes, the sizes in the file's record.

    `ends`: (source, destination) with ports, as bytes; None for what is no TCP.
    """

    time_ns: int
    data: bytes
    wire_size: int
    ends: tuple[bytes, bytes] | None

    @property
    def connection(self) -> tuple[bytes, ...] | None:
        """Both ends, the lower first."""
        return None if self.ends is None else tuple(sorted(self.ends))


def read(capture: bytes) -> tuple[bytes, list[Seen]]:
    """The header of a classic file and the packets."""
    if struct.unpack_from("<I", capture)[0] == SECTION:
        return NANOSECONDS_ETHERNET, list(_blocks(capture))
    order, scale = _form(capture)
    found, at = [], FILE_HEADER
    while at + RECORD_HEADER <= len(capture):
        seconds, part, size, wire_size = struct.unpack_from(f"{order}IIII", capture, at)
        data = capture[at + RECORD_HEADER : at + RECORD_HEADER + size]
        found.append(Seen(seconds * 10**9 + part * scale, data, wire_size, _ends(data)))
        at += RECORD_HEADER + size
    return capture[:FILE_HEADER], found


def _blocks(capture: bytes) -> Iterator[Seen]:
    """The packets of all interfaces of a pcapng file."""
    at = 0
    while at < len(capture):
        kind, length = struct.unpack_from("<II", capture, at)
        if kind == PACKET:
            high, low, size, wire_size = struct.unpack_from("<IIII", capture, at + 12)
            data = capture[at + 28 : at + 28 + size]
            yield Seen(high << 32 | low, data, wire_size, _ends(data))
        at += length


def written(header: bytes, packets: Sequence[Seen]) -> bytes:
    """A file with these packets, in the order of their times."""
    order, scale = _form(header)
    parts = [header]
    for each in sorted(packets, key=lambda packet: packet.time_ns):
        seconds, rest = divmod(each.time_ns, 10**9)
        parts += (
            struct.pack(f"{order}IIII", seconds, rest // scale, len(each.data), each.wire_size),
            each.data,
        )
    return b"".join(parts)


def delayed(packets: Sequence[Seen], delay_ns: Callable[[Seen], int]) -> list[Seen]:
    """Every packet seen so much later."""
    return [Seen(each.time_ns + delay_ns(each), each.data, each.wire_size, each.ends) for each in packets]


def jitter(packets: Sequence[Seen], rng: random.Random, most_ns: int) -> list[Seen]:
    """Every packet by itself up to so much later, but no SYN: what overtakes it by more than the 65,535 bytes
    of a first window is taken for another connection of the same ports."""
    return delayed(packets, lambda each: 0 if is_syn(each) else rng.randrange(most_ns))


def is_syn(each: Seen) -> bool:
    """Whether a packet opens a connection, or answers one that does."""
    if each.ends is None:
        return False
    is_four = each.data[ETHERNET] >> 4 == 4
    tcp = ETHERNET + (4 * (each.data[ETHERNET] & 15) if is_four else 40)
    return bool(each.data[tcp + 13] & SYN)


def one_way_late(packets: Sequence[Seen], rng: random.Random, by_ns: int) -> list[Seen]:
    """Of every connection one of the two directions comes so much later."""
    late: dict[tuple[bytes, ...] | None, bool] = {}

    def delay(each: Seen) -> int:
        lower = late.setdefault(each.connection, rng.random() < 0.5)
        is_lower = each.ends is not None and each.ends[0] <= each.ends[1]
        return by_ns if is_lower is lower else 0

    return delayed(packets, delay)


def within_connections(packets: Sequence[Seen], mess: Callable[[Sequence[Seen]], list[Seen]]) -> list[Seen]:
    """A mess of each connection by itself: its packets change places among themselves alone."""
    own: dict[tuple[bytes, ...] | None, list[Seen]] = {}
    for each in packets:
        own.setdefault(each.connection, []).append(each)
    found = []
    for members in own.values():
        times = sorted(each.time_ns for each in members)
        messed = sorted(mess(members), key=lambda packet: packet.time_ns)
        found += [replace(each, time_ns=time_ns) for each, time_ns in zip(messed, times, strict=True)]
    return found


def connections_apart(packets: Sequence[Seen], rng: random.Random, most_ns: int) -> list[Seen]:
    """Every connection by a delay of its own, up to so much."""
    delays: dict[tuple[bytes, ...] | None, int] = {}
    return delayed(packets, lambda each: delays.setdefault(each.connection, rng.randrange(most_ns)))


def connections_drift(packets: Sequence[Seen], rng: random.Random, most_ns: int) -> list[Seen]:
    """Every connection by a delay of its own that changes evenly from the first packet to the last, up to
    so much."""
    first = min(each.time_ns for each in packets)
    span = max(each.time_ns for each in packets) - first + 1
    delays: dict[tuple[bytes, ...] | None, tuple[int, int]] = {}

    def delay(each: Seen) -> int:
        begins, ends = delays.setdefault(each.connection, (rng.randrange(most_ns), rng.randrange(most_ns)))
        return begins + (ends - begins) * (each.time_ns - first) // span

    return delayed(packets, delay)


def some_connections_late(packets: Sequence[Seen], rng: random.Random, most_ns: int) -> list[Seen]:
    """Some connections, up to all, are seen up to so much later than the others: all of them by one delay, as
    from one interface, or each by its own; either may change evenly from the first packet to the last."""
    first = min(each.time_ns for each in packets)
    span = max(each.time_ns for each in packets) - first + 1
    known = sorted({each.connection for each in packets if each.connection is not None})
    together, drifts = rng.random() < 0.5, rng.random() < 0.5
    delays: dict[tuple[bytes, ...] | None, tuple[int, int]] = {}
    own = (0, 0)
    for at, connection in enumerate(rng.sample(known, rng.randrange(1, len(known) + 1))):
        if at == 0 or not together:
            begins = rng.randrange(most_ns)
            own = begins, rng.randrange(most_ns) if drifts else begins
        delays[connection] = own

    def delay(each: Seen) -> int:
        begins, ends = delays.get(each.connection, (0, 0))
        return begins + (ends - begins) * (each.time_ns - first) // span

    return delayed(packets, delay)


def lossy(packets: Sequence[Seen], rng: random.Random, share: float) -> list[Seen]:
    """Each packet is lost with this probability."""
    return [each for each in packets if rng.random() >= share]


def _form(header: bytes) -> tuple[str, int]:
    order = "<" if header[0] in (0xD4, 0x4D) else ">"
    (magic,) = struct.unpack_from(f"{order}I", header)
    return order, 1000 if magic == MICROSECONDS else 1


def _ends(data: bytes) -> tuple[bytes, bytes] | None:
    (kind,) = struct.unpack_from(">H", data, 12)
    if kind == IPV4 and data[ETHERNET + 9] == TCP:
        size, first, length = 4 * (data[ETHERNET] & 15), ETHERNET + 12, 4
    elif kind == IPV6 and data[ETHERNET + 6] == TCP:
        size, first, length = 40, ETHERNET + 8, 16
    else:
        return None
    ports = ETHERNET + size
    source, destination = data[first : first + length], data[first + length : first + 2 * length]
    return source + data[ports : ports + 2], destination + data[ports + 2 : ports + 4]
