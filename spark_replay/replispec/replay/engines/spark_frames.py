"""Frames of captures on Spark: decoded inside the splits, stitched from what is left, written where they are.

No frame passes through the JVM. One pass decodes each split in a Python worker, which puts its frames into a
staging folder and hands on a few rows about what crosses the split's borders; only those are shuffled, and
stitched. A second pass gives the staged frames their places and writes them as Parquet. The folders must be
seen by every worker. The rows are those of `local.decode_capture` for each capture.
"""

from __future__ import annotations

import os
import pickle
import re
import shutil
import tempfile
import zlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from replispec.replay.capture.records import ALL_TIME, CaptureWarning, Split, Window
from replispec.replay.engines.by_splits import (
    PLACEMENTS,
    KeptOutlines,
    SplitReader,
    by_flow,
    crossing_flows,
    joined_flows,
    keep_turns,
    outlines_file,
    packets_files,
    placed_frames,
    stitch_flows,
    turns_of_splits,
)
from replispec.replay.engines.decoding import remarked
from replispec.replay.engines.spark_cuts import Walks, walked_on_spark
from replispec.replay.engines.spark_files import unfinished_file
from replispec.replay.engines.spark_tasks import mapped
from replispec.replay.engines.split import CHAINED_FRAMES, FlowPart, WholeConnections, decode_split
from replispec.replay.frames.hints import Hints
from replispec.replay.frames.tables import FRAMES, HOLES, STREAMS
from replispec.replay.report.evidence import NumberedSplit, numbered_splits
from replispec.replay.tcp.doubts import outlines
from replispec.replay.tcp.flows import FlowKey, group
from replispec.replay.tcp.ground import Ground, Survey, Wire, keep_packets, lay_ground, survey, wire
from replispec.replay.tcp.packets import no_packets
from replispec.replay.tcp.remarks import NO_REMARKS, Remarks
from replispec.replay.tcp.rotation import Rotation, Source, name_of, open_rotation

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

SPLIT_BYTES = 32 << 20
# Splits smaller than this are made only when they are asked for.
EVEN_SPLIT_BYTES_MINIMUM = 1 << 20
# So many splits share a bucket of flows that one task stitches, unless there are too few buckets to go round.
SPLITS_A_BUCKET = 8
# Of so many flows one task holds what splits know: some 8 KB of each, of each split.
FLOWS_A_BUCKET = 1 << 12
BUCKETS_MAXIMUM = 256
REMARKS: pa.Schema = pa.schema(
    [pa.field("split", pa.int32()), pa.field("name", pa.string()), pa.field("count", pa.int64())]
)
COUNTS: pa.Schema = pa.schema(
    [pa.field("capture", pa.string()), pa.field("protocol", pa.string()), pa.field("count", pa.int64())]
)
# What a split leaves: the flow parts of a bucket for the stitch, and in any bucket what needs none.
LEFT: pa.Schema = pa.schema(
    [pa.field("bucket", pa.int32()), pa.field("table", pa.string()), pa.field("payload", pa.binary())]
)
FLOWS = "flows"
# What tasks answer: rows of the named table as an Arrow stream.
ANSWERS: pa.Schema = pa.schema([pa.field("table", pa.string()), pa.field("payload", pa.binary())])
TABLES = {
    "placements": PLACEMENTS,
    "holes": HOLES,
    "streams": STREAMS,
    "remarks": REMARKS,
    "counts": COUNTS,
}
Batches = Iterator[pa.RecordBatch]


@dataclass(frozen=True, slots=True)
class SparkFrames:
    """FRAMES of all captures as a DataFrame on Parquet files, in no order; HOLES and STREAMS, one row a
    direction; how many frames each (capture, protocol) has; and of each capture what was read around,
    what its packets are, and the numbers of these by splits."""

    frames: DataFrame
    holes: pa.Table
    streams: pa.Table
    counts: dict[tuple[str, str], int]
    warnings: tuple[tuple[CaptureWarning, ...], ...]
    wires: tuple[Wire, ...]
    numbered: Mapping[str, list[NumberedSplit]]


@dataclass(frozen=True, slots=True)
class _Plan:
    """All splits, and the ground of each capture, without its packets: these are in the staging folder."""

    splits: dict[int, Split]
    grounds: dict[int, Ground]


@dataclass(frozen=True, slots=True)
class _Job:
    """What every task is told, which is as much for any input: the plan is read from the staging folder.

    `staging`, `folder`: where frames without and with their places go. `stage`: which plan is meant.
    """

    hints: Hints
    staging: Path
    folder: Path
    buckets: int
    stage: str

    def keep(self, plan: _Plan) -> None:
        """Let tasks read this plan."""
        with _whole(self._plan) as path:
            path.write_bytes(pickle.dumps(plan, 5))

    def plan(self) -> _Plan:
        """The plan, which a worker reads once."""
        return _read_plan(self._plan)

    @property
    def _plan(self) -> Path:
        return self.staging / f"plan-{self.stage}"


