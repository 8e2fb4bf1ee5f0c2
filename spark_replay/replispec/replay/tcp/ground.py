"""What must be known of a whole capture before a part of it can be decoded.

Which senders fill in their checksums, and which packets come of fragments, is told by all packets
together. Each part of a capture is surveyed by itself; the surveys make the ground that all parts stand on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from replispec.replay.capture.arrays import save
from replispec.replay.capture.records import CaptureBytes
from replispec.replay.tcp.fragment_rows import Fragments, join_fragments
from replispec.replay.tcp.fragments import packets_of_fragments
from replispec.replay.tcp.packets import COLUMNS, CORRUPT, Packets, join_packets, no_packets, of_columns
from replispec.replay.tcp.remarks import CORRUPT as CORRUPT_COUNT
from replispec.replay.tcp.remarks import NO_REMARKS, Remarks, total
from replispec.replay.tcp.senders import Fillers, Tally, fillers, tally, trusted


@dataclass(frozen=True, slots=True)
class Survey:
    """What a part of a capture adds to what must be known of the whole."""

    tally: Tally
    fragments: Fragments | None
    remarks: Remarks


@dataclass(frozen=True, slots=True)
class Ground:
    """What is known of a whole capture: who fills in checksums, the packets joined from fragments, and
    what there is to say of all packets that were captured."""

    fillers: Fillers
    joined: Packets | None
    remarks: Remarks

    def joined_in(self, low: int, high: int) -> Packets | None:
        """Those of the joined packets that were completed by a record in [low, high); None without one."""
        if self.joined is None:
            return None
        at = self.joined.record_offset
        found = self.joined.take((at >= low) & (at < high))
        return found if len(found) else None


@dataclass(frozen=True, slots=True)
class Wire:
    """What a capture's packets are: `remarks` on all of them, and what their checksums tell.

    `checked`: how many segments with payload are vouched for; `left`: senders that leave TCP checksums
    to their network card, `strange`: whose are wrong as a rule; nothing is concluded from either.
    """

    remarks: Remarks = NO_REMARKS
    checked: int = 0
    left: tuple[str, ...] = ()
    strange: tuple[str, ...] = ()


NO_WIRE = Wire()


def survey(packets: Packets) -> Survey:
    """The survey of the packets of a part of a capture."""
    return Survey(tally(packets), packets.fragments, packets.remarks)


def lay_ground(data: CaptureBytes, surveys: Sequence[Survey]) -> Ground:
    """The ground for all parts of a capture; the surveys are in file order."""
    fragments = join_fragments([part.fragments for part in surveys if part.fragments is not None])
    found = packets_of_fragments(data, fragments)
    tallies = [part.tally for part in surveys]
    remarks = [part.remarks for part in surveys]
    if found is None:
        return Ground(fillers(tallies), None, total(remarks))
    return Ground(fillers([*tallies, tally(found.packets)]), found.packets, total([*remarks, found.remarks]))


def standing(packets: Packets, joined: Packets | None, known: Fillers) -> Packets:
    """Packets as they are to be read: the joined ones among them, and each with its trust."""
    own = packets if joined is None else join_packets([packets, joined])
    own = trusted(own, known)
    left_out = len(np.unique(own.record_offset[own.trust == CORRUPT]))
    return replace(own, remarks=Remarks({CORRUPT_COUNT: left_out}), fragments=None)


def standing_alone(data: CaptureBytes, packets: Packets) -> Packets:
    """As `standing`, of the packets of a whole capture."""
    ground = lay_ground(data, [survey(packets)])
    return standing(packets, ground.joined, ground.fillers)


def wire(ground: Ground, parts: Iterable[Remarks]) -> Wire:
    """What a capture's packets are, from its ground and what was said of its parts."""
    known = ground.fillers
    return Wire(total([ground.remarks, *parts]), known.checked, known.left, known.strange)


def keep_packets(packets: Packets, path: Path) -> None:
    """Write the columns of some packets, without what is about all of them."""
    columns = np.array([column.view(np.int64) for column in packets.columns()]).reshape(len(COLUMNS), -1)
    save(columns, path)


def kept_packets(path: Path) -> Packets:
    """The packets that were written there."""
    template = no_packets().columns()
    kept = np.load(path)
    return of_columns([row.view(like.dtype) for row, like in zip(kept, template, strict=True)])
