"""Segments decoded once: their packets, frames and what crosses their borders, in files of the checkpoint.

How a segment is decoded depends on what is known of the whole capture: who fills in checksums, and which
packets were joined from fragments. What of it matters to a segment is kept beside it; when that changes it
is decoded again.
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

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from replispec.replay.capture.records import CaptureBytes, Split
from replispec.replay.engines.by_splits import SplitReader, packets_files
from replispec.replay.engines.split import CHAINED_FRAMES, FlowPart, decode_split
from replispec.replay.frames.hints import Hints
from replispec.replay.tcp.ground import Ground, Survey, keep_packets, lay_ground, survey
from replispec.replay.tcp.packets import Packets, no_packets
from replispec.replay.tcp.remarks import Remarks
from replispec.replay.watch.checkpoint import CheckpointError, flush, replace, settle

SEGMENTS_NAME: Final = "segments"


@dataclass(frozen=True, slots=True)
class Left:
    """What a decoded segment leaves for the stitch."""

    flows: list[FlowPart]
    remarks: Remarks


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

    def decode(self, split: Split, splits: Mapping[int, Split], ground: Ground) -> None:
        """Decode one of the splits of a capture unless what is kept of it was decoded on the same ground."""
        joined = ground.joined_in(split.base + split.start, split.base + split.end)
        about = _about(split, self.survey(split), ground, joined)
        if self._read(self._about(split.number)) == about:
            return
        self._about(split.number).unlink(missing_ok=True)
        path = packets_files(self.folder, split.number)[1]
        with _beside(path) as beside:
            keep_packets(joined or no_packets(), beside)
        # Fragments may lie anywhere. Else its own file is enough, and is let go of with the reader: what is
        # mapped counts as memory.
        needed = {split.number: split} if joined is None else splits
        reader = SplitReader(needed, {split.owner: ground}, self.folder)
        decoded = decode_split(split, reader.data(split.number), reader.packets(split.number), self.hints)
        with _beside(self._frames(split.number)) as beside:
            pq.write_table(pa.Table.from_batches(decoded.frames, CHAINED_FRAMES), beside)
        _store(self._left(split.number), Left(decoded.flows, decoded.remarks))
        replace(self._about(split.number), about)

    def frames(self, number: int) -> pa.Table:
        """The frames of a split that was decoded, as CHAINED_FRAMES."""
        return pq.read_table(self._frames(number), schema=CHAINED_FRAMES)

    def left(self, number: int) -> Left:
        """What is left of a split that was decoded."""
        found: Left = _stored(self._left(number))
        return found

    def _look(self, split: Split) -> Survey:
        self._about(split.number).unlink(missing_ok=True)
        self._survey(split.number).unlink(missing_ok=True)
        packets = SplitReader({split.number: split}, {}).surveyed(split.number)
        with _beside(packets_files(self.folder, split.number)[0]) as beside:
            keep_packets(packets, beside)
        found = survey(packets)
        _store(self._survey(split.number), (_identity(split), found))
        return found

    def _kept_survey(self, split: Split) -> Survey | None:
        path = self._survey(split.number)
        if not path.exists():
            return None
        of, found = _stored(path)
        kept: Survey = found
        return kept if of == _identity(split) else None

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


def _about(split: Split, found: Survey, ground: Ground, joined: Packets | None) -> bytes:
    """What a decoded segment rests on: its records, and what of the ground matters to them."""
    own = set(found.tally.counts)
    known = ground.fillers
    relevant = [sorted(each if joined is not None else each & own) for each in (known.tcp, known.header)]
    # Addresses have up to 128 bits, more than a number in JSON.
    return orjson.dumps([_identity(split), repr(relevant), "" if joined is None else _digest(joined)])


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


def _store(path: Path, value: Any) -> None:
    """Keep an object of ours, with a check sum."""
    body = zlib.compress(pickle.dumps(value, 5), 1)
    replace(path, zlib.crc32(body).to_bytes(4, "big") + body)


def _stored(path: Path) -> Any:
    """The object that was kept there. Raises CheckpointError for what is damaged."""
    content = path.read_bytes()
    if zlib.crc32(content[4:]).to_bytes(4, "big") != content[:4]:
        raise CheckpointError(f"{path}: damaged; name another --checkpoint to begin anew")
    return pickle.loads(zlib.decompress(content[4:]))
