"""Fragments of IP packets put together, in any order, and the TCP packets in what they come to.

Fragments that hold the same bytes twice are one. Where two of a datagram overlap and differ, none of it is
taken (as RFC 5722 has it), and what is never complete is left out: both are counted. A joined
packet stands where its last fragment was captured; its bytes stay where they are in the file, so that it
has one row for each fragment that it was joined from.

Source: RFC 791, RFC 8200, RFC 5722.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from replispec.replay.capture.records import CaptureBytes, Integers
from replispec.replay.tcp.checksums import HEADER_RIGHT, HEADER_WRONG
from replispec.replay.tcp.fragment_rows import Fragments, fragments_of, join_fragments
from replispec.replay.tcp.layers import BigEndian, bottom
from replispec.replay.tcp.network import open_headers
from replispec.replay.tcp.packets import FIN, SYN, Packets, join_packets, segments
from replispec.replay.tcp.remarks import (
    CONTRADICTED,
    DATAGRAMS,
    DISAGREEING,
    EXCESSIVE,
    TCP,
    UNFINISHED,
    Remarks,
    total,
)

# No more fragments of a capture than these are looked at, nor parts of one datagram, nor bytes of it.
FRAGMENTS_MAXIMUM = 1 << 21
PARTS_MAXIMUM = 1 << 10
# So many datagrams are waited for at once, and so many complete ones remembered; then the oldest go.
WAITING_MAXIMUM = 1 << 16
DATAGRAM_BYTES_MAXIMUM = 0xFFFF
# Fragments further apart are of two datagrams: hosts give up after 15 s to 60 s.
WAIT_NS_MAXIMUM = 60 * 10**9
# A fragment that repeats one of a datagram that was complete this long before was captured twice.
REPEAT_NS_MAXIMUM = 50 * 10**6
# Fragments in tunnels whose packets are fragments themselves: so often is looked again.
NESTING_MAXIMUM = 4
_CHUNK_BYTES = 1 << 25


@dataclass(slots=True)
class _Datagram:
    """What has come of one datagram: `parts` are disjoint, ascending (first, end, row); `held` bytes."""

    parts: list[tuple[int, int, int]] = field(default_factory=list)
    held: int = 0
    size: int | None = None
    fault: str | None = None
    last_ns: int = 0

    @property
    def complete(self) -> bool:
        """Whether every byte is there; nothing lies behind the last one, or there is a fault."""
        return self.held == self.size


@dataclass(frozen=True, slots=True)
class Joined:
    """The rows of joined packets, and what there is to say of the others."""

    packets: Packets
    remarks: Remarks


def packets_of_fragments(data: CaptureBytes, fragments: Fragments | None) -> Joined | None:
    """The TCP packets in all fragments of a capture; None when it has none."""
    if fragments is None or not len(fragments):
        return None
    excessive = max(0, len(fragments) - FRAGMENTS_MAXIMUM)
    pool = fragments.take(np.arange(len(fragments) - excessive))
    counted = int((pool.header == HEADER_WRONG).sum())
    if counted < int((pool.header == HEADER_RIGHT).sum()):
        pool = pool.take(pool.header != HEADER_WRONG)
    outer = pool
    for _ in range(NESTING_MAXIMUM):
        datagrams, counts = _datagrams(data, pool)
        found = [_packets(data, pool, chunk) for chunk in _chunks(datagrams)]
        inner = [part for _, own in found for part in own]
        if not inner or len(outer) + sum(map(len, inner)) == len(pool):
            break
        pool = join_fragments([outer, *inner])
    counts[EXCESSIVE] += excessive
    counts[CONTRADICTED] += counted
    packets = join_packets([rows for rows, _ in found])
    counts[TCP] += len(np.unique(packets.record_offset))
    remarks = total([packets.remarks, Remarks(dict(counts))])
    return Joined(replace(packets, remarks=Remarks()), remarks)


def _datagrams(
    data: CaptureBytes, pool: Fragments
) -> tuple[list[tuple[list[tuple[int, int, int]], int]], Counter[str]]:
    """The complete datagrams, each with the row that completed it, and how many are not."""
    counts: Counter[str] = Counter()
    whole: list[tuple[list[tuple[int, int, int]], int]] = []
    open_: dict[tuple[int, ...], _Datagram] = defaultdict(_Datagram)
    finished: dict[tuple[int, ...], _Datagram] = {}
    columns = (
        *(pool.source_high, pool.source_low, pool.destination_high, pool.destination_low),
        *(pool.protocol, pool.identification),
    )
    keys = zip(*(column.tolist() for column in columns), strict=True)
    rows = zip(
        keys, pool.first.tolist(), pool.wire.tolist(), pool.more.tolist(), pool.time_ns.tolist(), strict=True
    )
    for row, (key, first, size, more, time_ns) in enumerate(rows):
        if key in finished and key not in open_ and _repeats(data, pool, finished[key], first, row):
            continue
        if key not in open_ and len(open_) >= WAITING_MAXIMUM:
            # Whoever leaves so many unfinished does so on purpose.
            counts[EXCESSIVE] += len(open_.pop(next(iter(open_))).parts)
        datagram = open_[key]
        if datagram.parts and abs(time_ns - datagram.last_ns) > WAIT_NS_MAXIMUM:
            counts[datagram.fault or UNFINISHED] += 1
            datagram = open_[key] = _Datagram()
        datagram.last_ns = time_ns
        _take(data, pool, datagram, (first, first + size, row), last=not more)
        if datagram.complete:
            del open_[key]
            finished[key] = datagram
            if len(finished) > WAITING_MAXIMUM:
                del finished[next(iter(finished))]
            if datagram.fault is None:
                whole.append((datagram.parts, row))
                counts[DATAGRAMS] += 1
            else:
                counts[datagram.fault] += 1
    for datagram in open_.values():
        counts[datagram.fault or UNFINISHED] += 1
    return whole, counts


def _take(
    data: CaptureBytes, pool: Fragments, datagram: _Datagram, part: tuple[int, int, int], *, last: bool
) -> None:
    """Add a fragment to its datagram, or say what is wrong with both."""
    first, end, row = part
    parts = datagram.parts
    size = end if last else datagram.size
    if size is not None and max(end, parts[-1][1] if parts else 0) > size:
        datagram.fault = DISAGREEING
        return
    if datagram.size not in (None, size):
        datagram.fault = DISAGREEING
        return
    if end > DATAGRAM_BYTES_MAXIMUM or len(parts) >= PARTS_MAXIMUM:
        datagram.fault = EXCESSIVE
        return
    datagram.size = size
    at = first
    index = max(0, bisect_left(parts, (first, 0, 0)) - 1)
    while index < len(parts) and parts[index][0] < end:
        known_first, known_end, known = parts[index]
        begin, stop = max(at, known_first), min(end, known_end)
        index += 1
        if begin >= stop:
            continue
        if at < begin:
            parts.insert(index - 1, (at, begin, row))
            datagram.held += begin - at
            index += 1
        if not _agree(data, pool, (row, known), begin, stop):
            datagram.fault = DISAGREEING
        at = stop
    if at < end:
        insort(parts, (at, end, row))
        datagram.held += end - at


def _agree(data: CaptureBytes, pool: Fragments, rows: tuple[int, int], begin: int, stop: int) -> bool:
    """Whether two fragments have the same bytes [begin, stop) of the datagram, as far as captured."""
    first, second = (_bytes(data, pool, row, begin, stop) for row in rows)
    size = min(len(first), len(second))
    return first[:size] == second[:size]


def _bytes(data: CaptureBytes, pool: Fragments, row: int, begin: int, stop: int) -> bytes:
    """Bytes [begin, stop) of the datagram as a fragment has them; fewer when they were not captured."""
    start = int(pool.first[row])
    at = int(pool.data_offset[row])
    known = min(stop, start + int(pool.captured[row]))
    return data[at + begin - start : at + max(begin, known) - start]


def _repeats(data: CaptureBytes, pool: Fragments, whole: _Datagram, first: int, row: int) -> bool:
    """Whether a fragment says what a datagram that is already complete holds at its place."""
    if abs(int(pool.time_ns[row]) - whole.last_ns) > REPEAT_NS_MAXIMUM:
        return False
    end = first + int(pool.wire[row])
    covered = 0
    for begin, stop, known in whole.parts:
        low, high = max(begin, first), min(stop, end)
        if low < high:
            if not _agree(data, pool, (row, known), low, high):
                return False
            covered += high - low
    return covered == end - first


def _chunks(
    datagrams: Sequence[tuple[list[tuple[int, int, int]], int]],
) -> Iterator[list[tuple[list[tuple[int, int, int]], int]]]:
    """The datagrams in portions of a bounded number of bytes."""
    portion: list[tuple[list[tuple[int, int, int]], int]] = []
    size = 0
    for datagram in datagrams:
        portion.append(datagram)
        size += datagram[0][-1][1]
        if size >= _CHUNK_BYTES:
            yield portion
            portion, size = [], 0
    if portion:
        yield portion


@dataclass(frozen=True, slots=True)
class _Copy:
    """Datagrams one behind the other as bytes, each behind its two addresses.

    Extents, ascending: `start` in the copy, `wire` bytes of it, of which `captured` are at `offset` of the
    capture and the others are 0.
    """

    data: bytes
    start: Integers
    wire: Integers
    captured: Integers
    offset: Integers


def _packets(
    data: CaptureBytes, pool: Fragments, datagrams: Sequence[tuple[list[tuple[int, int, int]], int]]
) -> tuple[Packets, list[Fragments]]:
    """The rows of the TCP packets in complete datagrams, and the fragments inside of them."""
    content = bytearray()
    extents: list[tuple[int, int, int, int]] = []
    layers: list[tuple[int, int, int, int]] = []
    last = np.array([row for _, row in datagrams], np.int64)
    for parts, _ in datagrams:
        head = parts[0][2]
        content += _addresses(pool, head)
        begin = len(content)
        known, broken = begin, False
        for first, end, row in parts:
            own = _bytes(data, pool, row, first, end)
            at = int(pool.data_offset[row]) + first - int(pool.first[row])
            extents.append((len(content), end - first, len(own), at))
            content += own + bytes(end - first - len(own))
            known = known if broken else begin + first + len(own)
            broken = broken or len(own) < end - first
        layers.append((begin, known, len(content), begin - (8 if pool.family[head] == 4 else 32)))
    copy = _Copy(bytes(content), *(np.array(column, np.int64) for column in zip(*extents, strict=True)))
    starts, ends, wire_ends, addresses = (np.array(column, np.int64) for column in zip(*layers, strict=True))
    heads = np.array([parts[0][2] for parts, _ in datagrams], np.int64)
    lowest = replace(
        bottom(np.arange(len(last)), starts, ends, wire_ends, pool.protocol[heads]),
        addresses=addresses,
        family=pool.family[heads],
        header=pool.header[heads],
    )
    view = BigEndian(copy.data)
    opened = open_headers(view, [lowest])
    places = (pool.record_offset[last], pool.time_ns[last], pool.interface[last])
    rows = join_packets([segments(view, layer, *places) for layer in opened.segments])
    inner = [_inner(copy, fragments_of(view, own, *places)) for own in opened.fragments]
    return replace(_torn(copy, rows), remarks=opened.remarks), inner


def _addresses(pool: Fragments, row: int) -> bytes:
    """Source and destination of a fragment as they are on the wire."""
    ends = ((pool.source_high, pool.source_low), (pool.destination_high, pool.destination_low))
    numbers = [int(high[row]) << 64 | int(low[row]) for high, low in ends]
    size = 4 if pool.family[row] == 4 else 16
    return b"".join(number.to_bytes(size, "big") for number in numbers)


def _overlaps(copy: _Copy, start: Integers, end: Integers) -> tuple[Integers, Integers, Integers, Integers]:
    """The stretches [start, end) cut where extents end: row, extent, and begin and end in the copy."""
    low = np.searchsorted(copy.start, start, "right") - 1
    high = np.maximum(np.searchsorted(copy.start, end, "left"), low + 1)
    count = high - low
    row = np.repeat(np.arange(len(start)), count)
    extent = np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count - low, count)
    begin = np.maximum(start[row], copy.start[extent])
    stop = np.minimum(end[row], copy.start[extent] + copy.wire[extent])
    return row, extent, begin, np.maximum(begin, stop)


def _captured(copy: _Copy, extent: Integers, begin: Integers, stop: Integers) -> Integers:
    known = copy.start[extent] + copy.captured[extent]
    found: Integers = np.minimum(np.maximum(known - begin, 0), stop - begin)
    return found


def _torn(copy: _Copy, packets: Packets) -> Packets:
    """Rows over the copy as rows over the capture: one for each extent that a payload lies in."""
    start = packets.payload_offset
    row, extent, begin, stop = _overlaps(copy, start, start + packets.payload_wire)
    several = packets.take(row)
    head = np.append([True], row[1:] != row[:-1])
    tail = np.append(row[1:] != row[:-1], [True])
    passed = begin - start[row]
    # A SYN counts before the first byte, a FIN behind the last.
    flags = several.flags & ~np.where(head, 0, SYN) & ~np.where(tail, 0, FIN)
    behind_syn = ~head & (several.flags & SYN != 0)
    return replace(
        several,
        sequence=(several.sequence + passed + behind_syn) % 2**32,
        flags=flags,
        payload_offset=copy.offset[extent] + begin - copy.start[extent],
        payload_captured=_captured(copy, extent, begin, stop),
        payload_wire=stop - begin,
    )


def _inner(copy: _Copy, found: Fragments) -> Fragments:
    """Fragments in the copy as fragments in the capture, each cut where extents end."""
    row, extent, begin, stop = _overlaps(copy, found.data_offset, found.data_offset + found.wire)
    several = found.take(row)
    tail = np.append(row[1:] != row[:-1], [True])
    return replace(
        several,
        first=several.first + begin - found.data_offset[row],
        more=np.where(tail, several.more, 1),
        data_offset=copy.offset[extent] + begin - copy.start[extent],
        captured=_captured(copy, extent, begin, stop),
        wire=stop - begin,
    )
