"""Two workers against one: whole replays on a real cluster, on Spark in one process, and on the local engine.

Each shape of capture is replayed by all subjects in turns, from the file to the report, and every time the
verdicts must be those that the generator knows. A cluster is a standalone master with workers of one core,
processes on the loopback interface that start and end here. All are warm: the first turn is not counted.

A clock tells little on a machine that does other work too. So each run says how much CPU time it took itself,
and how much others took meanwhile; a ratio of clocks is of one round, and noisy where others took more than
a tenth of the machine. Out: a line for each run as it ends, then a table, and out/bench/cluster.json with all
runs so far. No run begins after --minutes: the tables have what was seen until then.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.bench_replay import MEGABYTE, OUT, WRONG_SHOWN, Figures, Replayer
from benchmarks.family import MeasuredFamily, capture_options
from benchmarks.measured import peaks
from benchmarks.truth import Document, disagreements
from lab.processes import cpu_seconds
from replispec.replay.engines.results import REPORT_NAME, SUMMARY_NAME
from tests.replay.spark_cluster import spark_cluster

LOCAL, ONE_CORE, TWO_CORES = "local engine", "Spark, 1 core", "Spark, 2 cores"
ONE_WORKER, TWO_WORKERS = "cluster, 1 worker", "cluster, 2 workers"
NAMES = (LOCAL, ONE_CORE, TWO_CORES, ONE_WORKER, TWO_WORKERS)
RATIOS = (
    (TWO_WORKERS, ONE_WORKER, 1.7),
    (TWO_CORES, ONE_CORE, 1.7),
    (TWO_CORES, LOCAL, 1.0),
)
"""Who shall be how many times faster than whom."""
NOISY_SHARE = 0.1
STAT = Path("/proc/stat")
# Of the first line of STAT: user, nice, system, then (after idle and waiting) interrupts of both kinds.
BUSY_FIELDS = (1, 2, 3, 6, 7)
Runs = dict[str, list[Figures]]


@dataclass(frozen=True, slots=True)
class Subject:
    """Who replays: a process that is asked, and processes elsewhere that work for it."""

    replay: Callable[[Path, Path], Figures]
    workers: Sequence[int] = ()


def machine_cpu_s() -> float:
    """CPU seconds that all processes of the machine took since it was started."""
    fields = STAT.read_text("ascii").split("\n", 1)[0].split()
    return sum(int(fields[at]) for at in BUSY_FIELDS) / os.sysconf("SC_CLK_TCK")


def measured(subject: Subject, capture: Path, out: Path, truth: Document) -> Figures:
    """One run. Raises RuntimeError when a verdict is wrong."""

    def elsewhere() -> float:
        return sum(map(cpu_seconds, subject.workers))

    machine, workers, load = machine_cpu_s(), elsewhere(), os.getloadavg()[0]
    found = dict(subject.replay(capture, out))
    found["cpu_s"] += elsewhere() - workers
    found["others_cpu_s"] = max(machine_cpu_s() - machine - found["cpu_s"], 0.0)
    found["load"] = load
    for pid in subject.workers:
        for name, most in peaks(pid).items():
            if name != "own_peak_mb":
                found[name] = max(found[name], most)
    found["report_mb"] = (out / REPORT_NAME).stat().st_size / MEGABYTE
    found["bytes"] = capture.stat().st_size
    if wrong := disagreements(json.loads((out / SUMMARY_NAME).read_text()), truth):
        raise RuntimeError(f"{len(wrong)} verdicts are wrong\n" + "\n".join(wrong[:WRONG_SHOWN]))
    return found


def chosen(parts: Sequence[str] | None) -> list[str]:
    """The names of subjects that contain one of these, or all names. Raises RuntimeError where none does."""
    found = [name for name in NAMES if parts is None or any(part in name for part in parts)]
    if not found:
        raise RuntimeError(f"no subject is called so; there are: {'; '.join(NAMES)}")
    return found


@contextmanager
def subjects(names: Sequence[str]) -> Iterator[dict[str, Subject]]:
    """Those with these names, as long as the block runs. No other process is started."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    with ExitStack() as stack:

        def asked(*arguments: str) -> Callable[[Path, Path], Figures]:
            replayer = Replayer(*arguments, module="benchmarks.whole")
            stack.callback(replayer.close)
            return replayer.replay

        def on_cluster(workers: int) -> Subject:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="replispec-cluster-")))
            cluster = stack.enter_context(spark_cluster(folder, workers))
            return Subject(asked("--master", cluster.url), cluster.workers)

        made = {
            LOCAL: lambda: Subject(asked()),
            ONE_CORE: lambda: Subject(asked("--master", "local[1]")),
            TWO_CORES: lambda: Subject(asked("--master", "local[2]")),
            ONE_WORKER: lambda: on_cluster(1),
            TWO_WORKERS: lambda: on_cluster(2),
        }
        yield {name: made[name]() for name in names}


