"""The stage of the Spark engine after the frames: events, by parts of the connections of captures.

No frame passes through the JVM as a row: what a file of frames has of a part is one Arrow stream, without
bodies. Each part is observed by one task, which writes its events; what is rare of them goes on to where its
capture is judged. A connection with many frames is laid out before (spark_shares.py). The folders must be
seen by all workers.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from replispec.replay.capture.records import Integers
from replispec.replay.engines.results import events_file
from replispec.replay.engines.spark_files import keep, unfinished_file
from replispec.replay.engines.spark_parts import (
    PARTS_A_CORE,
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
    squeezed,
    to_bytes,
)
from replispec.replay.engines.spark_shares import (
    HOLES_NAME,
    PARTS_NAME,
    STREAMS_NAME,
    Folders,
    files_of,
    frame_files,
    lay_out,
    look_at_share,
    of_slot,
    read_frames,
    to_shares,
)
from replispec.replay.engines.spark_tasks import mapped
from replispec.replay.events.capture_events import MANY
from replispec.replay.events.observe import gathered, observe
from replispec.replay.events.shares import NOWHERE
from replispec.replay.events.tables import SCHEMAS, Events, joined_events
from replispec.replay.frames.tables import FRAMES

WITHOUT_BODIES: pa.Schema = pa.schema([each for each in FRAMES if each.name != "body"])
# A task reads so many frames before it hands on what each part gets of them.
FRAMES_AT_ONCE = 1 << 16
FILES_A_TASK = 8
COUNTS = "counts"
"""The name of the row that says how many frequent events a part has; other rows are named by their kind."""


def observed(
    spark: SparkSession, folders: Folders, parts: Parts, holes: pa.Table, streams: pa.Table
) -> DataFrame:
    """Write the events of all captures, and give the rare ones as rows of PASSED, by captures.

    `holes` and `streams` (HOLES, STREAMS) have rows for each direction: they are put into the folder
    `passing`, where each worker reads what its part needs.
    """
    make_folders(folders.out)
    keep(folders.passing / PARTS_NAME, parts)
    for table, name in ((holes, HOLES_NAME), (streams, STREAMS_NAME)):
        _keep_by_slots(table, folders.passing / name, parts)
    tasks = _reading_tasks(spark, len(frame_files(folders)))
    lay_out(spark, folders, parts, tasks)

    def cut(batches: Batches) -> Batches:
        for number in numbers_in(batches):
            yield from _cut(folders, number, tasks)

    def look(batches: Batches) -> Batches:
        yield as_batch(list(_observed(folders, rows_in(batches))))

    pieces = mapped(passed(spark, tasks), cut, spark_schema(PASSED))
    return mapped(pieces.repartitionById(max(1, parts.slots), "slot"), look, spark_schema(PASSED))


def _slots(table: pa.Table, parts: Parts) -> Integers:
    """The slot of each row, of any captures: that of its connection, or its first one."""
    slots = np.zeros(table.num_rows, np.int64)
    if not table.num_rows:
        return slots
    captures = table.column("capture").combine_chunks().dictionary_encode()
    connections = table.column("connection").combine_chunks().dictionary_encode()
    names = connections.dictionary.to_pylist()
    for at, capture in enumerate(captures.dictionary.to_pylist()):
        rows = np.flatnonzero(np.asarray(captures.indices) == at)
        slots[rows] = parts.slots_of(capture, names)[np.asarray(connections.indices)[rows]]
    return slots


def _by_slots(table: pa.Table, slots: Integers) -> Iterator[tuple[int, pa.Table]]:
    """What of the rows each slot has."""
    if not table.num_rows:
        return
    order = np.argsort(slots, kind="stable")
    borders = np.flatnonzero(np.diff(slots[order])) + 1
    for rows in np.split(order, borders):
        if slots[rows[0]] != NOWHERE:
            yield int(slots[rows[0]]), table.take(pa.array(rows))


def _keep_by_slots(table: pa.Table, path: Path, parts: Parts) -> None:
    """Write the rows of each slot as a batch, whose number is the slot's."""
    found = dict(_by_slots(table, _slots(table, parts)))
    with pa.ipc.new_file(path, table.schema) as writer:
        for slot in range(parts.slots):
            own = found.get(slot, table.schema.empty_table()).combine_chunks()
            batches = own.to_batches() or [pa.RecordBatch.from_pylist([], table.schema)]
            assert len(batches) == 1, "combined chunks are one batch"
            writer.write_batch(batches[0])


