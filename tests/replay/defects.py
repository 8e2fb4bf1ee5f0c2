"""What can happen to packets on their way into a capture file: one table, each defect by its name.

A defect takes the packets of a sound capture, with the checksums that network cards fill in, and makes of
them what a capture then holds. `keeps`: nothing is missing, so verdicts and losses are those of the sound
capture.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from tests.replay import mess
from tests.replay.envelopes import ENVELOPES, TCP, checksum, filled, payload_at, torn, turned
from tests.replay.mess import Seen

Packets = Sequence[Seen]
MILLISECOND, SECOND = 10**6, 10**9
LOSS = (0.001, 0.05)
SNAP_BYTES = (64, 1000)
SHARES = (0.1, 0.5, 1.0)
WRONG_COPIES, WRONG_OPENINGS = 3, 0.2
ACKNOWLEDGES = 1 << 4


@dataclass(frozen=True, slots=True)
class Defect:
    """How packets are changed."""

    make: Callable[[Packets, random.Random], list[Seen]]
    keeps: bool = False


def sound(packets: Packets) -> list[Seen]:
    """The packets with their checksums filled in."""
    return [each if each.ends is None else replace(each, data=filled(each.data)) for each in packets]


def offloaded(packets: Packets) -> list[Seen]:
    """The packets with their TCP checksums left to the card."""
    return [each if each.ends is None else replace(each, data=_without(each.data)) for each in packets]


def _without(frame: bytes) -> bytes:
    at = 14 + (frame[14] & 15) * 4 + 16
    return frame[:at] + bytes(2) + frame[at + 2 :]


def in_directions(packets: Packets, rng: random.Random) -> list[Seen]:
    """Packets of one direction change places among themselves, up to 50 ms."""
    own: dict[tuple[bytes, bytes] | None, list[Seen]] = {}
    for each in packets:
        own.setdefault(each.ends, []).append(each)
    found = []
    for members in own.values():
        found += mess.within_connections(members, lambda few: mess.jitter(few, rng, 50 * MILLISECOND))
    return found


def across_directions(packets: Packets, rng: random.Random) -> list[Seen]:
    """Packets of one connection change places among themselves, up to 50 ms."""
    return mess.within_connections(packets, lambda few: mess.jitter(few, rng, 50 * MILLISECOND))


def one_late(packets: Packets, rng: random.Random) -> list[Seen]:
    """Of each connection one direction comes up to 50 ms late."""
    by_ns = rng.randrange(1, 50 * MILLISECOND)
    return mess.within_connections(packets, lambda few: mess.one_way_late(few, rng, by_ns))


def across_connections(packets: Packets, rng: random.Random, most_ns: int) -> list[Seen]:
    """Each connection is seen later by a time of its own."""
    return mess.connections_apart(packets, rng, most_ns)


def some_late(packets: Packets, rng: random.Random) -> list[Seen]:
    """Some connections come up to 2 s late, together or each by its own time."""
    return mess.some_connections_late(packets, rng, 2 * SECOND)


def jittered(packets: Packets, rng: random.Random) -> list[Seen]:
    """All packets change places, up to 50 ms."""
    return mess.jitter(packets, rng, 50 * MILLISECOND)


def lossy(packets: Packets, rng: random.Random) -> list[Seen]:
    """Some packets were not captured."""
    share = rng.uniform(*LOSS)
    return [each for each in packets if rng.random() >= share]


def repeated(packets: Packets, rng: random.Random) -> list[Seen]:
    """Some packets come again, at once or up to 20 ms later."""
    again = [each for each in packets if rng.random() < rng.choice(SHARES)]
    return [*packets, *mess.delayed(again, lambda _: rng.choice((0, rng.randrange(20 * MILLISECOND))))]


def with_damaged_copies(packets: Packets, rng: random.Random) -> list[Seen]:
    """Some packets with payload come once more, damaged, before or after the sound one."""
    share, found = rng.uniform(*LOSS), []
    for each in packets:
        found.append(each)
        if _can_be_damaged(each) and rng.random() < share:
            bad = replace(each, data=turned(each.data, rng.randrange(2**32)))
            found.insert(len(found) - rng.randrange(2), bad)
    return found


def with_wrong_numbers(packets: Packets, rng: random.Random) -> list[Seen]:
    """Three packets with payload come once more, with one bit of the TCP header's first 14 bytes turned.

    That is one of a port, a number, or a flag. Some of those that open connections come once more, too, with
    the flag turned that tells who opens one from who accepts it.
    """
    chosen = rng.sample([at for at, each in enumerate(packets) if _can_be_damaged(each)], WRONG_COPIES)
    found = list(packets)
    for at in sorted(chosen, reverse=True):
        data = bytearray(packets[at].data)
        data[14 + (data[14] & 15) * 4 + rng.randrange(14)] ^= 1 << rng.randrange(8)
        found.insert(at + rng.randrange(2), replace(packets[at], data=bytes(data)))
    for each in [each for each in packets if mess.is_syn(each) and rng.random() < WRONG_OPENINGS]:
        data = bytearray(each.data)
        data[14 + (data[14] & 15) * 4 + 13] ^= ACKNOWLEDGES
        found.insert(found.index(each) + rng.randrange(2), replace(each, data=bytes(data)))
    return found


def damaged(packets: Packets, rng: random.Random) -> list[Seen]:
    """Some packets with payload were captured damaged only."""
    share = rng.uniform(*LOSS)
    return [
        replace(each, data=turned(each.data, rng.randrange(2**32)))
        if _can_be_damaged(each) and rng.random() < share
        else each
        for each in packets
    ]


def in_fragments(packets: Packets, rng: random.Random, *, lost: float = 0.0) -> list[Seen]:
    """Packets in IP fragments in any order, of which some may be lost."""
    size, found = 8 * rng.randrange(4, 180), []
    for number, each in enumerate(packets):
        parts = torn(each.data, size, number + 1) if each.ends is not None else [each.data]
        kept = [part for part in rng.sample(parts, len(parts)) if rng.random() >= lost]
        found += [replace(each, data=part, wire_size=len(part)) for part in kept]
    return found


def tunnelled(packets: Packets, rng: random.Random) -> list[Seen]:
    """All packets in tags, labels or a tunnel."""
    envelopes = ENVELOPES[rng.choice(sorted(ENVELOPES))]
    found = []
    for each in packets:
        frame = each.data
        for envelope in envelopes:
            frame = envelope(frame)
        found.append(replace(each, data=frame, wire_size=len(frame)))
    return found


def snapped(packets: Packets, rng: random.Random) -> list[Seen]:
    """Only the first bytes of each packet were kept."""
    size = rng.randrange(*SNAP_BYTES)
    return [replace(each, data=each.data[:size]) for each in packets]


def one_sided(packets: Packets, rng: random.Random) -> list[Seen]:
    """Of some connections, or all, one direction was not captured."""
    share = rng.choice(SHARES)
    missing: dict[object, bytes | None] = {}

    def is_kept(each: Seen) -> bool:
        if each.ends is None:
            return True
        choice = rng.choice(each.ends) if rng.random() < share else None
        return missing.setdefault(each.connection, choice) != each.ends[0]

    return [each for each in packets if is_kept(each)]


def missing_parts(packets: Packets) -> Iterator[tuple[object, list[Seen]]]:
    """What may be missing as a whole, with the packets that are left: a connection, a direction of one, all
    that came before the first packet of one, or up to it."""
    begun: dict[object, int] = {}
    for each in packets:
        if each.connection is not None:
            begun[each.connection] = min(each.time_ns, begun.get(each.connection, each.time_ns))
    for connection, first_ns in begun.items():
        yield connection, [each for each in packets if each.connection != connection]
        yield ("before", connection), [each for each in packets if each.time_ns >= first_ns]
        yield ("up to", connection), [each for each in packets if each.time_ns > first_ns]
    for ends in dict.fromkeys(each.ends for each in packets if each.ends is not None):
        yield ends, [each for each in packets if each.ends != ends]


def begun_late(packets: Packets, rng: random.Random) -> list[Seen]:
    """The capture begins in the middle."""
    return list(packets[rng.randrange(1, max(2, len(packets) * 4 // 5)) :])


def all_again(packets: Packets, rng: random.Random) -> list[Seen]:
    """Each connection begins with a SYN that nobody answers, and everything comes again up to 60 s later."""
    begun, tried = set(), []
    for each in packets:
        if each.connection not in begun and mess.is_syn(each):
            tried.append(
                replace(each, data=_from_number(each.data, rng.randrange(2**32)), time_ns=each.time_ns - 1)
            )
        begun.add(each.connection)
    whole = [*tried, *packets]
    by_ns = rng.randrange(60 * SECOND)
    return [*whole, *mess.delayed(whole, lambda _: by_ns)]


def _from_number(frame: bytes, sequence: int) -> bytes:
    at = 14 + (frame[14] & 15) * 4 + 4
    return filled(frame[:at] + struct.pack("!I", sequence) + frame[at + 4 :])


def ports_again(packets: Packets, rng: random.Random, *, syn: bool = True) -> list[Seen]:
    """A connection has the ports of one before it that is over; its SYN packets may be missing."""
    own: dict[tuple[bytes, ...] | None, list[Seen]] = {}
    for each in packets:
        own.setdefault(each.connection, []).append(each)
    over: dict[tuple[bytes, bytes], list[tuple[int, bytes]]] = {}
    found = own.pop(None, [])
    for members in own.values():
        first, last_ns = members[0], max(each.time_ns for each in members)
        if first.ends is None or not mess.is_syn(first):
            found += members
            continue
        opener, listener = first.ends
        known = over.setdefault((opener[:-2], listener), [])
        at = next((at for at, (until_ns, _) in enumerate(known) if until_ns < first.time_ns), None)
        if at is None:
            known.append((last_ns, opener[-2:]))
            found += members
            continue
        known[at] = last_ns, known[at][1]
        renamed = [_from_port(each, opener, known[at][1]) for each in members]
        found += [each for each in renamed if syn or rng.random() < 0.5 or not mess.is_syn(each)]
    return found


def _from_port(each: Seen, end: bytes, port: bytes) -> Seen:
    """The packet with another port of one of its ends."""
    if each.ends is None:
        return each
    at = 14 + (each.data[14] & 15) * 4 + (0 if each.ends[0] == end else 2)
    source, destination = (own[:-2] + port if own == end else own for own in each.ends)
    return replace(each, data=filled(each.data[:at] + port + each.data[at + 2 :]), ends=(source, destination))


def _can_be_damaged(each: Seen) -> bool:
    """Whether a packet has payload, and no checksum that looks by accident as if nobody filled it in."""
    if each.ends is None or len(each.data) <= payload_at(each.data):
        return False
    ip = each.data[14:]
    head, end = (ip[0] & 15) * 4, int.from_bytes(ip[2:4], "big")
    sums = [struct.pack("!HH", TCP, size) for size in (0, end - head)]
    accidents = [struct.pack("!H", 0xFFFF - checksum(ip[12:20] + each_sum)) for each_sum in sums]
    return ip[head + 16 : head + 18] not in accidents


DEFECTS = {
    "reordered within directions": Defect(in_directions, keeps=True),
    "reordered across directions": Defect(across_directions, keeps=True),
    "one direction late": Defect(one_late, keeps=True),
    "reordered across connections": Defect(jittered),
    "connections 50 ms apart": Defect(partial(across_connections, most_ns=50 * MILLISECOND)),
    "connections 2 s apart": Defect(partial(across_connections, most_ns=2 * SECOND)),
    "some connections late": Defect(some_late),
    "lost packets": Defect(lossy),
    "repeated packets": Defect(repeated, keeps=True),
    "damaged copies": Defect(with_damaged_copies, keeps=True),
    "damaged packets": Defect(damaged),
    "fragments": Defect(in_fragments, keeps=True),
    "lost fragments": Defect(partial(in_fragments, lost=0.002)),
    "tunnels": Defect(tunnelled, keeps=True),
    "small snap length": Defect(snapped),
    "one direction missing": Defect(one_sided),
    "begun in the middle": Defect(begun_late),
    "everything again": Defect(all_again, keeps=True),
    "ports used again": Defect(ports_again, keeps=True),
    "ports used again, SYN lost": Defect(partial(ports_again, syn=False)),
}