@lru_cache(maxsize=1)
def _read_plan(path: Path) -> _Plan:
    plan: _Plan = pickle.loads(path.read_bytes())
    return plan


def decode_on_spark(
    spark: SparkSession,
    sources: Sequence[Source],
    folder: Path,
    hints: Hints | None = None,
    *,
    split_bytes: int = SPLIT_BYTES,
    window: Window = ALL_TIME,
    opened: Sequence[Rotation] | None = None,
) -> SparkFrames:
    """Decode captures on Spark and write their frames into `folder`, which is replaced.

    `split_bytes`: how large a split may be; all are made a little smaller, so that every core has as
    many. `opened`: the captures, where they are open already. Raises CaptureError for a file that is none,
    OSError if one cannot be read.
    """
    cores = spark.sparkContext.defaultParallelism
    with ExitStack() as stack:
        staging = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="replispec-spark-")))
        captures = opened
        if captures is None:
            captures = [stack.enter_context(open_rotation(source, window)) for source in sources]
        files = [file for capture in captures for file in capture.files]
        even = _even_split(sum(len(file.data) for file in files), split_bytes, cores)
        splits = _numbered(captures, even, walked_on_spark(spark, staging, files, even))
        warnings = [capture.warnings for capture in captures]
        _make_empty(folder)
        buckets = buckets_of(cores, len(splits))
        surveyed = _Job(hints or Hints(), staging, folder.absolute(), buckets, "surveyed")
        surveyed.keep(_Plan(splits, {}))
        grounds, records, crossing = _grounds(spark, surveyed)
        light = {at: replace(ground, joined=None, remarks=NO_REMARKS) for at, ground in grounds.items()}
        buckets = buckets_of(cores, len(splits), crossing)
        job = replace(surveyed, stage="grounded", buckets=buckets)
        job.keep(_Plan(splits, light))
        found = _answers(_stitched(spark, job))
        with pa.ipc.new_file(staging / "placements", PLACEMENTS) as writer:
            writer.write_table(found["placements"])
        counts: dict[tuple[str, str], int] = defaultdict(int)
        for table in (found["counts"], _answers(_placed(spark, job, max(2 * cores, buckets)))["counts"]):
            for row in table.to_pylist():
                counts[row["capture"], row["protocol"]] += row["count"]
    remarks: dict[int, list[Remarks]] = defaultdict(list)
    for row in found["remarks"].to_pylist():
        remarks[splits[row["split"]].owner].append(Remarks({row["name"]: row["count"]}))
    wires = tuple(wire(grounds[at], remarks[at]) for at in range(len(sources)))
    for source, own, about in zip(sources, warnings, wires, strict=True):
        own.extend(remarked(name_of(source), about.remarks))
    return SparkFrames(
        frames=spark.read.schema(_schema(FRAMES)).parquet(_no_pattern(folder)),
        holes=found["holes"],
        streams=found["streams"],
        counts=dict(counts),
        warnings=tuple(tuple(own) for own in warnings),
        wires=wires,
        numbered=numbered_splits(splits.values(), records),
    )