def _reading_tasks(spark: SparkSession, files: int) -> int:
    """How many tasks read the files of frames: some of these are small."""
    return max(
        1, min(files, max(PARTS_A_CORE * spark.sparkContext.defaultParallelism, files // FILES_A_TASK))
    )


def _cut(folders: Folders, number: int, tasks: int) -> Batches:
    """What the parts get of the files of frames that one of so many tasks reads."""
    parts = folders.parts()
    if number == 0:
        # A share may have something to tell without any frame.
        nothing = to_bytes([], WITHOUT_BODIES)
        yield as_batch([(slot, each.number, "", nothing) for each, own in parts.shared() for slot in own])
    files = files_of(folders, number, tasks)
    for table in read_frames(files, WITHOUT_BODIES.names, FRAMES_AT_ONCE):
        for slot, own in _by_slots(table, to_shares(folders, parts, table, _slots(table, parts))):
            payload = to_bytes([own], WITHOUT_BODIES)
            yield as_batch([(slot, parts.owner(slot).number, "", payload)])


def _observed(folders: Folders, rows: Iterator[Passed]) -> Iterator[Passed]:
    """The rare events of one part, if it has any frame, and how many others there are."""
    pieces = [(slot, from_bytes(payload)) for slot, _, _, payload in rows]
    if not pieces:
        return
    slot = pieces[0][0]
    assert all(each == slot for each, _ in pieces), "a partition is one slot"
    owner = folders.parts().owner(slot)
    holes, streams = (of_slot(folders.passing / name, slot) for name in (HOLES_NAME, STREAMS_NAME))
    frames = pa.concat_tables([table for _, table in pieces])
    pieces.clear()
    if owner.shares_at(slot) is None:
        events = observe(frames, holes, streams)
    else:
        events = gathered(look_at_share(folders, slot, frames, holes, streams))
    del frames
    write_events(events, folders.out, owner.number, slot - owner.first)
    frequent = sum(events[kind].num_rows for kind in MANY)
    yield owner.number, owner.number, COUNTS, squeezed(frequent)
    for kind, table in events.items():
        if kind not in MANY and table.num_rows:
            yield owner.number, owner.number, str(kind), to_bytes([table], SCHEMAS[kind])


def make_folders(out: Path) -> None:
    """Make a folder for each kind, with a part without rows: all kinds can be read, whatever there is."""
    for kind, schema in SCHEMAS.items():
        folder = events_file(out, kind)
        folder.mkdir(parents=True)
        pq.write_table(schema.empty_table(), folder / "part-none.parquet")


def write_events(events: Events, out: Path, capture: int, part: int) -> None:
    """Write the events of a part of a capture, a file of each kind that has any.

    A file takes its name when it is whole: a task may be run again, or twice at once.
    """
    for kind, table in events.items():
        if table.num_rows:
            path = events_file(out, kind) / _file_name(capture, part)
            unfinished = unfinished_file(path)
            pq.write_table(table, unfinished)
            unfinished.replace(path)


def read_events(out: Path, capture: int, parts: range) -> Events:
    """The events of some parts of a capture, in the order of the whole."""
    return joined_events(
        (kind, pq.ParquetFile(path).read())
        for kind in SCHEMAS
        for part in parts
        if (path := events_file(out, kind) / _file_name(capture, part)).exists()
    )


def _file_name(capture: int, part: int) -> str:
    return f"part-{capture:05d}-{part:05d}.parquet"
