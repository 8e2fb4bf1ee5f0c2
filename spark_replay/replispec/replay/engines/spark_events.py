"""The stages of the Spark engine after the frames: observations by connection, judgement by capture.

Both run the plain functions of `observe.py` and `run.py` on the executors. Frames are shuffled by
connection as rows without bodies; observations by capture.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 (the name everybody knows)
from pyspark.sql.pandas.types import from_arrow_schema

from replispec.replay.engines.results import CaptureResult, Options, judged
from replispec.replay.events.observation import SCHEMA
from replispec.replay.events.observe import observe
from replispec.replay.report.summary import CaptureRow

# Connections are observed in this many groups: one group per connection costs twice the CPU.
BUCKETS = 64
_RESULTS = pa.schema([("result", pa.binary())])


def observed(frames: DataFrame, holes: pa.Table, streams: pa.Table) -> DataFrame:
    """One row per observation (SCHEMA) of all captures in `frames` (FRAMES).

    `holes` and `streams` (HOLES, STREAMS) of the same captures travel to the executors whole: they have
    one row a direction.
    """
    bucket = F.pmod(F.xxhash64("connection"), F.lit(BUCKETS))
    grouped = frames.drop("body").withColumn("bucket", bucket).groupBy("capture", "bucket")
    return grouped.applyInArrow(_observer(holes, streams), from_arrow_schema(SCHEMA))


def _observer(holes: pa.Table, streams: pa.Table) -> Callable[[pa.Table], pa.Table]:
    def observe_bucket(frames: pa.Table) -> pa.Table:
        capture = frames.column("capture")[0]
        connections = pc.unique(frames.column("connection"))
        own = (pc.field("capture") == capture) & pc.field("connection").isin(connections)
        return observe(frames.drop_columns(["bucket"]), holes.filter(own), streams.filter(own))

    return observe_bucket


def judgements(
    events: DataFrame, captures: Mapping[str, CaptureRow], options: Options
) -> dict[str, CaptureResult]:
    """What each capture comes to, by file name; captures without any observation are judged here."""
    grouped = events.groupBy("capture")
    rows = grouped.applyInArrow(_judge(captures, options), from_arrow_schema(_RESULTS)).collect()
    results = [pickle.loads(row.result) for row in rows]
    found = {result.capture.file: result for result in results}
    for file, capture in captures.items():
        if file not in found:
            found[file] = judged(capture, SCHEMA.empty_table(), options)
    return found


def _judge(captures: Mapping[str, CaptureRow], options: Options) -> Callable[[pa.Table], pa.Table]:
    def judge_events(events: pa.Table) -> pa.Table:
        capture = captures[events.column("capture")[0].as_py()]
        result = judged(capture, events, options)
        return pa.table({"result": [pickle.dumps(result)]}, schema=_RESULTS)

    return judge_events
