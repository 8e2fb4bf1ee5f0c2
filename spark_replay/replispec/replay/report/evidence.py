"""Where the frames of findings are in their captures: the number of the packet, and how to find it.

A frame's number is that of the packet that completed it, counted from 1 in its file as Wireshark does; a
filter is in the language of Wireshark's display filters. Only frames of findings are looked up.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from replispec.replay.capture.files import Capture, walk
from replispec.replay.capture.records import ALL_TIME, Integers, Records, Split, release
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


@dataclass(frozen=True, slots=True)
class NumberedSplit:
    """A split of a capture, and how many packets stand before it in its file."""

    split: Split
    before: int


def numbered_splits(splits: Iterable[Split], counts: Mapping[int, int]) -> dict[str, list[NumberedSplit]]:
    """By capture its splits, all of which are given; none where a time was chosen, as the other packets were
    not counted. `counts`: how many records each split has, by its number."""
    found: dict[str, list[NumberedSplit]] = defaultdict(list)
    before: Counter[tuple[int, int]] = Counter()
    for split in sorted(splits, key=lambda each: each.number):
        if split.window == ALL_TIME:
            file = split.owner, split.base
            found[split.capture].append(NumberedSplit(split, before[file]))
            before[file] += counts[split.number]
    return found


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


def locate(
    sources: Sequence[Source],
    places: Collection[Place],
    frames: Path,
    numbered: Mapping[str, Sequence[NumberedSplit]] | None = None,
) -> dict[Place, Located]:
    """The frames at these places, as far as they are frames. Raises OSError, CaptureError.

    `frames`: frames.parquet of the replay of `sources`. `numbered`: by name of the source all of its splits,
    where they were counted: of these only such as hold wanted packets are read; other sources are as a whole.
    """
    known = numbered or {}
    rows = frames_at(frames, places, ("record_offset", "size"))
    by_capture: dict[str, list[Place]] = defaultdict(list)
    for place in rows:
        by_capture[place[0]].append(place)
    found = {}
    for source in sources:
        mine = by_capture.get(name_of(source), [])
        if mine:
            wanted = np.array(sorted({rows[place]["record_offset"] for place in mine}), np.int64)
            own = known.get(name_of(source), ())
            numbers = _numbers_in(source, wanted, own) if own else _numbers(source, wanted)
            for place in mine:
                file, number = numbers[rows[place]["record_offset"]]
                found[place] = Located(file, number, rows[place]["size"])
    return found


def _numbers_in(
    source: Source, wanted: Integers, splits: Sequence[NumberedSplit]
) -> dict[int, tuple[str, int]]:
    """File and number of the records at these positions (ascending) of a capture, from its splits."""
    found: dict[int, tuple[str, int]] = {}
    with open_rotation(source) as rotation:
        files = {file.whole.base: file for file in rotation.files}
        for each in splits:
            split, file = each.split, files[each.split.base]
            first, behind = np.searchsorted(wanted, (split.base + split.start, split.base + split.end))
            if first < behind:
                records, _ = walk(file.data, split)
                _add_found(found, wanted, file, records, each.before)
                release(file.data, split.start, split.end)
    return found


def _add_found(
    found: dict[int, tuple[str, int]], wanted: Integers, file: Capture, records: Records, before: int
) -> None:
    at = records.record_offset + file.whole.base
    for row in np.flatnonzero(np.isin(at, wanted)).tolist():
        found[int(at[row])] = (file.whole.name, before + row + 1)


def _numbers(source: Source, wanted: Integers) -> dict[int, tuple[str, int]]:
    """The same of a capture of which all records are walked."""
    found: dict[int, tuple[str, int]] = {}
    with open_rotation(source) as rotation:
        for file in rotation.files:
            before = 0
            for records in file.stretches():
                _add_found(found, wanted, file, records, before)
                before += len(records.record_offset)
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
