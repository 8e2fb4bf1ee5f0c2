"""What workers of Spark run for a replay: nothing before they have shown that they judge as we do.

A cluster is asked once before it is given work, and workers may join it, or be replaced, at any time after.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from replispec.replay.engines.cluster import OTHER_WORKER, Cluster
from replispec.replay.engines.packing import identity

Batches = Iterator[pa.RecordBatch]
Run = Callable[[Batches], Batches]
_own = cache(identity)


def mapped(rows: DataFrame, run: Run, schema: StructType) -> DataFrame:
    """What workers make of the rows. One that has another replispec than this process raises RuntimeError:
    Spark gives its task to another worker, and gives up after some."""
    return rows.mapInArrow(_checked(rows.sparkSession, run), schema)


def _checked(spark: SparkSession, run: Run) -> Run:
    if Cluster(spark.sparkContext.master or "").is_here:
        return run
    expected = _own()

    def checked(batches: Batches) -> Batches:
        must_be(expected)
        yield from run(batches)

    return checked


def must_be(expected: str) -> None:
    """Raises RuntimeError unless `packing.identity` says this in the process that runs it."""
    if (has := _own()) != expected:
        raise RuntimeError(f"{OTHER_WORKER} ({has}, {expected})")
