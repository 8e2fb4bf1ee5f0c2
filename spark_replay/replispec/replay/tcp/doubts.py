"""Flows in which more than one connection may be, told by columns of what each part of a capture holds.

Most flows are one connection, of which no packet has to be looked at by itself. A flow is in doubt when a
side sent SYN packets with two numbers, or one behind other packets, or when a packet behind an end lies
far from where the stream was. That is never said too rarely: `turns` finds one connection in all flows that
are in no doubt. What checksums are worth is not yet known; packets that one contradicts make doubt
and clear none.

Source: RFC 9293, section 3.4.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from replispec.replay.capture.records import Integers
from replispec.replay.tcp.checksums import HEADER_WRONG, TCP_WRONG
from replispec.replay.tcp.flows import FlowKey, Grouped
from replispec.replay.tcp.layers import Flags
from replispec.replay.tcp.packets import ACK, FIN, RST, SYN

# Numbers that differ by less lie close: what one window without scaling holds.
CLOSE_BYTES = 1 << 16
UNSEEN = -1


@dataclass(frozen=True, slots=True)
class Outline:
    """What a part of a capture holds of one flow.

    `in_doubt`: these packets alone make doubt; `initial`: the number of each side's SYN packets, or UNSEEN;
    `plain`: whether a side sent packets that are neither SYN nor RST; `ended`: whether there was a FIN or a
    RST; `acknowledges`: whether one of those that are neither acknowledges something.
    """

    in_doubt: bool
    initial: tuple[int, int]
    plain: tuple[bool, bool]
    ended: bool
    acknowledges: bool

    def followed_by(self, later: Outline) -> Outline:
        """Both parts as one; the later one stands behind this in the file."""
        doubt = self.in_doubt or later.in_doubt or (self.ended and later.acknowledges)
        for side in (0, 1):
            own, new = self.initial[side], later.initial[side]
            doubt |= new != UNSEEN and (self.plain[side] or own not in (UNSEEN, new))
        first, second = (
            own if own != UNSEEN else new for own, new in zip(self.initial, later.initial, strict=True)
        )
        return replace(
            self,
            in_doubt=doubt,
            initial=(first, second),
            plain=(self.plain[0] or later.plain[0], self.plain[1] or later.plain[1]),
            ended=self.ended or later.ended,
            acknowledges=self.acknowledges or later.acknowledges,
        )


Outlines = Mapping[FlowKey, Outline]


def outlines(grouped: Grouped) -> Outlines:
    """The outline of each flow of a part."""
    if not grouped.keys:
        return {}
    flags = grouped.packets.flags
    acknowledging = (flags & (SYN | RST) == 0) & (flags & ACK != 0)
    acknowledges = np.logical_or.reduceat(acknowledging, grouped.borders[:-1])
    columns = (column.tolist() for column in (*_told(grouped), acknowledges))
    return {
        key: Outline(doubt, tuple(initial), tuple(plain), ended, acks)
        for key, doubt, initial, plain, ended, acks in zip(grouped.keys, *columns, strict=True)
    }


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


def _told(grouped: Grouped) -> tuple[Flags, Integers, Flags, Flags]:
    """Of each flow: whether it is in doubt, the number of each side's SYN, who sent plain packets, whether
    there was an end."""
    packets, count = grouped.packets, len(grouped.packets)
    rows, first = np.arange(count), grouped.borders[:-1]
    is_plain = packets.flags & (SYN | RST) == 0
    is_syn = packets.flags & (SYN | RST) == SYN
    initial = np.empty((len(first), 2), np.int64)
    plain = np.empty((len(first), 2), np.bool_)
    doubt = np.zeros(len(first), np.bool_)
    for side in (0, 1):
        mine = grouped.direction == side
        syn = is_syn & mine
        initial[:, side] = np.maximum.reduceat(np.where(syn, packets.sequence, UNSEEN), first)
        least = np.minimum.reduceat(np.where(syn, packets.sequence, 1 << 32), first)
        early = np.minimum.reduceat(np.where(is_plain & mine, rows, count), first)
        last_syn = np.maximum.reduceat(np.where(syn, rows, UNSEEN), first)
        plain[:, side] = early < count
        doubt |= (initial[:, side] > least) | (last_syn > early)
    end = np.minimum.reduceat(np.where(packets.flags & (FIN | RST) != 0, rows, count), first)
    doubt[_gone_on(grouped, end, is_plain)] = True
    return doubt, initial, plain, end < count


def _gone_on(grouped: Grouped, end: Integers, is_plain: Flags) -> Integers:
    """The flows with packets behind their end (its row) whose numbers lie far from those before it."""
    packets, rows = grouped.packets, np.arange(len(grouped.packets))
    acknowledges = is_plain & (packets.flags & ACK != 0)
    late = np.flatnonzero(acknowledges & (rows > end[grouped.flow]))
    if not len(late):
        return late
    sound = (packets.flags & (RST | ACK) == ACK) & (packets.checks & (TCP_WRONG | HEADER_WRONG) == 0)
    before = np.maximum.accumulate(np.where(sound, rows, UNSEEN))[end[grouped.flow[late]]]
    known = before >= grouped.borders[grouped.flow[late]]
    same = grouped.direction[before] == grouped.direction[late]
    own = np.where(same, packets.sequence[before], packets.acknowledgment[before])
    other = np.where(same, packets.acknowledgment[before], packets.sequence[before])
    far = _apart(packets.sequence[late], own) & _apart(packets.acknowledgment[late], other)
    return np.unique(grouped.flow[late[far | ~known]])


def _apart(numbers: Integers, others: Integers) -> Flags:
    apart: Flags = np.abs((numbers - others + 2**31) % 2**32 - 2**31) > CLOSE_BYTES
    return apart
