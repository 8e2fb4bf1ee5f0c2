"""Which senders fill in their checksums, and what follows for their packets.

Decided for the whole capture, for each source address on each interface, from packets with payload: a
sender fills them in when more of them are right than wrong. One that leaves them to its network card, or
whose checksums are wrong as a rule (a capture that was rewritten), is not judged by them. A sender of which
too little was seen goes by its interface.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from replispec.replay.capture.groups import numbered
from replispec.replay.capture.records import Integers
from replispec.replay.tcp.checksums import HEADER_RIGHT, HEADER_WRONG, TCP_RIGHT, TCP_UNFILLED, TCP_WRONG
from replispec.replay.tcp.flows import address_text
from replispec.replay.tcp.layers import Flags
from replispec.replay.tcp.packets import CORRUPT, VOUCHED, Packets

Sender = tuple[int, int, int]  # interface, address high, address low (IPv4 mapped into IPv6)
# What is counted of each sender: packets whose checksums have one of these bits.
COUNTED = (TCP_RIGHT, TCP_WRONG, TCP_UNFILLED, HEADER_RIGHT, HEADER_WRONG)
# A sender with fewer wrong checksums than this, and none of another kind, may be a damaged address.
FEW = 4


@dataclass(frozen=True, slots=True)
class Tally:
    """For each sender, how many packets have each of COUNTED; those of TCP with payload only."""

    counts: Mapping[Sender, tuple[int, ...]] = field(default_factory=dict)

    def __add__(self, more: Tally) -> Tally:
        counts = dict(self.counts)
        for sender, own in more.counts.items():
            known = counts.get(sender)
            counts[sender] = own if known is None else tuple(map(sum, zip(known, own, strict=True)))
        return Tally(counts)


def tally(packets: Packets) -> Tally:
    """The tally of some packets."""
    senders, number = _numbered(packets)
    if not senders:
        return Tally()
    payload = packets.payload_wire > 0
    # A packet that was joined from fragments counts once.
    head = np.append([True], packets.record_offset[1:] != packets.record_offset[:-1])
    columns = []
    for bit in COUNTED:
        mask = head & (packets.checks & bit != 0)
        if bit in (TCP_RIGHT, TCP_WRONG, TCP_UNFILLED):
            mask &= payload
        columns.append(np.bincount(number[mask], minlength=len(senders)).tolist())
    return Tally(dict(zip(senders, zip(*columns, strict=True), strict=True)))


@dataclass(frozen=True, slots=True)
class Fillers:
    """Senders that fill in TCP checksums, and those that fill in those of IPv4 headers.

    `left`: senders of payload that leave TCP checksums to their network card; `strange`: whose are wrong as
    a rule; `checked`: how many segments with payload of senders that fill them in are right.
    """

    tcp: frozenset[Sender] = frozenset()
    header: frozenset[Sender] = frozenset()
    left: tuple[str, ...] = ()
    strange: tuple[str, ...] = ()
    checked: int = 0


def fillers(tallies: Iterable[Tally]) -> Fillers:
    """What the tallies of all parts of a capture come to."""
    counts = sum(tallies, Tally()).counts
    interfaces: Counter[tuple[int, int]] = Counter()
    for sender, own in counts.items():
        interfaces.update({(sender[0], at): count for at, count in enumerate(own)})
    tcp, header, left, strange = [], [], [], []
    for sender, (right, wrong, unfilled, sound, unsound) in sorted(counts.items()):
        whole = [interfaces[sender[0], at] for at in range(len(COUNTED))]
        # An address that was damaged itself is seen a few times, and only with wrong checksums.
        few = not right and not unfilled and wrong < FEW
        if right > wrong or (few and whole[0] > whole[1] + whole[2]):
            tcp.append(sender)
        elif unfilled >= wrong:
            left.append(sender)
        else:
            strange.append(sender)
        few = not sound and unsound < FEW
        if sound > unsound or (few and whole[3] > whole[4]):
            header.append(sender)
    return Fillers(
        frozenset(tcp),
        frozenset(header),
        _named(sender for sender in left if counts[sender][2]),
        _named(strange),
        sum(counts[sender][0] for sender in tcp),
    )


def _named(senders: Iterable[Sender]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(address_text(high, low) for _, high, low in senders))


def trusted(packets: Packets, known: Fillers) -> Packets:
    """The packets with what follows from their checksums: `trust` is CORRUPT or VOUCHED where it does."""
    if not (packets.checks & (TCP_RIGHT | TCP_WRONG | HEADER_WRONG)).any():
        return packets
    senders, number = _numbered(packets)
    fills = _column([sender in known.tcp for sender in senders], number)
    fills_header = _column([sender in known.header for sender in senders], number)
    checks = packets.checks
    wrong = fills & (checks & TCP_WRONG != 0) | fills_header & (checks & HEADER_WRONG != 0)
    right = fills & (checks & TCP_RIGHT != 0) & ~wrong & (packets.payload_wire > 1)
    trust = np.where(right, VOUCHED, packets.trust)
    return replace(packets, trust=np.where(wrong, CORRUPT, trust))


def _column(values: list[bool], number: Integers) -> Flags:
    found: Flags = np.array(values, np.bool_)[number]
    return found


def _numbered(packets: Packets) -> tuple[list[Sender], Integers]:
    """The senders of some packets, and the number of each packet's sender among them."""
    if not len(packets):
        return [], np.zeros(0, np.int64)
    low, high, interface = packets.source_low, packets.source_high, packets.interface
    if not high.any() and not interface.any():
        values, number = numbered(low)
        return [(0, 0, value) for value in values.tolist()], number
    order = np.lexsort((low, high, interface))
    columns = (interface[order], high[order], low[order])
    change = np.ones(len(order), np.bool_)
    change[1:] = np.any([column[1:] != column[:-1] for column in columns], axis=0)
    number = np.empty(len(order), np.int64)
    number[order] = np.cumsum(change) - 1
    senders = zip(*(column[change].tolist() for column in columns), strict=True)
    return list(senders), number
