"""Connections with many frames on Spark: laid out by one task each, then read where their frames are.

A task is given files with few columns of the frames of such a connection, and leaves in the folder `passing`
what each share has, what the columns told that goes with it, and which frame is in which share. It holds a
window of the connection; no other task needs more than a share.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from replispec.replay.capture.records import Integers
from replispec.replay.engines.spark_files import keep, kept, shared, unfinished_file
from replispec.replay.engines.spark_parts import (
    PASSED,
    Batches,
    Parts,
    Passed,
    as_batch,
    from_bytes,
    numbers_in,
    passed,
    rows_in,
    spark_schema,
    to_bytes,
)
from replispec.replay.engines.spark_tasks import mapped
from replispec.replay.events.columns import Observed
from replispec.replay.events.family import observe_guests, shared_observers
from replispec.replay.events.shares import NOWHERE, NUMBER_KIND, Laid, Long, SharedObserver, note_share

HOLES_NAME, STREAMS_NAME, PARTS_NAME = "holes", "streams", "parts"
SIDES = (0, 1)
# A task reads so many frames before it hands on what each connection has of them.
ROWS_AT_ONCE = 1 << 16
# Directions of which a worker keeps at hand which share has which frame.
NUMBERS_KEPT = 64


@dataclass(frozen=True, slots=True)
class Folders:
    """Where things lie: `frames` and `out` (with a folder of events) are results, `passing` goes away."""

    frames: Path
    out: Path
    passing: Path

    def parts(self) -> Parts:
        """The parts of all captures."""
        found: Parts = shared(self.passing / PARTS_NAME)
        return found


def frame_files(folders: Folders) -> list[Path]:
    """The files of frames, in one order for all tasks."""
    return sorted(folders.frames.glob("part-*.parquet"))


def files_of(folders: Folders, number: int, tasks: int) -> list[Path]:
    """The files of frames that one of so many tasks reads, one after the other."""
    return frame_files(folders)[number::tasks]


def of_slot(path: Path, slot: int) -> pa.Table:
    """The rows of a slot, in a file that has a batch for each."""
    with pa.memory_map(str(path)) as file, pa.ipc.open_file(file) as reader:
        return pa.Table.from_batches([reader.get_batch(slot)])


def lay_out(spark: SparkSession, folders: Folders, parts: Parts, tasks: int) -> None:
    """Lay out every connection that is observed in shares; PARTS, HOLES and STREAMS lie in their folder."""
    count = len(parts.shared())
    if not count:
        return

    def take(batches: Batches) -> Batches:
        for number in numbers_in(batches):
            yield as_batch(list(_few_columns(folders, number, tasks)))

    def lay(batches: Batches) -> Batches:
        _lay(folders, rows_in(batches))
        yield as_batch([])

    pieces = mapped(passed(spark, tasks), take, spark_schema(PASSED))
    mapped(pieces.repartitionById(count, "slot"), lay, spark_schema(PASSED)).toArrow()


def _observer(folders: Folders, first: int) -> SharedObserver:
    """Who observes the connection whose shares begin at a slot."""
    streams = of_slot(folders.passing / STREAMS_NAME, first)
    kinds = {*streams.filter(pc.field("frames") > 0).column("protocol").to_pylist()}
    return next(each for each in shared_observers() if kinds <= {*each.kinds})


def _few_columns(folders: Folders, number: int, tasks: int) -> Iterator[Passed]:
    """Files of what the files of frames of one of so many tasks have of the connections that are shared."""
    parts = folders.parts()
    every = [name for each in shared_observers() for name in each.columns]
    columns = {own.start: list(_observer(folders, own.start).columns) for _, own in parts.shared()}
    places = {own.start: at for at, (_, own) in enumerate(parts.shared())}
    names = list(dict.fromkeys(["capture", "connection", *every]))
    for at, table in enumerate(read_frames(files_of(folders, number, tasks), names, ROWS_AT_ONCE)):
        for capture, each in parts.captures.items():
            for connection, own in each.shared.items():
                chosen = (pc.field("connection") == connection) & (pc.field("capture") == capture)
                if (found := table.filter(chosen)).num_rows:
                    # A task may run again, elsewhere: its files have the same names then.
                    path = folders.passing / f"columns-{own.start}-{number}-{at}"
                    unfinished = unfinished_file(path)
                    few = found.select(columns[own.start])
                    unfinished.write_bytes(to_bytes([few], few.schema))
                    unfinished.replace(path)
                    yield places[own.start], each.number, str(own.start), path.name.encode()


def read_frames(files: Sequence[Path], columns: Sequence[str], rows: int) -> Iterator[pa.Table]:
    """Columns of files of frames, so many rows at a time."""
    for path in files:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(rows, columns=list(columns)):
                yield pa.Table.from_batches([batch]).select(list(columns))


def _lay(folders: Folders, rows: Iterator[Passed]) -> None:
    """Lay out one connection: its files are read one after the other."""
    found = [(int(name), folders.passing / payload.decode()) for _, _, name, payload in rows]
    if not found:
        return
    slot = found[0][0]
    holes, streams = (of_slot(folders.passing / name, slot) for name in (HOLES_NAME, STREAMS_NAME))
    pieces = (from_bytes(path.read_bytes()) for _, path in found)
    together = folders.parts().owner(slot).together
    with tempfile.TemporaryDirectory(prefix="replispec-layout-") as folder:
        numbers = [Path(folder) / f"numbers-{side}" for side in SIDES]
        for laid in _observer(folders, slot).lay(Long(pieces, holes, streams, together, Path(folder))):
            keep(_share(folders, slot + laid.number), laid)
            note_share(laid, numbers)
        for side in SIDES:
            unfinished = unfinished_file(_numbers(folders, slot, side))
            shutil.copyfile(numbers[side], unfinished)
            unfinished.replace(_numbers(folders, slot, side))


def _share(folders: Folders, slot: int) -> Path:
    return folders.passing / f"share-{slot}"


def _numbers(folders: Folders, slot: int, side: int) -> Path:
    return folders.passing / f"numbers-{slot}-{side}"


@lru_cache(maxsize=NUMBERS_KEPT)
def _read_numbers(path: Path) -> Integers:
    size = path.stat().st_size
    found: Integers = np.memmap(path, NUMBER_KIND, "r") if size else np.zeros(0, NUMBER_KIND)
    return found


def to_shares(folders: Folders, parts: Parts, frames: pa.Table, slots: Integers) -> Integers:
    """The slots of frames, those of a connection that is shared in the slots of their shares: NOWHERE for
    what no share asks for. `slots`: of their connections."""
    firsts = {own.start for _, own in parts.shared()}
    found = slots.copy()
    if not firsts:
        return found
    side, index = (np.asarray(frames.column(name)).astype(np.int64) for name in ("direction", "index"))
    for first in np.intersect1d(slots, sorted(firsts)).tolist():
        for direction in SIDES:
            rows = np.flatnonzero((slots == first) & (side == direction))
            numbers = _read_numbers(_numbers(folders, first, direction))
            number = np.full(len(rows), NOWHERE, np.int64)
            inside = index[rows] < len(numbers)
            number[inside] = numbers[index[rows[inside]]].astype(np.int64) - 1
            found[rows] = np.where(number == NOWHERE, NOWHERE, first + number)
    return found


def look_at_share(
    folders: Folders, slot: int, frames: pa.Table, holes: pa.Table, streams: pa.Table
) -> list[Observed]:
    """What a share tells, and what the columns of its connection told that goes with it. What guests say on
    the connection is rare there: share 0 has it."""
    path = _share(folders, slot)
    if not path.exists():
        # There are as many as the answers of a connection need, and slots for as many as its frames may.
        return []
    laid: Laid = kept(path)
    own = folders.parts().owner(slot).shares_at(slot)
    assert own is not None, "a share is one of some"
    told = [_observer(folders, own.start).look(frames, streams, laid.share), laid.told]
    if laid.number == 0:
        told += observe_guests(frames, holes, streams)
    return told
