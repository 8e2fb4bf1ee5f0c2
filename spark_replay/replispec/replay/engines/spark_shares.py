"""Connections with many frames on Spark: laid out by one task each, then read where their frames are.

A task is given few columns of all frames of such a connection, and leaves in the folder `passing` what each
share has, which frame is in which share, and what the columns told. No other task needs more than a share.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from replispec.replay.capture.arrays import save
from replispec.replay.capture.records import Integers
from replispec.replay.engines.spark_frames import unfinished_file
from replispec.replay.engines.spark_parts import (
    PASSED,
    Batches,
    Parts,
    Passed,
    as_batch,
    from_bytes,
    keep,
    kept,
    numbers_in,
    passed,
    rows_in,
    shared,
    spark_schema,
    to_bytes,
)
from replispec.replay.engines.spark_tasks import mapped
from replispec.replay.events.columns import Observed
from replispec.replay.events.family import shared_observer
from replispec.replay.events.shares import NOWHERE, SharedObserver, dealt
from replispec.replay.frames.tables import FRAMES

HOLES_NAME, STREAMS_NAME, PARTS_NAME = "holes", "streams", "parts"
SIDES = (0, 1)
# A task reads so many frames before it hands on what each connection has of them.
ROWS_AT_ONCE = 1 << 18
# Connections whose places a worker keeps at hand.
PLACES_KEPT = 64


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
            yield from _few_columns(folders, files_of(folders, number, tasks))

    def lay(batches: Batches) -> Batches:
        _lay(folders, rows_in(batches))
        yield as_batch([])

    pieces = mapped(passed(spark, tasks), take, spark_schema(PASSED))
    mapped(pieces.repartitionById(count, "slot"), lay, spark_schema(PASSED)).toArrow()


def _observer() -> SharedObserver:
    found = shared_observer()
    assert found is not None, "only who has one shares connections"
    return found


def _few_columns(folders: Folders, files: Sequence[Path]) -> Batches:
    """What files of frames have of the connections that are shared; their rows are named by their slot."""
    parts = folders.parts()
    columns = list(_observer().columns)
    schema = pa.schema([FRAMES.field(name) for name in columns])
    numbers = {own.start: at for at, (_, own) in enumerate(parts.shared())}
    for table in read_frames(files, columns, ROWS_AT_ONCE):
        for capture, each in parts.captures.items():
            for connection, own in each.shared.items():
                chosen = (pc.field("connection") == connection) & (pc.field("capture") == capture)
                if (found := table.filter(chosen)).num_rows:
                    payload = to_bytes([found], schema)
                    yield as_batch([(numbers[own.start], each.number, str(own.start), payload)])


def read_frames(files: Sequence[Path], columns: Sequence[str], rows: int) -> Iterator[pa.Table]:
    """Columns of files of frames, so many rows at a time."""
    for path in files:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(rows, columns=list(columns)):
                yield pa.Table.from_batches([batch]).select(list(columns))


def _lay(folders: Folders, rows: Iterator[Passed]) -> None:
    """Lay out one connection."""
    tables, slot = [], NOWHERE
    for _, _, name, payload in rows:
        slot = int(name)
        tables.append(from_bytes(payload))
    if not tables:
        return
    holes, streams = (of_slot(folders.passing / name, slot) for name in (HOLES_NAME, STREAMS_NAME))
    together = folders.parts().owner(slot).together
    laid = _observer().lay(pa.concat_tables(tables), holes, streams, together)
    for number, share in enumerate(laid.shares):
        keep(_share(folders, slot + number), share)
    for side, numbers in zip(SIDES, dealt(laid.shares), strict=True):
        path = _places(folders, slot, side)
        unfinished = unfinished_file(path)
        save(numbers.astype(np.int32), unfinished)
        unfinished.replace(path)
    keep(_told(folders, slot), laid.told)


def _share(folders: Folders, slot: int) -> Path:
    return folders.passing / f"share-{slot}"


def _places(folders: Folders, slot: int, side: int) -> Path:
    return folders.passing / f"places-{slot}-{side}.npy"


def _told(folders: Folders, slot: int) -> Path:
    return folders.passing / f"told-{slot}"


@lru_cache(maxsize=PLACES_KEPT)
def _read_places(path: Path) -> Integers:
    found: Integers = np.load(path, mmap_mode="r")
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
            numbers = _read_places(_places(folders, first, direction))
            number = np.full(len(rows), NOWHERE, np.int64)
            inside = index[rows] < len(numbers)
            number[inside] = numbers[index[rows[inside]]]
            found[rows] = np.where(number == NOWHERE, NOWHERE, first + number)
    return found


def look_at_share(
    folders: Folders, slot: int, frames: pa.Table, streams: pa.Table, *, is_first: bool
) -> list[Observed]:
    """What a share tells; the first one of a connection with what its columns told."""
    found = [_observer().look(frames, streams, kept(_share(folders, slot)))]
    return [*found, kept(_told(folders, slot))] if is_first else found
