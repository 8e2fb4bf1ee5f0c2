"""Flows in which more than one connection may be, told by columns of what each part of a capture holds.

Most flows are one connection, of which no packet has to be looked at by itself. A flow is in doubt when a
side sent SYN packets with two numbers, or its peer answered another one, or one lies behind other packets, or
when both numbers of a packet lie far from those of the packet before. That is never said too rarely: `turns`
finds one connection in all flows that are in no doubt. What checksums are worth is not yet known; packets
that one contradicts make doubt and clear none.

Source: RFC 9293, section 3.4.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from replispec.replay.capture.records import Integers
from replispec.replay.tcp.checksums import HEADER_WRONG, TCP_WRONG
from replispec.replay.tcp.flows import FlowKey, Grouped
from replispec.replay.tcp.layers import Flags
from replispec.replay.tcp.numbers import apart
from replispec.replay.tcp.packets import ACK, RST, SYN, Packets

# Numbers that differ by less lie close: what one window without scaling holds.
CLOSE_BYTES = 1 << 16
UNSEEN = -1
NOWHERE = (UNSEEN, UNSEEN)


Pair = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Outline:
    """What a part of a capture holds of one flow.

    `in_doubt`: these packets alone make doubt; `initial`: the number of each side's SYN packets, or that its
    peer's answer, or UNSEEN; `plain`: whether a side sent packets that are neither SYN nor RST. `begins`:
    the numbers of both sides in the first packet of these that acknowledges something; `ends`: in the last
    that no checksum contradicts.
    """

    in_doubt: bool
    initial: Pair
    plain: tuple[bool, bool]
    begins: Pair
    ends: Pair

    def followed_by(self, later: Outline) -> Outline:
        """Both parts as one; the later one stands behind this in the file."""
        doubt = self.in_doubt or later.in_doubt
        for side in (0, 1):
            own, new = self.initial[side], later.initial[side]
            doubt |= new != UNSEEN and (self.plain[side] or own not in (UNSEEN, new))
        if later.begins != NOWHERE:
            pairs = list(zip(self.ends, later.begins, strict=True))
            doubt |= self.ends == NOWHERE or all(_distance(*pair) > CLOSE_BYTES for pair in pairs)
        initial = zip(self.initial, later.initial, strict=True)
        first, second = (own if own != UNSEEN else new for own, new in initial)
        return Outline(
            in_doubt=doubt,
            initial=(first, second),
            plain=(self.plain[0] or later.plain[0], self.plain[1] or later.plain[1]),
            begins=later.begins if self.begins == NOWHERE else self.begins,
            ends=self.ends if later.ends == NOWHERE else later.ends,
        )


class Ends(NamedTuple):
    """The numbers of both sides that each flow begins and ends with, as in `Outline`."""

    begins: Integers
    ends: Integers


Outlines = Mapping[FlowKey, Outline]


def outlines(grouped: Grouped) -> Outlines:
    """The outline of each flow of a part."""
    if not grouped.keys:
        return {}
    doubt, initial, plain, ends = _told(grouped)
    columns = zip(grouped.keys, doubt.tolist(), *(map(_pairs, (initial, plain, *ends))), strict=True)
    return {key: Outline(*told) for key, *told in columns}


def _pairs(column: npt.NDArray[Any]) -> list[tuple[Any, Any]]:
    return list(zip(*column.T.tolist(), strict=True))


def doubtful_flows(grouped: Grouped) -> list[FlowKey]:
    """The flows in doubt of a whole capture."""
    if not grouped.keys:
        return []
    return [grouped.keys[at] for at in np.flatnonzero(_told(grouped)[0]).tolist()]


def doubtful_of_parts(parts: Iterable[Outlines]) -> set[FlowKey]:
    """The flows in doubt of a capture, from the outlines of its parts in file order."""
    known: dict[FlowKey, Outline] = {}
    for part in parts:
        for key, outline in part.items():
            known[key] = known[key].followed_by(outline) if key in known else outline
    return {key for key, outline in known.items() if outline.in_doubt}


def _told(grouped: Grouped) -> tuple[Flags, Integers, Flags, Ends]:
    """Of each flow: whether it is in doubt, the number of each side's SYN, who sent plain packets, and what
    it begins and ends with."""
    packets, count = grouped.packets, len(grouped.packets)
    rows, first = np.arange(count), grouped.borders[:-1]
    is_plain = packets.flags & (SYN | RST) == 0
    is_syn = packets.flags & (SYN | RST) == SYN
    initial = np.empty((len(first), 2), np.int64)
    plain = np.empty((len(first), 2), np.bool_)
    away, ends = _moved_away(grouped)
    doubt = np.logical_or.reduceat(away, first)
    for side in (0, 1):
        mine = grouped.direction == side
        syn = is_syn & mine
        answers = is_syn & ~mine & (packets.flags & ACK != 0)
        numbers = np.where(syn, packets.sequence, (packets.acknowledgment - 1) % (1 << 32))
        initial[:, side] = np.maximum.reduceat(np.where(syn | answers, numbers, UNSEEN), first)
        least = np.minimum.reduceat(np.where(syn | answers, numbers, 1 << 32), first)
        early = np.minimum.reduceat(np.where(is_plain & mine, rows, count), first)
        last_syn = np.maximum.reduceat(np.where(syn, rows, UNSEEN), first)
        plain[:, side] = early < count
        doubt |= (initial[:, side] > least) | (last_syn > early)
    return doubt, initial, plain, ends


def _moved_away(grouped: Grouped) -> tuple[Flags, Ends]:
    """Packets that acknowledge something, of which both numbers lie far from those of the packet before; and
    the numbers that each flow begins and ends with."""
    packets, rows = grouped.packets, np.arange(len(grouped.packets))
    first, upto = grouped.borders[:-1], grouped.borders[1:]
    told = (packets.flags & (RST | ACK) == ACK) & (packets.checks & (TCP_WRONG | HEADER_WRONG) == 0)
    last = np.maximum.accumulate(np.where(told, rows, UNSEEN))
    own = np.where(grouped.direction == 0, packets.sequence, packets.acknowledgment)
    other = np.where(grouped.direction == 0, packets.acknowledgment, packets.sequence)
    before = np.append(UNSEEN, last[:-1])
    known = before >= first[grouped.flow]
    away = known & _far_apart(own, own[before]) & _far_apart(other, other[before])
    away |= ~known & (rows > first[grouped.flow])
    away &= _acknowledges(packets)
    numbers = np.column_stack([own, other])
    begins = np.minimum.reduceat(np.where(_acknowledges(packets), rows, len(rows)), first)
    return away, Ends(
        np.where((begins < upto)[:, None], numbers[np.minimum(begins, upto - 1)], UNSEEN),
        np.where((last[upto - 1] >= first)[:, None], numbers[last[upto - 1]], UNSEEN),
    )


def _acknowledges(packets: Packets) -> Flags:
    found: Flags = packets.flags & (SYN | RST | ACK) == ACK
    return found


def _far_apart(numbers: Integers, others: Integers) -> Flags:
    found: Flags = np.abs(apart(numbers - others)) > CLOSE_BYTES
    return found


def _distance(number: int, other: int) -> int:
    return abs(apart(number - other))
