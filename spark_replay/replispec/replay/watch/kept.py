"""Segments decoded once: their packets, frames and what crosses their borders, in files of the checkpoint.

How a segment is decoded depends on what is known of the whole capture: who fills in checksums, which packets
were joined from fragments, and which connection a packet is of. What of it matters to a segment is kept
beside it; when that changes it is decoded again. The numbers of connections do not matter: a segment has its
own, and they are told with its turns when it is stitched.
"""

from __future__ import annotations

import hashlib
import pickle
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from replispec.replay.capture.records import CaptureBytes, Split
from replispec.replay.engines.by_splits import (
    SplitReader,
    keep_turns,
    kept_turns,
    packets_files,
    turns_of_splits,
)
from replispec.replay.engines.split import CHAINED_FRAMES, FlowPart, decode_split
from replispec.replay.frames.hints import Hints
from replispec.replay.tcp.doubts import Outlines, outlines
from replispec.replay.tcp.flows import group
from replispec.replay.tcp.ground import Ground, Survey, keep_packets, kept_packets, lay_ground, survey
from replispec.replay.tcp.packets import Packets, no_packets
from replispec.replay.tcp.remarks import Remarks
from replispec.replay.tcp.turns import Turns
from replispec.replay.watch.checkpoint import damaged, digest_of, flush, replace, settle

SEGMENTS_NAME: Final = "segments"


@dataclass(frozen=True, slots=True)
class Left:
    """What a decoded segment leaves for the stitch; `frames` and `joined`: the CRC-32 of these files."""

    flows: list[FlowPart]
    remarks: Remarks
    frames: int
    joined: int


class _Surveyed(SplitReader):
    """Reads splits that were looked at, whether they are decoded or not."""

    def __init__(self, splits: Mapping[int, Split], ground: Ground, folder: Path) -> None:
        super().__init__(splits, {split.owner: ground for split in splits.values()})
        self._looked_at = folder

    def surveyed(self, number: int) -> Packets:
        """See SplitReader."""
        return kept_packets(packets_files(self._looked_at, number)[0])


class _Told(Mapping[int, Outlines]):
    """The outlines of splits by number, read when they are asked for."""

    def __init__(self, kept: KeptSegments, splits: Iterable[int]) -> None:
        self._kept = kept
        self._splits = list(splits)

    def __getitem__(self, number: int) -> Outlines:
        return self._kept.outlines(number)

    def __iter__(self) -> Iterator[int]:
        return iter(self._splits)

    def __len__(self) -> int:
        return len(self._splits)


