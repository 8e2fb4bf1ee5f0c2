"""Where the frames of findings are in their captures: the number of the packet, and how to find it.

A frame's number is that of the packet that completed it, counted from 1 in its file as Wireshark does; a
filter is in the language of Wireshark's display filters. Only frames of findings are looked up.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from replispec.replay.judges.findings import FindingRow
from replispec.replay.judges.parts import Proof
from replispec.replay.report.frame_rows import Place, frames_at
from replispec.replay.tcp.rotation import Source, name_of, open_rotation
from replispec.runtime.primitives.invariants import Verdict

# So many numbers fit into a filter that somebody copies.
NUMBERS_MAXIMUM = 50


@dataclass(frozen=True, slots=True)
class Located:
    """One frame: the file and the number of the packet that completed it, and how many bytes it has."""

    file: str
    number: int
    size: int


def place_of_proof(file: str, proof: Proof) -> Place:
    """Where the frame of a proof is."""
    return file, proof.connection, proof.direction, proof.sequence


def proven(findings: Iterable[FindingRow]) -> dict[Place, str]:
    """The frames of findings that are not ok, and of each what is said of it first."""
    found: dict[Place, str] = {}
    for finding in findings:
        if finding.verdict is not Verdict.OK:
            for proof in finding.proofs:
                said = f"{finding.invariant}, {proof.verdict or finding.verdict.value}: {proof.text}"
                found.setdefault(place_of_proof(finding.file, proof), said)
    return found


def locate(sources: Sequence[Source], places: Collection[Place], frames: Path) -> dict[Place, Located]:
    """The frames at these places, as far as they are frames. Raises OSError, CaptureError.

    `frames`: frames.parquet of the replay of `sources`.
    """
    rows = frames_at(frames, places, ("record_offset", "size"))
    by_capture: dict[str, list[Place]] = defaultdict(list)
    for place in rows:
        by_capture[place[0]].append(place)
    found = {}
    for source in sources:
        mine = by_capture.get(name_of(source), [])
        if mine:
            numbers = _numbers(source, {rows[place]["record_offset"] for place in mine})
            for place in mine:
                file, number = numbers[rows[place]["record_offset"]]
                found[place] = Located(file, number, rows[place]["size"])
    return found


def _numbers(source: Source, offsets: Collection[int]) -> Mapping[int, tuple[str, int]]:
    """File and number of the records at these positions of a capture."""
    found: dict[int, tuple[str, int]] = {}
    wanted = np.array(sorted(offsets), np.int64)
    with open_rotation(source) as rotation:
        for file in rotation.files:
            before = 0
            for records in file.stretches():
                at = records.record_offset + file.whole.base
                for row in np.flatnonzero(np.isin(at, wanted)).tolist():
                    found[int(at[row])] = (file.whole.name, before + row + 1)
                before += len(at)
    return found


def frames_filter(numbers: Iterable[int]) -> str:
    """The display filter that shows the packets of these numbers; empty for none."""
    chosen = sorted(set(numbers))[:NUMBERS_MAXIMUM]
    return f"frame.number in {{{', '.join(map(str, chosen))}}}" if chosen else ""


def connection_filter(connection: str) -> str:
    """The display filter that shows a connection ("A<->B#N"); empty where it does not name two endpoints.

    Connections that used the same endpoints one after the other are shown together.
    """
    ends = [each.rpartition(":") for each in connection.rpartition("#")[0].split("<->")]
    if len(ends) != len(("source", "destination")) or not all(port.isdigit() for _, _, port in ends):
        return ""
    parts = [f"{_address(host)} && tcp.port == {port}" for host, _, port in ends]
    return " && ".join(parts)


def _address(host: str) -> str:
    text = host.strip("[]")
    return f"ipv6.addr == {text}" if ":" in text else f"ip.addr == {text}"
