"""What may be left of a capture, or come of it: packets that were captured and are not in it, or otherwise.

Nothing of it is anybody's fault but that of who captured.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from tests.replay.pcap_writer import Endpoint, Packet

Packets = Sequence[Packet]
Ends = frozenset[Endpoint]
MS_NS: Final = 10**6


def ends(packet: Packet) -> Ends:
    """The connection of a packet, by its two ends."""
    return frozenset((packet.source, packet.destination))


def hosts(packets: Packets) -> list[str]:
    """All that speak."""
    return sorted({each.source[0] for each in packets})


def _connections(packets: Packets) -> list[Ends]:
    return sorted({ends(each) for each in packets}, key=sorted)


def cut(packets: Packets, chance: random.Random) -> Packets:
    """Begun late, ended early, or both: somewhere, also within a move."""
    begin, end = sorted(chance.randrange(len(packets) + 1) for _ in range(2))
    how = chance.randrange(3)
    return packets[begin if how != 1 else 0 : end if how != 0 else len(packets)]


def without_connections(packets: Packets, chance: random.Random) -> Packets:
    """Some connections went another way."""
    rate = chance.choice((0.05, 0.3, 0.7))
    gone = {each for each in _connections(packets) if chance.random() < rate}
    return [each for each in packets if ends(each) not in gone]


def without_hosts(packets: Packets, chance: random.Random) -> Packets:
    """What one to three hosts said to each other, or to anybody, was not captured."""
    every = hosts(packets)
    gone = set(chance.sample(every, chance.randint(1, min(3, len(every)))))
    if chance.random() < 0.5:
        return [each for each in packets if not {each.source[0], each.destination[0]} <= gone]
    return [each for each in packets if not {each.source[0], each.destination[0]} & gone]


def one_host(packets: Packets, chance: random.Random) -> Packets:
    """Captured at one host alone."""
    own = chance.choice(hosts(packets))
    return [each for each in packets if own in (each.source[0], each.destination[0])]


def one_way(packets: Packets, chance: random.Random) -> Packets:
    """Of some connections one direction was not captured."""
    rate = chance.choice((0.1, 0.5, 1.0))
    deaf = {
        (one, two) if chance.random() < 0.5 else (two, one)
        for one, two in map(sorted, _connections(packets))
        if chance.random() < rate
    }
    return [each for each in packets if (each.source, each.destination) not in deaf]


def with_holes(packets: Packets, chance: random.Random) -> Packets:
    """Packets that the kernel dropped, one by one or many at once."""
    rate, longest = chance.choice((0.001, 0.02, 0.3)), chance.choice((1, 20))
    left: list[Packet] = []
    dropped = 0
    for each in packets:
        if not dropped and chance.random() < rate / longest:
            dropped = chance.randint(1, longest)
        if dropped:
            dropped -= 1
        else:
            left.append(each)
    return left


def shortened(packets: Packets, chance: random.Random) -> Packets:
    """Captured with a snap length: the ends of long packets are missing."""
    length = chance.choice((120, 300, 1_000))
    return [
        each
        if len(each.payload) <= length
        else replace(each, payload=each.payload[:length], payload_wire=len(each.payload))
        for each in packets
    ]


def shuffled(packets: Packets, chance: random.Random) -> Packets:
    """In the file by a millisecond earlier or later than they were."""
    late = [(each.time_ns + chance.randint(-MS_NS, MS_NS), at) for at, each in enumerate(packets)]
    return [replace(packets[at], time_ns=time_ns) for time_ns, at in sorted(late)]


def skewed(packets: Packets, chance: random.Random) -> Packets:
    """Some connections are captured up to some seconds late, as at a place with another clock."""
    spread = chance.choice((MS_NS, 100 * MS_NS, 10_000 * MS_NS))
    late = {each: chance.choice((0, chance.randrange(spread))) for each in _connections(packets)}
    moved = [replace(each, time_ns=each.time_ns + late[ends(each)]) for each in packets]
    return sorted(moved, key=lambda each: each.time_ns)


def translated(packets: Packets, chance: random.Random) -> Packets:
    """Some hosts are seen by others under another address."""
    names = {each: f"172.20.0.{at}" for at, each in enumerate(hosts(packets), 1)}
    seen = set(chance.sample([*names], chance.randint(1, len(names))))
    return _renamed(packets, lambda end: (names[end[0]], end[1]) if end[0] in seen else end)


def relayed(packets: Packets, chance: random.Random) -> Packets:
    """All who open connections come through one host, which has ports of its own; some are reached by
    others than they listen on."""
    known: dict[Endpoint, Endpoint] = {}
    relay = "172.20.1.1"
    moved = chance.random() < 0.5
    listening = _listening(packets)

    def shown(end: Endpoint) -> Endpoint:
        if end in listening:
            return ("172.20.1.2", 1_000 + listening[end]) if moved else end
        return known.setdefault(end, (relay, 30_000 + len(known)))

    return _renamed(packets, shown)


def _listening(packets: Packets) -> Mapping[Endpoint, int]:
    found = sorted({min(each.source, each.destination, key=lambda end: end[1]) for each in packets})
    return {end: at for at, end in enumerate(found)}


def _renamed(packets: Packets, shown: Callable[[Endpoint], Endpoint]) -> Packets:
    return [replace(each, source=shown(each.source), destination=shown(each.destination)) for each in packets]


WAYS: Final[Sequence[Callable[[Packets, random.Random], Packets]]] = (
    *(cut, without_connections, without_hosts, one_host, one_way),
    *(with_holes, shortened, shuffled, skewed, translated, relayed),
)
"""Everything that may happen to a capture; where packets are gone, and where they are otherwise."""


def some_of(packets: Iterable[Packet], chance: random.Random) -> Packets:
    """One or two of these, one after the other."""
    left: Packets = list(packets)
    for way in chance.sample(WAYS, chance.choice((1, 1, 2))):
        left = way(left, chance) if left else left
    return left