def buckets_of(cores: int, splits: int, crossing: int = 0) -> int:
    """In how many tasks flows are stitched; `crossing`: how often one is in a split that shares it."""
    return min(BUCKETS_MAXIMUM, max(cores, splits // SPLITS_A_BUCKET, -(-crossing // FLOWS_A_BUCKET)))


def _numbered(captures: Sequence[Rotation], split_bytes: int, known: Walks) -> dict[int, Split]:
    """The splits of all captures by number."""
    splits: dict[int, Split] = {}
    for at, capture in enumerate(captures):
        for split in capture.cuts(split_bytes, known):
            number = len(splits)
            # Workers have a folder of their own.
            splits[number] = replace(split, path=os.path.abspath(split.path), number=number, owner=at)
    return splits


def _even_split(total: int, most: int, cores: int) -> int:
    """The size of splits of which every core gets as many, at most `most` bytes."""
    rounds = -(-total // (most * cores))
    even = -(-total // max(1, rounds * cores))
    return min(most, max(even, EVEN_SPLIT_BYTES_MINIMUM))


def _make_empty(folder: Path) -> None:
    """An empty folder in the place of whatever was there."""
    if folder.is_dir():
        shutil.rmtree(folder)
    else:
        folder.unlink(missing_ok=True)
    folder.mkdir(parents=True)


def _schema(schema: pa.Schema) -> StructType:
    return from_arrow_schema(schema)


def _numbers(spark: SparkSession, job: _Job, tasks: int) -> DataFrame:
    """The numbers of the splits, in so many tasks at most."""
    count = len(job.plan().splits)
    return spark.range(0, count, 1, numPartitions=max(1, min(count, tasks)))


def _grounds(spark: SparkSession, job: _Job) -> tuple[dict[int, Ground], dict[int, int], int]:
    """The ground of each capture, how many records each split has, and how often a flow is in a split that
    shares it with others; packets, outlines and turns of each split are in the staging folder."""

    splits = job.plan().splits

    def look(batches: Batches) -> Batches:
        reader = SplitReader(job.plan().splits, {})
        for number in (number for batch in batches for number in batch.column(0).to_pylist()):
            records = reader.records(number)
            packets = reader.read(number, records)
            with _whole(packets_files(job.staging, number)[0]) as path:
                keep_packets(packets, path)
            with _whole(outlines_file(job.staging, number)) as path:
                path.write_bytes(pickle.dumps(outlines(group(packets)), 5))
            told = survey(packets), len(records.record_offset)
            yield _answer([(str(number), zlib.compress(pickle.dumps(told, 5), 1))])

    answers = mapped(_numbers(spark, job, len(splits)), look, _schema(ANSWERS))
    found: dict[int, Survey] = {}
    counts: dict[int, int] = {}
    for row in answers.toArrow().to_pylist():
        number = int(row["table"])
        found[number], counts[number] = pickle.loads(zlib.decompress(row["payload"]))
    reader = SplitReader(splits, {})
    owners: dict[int, list[int]] = defaultdict(list)
    for number, split in sorted(splits.items()):
        owners[split.owner].append(number)
    grounds, crossing = {}, 0
    for owner, own in owners.items():
        ground = lay_ground(reader.data(own[0]), [found[number] for number in own])
        for number in own:
            split = splits[number]
            joined = ground.joined_in(split.base + split.start, split.base + split.end)
            keep_packets(joined or no_packets(), packets_files(job.staging, number)[1])
        standing = SplitReader(splits, {owner: ground}, kept=job.staging)
        told = KeptOutlines(job.staging, own)
        for number, turns in turns_of_splits(standing, told, ground):
            keep_turns(job.staging, number, turns)
        for number, flows in crossing_flows(told, joined_flows(ground)):
            _crossing_file(job, number).write_bytes(pickle.dumps(flows, 5))
            crossing += len(flows)
        grounds[owner] = ground
    return grounds, counts, crossing


def _stitched(spark: SparkSession, job: _Job) -> DataFrame:
    """Decode each split in a task of its own and stitch what is left; rows as ANSWERS."""

    def decode(batches: Batches) -> Batches:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield _left(job, number)

    def stitch(batches: Batches) -> Batches:
        buckets: dict[int, list[FlowPart]] = defaultdict(list)
        for batch in batches:
            for row in batch.to_pylist():
                if row["table"] == FLOWS:
                    buckets[row["bucket"]].extend(pickle.loads(zlib.decompress(row["payload"])))
                else:
                    yield _answer([(row["table"], row["payload"])])
        for bucket, parts in sorted(buckets.items()):
            yield _stitch(job, bucket, parts)

    left = mapped(_numbers(spark, job, len(job.plan().splits)), decode, _schema(LEFT))
    return mapped(left.repartitionById(job.buckets, "bucket"), stitch, _schema(ANSWERS))


def _left(job: _Job, number: int) -> pa.RecordBatch:
    """Decode one split, stage its frames, and give what is left for the stitch, as LEFT."""
    plan = job.plan()
    split = plan.splits[number]
    reader = SplitReader(plan.splits, plan.grounds, kept=job.staging)
    crossing: set[FlowKey] = pickle.loads(_crossing_file(job, number).read_bytes())
    decoded = decode_split(
        split, reader.data(number), reader.packets(number), reader.turns(number), job.hints, crossing
    )
    with (
        _whole(job.staging / f"split-{number}") as path,
        pa.ipc.new_file(path, CHAINED_FRAMES, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer,
    ):
        for batch in decoded.frames:
            writer.write_batch(batch)
    parts: dict[int, list[FlowPart]] = defaultdict(list)
    for part in decoded.flows:
        parts[zlib.crc32(repr((split.owner, part.key)).encode()) % job.buckets].append(part)
    rows = [
        (bucket, FLOWS, zlib.compress(pickle.dumps(found, 5), 1)) for bucket, found in sorted(parts.items())
    ]
    if decoded.remarks:
        names, counts = zip(*decoded.remarks.counts.items(), strict=True)
        table = pa.table([[number] * len(names), names, counts], schema=REMARKS)
        rows.append((0, "remarks", _packed(table)))
    bucket = number % job.buckets
    rows += [(bucket, name, payload) for name, payload in _kept_whole(job, number, decoded.whole)]
    columns = zip(*rows, strict=True) if rows else ([] for _ in LEFT)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, LEFT, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=LEFT)


def _crossing_file(job: _Job, number: int) -> Path:
    """Where the flows of a split are named of which others may have packets."""
    return job.staging / f"crossing-{number}"


def _kept_whole(job: _Job, number: int, whole: WholeConnections) -> Iterator[tuple[str, bytes]]:
    """Write the frames of connections that lie whole in a split; their other tables as rows of ANSWERS."""
    if not whole.streams:
        return
    table = pa.Table.from_batches(whole.frames, FRAMES)
    if table.num_rows:
        with _whole(job.folder / f"part-whole-{number:05d}.parquet") as path:
            pq.write_table(table, path)
        yield "counts", _packed(_counted(table))
    for name, own in (("holes", whole.holes), ("streams", whole.streams)):
        yield name, _packed(pa.concat_tables(own))


def _stitch(job: _Job, bucket: int, parts: Sequence[FlowPart]) -> pa.RecordBatch:
    """Stitch the flows of one bucket; their frames are written, the other tables are answers."""
    plan = job.plan()
    flows: dict[int, list[FlowPart]] = defaultdict(list)
    for part in parts:
        flows[plan.splits[part.split].owner].append(part)
    whole = [found for own in flows.values() for found in by_flow(own)]
    found = stitch_flows(whole, SplitReader(plan.splits, plan.grounds, kept=job.staging), job.hints)
    counts = []
    with (
        _whole(job.folder / f"part-stitched-{bucket:05d}.parquet") as path,
        pq.ParquetWriter(path, FRAMES) as writer,
    ):
        for table in found.frames:
            writer.write_table(table)
            counts.append(("counts", _packed(_counted(table))))
    tables = {"placements": found.placements, "holes": found.holes, "streams": found.streams}
    rows = [(name, _packed(table)) for name, own in tables.items() for table in own if table.num_rows]
    return _answer([*rows, *counts])


def _placed(spark: SparkSession, job: _Job, tasks: int) -> DataFrame:
    """Give the staged frames their places and write them, one file a task; rows as ANSWERS."""

    def place(batches: Batches) -> Batches:
        numbers = [number for batch in batches for number in batch.column(0).to_pylist()]
        if not numbers:
            return
        with pa.memory_map(str(job.staging / "placements")) as file:
            known = pa.ipc.open_file(file).read_all()
        counts = []
        with (
            _whole(job.folder / f"part-{numbers[0]:05d}.parquet") as path,
            pq.ParquetWriter(path, FRAMES) as writer,
        ):
            for number in numbers:
                own = known.filter(pc.equal(known["split"], number))
                with pa.memory_map(str(job.staging / f"split-{number}")) as file:
                    table = placed_frames(pa.ipc.open_file(file).read_all(), own)
                writer.write_table(table)
                counts.append(("counts", _packed(_counted(table))))
        yield _answer(counts)

    return mapped(_numbers(spark, job, tasks), place, _schema(ANSWERS))


def _no_pattern(path: Path) -> str:
    """A path as Hadoop takes it where it may hold signs of a pattern."""
    return re.sub(r"([][{}*?\\])", r"\\\1", str(path))


def sweep(folder: Path) -> None:
    """Remove what workers that died left unfinished in a folder or below."""
    for path in folder.rglob(".part-*"):
        path.unlink(missing_ok=True)


@contextmanager
def _whole(path: Path) -> Iterator[Path]:
    """A file to write that takes its name when it is whole: a task may be run again, or twice at once."""
    unfinished = unfinished_file(path)
    yield unfinished
    unfinished.replace(path)


def _counted(frames: pa.Table) -> pa.Table:
    """How many frames each capture and protocol has, as COUNTS."""
    found = frames.group_by(["capture", "protocol"]).aggregate([([], "count_all")])
    return pa.table([found["capture"], found["protocol"], found["count_all"]], schema=COUNTS)


def _answer(rows: Sequence[tuple[str, bytes]]) -> pa.RecordBatch:
    """Tables as rows of ANSWERS."""
    names, payloads = [name for name, _ in rows], [payload for _, payload in rows]
    return pa.RecordBatch.from_arrays(
        [pa.array(names, pa.string()), pa.array(payloads, pa.binary())], schema=ANSWERS
    )


def _answers(answers: DataFrame) -> dict[str, pa.Table]:
    """The tables that the tasks answered, by name; run here."""
    found: dict[str, list[pa.Table]] = {name: [schema.empty_table()] for name, schema in TABLES.items()}
    for row in answers.toArrow().to_pylist():
        found[row["table"]].append(pa.ipc.open_stream(row["payload"]).read_all())
    return {name: pa.concat_tables(tables) for name, tables in found.items()}


def _packed(table: pa.Table) -> bytes:
    """The table as an Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    packed: bytes = sink.getvalue().to_pybytes()
    return packed
