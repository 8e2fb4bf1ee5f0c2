"""Internet checksums of many packets at once: which are right, which are not filled in, which are wrong.

A sender whose network card does it (or a loopback interface, where nobody does) leaves 0 or only the sum
of the pseudo-header in the field of TCP: such a field says nothing about the bytes.

Source: RFC 1071; RFC 9293, section 3.1; RFC 8200, section 8.1.
"""

from __future__ import annotations

import numpy as np

from replispec.replay.capture.records import Integers
from replispec.replay.tcp.layers import BigEndian, Flags, Layer

# What is known of a packet, as bits: of its TCP checksum (of none when bytes of it were not captured), and
# of the checksum of the IPv4 header that carries it.
TCP_RIGHT, TCP_WRONG, TCP_UNFILLED, HEADER_RIGHT, HEADER_WRONG = 1, 2, 4, 8, 16
IP_TCP = 6
IPV4_BYTES_MINIMUM = 20
# Sums are formed over so many 32-bit words at a time, so that they stay in the processor's cache.
_WORDS_A_TURN = 1 << 16


def tcp_checks(view: BigEndian, layer: Layer) -> Integers:
    """The TCP_ bit of each packet of a TCP layer; 0 when the segment was not captured whole."""
    found = np.zeros(len(layer), np.int64)
    length = layer.wire_end - layer.at
    whole = layer.end >= layer.wire_end
    field = view.at(layer.at + 16, 2)
    pseudo = _addresses(view, layer) + IP_TCP
    empty = field == 0
    unfilled = whole & (empty | (field == _folded(pseudo + length)) | (field == _folded(pseudo)))
    found[unfilled] = TCP_UNFILLED
    rows = np.flatnonzero(whole & ~unfilled)
    total = pseudo[rows] + length[rows] + ranges(view, layer.at[rows], layer.wire_end[rows])
    found[rows] = np.where(total % 0xFFFF == 0, TCP_RIGHT, TCP_WRONG)
    return found


def header_checks(view: BigEndian, at: Integers, size: Integers, whole: Flags) -> Integers:
    """The HEADER_ bit of each IPv4 header (offset, bytes); 0 where the checksum is 0 or cut off."""
    # Headers are whole 32-bit words; nearly all have no options.
    total = np.zeros(len(at), np.int64)
    for place in range(0, int(size.max(initial=0)), 4):
        word = view.at(at + place, 4)
        total += word if place < IPV4_BYTES_MINIMUM else np.where(place < size, word, 0)
    filled = whole & (view.at(at + 10, 2) != 0)
    # The ones' complement sum of a sound header is 0xFFFF, which is 0 modulo itself.
    return np.where(filled, np.where(total % 0xFFFF == 0, HEADER_RIGHT, HEADER_WRONG), 0)


def ranges(view: BigEndian, start: Integers, end: Integers) -> Integers:
    """A number congruent (modulo 0xFFFF) to the sum of the 16-bit words of each range [start, end).

    A last odd byte counts as the upper half of a word, as RFC 1071 has it.
    """
    total = np.zeros(len(start), np.int64)
    # Byte by byte up to a multiple of 4, words from there on, byte by byte again.
    first = np.minimum(-(-start // 4) * 4, end)
    last = np.maximum(end // 4 * 4, first)
    odd = start & 1
    for place in range(3):
        for begin, stop in ((start, first), (last, end)):
            at = begin + place
            weight = np.where((at & 1) == odd, 256, 1)
            total += np.where(at < stop, view.at(at, 1) * weight, 0)
    # The words are turned round; those of a range from an odd offset on were so already.
    total += _word_sums(view, first // 4, last // 4) % 0xFFFF * np.where(odd == 1, 1, 256)
    return total


def _word_sums(view: BigEndian, first: Integers, last: Integers) -> Integers:
    """The sums of the aligned 32-bit words [first, last) of each range, least significant byte first."""
    sums = np.zeros(len(first), np.int64)
    # Ranges in order of their place, so that each turn reads one stretch of the file.
    filled = np.flatnonzero(last > first)
    order = filled[np.argsort(first[filled], kind="stable")]
    borders = np.column_stack([first[order], last[order]])
    found = np.zeros(len(order), np.int64)
    at = 0
    while at < len(order):
        low = int(borders[at, 0])
        stop = max(at + 1, int(np.searchsorted(borders[:, 0], low + _WORDS_A_TURN)))
        high = int(borders[at:stop, 1].max())
        words = np.zeros(high - low + 1, np.int64)
        words[:-1] = view.turned_words[low:high]
        found[at:stop] = np.add.reduceat(words, (borders[at:stop] - low).ravel())[::2]
        at = stop
    sums[order] = found
    return sums


def _addresses(view: BigEndian, layer: Layer) -> Integers:
    """The sum of both addresses of each packet, by 32-bit words, not folded."""
    total = view.at(layer.addresses, 4) + view.at(layer.addresses + 4, 4)
    six = layer.family == 6
    if six.any():
        for place in range(8, 32, 4):
            total += np.where(six, view.at(layer.addresses + place, 4), 0)
    return total


def _folded(total: Integers) -> Integers:
    """The 16-bit ones' complement sum."""
    for _ in range(3):
        total = (total & 0xFFFF) + (total >> 16)
    return total
