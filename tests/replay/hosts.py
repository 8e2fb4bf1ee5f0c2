"""One capture as several hosts would have taken it: each with a clock and losses of its own.

What hosts there were a capture of one machine does not tell: its endpoints are dealt out. A connection is
seen where its ends are; further along its way a packet is later.
"""

from __future__ import annotations

import ipaddress
import random
import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tests.replay.envelopes import filled
from tests.replay.mess import ETHERNET, Seen

HOSTS = 3
# The host whose addresses are translated.
HIDDEN = 1
HIDDEN_ADDRESS = int(ipaddress.ip_address("10.98.76.54"))
MILLISECOND, MICROSECOND = 10**6, 10**3
APART_NS, DRIFT = 300 * MILLISECOND, 50e-6
WAY_NS = 30 * MICROSECOND
IPV4_TCP_MINIMUM = ETHERNET + 40


@dataclass(frozen=True, slots=True)
class Places:
    """What differs between the hosts. `lost`: the share of packets that a host fails to capture, never where
    only one host could. `hides`: who sees the hidden host under another address and other ports: nobody (""),
    itself ("own"), or all others ("others"). `renumbers`: its translation changes sequence numbers, too."""

    lost: float = 0.0
    hides: str = ""
    renumbers: bool = False
    apart_ns: int = APART_NS
    drift: float = DRIFT


def at_hosts(packets: Sequence[Seen], rng: random.Random, places: Places) -> list[list[Seen]]:
    """What each host captures of these packets."""
    first = min(each.time_ns for each in packets)
    home: dict[bytes, int] = {}
    shifts: dict[bytes, int] = {}
    found: list[list[Seen]] = [[] for _ in range(HOSTS)]
    for each in packets:
        if each.ends is None:
            found[0].append(each)
            continue
        source, destination = (home.setdefault(end, rng.randrange(HOSTS)) for end in each.ends)
        seers = list(dict.fromkeys((source, destination)))
        missing = rng.choice(seers) if len(seers) > 1 and rng.random() < places.lost else None
        for host in seers:
            if host == missing:
                continue
            late = 0 if host == source else WAY_NS + rng.randrange(WAY_NS)
            time_ns = each.time_ns + late
            time_ns += host * (places.apart_ns + round((time_ns - first) * places.drift))
            own = replace(each, time_ns=time_ns)
            hidden = len(seers) > 1 and HIDDEN in seers
            if hidden and places.hides == ("own" if host == HIDDEN else "others"):
                own = translated(own, source == HIDDEN, shifts, rng, renumbers=places.renumbers)
            found[host].append(own)
    return found


def translated(
    each: Seen, from_hidden: bool, shifts: dict[bytes, int], rng: random.Random, *, renumbers: bool
) -> Seen:
    """A packet with the hidden end's address and port changed, and perhaps its numbers."""
    assert each.ends is not None
    data = bytearray(each.data)
    assert data[ETHERNET] >> 4 == 4
    tcp = ETHERNET + 4 * (data[ETHERNET] & 15)
    at, port = (ETHERNET + 12, tcp) if from_hidden else (ETHERNET + 16, tcp + 2)
    struct.pack_into("!I", data, at, HIDDEN_ADDRESS)
    struct.pack_into("!H", data, port, (struct.unpack_from("!H", data, port)[0] + 7_777) % 2**16)
    if renumbers:
        for place, end in ((tcp + 4, 0), (tcp + 8, 1)):
            shift = shifts.setdefault(each.ends[end] + each.ends[1 - end], rng.randrange(2**32))
            number = struct.unpack_from("!I", data, place)[0]
            struct.pack_into("!I", data, place, (number + shift) % 2**32)
    return replace(each, data=filled(bytes(data)))
