"""What a stretch of segments comes to: rows, events and verdicts, with no more frames in memory than a share.

Stitched as splits of one capture are; the connections are then taken in shares, in the order of the rows,
so that a share's frames are in memory and the others on the disk.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from replispec.replay.capture.records import Split
from replispec.replay.engines.by_splits import (
    PLACEMENTS,
    SplitReader,
    Stitched,
    by_flow,
    placed_frames,
    stitch_flows,
)
from replispec.replay.events.observe import REMOTING, observe
from replispec.replay.events.tables import SCHEMAS, Events, in_order
from replispec.replay.frames.tables import FRAMES, FRAMES_ORDER, HOLES, STREAMS
from replispec.replay.tcp.ground import Wire, wire
from replispec.replay.watch.kept import KeptSegments
from replispec.replay.watch.reading import KeptReader

# Connections of so many decoded bytes make a share, or one connection that has more.
SHARE_BYTES: Final = 32 << 20


@dataclass(frozen=True, slots=True)
class Judgeable:
    """What is known of a stretch before it is judged: `frames` of remoting and of replication, and their
    events."""

    frames: tuple[int, int]
    holes: pa.Table
    streams: pa.Table
    wire: Wire
    events: Events


def observed(
    splits: Mapping[int, Split],
    kept: KeptSegments,
    take: Callable[[pa.Table], None] | None = None,
    share_bytes: int = SHARE_BYTES,
) -> Judgeable:
    """Decode what is not decoded, put it together, and observe it. `take` is given the frames, in their
    order."""
    for split in splits.values():
        kept.survey(split)
    ground = kept.ground(SplitReader(splits, {}).data(min(splits)), splits.values())
    for split, turns in kept.in_turns(splits, ground):
        kept.decode(split, splits, ground, turns)
    left = {number: kept.left(number) for number in splits}
    flows = by_flow(part for each in left.values() for part in each.flows)
    with KeptReader(splits, ground, kept.folder) as reader:
        stitched = stitch_flows(flows, reader, kept.hints)
    about = wire(ground, (each.remarks for each in left.values()))
    holes = pa.concat_tables([HOLES.empty_table(), *stitched.holes])
    streams = pa.concat_tables([STREAMS.empty_table(), *stitched.streams])
    found: list[Events] = []
    counts = [0, 0]
    for frames, own in _shares(splits, kept, stitched, streams, share_bytes):
        remoting = pc.sum(pc.equal(frames.column("protocol"), REMOTING)).as_py() or 0
        counts = [counts[0] + remoting, counts[1] + frames.num_rows - remoting]
        connections = pc.field("connection").isin(pa.array(own, pa.string()))
        found.append(observe(frames, holes.filter(connections), streams.filter(connections)))
        if take is not None:
            take(frames)
    events = {
        kind: in_order(pa.concat_tables([schema.empty_table(), *(each[kind] for each in found)]))
        for kind, schema in SCHEMAS.items()
    }
    return Judgeable((counts[0], counts[1]), holes, streams, about, events)


def _shares(
    splits: Mapping[int, Split], kept: KeptSegments, stitched: Stitched, streams: pa.Table, share_bytes: int
) -> Iterator[tuple[pa.Table, list[str]]]:
    """The frames of each share, sorted, and its connections."""
    shares = _cut(streams, share_bytes)
    placed = pa.concat_tables([PLACEMENTS.empty_table(), *stitched.placements])
    by_split = placed.sort_by("split").combine_chunks()
    numbers = np.asarray(by_split["split"])

    def parts() -> Iterator[pa.Table]:
        for number in splits:
            first, behind = np.searchsorted(numbers, [number, number + 1]).tolist()
            yield placed_frames(kept.frames(number), by_split.slice(first, behind - first))
        yield from stitched.frames

    order = [(name, "ascending") for name in FRAMES_ORDER]
    if len(shares) <= 1:
        table = pa.concat_tables([FRAMES.empty_table(), *parts()])
        yield table.sort_by(order), shares[0] if shares else []
        return
    with tempfile.TemporaryDirectory(prefix="replispec-shares-") as folder:
        files = _sorted_out(parts(), shares, Path(folder))
        for own, file in zip(shares, files, strict=True):
            with pa.memory_map(str(file)) as mapped:
                table = pa.ipc.open_file(mapped).read_all()
                yield table.sort_by(order), own
            file.unlink()


def _cut(streams: pa.Table, share_bytes: int) -> list[list[str]]:
    """The connections in shares, in order."""
    sizes = streams.group_by("connection").aggregate([("bytes_decoded", "sum")]).sort_by("connection")
    shares: list[list[str]] = []
    room = 0
    for connection, size in zip(
        sizes["connection"].to_pylist(), sizes["bytes_decoded_sum"].to_pylist(), strict=True
    ):
        if not shares or size > room:
            shares.append([])
            room = share_bytes
        shares[-1].append(connection)
        room -= size
    return shares


def _sorted_out(parts: Iterator[pa.Table], shares: Sequence[Sequence[str]], folder: Path) -> list[Path]:
    """Write each frame to the file of its share."""
    last = pa.array([share[-1] for share in shares]).to_numpy(zero_copy_only=False)
    files = [folder / str(number) for number in range(len(shares))]
    with ExitStack() as stack:
        writers = [stack.enter_context(pa.ipc.new_file(file, FRAMES)) for file in files]
        for part in parts:
            encoded = part["connection"].combine_chunks().dictionary_encode()
            if isinstance(encoded, pa.ChunkedArray):
                encoded = encoded.combine_chunks()
            share = np.searchsorted(last, encoded.dictionary.to_numpy(zero_copy_only=False))
            of_row = share[np.asarray(encoded.indices)] if len(share) else np.zeros(0, np.int64)
            for number in np.unique(of_row).tolist():
                writers[number].write_table(part.take(pa.array(np.flatnonzero(of_row == number))))
    return files
