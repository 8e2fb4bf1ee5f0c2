"""What a capture's packets are, in sentences: checksums, tunnels, fragments, and why bytes are missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from replispec.replay.report.summary import CaptureRow
from replispec.replay.tcp.pieces import WORDS

SENDERS_SHOWN = 5
NAMES_SHOWN = 12


def wire_lines(row: CaptureRow) -> tuple[str, ...]:
    """The sentences that apply to a capture, most telling first."""
    nothing = "nothing is concluded from them"
    lines = []
    if row.packets_corrupt:
        lines.append(f"Left out: {row.packets_corrupt} packets whose checksum is wrong")
    if row.packets_vouched:
        lines.append(f"Checksums vouch for {row.packets_vouched} segments")
    if row.senders_offloaded:
        who = _some(row.senders_offloaded, SENDERS_SHOWN)
        lines.append(f"Checksums of {who} are not filled in (offloaded): {nothing}")
    if row.senders_strange:
        who = _some(row.senders_strange, SENDERS_SHOWN)
        lines.append(f"Checksums of {who} are wrong as a rule: {nothing}")
    if row.opened:
        lines.append(f"Opened: {_counts(row.opened)}")
    if row.unopened:
        lines.append(f"Not opened: {_counts(row.unopened)}")
    if row.datagrams_joined:
        lines.append(f"Joined from fragments: {row.datagrams_joined} IP packets")
    if row.holes_by_reason:
        told = {WORDS.get(kind, kind): count for kind, count in row.holes_by_reason.items()}
        lines.append(f"Holes: {_counts(told)}")
    return tuple(lines)


def _counts(counts: Mapping[str, int]) -> str:
    return _some([f"{count} {name}" for name, count in counts.items()], NAMES_SHOWN)


def _some(words: Sequence[str], shown: int) -> str:
    more = len(words) - shown
    return ", ".join(words[:shown]) + (f" and {more} more" if more > 0 else "")
