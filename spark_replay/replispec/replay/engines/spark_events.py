"""The stages of the Spark engine after the frames: events by connection, judgement by capture.

Both run the plain functions of `observe.py` and `results.py` on the executors. Frames are shuffled by
connection as rows without bodies; events by capture, a table as one row.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 (the name everybody knows)
from pyspark.sql.pandas.types import from_arrow_schema

from replispec.replay.engines.family import judged
from replispec.replay.engines.results import CaptureResult, Options, events_file
from replispec.replay.engines.spark_frames import unfinished_file
from replispec.replay.events.observation import ObservationKind
from replispec.replay.events.observe import observe
from replispec.replay.events.tables import SCHEMAS, Events, joined_events, no_events
from replispec.replay.report.summary import CaptureRow

# Connections are observed in this many groups: one group per connection costs twice the CPU.
BUCKETS = 64
# The events of one kind from one group of connections, as an Arrow stream.
EVENTS = pa.schema([("capture", pa.string()), ("kind", pa.string()), ("payload", pa.binary())])
_RESULTS = pa.schema([("result", pa.binary())])


def observed(frames: DataFrame, holes: pa.Table, streams: pa.Table) -> DataFrame:
    """The events of all captures in `frames` (FRAMES), as rows of EVENTS.

    `holes` and `streams` (HOLES, STREAMS) of the same captures travel to the executors whole: they have
    one row a direction.
    """
    bucket = F.pmod(F.xxhash64("connection"), F.lit(BUCKETS))
    grouped = frames.drop("body").withColumn("bucket", bucket).groupBy("capture", "bucket")
    return grouped.applyInArrow(_observer(holes, streams), from_arrow_schema(EVENTS))


def _observer(holes: pa.Table, streams: pa.Table) -> Callable[[pa.Table], pa.Table]:
    def observe_bucket(frames: pa.Table) -> pa.Table:
        capture = frames.column("capture")[0]
        connections = pc.unique(frames.column("connection"))
        own = (pc.field("capture") == capture) & pc.field("connection").isin(connections)
        events = observe(frames.drop_columns(["bucket"]), holes.filter(own), streams.filter(own))
        return _packed(capture.as_py(), events)

    return observe_bucket


def _packed(capture: str, events: Events) -> pa.Table:
    """Events as rows of EVENTS; kinds without any have none."""
    found = {kind: table for kind, table in events.items() if table.num_rows}
    payloads = []
    for kind, table in found.items():
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, SCHEMAS[kind]) as writer:
            writer.write_table(table)
        payloads.append(sink.getvalue().to_pybytes())
    return pa.table([[capture] * len(found), list(map(str, found)), payloads], schema=EVENTS)


def unpacked(rows: pa.Table) -> Events:
    """The inverse, for all rows (of EVENTS) of one capture."""
    kinds, payloads = rows.column("kind").to_pylist(), rows.column("payload")
    return joined_events(
        (ObservationKind(kind), pa.ipc.open_stream(payload.as_buffer()).read_all())
        for kind, payload in zip(kinds, payloads, strict=True)
    )


def judgements(
    events: DataFrame, captures: Mapping[str, CaptureRow], options: Options, out: Path
) -> dict[str, CaptureResult]:
    """What each capture comes to, by file name; its events are written below `out`.

    Captures without any event are judged here.
    """
    make_folders(out)
    grouped = events.groupBy("capture")
    judge = _judge(captures, options, out.absolute())
    rows = grouped.applyInArrow(judge, from_arrow_schema(_RESULTS)).collect()
    results = [pickle.loads(row.result) for row in rows]
    found = {result.capture.file: result for result in results}
    for file, capture in captures.items():
        if file not in found:
            found[file] = judged(capture, no_events(), options)
    return found


def _judge(captures: Mapping[str, CaptureRow], options: Options, out: Path) -> Callable[[pa.Table], pa.Table]:
    numbers = {file: number for number, file in enumerate(captures)}

    def judge_events(rows: pa.Table) -> pa.Table:
        file = rows.column("capture")[0].as_py()
        events = unpacked(rows)
        write_events(events, out, numbers[file])
        result = judged(captures[file], events, options)
        return pa.table({"result": [pickle.dumps(result)]}, schema=_RESULTS)

    return judge_events


def make_folders(out: Path) -> None:
    """Make a folder for each kind, with a part without rows: all kinds can be read, whatever there is."""
    for kind, schema in SCHEMAS.items():
        folder = events_file(out, kind)
        folder.mkdir(parents=True)
        pq.write_table(schema.empty_table(), folder / "part-none.parquet")


def write_events(events: Events, out: Path, number: int) -> None:
    """Write the events of one capture, a part of each kind that has any.

    A part takes its name when it is whole: a task may be run again, or twice at once.
    """
    for kind, table in events.items():
        if table.num_rows:
            part = events_file(out, kind) / f"part-{number:05d}.parquet"
            unfinished = unfinished_file(part)
            pq.write_table(table, unfinished)
            unfinished.replace(part)
