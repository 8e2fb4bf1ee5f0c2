"""Frames of captures as Spark DataFrames: decoded inside the splits, stitched from what is left.

One pass decodes each split in a Python worker and writes its frames, with a few rows about what crosses
the split's borders, to a staging folder; only those rows are shuffled. A second, small pass stitches them.
The rows are those of `local.decode_capture` for each capture.
"""

from __future__ import annotations

import pickle
import tempfile
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import astuple, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (the name everybody knows)
from pyspark.sql.pandas.types import from_arrow_schema

from replispec.replay.by_splits import PLACEMENTS, SplitReader, by_flow, stitch_flows
from replispec.replay.capture_records import CaptureWarning, Split
from replispec.replay.classify import Hints
from replispec.replay.frames import FRAMES, HOLES, STREAMS
from replispec.replay.local import remarked
from replispec.replay.packets import Remarks
from replispec.replay.rotation import Source, name_of, open_rotation
from replispec.replay.split import CHAINED_FRAMES, FlowPart, decode_split

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

SPLIT_BYTES = 32 << 20
BUCKETS_MAXIMUM = 256
# What a split leaves: rows of frames, and rows of `payload` (the flow parts of a bucket) without a frame.
STAGED: pa.Schema = CHAINED_FRAMES.append(pa.field("bucket", pa.int32())).append(
    pa.field("payload", pa.binary())
)
STITCHED: pa.Schema = pa.schema([pa.field("table", pa.string()), pa.field("payload", pa.binary())])
REMARKS: pa.Schema = pa.schema(
    [pa.field("split", pa.int32()), *(pa.field(item.name, pa.int64()) for item in fields(Remarks))]
)
Batches = Iterator[pa.RecordBatch]


@dataclass(frozen=True, slots=True)
class SparkFrames:
    """FRAMES, HOLES and STREAMS of all captures, in no order, and what was read around in each.

    The DataFrames read a staging folder: they are usable until the block that made them is left.
    """

    frames: DataFrame
    holes: DataFrame
    streams: DataFrame
    warnings: tuple[tuple[CaptureWarning, ...], ...]


@contextmanager
def decode_on_spark(
    spark: SparkSession,
    sources: Sequence[Source],
    hints: Hints | None = None,
    *,
    split_bytes: int = SPLIT_BYTES,
) -> Iterator[SparkFrames]:
    """Decode captures on Spark. Raises CaptureError for a file that is none, OSError if unreadable."""
    hints = hints or Hints()
    with ExitStack() as stack:
        splits, warnings = _cut(stack, sources, split_bytes)
        remarks: dict[int, Remarks] = defaultdict(Remarks)
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="replispec-spark-")))
        staged = _write(_decoded(spark, splits, hints), folder / "splits")
        left = staged.where(F.col("bucket").isNotNull() & (F.col("bucket") >= 0)).select("bucket", "payload")
        stitched = _write(
            left.groupBy("bucket").applyInArrow(_stitcher(splits, hints), schema=_schema(STITCHED)),
            folder / "stitched",
        )
        for row in _expanded(staged.where("bucket = -1").select("payload"), REMARKS).collect():
            remarks[splits[row["split"]].owner] += Remarks(*row[1:])
        for at, found in sorted(remarks.items()):
            warnings[at].extend(remarked(name_of(sources[at]), found))
        yield SparkFrames(
            frames=_placed(staged, _table(stitched, "placements", PLACEMENTS)).unionByName(
                _table(stitched, "frames", FRAMES)
            ),
            holes=_table(stitched, "holes", HOLES),
            streams=_table(stitched, "streams", STREAMS),
            warnings=tuple(tuple(own) for own in warnings),
        )


def _cut(
    stack: ExitStack, sources: Sequence[Source], split_bytes: int
) -> tuple[dict[int, Split], list[list[CaptureWarning]]]:
    """The splits of all captures by number, and the warnings of each capture.

    A decompressed copy lives as long as the stack.
    """
    splits: dict[int, Split] = {}
    warnings: list[list[CaptureWarning]] = []
    for at, source in enumerate(sources):
        capture = stack.enter_context(open_rotation(source))
        for split in capture.cuts(split_bytes):
            number = len(splits)
            splits[number] = replace(split, number=number, owner=at)
        warnings.append(capture.warnings)
    return splits, warnings


