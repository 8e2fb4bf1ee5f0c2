"""The measured process of bench_cluster: whole replays, from a capture to its report, when it is told.

One line in, `CAPTURE<tab>OUT`; one JSON line out: seconds, CPU seconds of this process alone and with its
descendants, and the peak memory of each kind of process. It ends with its input.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

import orjson
import pyarrow as pa

from benchmarks.measured import Figures, peaks
from lab.processes import cpu_seconds
from replispec.replay.engines.cluster import Cluster
from replispec.replay.engines.results import Options
from replispec.replay.engines.run import EngineName, replay


def replayed(capture: Path, out: Path, engine: EngineName, options: Options) -> Figures:
    """One replay, measured."""
    begun, own, every = time.perf_counter(), time.process_time(), cpu_seconds(os.getpid())
    replay([capture], out, engine, options)
    return {
        "wall_s": time.perf_counter() - begun,
        "own_cpu_s": time.process_time() - own,
        "cpu_s": cpu_seconds(os.getpid()) - every,
        **peaks(os.getpid()),
    }


def main() -> None:
    """Answer until the input ends."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--master", help="Spark there; absent: the local engine")
    master = parser.parse_args().master
    engine = EngineName.LOCAL if master is None else EngineName.SPARK
    options = Options() if master is None else Options(cluster=Cluster(master))
    pa.array([0])  # loads pandas when it is installed
    for line in sys.stdin:
        capture, out = map(Path, line.rstrip("\n").split("\t"))
        sys.stdout.write(orjson.dumps(replayed(capture, out, engine, options)).decode() + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
