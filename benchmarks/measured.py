"""The measured process: replays captures that it is told on standard input, and answers with figures.

One line in, `CAPTURE<tab>OUT`; one JSON line out, with the seconds and CPU seconds of frames, of events (both
to Parquet) and of verdicts apart, on Spark of events and verdicts together, the rows of each, what Spark
shuffled, and the peak memory of the processes. It ends with its input. What is loaded on first use is loaded
before anything is measured.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from lab.processes import cpu_seconds, usage
from replispec.replay.engines.decoding import decode_capture
from replispec.replay.engines.family import judged
from replispec.replay.engines.local import capture_row
from replispec.replay.engines.results import EVENTS_NAME, FRAMES_NAME, Options, events_file
from replispec.replay.events.observe import observe

MEGABYTE = 10**6
Figures = dict[str, float]


class ProcessWatch:
    """Wall and CPU seconds of this process and its descendants since the last reading."""

    def __init__(self) -> None:
        self._read = (time.perf_counter(), cpu_seconds(os.getpid()))

    def read(self, stage: str) -> Figures:
        """The seconds since the last reading, under the name of the stage."""
        before, self._read = self._read, (time.perf_counter(), cpu_seconds(os.getpid()))
        wall, cpu = (now - then for now, then in zip(self._read, before, strict=True))
        return {f"{stage}_wall_s": wall, f"{stage}_cpu_s": cpu}


class Shuffled:
    """Bytes that a Spark session wrote for shuffles since the last reading, from its event log."""

    def __init__(self, spark: Any, folder: Path) -> None:
        self._spark = spark
        self._folder = folder
        self._read = 0.0

    def read(self, stage: str) -> Figures:
        """The bytes since the last reading, under the name of the stage."""
        context = self._spark.sparkContext
        context._jsc.sc().listenerBus().waitUntilEmpty()
        total = 0.0
        for path in self._folder.glob(f"{context.applicationId}*"):
            for line in path.read_bytes().splitlines():
                if line.startswith(b'{"Event":"SparkListenerTaskEnd"'):
                    metrics = orjson.loads(line).get("Task Metrics") or {}
                    total += metrics["Shuffle Write Metrics"]["Shuffle Bytes Written"] if metrics else 0
        before, self._read = self._read, total
        return {f"{stage}_shuffle_bytes": total - before}


def local(capture: Path, out: Path) -> Figures:
    """The local engine's stages, in this process."""
    watch = ProcessWatch()
    decoded = decode_capture(capture)
    pq.write_table(decoded.frames, out / FRAMES_NAME)
    figures = watch.read("frames")
    events = observe(decoded.frames, decoded.holes, decoded.streams)
    shutil.rmtree(out / EVENTS_NAME, ignore_errors=True)
    (out / EVENTS_NAME).mkdir()
    for kind, table in events.items():
        pq.write_table(table, events_file(out, kind))
    figures |= watch.read("events")
    judged(capture_row(capture, decoded), events, Options())
    figures |= watch.read("verdicts")
    return figures | {
        "frames": decoded.frames.num_rows,
        "events": sum(table.num_rows for table in events.values()),
    }


def on_spark(cores: int, log: Path, split_bytes: int) -> Callable[[Path, Path], Figures]:
    """The Spark engine's stages in a session that is started now."""
    from replispec.replay.engines.cluster import Cluster
    from replispec.replay.engines.spark import capture_rows
    from replispec.replay.engines.spark_events import observed
    from replispec.replay.engines.spark_frames import decode_on_spark
    from replispec.replay.engines.spark_judging import judgements
    from replispec.replay.engines.spark_parts import Parts
    from replispec.replay.engines.spark_session import spark_session
    from replispec.replay.engines.spark_shares import Folders

    events_log = Path(tempfile.mkdtemp(prefix="replispec-bench-"))
    settings = {
        "enabled": "true",
        "dir": events_log.as_uri(),
        "compress": "false",
        "rolling.enabled": "false",
    }
    shown = " ".join(f"--conf spark.eventLog.{name}={value}" for name, value in settings.items())
    os.environ["PYSPARK_SUBMIT_ARGS"] = f"{shown} pyspark-shell"
    spark = spark_session(Cluster(f"local[{cores}]"), log=log)
    shuffled = Shuffled(spark, events_log)

    def replay(capture: Path, out: Path) -> Figures:
        watch = ProcessWatch()
        decoded = decode_on_spark(spark, [capture], out / FRAMES_NAME, split_bytes=split_bytes)
        figures = watch.read("frames") | shuffled.read("frames")
        watch.read("")

        shutil.rmtree(out / EVENTS_NAME, ignore_errors=True)
        captures = capture_rows([capture], decoded)
        with tempfile.TemporaryDirectory(prefix="replispec-judging-") as passing:
            folders = Folders((out / FRAMES_NAME).absolute(), out.absolute(), Path(passing))
            parts = Parts.of(captures, cores, decoded.streams)
            events = observed(spark, folders, parts, decoded.holes, decoded.streams)
            judgements(spark, events, folders, parts, Options())
        # Events are observed in the job that judges them.
        figures |= watch.read("verdicts") | shuffled.read("events")
        return figures | {"frames": _rows(out, FRAMES_NAME), "events": _rows(out, EVENTS_NAME)}

    return replay


def _rows(out: Path, name: str) -> int:
    files = (part for part in (out / name).rglob("*.parquet") if part.is_file())
    return sum(pq.read_metadata(part).num_rows for part in files)


def peaks(pid: int) -> Figures:
    """The most memory of a process, of a JVM below it and of any other descendant, in MB."""
    found = {"own_peak_mb": 0.0, "jvm_peak_mb": 0.0, "worker_peak_mb": 0.0}
    for process in usage(pid):
        kind = "own" if process.pid == pid else "jvm" if process.name == "java" else "worker"
        found[f"{kind}_peak_mb"] = max(found[f"{kind}_peak_mb"], process.peak_mb)
    return found


def main() -> None:
    """Answer until the input ends."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--spark-cores", type=int, help="Spark on so many cores; absent: the local engine")
    parser.add_argument("--log", type=Path, default=Path(os.devnull))
    parser.add_argument("--split-bytes", type=int, default=32 << 20)
    arguments = parser.parse_args()
    cores = arguments.spark_cores
    replay = local if cores is None else on_spark(cores, arguments.log, arguments.split_bytes)
    pa.set_cpu_count(cores or 1)
    pa.array([0])  # loads pandas when it is installed
    for line in sys.stdin:
        capture, out = map(Path, line.rstrip("\n").split("\t"))
        out.mkdir(parents=True, exist_ok=True)
        answer = {**replay(capture, out), **peaks(os.getpid()), "bytes": capture.stat().st_size}
        sys.stdout.write(orjson.dumps(answer).decode() + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