def in_turns(
    found: Mapping[str, Subject],
    captures: Mapping[str, tuple[Path, Document]],
    rounds: int,
    time_is_over: Callable[[], bool] = lambda: False,
) -> dict[str, Runs]:
    """Every run, by shape and subject; the first turn of each shape warms up and is left out.

    When the time is over no run begins any more; a shape without any run is left out.
    """
    runs: dict[str, Runs] = {}
    for shape, (capture, truth) in captures.items():
        for number in range(rounds + 1):
            for name, subject in found.items():
                if time_is_over():
                    sys.stderr.write("the time is over: no more runs\n")
                    return runs
                try:
                    run = measured(subject, capture, OUT / f"cluster-{name.replace(', ', '-')}", truth)
                except RuntimeError as error:
                    raise RuntimeError(f"{shape}, {name}: {error}") from error
                sys.stderr.write(f"{shape}, {name}, {number or 'warming up'}: {_told(run)}\n")
                if number:
                    runs.setdefault(shape, {}).setdefault(name, []).append(run)
                    (OUT / "cluster.json").write_text(json.dumps(runs, indent=1) + "\n")
    return runs


def _told(run: Figures) -> str:
    memory = " / ".join(f"{run[each]:.0f}" for each in ("own_peak_mb", "jvm_peak_mb", "worker_peak_mb"))
    return (
        f"{run['wall_s']:.1f} s, CPU {run['cpu_s']:.1f} s, others {run['others_cpu_s']:.1f} s, "
        f"peak MB driver / JVM / worker {memory}"
    )


def ratios(runs: Runs) -> list[tuple[str, str, float, float, bool]]:
    """Who against whom, by the clock and by CPU seconds, and whether others took part of every round."""
    found = []
    for fast, slow, _ in RATIOS:
        if fast in runs and slow in runs:
            # The last round may have ended early.
            pairs = [*zip(runs[fast], runs[slow], strict=False)]
            quiet = [pair for pair in pairs if not any(map(is_noisy, pair))]
            clock, cpu = (
                statistics.median(other[name] / own[name] for own, other in quiet or pairs)
                for name in ("wall_s", "cpu_s")
            )
            found.append((fast, slow, clock, cpu, not quiet))
    return found


def is_noisy(run: Figures) -> bool:
    """Whether others took more than a small share of the machine meanwhile."""
    return run["others_cpu_s"] > NOISY_SHARE * run["wall_s"] * (os.cpu_count() or 1)


def table(shape: str, runs: Runs) -> str:
    """Medians of one shape as Markdown, and the ratios."""
    lines = [
        f"{shape}, {next(iter(runs.values()))[0]['bytes'] / MEGABYTE:.0f} MB, medians",
        "| | s | MB/s | CPU s | driver's | others' CPU s | load | peak MB: own / JVM / worker | report MB |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name, own in runs.items():
        told = {each: statistics.median(run[each] for run in own) for each in own[0]}
        memory = " / ".join(f"{told[each]:.0f}" for each in ("own_peak_mb", "jvm_peak_mb", "worker_peak_mb"))
        lines.append(
            f"| {name} | {told['wall_s']:.1f} | {told['bytes'] / MEGABYTE / told['wall_s']:.1f} "
            f"| {told['cpu_s']:.1f} | {told['own_cpu_s']:.1f} | {told['others_cpu_s']:.1f} "
            f"| {told['load']:.1f} | {memory} | {told['report_mb']:.2f} |"
        )
    aims = {(fast, slow): aim for fast, slow, aim in RATIOS}
    for fast, slow, clock, cpu, noisy in ratios(runs):
        said = "noisy: the clock says nothing" if noisy else f"aim {aims[fast, slow]:.1f}"
        lines.append(f"{fast} against {slow}: {clock:.2f} by the clock ({said}), CPU {cpu:.2f}")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Generate the captures, replay them in turns, print the tables. Exit code 1 when a verdict is wrong."""
    try:
        _bench(*_options())
    except RuntimeError as error:
        sys.exit(f"bench-cluster: {error}")


def _options() -> tuple[MeasuredFamily, argparse.Namespace]:
    family, parser = capture_options(__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--shapes", nargs="+", choices=[*family.shapes], default=[*family.shapes])
    about = f"only those whose names contain one of these: {'; '.join(NAMES)}"
    parser.add_argument("--subjects", nargs="+", metavar="PART", help=about)
    parser.add_argument("--minutes", type=float, default=60, help="no run begins later (a run ends after 15)")
    return family, parser.parse_args()


def _bench(family: MeasuredFamily, arguments: argparse.Namespace) -> None:
    names, until = chosen(arguments.subjects), time.monotonic() + 60 * arguments.minutes
    OUT.mkdir(parents=True, exist_ok=True)
    captures: dict[str, tuple[Path, Any]] = {}
    for shape in arguments.shapes:
        capture = OUT / f"cluster-{shape}.pcap"
        wanted = argparse.Namespace(**{**vars(arguments), **family.shapes[shape]})
        captures[shape] = capture, family.generate_capture(capture, wanted)
    with subjects(names) as found:
        runs = in_turns(found, captures, arguments.rounds, lambda: time.monotonic() > until)
    for shape, own in runs.items():
        sys.stdout.write(table(shape, own) + "\n")


if __name__ == "__main__":
    main()