@dataclass(slots=True)
class KeptSegments:
    """Decoded segments in a folder; `surveys` holds what each adds to what is known of the capture, by
    number."""

    folder: Path
    hints: Hints
    surveys: dict[int, tuple[int, Survey]] = field(default_factory=dict)

    def survey(self, split: Split) -> Survey:
        """The survey of a split; its packets are kept."""
        known = self.surveys.get(split.number)
        if known is None or known[0] != split.end:
            found = self._kept_survey(split) or self._look(split)
            known = self.surveys[split.number] = (split.end, found)
        return known[1]

    def is_known(self, split: Split) -> bool:
        """Whether the split was looked at."""
        return self._kept_survey(split) is not None

    def ground(self, data: CaptureBytes, splits: Iterable[Split]) -> Ground:
        """The ground of these splits."""
        return lay_ground(data, [self.survey(split) for split in splits])

    def outlines(self, number: int) -> Outlines:
        """The outlines of a split that was looked at."""
        found: Outlines = _stored(self._survey(number))[2]
        return found

    def in_turns(self, splits: Mapping[int, Split], ground: Ground) -> Iterator[tuple[Split, Turns]]:
        """The splits of a capture, all looked at, in file order, each with its turns."""
        reader = _Surveyed(splits, ground, self.folder)
        found = turns_of_splits(reader, _Told(self, splits), ground)
        at, own = next(found, (None, {}))
        for number, split in splits.items():
            if number == at:
                yield split, own
                at, own = next(found, (None, {}))
            else:
                yield split, {}

    def decode(self, split: Split, splits: Mapping[int, Split], ground: Ground, turns: Turns) -> None:
        """Decode one of the splits of a capture unless what is kept of it was decoded on the same ground,
        with packets in the same connections."""
        keep_turns(self.folder, split.number, turns)
        turns = _counted(turns)
        joined = ground.joined_in(split.base + split.start, split.base + split.end)
        about = _about(split, self.survey(split), ground, joined, turns)
        if self._read(self._about(split.number)) == about:
            return
        self._about(split.number).unlink(missing_ok=True)
        path = packets_files(self.folder, split.number)[1]
        with _beside(path) as beside:
            keep_packets(joined or no_packets(), beside)
        # Fragments may lie anywhere. Else its own file is enough, and is let go of with the reader: what is
        # mapped counts as memory.
        needed = {split.number: split} if joined is None else splits
        reader = SplitReader(needed, {split.owner: ground}, kept=self.folder)
        data, packets = reader.data(split.number), reader.packets(split.number)
        decoded = decode_split(split, data, packets, turns, self.hints)
        with _beside(self._frames(split.number)) as beside:
            pq.write_table(pa.Table.from_batches(decoded.frames, CHAINED_FRAMES), beside)
        sums = digest_of(self._frames(split.number)), digest_of(path)
        _store(self._left(split.number), Left(decoded.flows, decoded.remarks, *sums))
        replace(self._about(split.number), about)

    def frames(self, number: int) -> pa.Table:
        """The frames of a split that was decoded, as CHAINED_FRAMES."""
        left: Left = _stored(self._left(number))
        return pq.read_table(_sound(self._frames(number), left.frames), schema=CHAINED_FRAMES)

    def left(self, number: int) -> Left:
        """What is left of a split that was decoded."""
        found: Left = _stored(self._left(number))
        _sound(packets_files(self.folder, number)[1], found.joined)
        turns = kept_turns(self.folder, number)
        for flow in found.flows:
            if flow.key in turns:
                numbers = np.unique(turns[flow.key]).tolist()
                for part in flow.parts:
                    part.number = numbers[part.number - 1]
        return found

    def _look(self, split: Split) -> Survey:
        self._about(split.number).unlink(missing_ok=True)
        self._survey(split.number).unlink(missing_ok=True)
        packets = SplitReader({split.number: split}, {}).surveyed(split.number)
        path = packets_files(self.folder, split.number)[0]
        with _beside(path) as beside:
            keep_packets(packets, beside)
        found = survey(packets)
        told = _identity(split), found, outlines(group(packets)), digest_of(path)
        _store(self._survey(split.number), told)
        return found

    def _kept_survey(self, split: Split) -> Survey | None:
        path = self._survey(split.number)
        if not path.exists():
            return None
        of, found, _, digest = _stored(path)
        if of != _identity(split):
            return None
        _sound(packets_files(self.folder, split.number)[0], digest)
        kept: Survey = found
        return kept

    def _read(self, path: Path) -> bytes:
        return path.read_bytes() if path.exists() else b""

    def _about(self, number: int) -> Path:
        return self.folder / f"about-{number}"

    def _survey(self, number: int) -> Path:
        return self.folder / f"survey-{number}"

    def _frames(self, number: int) -> Path:
        return self.folder / f"frames-{number}.parquet"

    def _left(self, number: int) -> Path:
        return self.folder / f"left-{number}"


def _counted(turns: Turns) -> Turns:
    """The turns of one split, its own connections counted from 1; flows with one are left out."""
    ranks = {key: np.unique(number, return_inverse=True)[1] + 1 for key, number in turns.items()}
    return {key: number for key, number in ranks.items() if number.max() > 1}


def _about(split: Split, found: Survey, ground: Ground, joined: Packets | None, turns: Turns) -> bytes:
    """What a decoded segment rests on: its records, what of the ground matters to them, and which of them are
    of the same connection."""
    own = set(found.tally.counts)
    known = ground.fillers
    relevant = [sorted(each if joined is not None else each & own) for each in (known.tcp, known.header)]
    # Addresses have up to 128 bits, more than a number in JSON.
    told = hashlib.sha256()
    for key, number in sorted(turns.items()):
        told.update(repr(key).encode())
        told.update(number.tobytes())
    joined_digest = "" if joined is None else _digest(joined)
    return orjson.dumps([_identity(split), repr(relevant), joined_digest, told.hexdigest()])


def _identity(split: Split) -> list[int]:
    return [split.start, split.end, split.base]


def _digest(packets: Packets) -> str:
    found = hashlib.sha256()
    for column in packets.columns():
        found.update(column.tobytes())
    return found.hexdigest()


@contextmanager
def _beside(path: Path) -> Iterator[Path]:
    """A file to write that is on the disk before it takes its name."""
    beside = path.with_name(f".{path.name}.new")
    yield beside
    with beside.open("rb") as file:
        flush(file.fileno())
    settle(beside, path)


def _sound(path: Path, digest: int) -> Path:
    """The path of a file that is as it was written. Raises CheckpointError, OSError."""
    if digest_of(path) != digest:
        raise damaged(path)
    return path


def _store(path: Path, value: Any) -> None:
    """Keep an object of ours, with a check sum."""
    body = zlib.compress(pickle.dumps(value, 5), 1)
    replace(path, zlib.crc32(body).to_bytes(4, "big") + body)


def _stored(path: Path) -> Any:
    """The object that was kept there. Raises CheckpointError for what is damaged."""
    content = path.read_bytes()
    if zlib.crc32(content[4:]).to_bytes(4, "big") != content[:4]:
        raise damaged(path)
    return pickle.loads(zlib.decompress(content[4:]))