def _schema(schema: pa.Schema) -> StructType:
    return from_arrow_schema(schema)


def _write(frame: DataFrame, folder: Path) -> DataFrame:
    frame.write.parquet(str(folder))
    return frame.sparkSession.read.schema(frame.schema).parquet(str(folder))


def _decoded(spark: SparkSession, splits: dict[int, Split], hints: Hints) -> DataFrame:
    """One task a split, rows as STAGED."""
    buckets = max(1, min(BUCKETS_MAXIMUM, len(splits)))

    def decode(batches: Batches) -> Batches:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from _staged(splits[number], hints, buckets)

    count = max(1, len(splits))
    numbers = spark.range(0, len(splits), 1, numPartitions=count)
    return numbers.mapInArrow(decode, schema=_schema(STAGED))


def _staged(split: Split, hints: Hints, buckets: int) -> Batches:
    """The rows that one split leaves."""
    decoded = decode_split(split, hints)
    for batch in decoded.frames:
        empty = [pa.nulls(batch.num_rows, field.type) for field in list(STAGED)[-2:]]
        yield pa.RecordBatch.from_arrays([*batch.columns, *empty], schema=STAGED)
    parts: dict[int, list[FlowPart]] = {}
    for part in decoded.flows:
        bucket = zlib.crc32(repr((split.owner, part.key)).encode()) % buckets
        parts.setdefault(bucket, []).append(part)
    payloads = {bucket: zlib.compress(pickle.dumps(found, 5), 1) for bucket, found in sorted(parts.items())}
    if decoded.remarks:
        table = pa.table([[split.number], *([count] for count in astuple(decoded.remarks))], schema=REMARKS)
        payloads[-1] = _packed(table)
    if payloads:
        empty = [pa.nulls(len(payloads), field.type) for field in CHAINED_FRAMES]
        rows = [pa.array(payloads.keys(), pa.int32()), pa.array(payloads.values(), pa.binary())]
        yield pa.RecordBatch.from_arrays([*empty, *rows], schema=STAGED)


def _stitcher(splits: dict[int, Split], hints: Hints) -> Callable[[pa.Table], pa.Table]:
    """Stitches one bucket: payloads in, tables as (name, Arrow stream) out."""

    def stitch(table: pa.Table) -> pa.Table:
        flows: dict[int, list[FlowPart]] = {}
        for payload in table.column("payload").to_pylist():
            for part in pickle.loads(zlib.decompress(payload)):
                flows.setdefault(splits[part.split].owner, []).append(part)
        whole = [parts for found in flows.values() for parts in by_flow(found)]
        found = stitch_flows(whole, SplitReader(splits), hints)
        tables = [
            (name, _packed(part))
            for name in ("frames", "placements", "holes", "streams")
            for part in getattr(found, name)
            if part.num_rows
        ]
        names, payloads = [name for name, _ in tables], [payload for _, payload in tables]
        return pa.table([pa.array(names, pa.string()), pa.array(payloads, pa.binary())], schema=STITCHED)

    return stitch


def _packed(table: pa.Table) -> bytes:
    """The table as an Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    packed: bytes = sink.getvalue().to_pybytes()
    return packed


def _table(stitched: DataFrame, name: str, schema: pa.Schema) -> DataFrame:
    return _expanded(stitched.where(F.col("table") == name).select("payload"), schema)


def _expanded(payloads: DataFrame, schema: pa.Schema) -> DataFrame:
    """The rows of Arrow streams, one stream a row."""

    def expand(batches: Batches) -> Batches:
        for batch in batches:
            for payload in batch.column(0).to_pylist():
                yield from pa.ipc.open_stream(payload)

    return payloads.mapInArrow(expand, schema=_schema(schema))


def _placed(staged: DataFrame, placements: DataFrame) -> DataFrame:
    """The frames of the chains that were used, as FRAMES."""
    frames = staged.where(F.col("bucket").isNull()).drop("connection", "from_start", "bucket", "payload")
    joined = frames.join(F.broadcast(placements), ["split", "chain"])
    moved = joined.withColumn("sequence", F.col("sequence") + F.col("start")).withColumn(
        "index", (F.col("index") + F.col("first_index")).cast("int")
    )
    return moved.select(*FRAMES.names)
