"""The Spark engine: captures are decoded inside their splits, rows are judged where they are."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pyarrow.compute as pc

from replispec.replay.engines.cluster import ClusterError
from replispec.replay.engines.local import hints, stream_figures
from replispec.replay.engines.packing import check_packed, identity
from replispec.replay.engines.results import (
    EVENTS_NAME,
    FRAMES_NAME,
    SPARK_LOG_NAME,
    UNUSABLE,
    CaptureResult,
    Options,
    Progress,
    unusable,
)
from replispec.replay.engines.spark_events import observed
from replispec.replay.engines.spark_frames import SparkFrames, decode_on_spark, sweep
from replispec.replay.engines.spark_judging import judgements
from replispec.replay.engines.spark_parts import Parts
from replispec.replay.engines.spark_session import spark_session
from replispec.replay.engines.spark_shares import Folders
from replispec.replay.engines.spark_workers import check_workers, plain_failures
from replispec.replay.events.observe import REMOTING
from replispec.replay.report.summary import CaptureRow
from replispec.replay.tcp.rotation import Rotation, Source, name_of, open_rotation, paths_of

_STAGES = ("starting Spark", "decoding", "judging")


class SparkEngine:
    """Decodes and judges on Spark: memory is bounded by the size of a split, not of a capture."""

    def results(
        self, captures: Sequence[Source], out: Path, options: Options, progress: Progress
    ) -> Iterator[CaptureResult]:
        """One result per capture; frames and events are written as folders of Parquet files."""
        refused: dict[str, Exception] = {}
        usable: list[Source] = []
        with ExitStack() as stack:
            # What is compressed is decompressed once, and files of a rotation are ordered once.
            opened = []
            for source in captures:
                try:
                    opened.append(stack.enter_context(open_rotation(source, options.window)))
                    usable.append(source)
                except UNUSABLE as fault:
                    refused[name_of(source)] = fault
            before = _sizes(usable)
            try:
                with plain_failures():
                    found = _replayed(usable, opened, out, options, progress)
            except Exception as error:
                # What a worker says of it depends on where it was.
                if changed := [name for name, size in _sizes(usable).items() if size < before[name]]:
                    raise ClusterError(f"{changed[0]} was removed or cut while it was read") from error
                raise
        for source in captures:
            why = refused.get(name_of(source))
            yield found[name_of(source)] if why is None else unusable(source, why)


def _sizes(sources: Iterable[Source]) -> dict[str, int]:
    """How large each file is; -1 where it is not there."""
    paths = (path for source in sources for path in paths_of(source))
    return {path.name: path.stat().st_size if path.exists() else -1 for path in paths}


def _replayed(
    sources: Sequence[Source],
    opened: Sequence[Rotation],
    out: Path,
    options: Options,
    progress: Progress,
) -> dict[str, CaptureResult]:
    """The results of usable captures, which are open, by name."""
    _tell(progress, 0)
    cluster = options.cluster
    if cluster.packed is not None:
        check_packed(cluster.packed)
    spark = spark_session(cluster, log=out / SPARK_LOG_NAME)
    if not cluster.is_here:
        check_workers(spark.sparkContext, identity(), out)
    _tell(progress, 1)
    folder = out / FRAMES_NAME
    decoded = decode_on_spark(
        spark, sources, folder, hints(options), split_bytes=options.split_bytes, opened=opened
    )
    captures = capture_rows(sources, decoded)
    _tell(progress, 2)
    with tempfile.TemporaryDirectory(prefix="replispec-judging-") as folder_name:
        folders = Folders(folder.absolute(), out.absolute(), Path(folder_name))
        parts = Parts.of(captures, spark.sparkContext.defaultParallelism, decoded.streams)
        events = observed(spark, folders, parts, decoded.holes, decoded.streams)
        results = judgements(spark, events, folders, parts, options)
    for name, numbered in decoded.numbered.items():
        results[name].numbered = numbered
    for name in (FRAMES_NAME, EVENTS_NAME):
        sweep(out / name)
    return results


def _tell(progress: Progress, stage: int) -> None:
    progress(_STAGES[stage], stage, len(_STAGES))


def capture_rows(sources: Iterable[Source], decoded: SparkFrames) -> dict[str, CaptureRow]:
    """The figures of each capture, by name."""
    counts: dict[tuple[str, bool], int] = defaultdict(int)
    for (capture, protocol), count in decoded.counts.items():
        counts[capture, protocol == REMOTING] += count
    rows = {}
    for source, said, wire in zip(sources, decoded.warnings, decoded.wires, strict=True):
        name = name_of(source)
        own = pc.field("capture") == name
        rows[name] = stream_figures(
            source,
            (counts[name, True], counts[name, False]),
            decoded.holes.filter(own),
            decoded.streams.filter(own),
            wire,
            said,
        )
    return rows
