"""Rates of the replay: tshark, the local engine, Spark on one and on two cores, in turns.

The capture is generated (generate_capture.py), tshark reads a prefix of it as it is slow. Spark's
sessions are started once and each is warmed up by one replay. Every round also reads the capture from the
page cache: the ratio of a rate to that one is the same on a slow day. Every run has a limit of time and
is ended at it. The result is a table of medians, and out/bench/replay.json with each run.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks.generate_capture import generate
from replispec.replay.capture import open_capture

ROOT = Path(__file__).parents[1]
OUT = ROOT / "out/bench"
DISSECTOR = ROOT / "generated/wireshark/rocketmq.lua"
MEGABYTE = 10**6
RUN_SECONDS_MAXIMUM = 300.0
READ_BYTES = 1 << 20
COLUMNS = ("MB/s", "wall s", "CPU s", "wall s", "CPU s", "MB/s", "ratio", "  peak MB: own/JVM/worker")
PLAIN_FIELDS = ("frame.number", "frame.time_epoch", "ip.src", "ip.dst", "tcp.stream", "tcp.seq", "tcp.len")
DISSECTED = (
    *("-X", f"lua_script:{DISSECTOR}", "-o", "tcp.reassemble_out_of_order:TRUE"),
    *("-Y", "rocketmq or rocketmq_ha"),
)
OWN_FIELDS = (
    *("frame.number", "tcp.stream", "rocketmq.code", "rocketmq.opaque", "rocketmq.flag"),
    *("rocketmq_ha.offset", "rocketmq_ha.epoch", "rocketmq_ha.confirm_offset"),
)
Figures = dict[str, float]


class Replayer:
    """A process of benchmarks.measured that replays when asked, and is killed when it takes too long."""

    def __init__(self, *arguments: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.measured", *arguments],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def replay(self, capture: Path, out: Path) -> Figures:
        """One replay. Raises RuntimeError when the process ended or had to be ended."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        timer = threading.Timer(RUN_SECONDS_MAXIMUM, self._process.kill)
        timer.start()
        try:
            self._process.stdin.write(f"{capture}\t{out}\n")
            self._process.stdin.flush()
            answer = self._process.stdout.readline()
        finally:
            timer.cancel()
        if not answer:
            raise RuntimeError("the measured process ended without an answer")
        figures: Figures = json.loads(answer)
        return figures

    def close(self) -> None:
        """End the process and wait for it."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(RUN_SECONDS_MAXIMUM)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def page_cache(capture: Path) -> Figures:
    """Reading the file that was just read: the best of three."""
    buffer = bytearray(READ_BYTES)
    times = []
    for _ in range(3):
        begun = time.perf_counter()
        with capture.open("rb", buffering=0) as file:
            while file.readinto(buffer):
                pass
        times.append(time.perf_counter() - begun)
    return {"frames_wall_s": min(times), "frames_cpu_s": min(times), "bytes": capture.stat().st_size}


def tshark(capture: Path, packets: int, *arguments: str, fields: Sequence[str]) -> Figures:
    """tshark over the first packets, start included. Memory is the peak of its process."""
    command = ["tshark", "-n", "-r", str(capture), "-c", str(packets), *arguments, "-T", "fields"]
    for name in fields:
        command += ["-e", name]
    with tempfile.TemporaryDirectory() as home:
        environment = {**os.environ, "WIRESHARK_CONFIG_DIR": home, "LC_ALL": "C.UTF-8"}
        begun = time.perf_counter()
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
        )
        timer = threading.Timer(RUN_SECONDS_MAXIMUM, process.kill)
        timer.start()
        assert process.stdout is not None
        rows = sum(1 for _ in process.stdout)
        _, status, usage = os.wait4(process.pid, 0)
        timer.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        process.stdout.close()
    if process.returncode:
        raise RuntimeError(f"tshark ended with {process.returncode}")
    return {
        "frames_wall_s": time.perf_counter() - begun,
        "frames_cpu_s": usage.ru_utime + usage.ru_stime,
        "own_peak_mb": usage.ru_maxrss * 1024 / MEGABYTE,
        "frames": rows,
        "bytes": prefix_bytes(capture, packets),
    }


def prefix_bytes(capture: Path, packets: int) -> int:
    """Bytes of the file before the record after that many packets."""
    with open_capture(capture) as opened:
        offsets = opened.records().record_offset
        return int(offsets[packets]) if packets < len(offsets) else capture.stat().st_size


def measure(capture: Path, rounds: int, prefix_packets: int, split_bytes: int) -> dict[str, list[Figures]]:
    """All runs by name, in turns."""
    runs: dict[str, list[Figures]] = defaultdict(list)
    with ExitStack() as stack:
        sparks = {}
        for cores in (1, 2):
            log = str(OUT / f"spark{cores}.log")
            name = f"spark, {cores} core{'s' if cores > 1 else ''}, warm"
            shape = ("--split-bytes", str(split_bytes))
            sparks[name] = Replayer("--spark-cores", str(cores), "--log", log, *shape)
            stack.callback(sparks[name].close)
            sparks[name].replay(capture, OUT / f"spark{cores}")
        has_tshark = _has_tshark()
        for _ in range(rounds):
            _add(runs, "page cache", page_cache(capture))
            if has_tshark:
                _add(runs, "tshark, plain fields", tshark(capture, prefix_packets, fields=PLAIN_FIELDS))
                dissected = tshark(capture, prefix_packets, *DISSECTED, fields=OWN_FIELDS)
                _add(runs, "tshark, our dissector", dissected)
            engine = Replayer()
            _add(runs, "local", engine.replay(capture, OUT / "local"))
            engine.close()
            for cores, (name, spark) in enumerate(sparks.items(), start=1):
                _add(runs, name, spark.replay(capture, OUT / f"spark{cores}"))
    return runs


def _has_tshark() -> bool:
    """Whether tshark can be measured too; says so in one line when it cannot."""
    if shutil.which("tshark"):
        return True
    sys.stderr.write(
        "bench-replay: tshark is missing, its rows are left out (Debian, Ubuntu: apt-get install tshark)\n"
    )
    return False


def _add(runs: dict[str, list[Figures]], name: str, figures: Figures) -> None:
    """Keep one run, and say so: the whole takes minutes."""
    runs[name].append(figures)
    rate = figures["bytes"] / MEGABYTE / figures["frames_wall_s"]
    sys.stderr.write(f"{name}, run {len(runs[name])}: {rate:.1f} MB/s to frames\n")


def check(runs: dict[str, list[Figures]], expected: int) -> None:
    """Raises RuntimeError when one of our engines found another number of frames than was sent."""
    for name, own in runs.items():
        if name.startswith(("local", "spark")):
            found = {int(run["frames"]) for run in own}
            if found != {expected}:
                raise RuntimeError(f"{name}: {sorted(found)} frames, {expected} were sent")


def medians(runs: Sequence[Figures]) -> Figures:
    """The median of each figure, and the rates that follow, in 10^6 bytes a second."""
    found = {name: statistics.median(run[name] for run in runs) for name in runs[0]}
    found["frames_mb_s"] = found["bytes"] / MEGABYTE / found["frames_wall_s"]
    if "events_wall_s" in found:
        found["both_mb_s"] = found["bytes"] / MEGABYTE / (found["frames_wall_s"] + found["events_wall_s"])
    return found


def table(results: dict[str, Figures]) -> str:
    """The medians as text."""
    peaks = ("own_peak_mb", "jvm_peak_mb", "worker_peak_mb")
    titles = (("frames", "", "", "events", "", "both", "to read"), COLUMNS)
    lines = ["".join([" " * 24, *(f"{title:>9}" for title in row)]) for row in titles]
    capture_bytes = results["page cache"]["bytes"]
    for name, found in results.items():
        ratio = found["frames_mb_s"] / results["page cache"]["frames_mb_s"]
        events = "".join(
            f"{_shown(found.get(key)):>9}" for key in ("events_wall_s", "events_cpu_s", "both_mb_s")
        )
        memory = "/".join(f"{found[key]:.0f}" if found.get(key) else "-" for key in peaks)
        lines.append(
            f"{name:24}{found['frames_mb_s']:9.1f}{found['frames_wall_s']:9.2f}{found['frames_cpu_s']:9.2f}"
            f"{events}{ratio:9.4f}{memory:>26}"
        )
    for name, found in results.items():
        if "frames_shuffle_bytes" in found:
            shares = [found[f"{stage}_shuffle_bytes"] / capture_bytes for stage in ("frames", "events")]
            lines.append(
                f"{name}: shuffled {shares[0]:.4%} of the capture for frames, {shares[1]:.2%} for events"
            )
    return "\n".join(lines) + "\n"


def _shown(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def main() -> None:
    """Generate the capture when it is not there, measure, print the table, write out/bench/replay.json."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--megabytes", type=int, default=100)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--prefix-packets", type=int, default=20_000, help="what tshark reads")
    parser.add_argument("--split-bytes", type=int, default=32 << 20)
    arguments = parser.parse_args()
    OUT.mkdir(parents=True, exist_ok=True)
    capture = OUT / f"mix{arguments.megabytes}-{arguments.seed}.pcap"
    truth: Any = generate(capture, arguments.megabytes, arguments.seed)
    before = os.getloadavg()
    runs = measure(capture, arguments.rounds, arguments.prefix_packets, arguments.split_bytes)
    check(runs, sum(truth["frames"].values()))
    results = {name: medians(found) for name, found in runs.items()}
    machine = {
        "system": platform.platform(),
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "load_before": before,
        "load_after": os.getloadavg(),
    }
    mix = {name: truth[name] for name in ("seed", "bytes", "packets", "connections", "frames")}
    document = {"machine": machine, "capture": mix, "medians": results, "runs": runs}
    (OUT / "replay.json").write_text(json.dumps(document, indent=1) + "\n")
    load = f"load {before[0]:.1f} before, {os.getloadavg()[0]:.1f} after"
    sys.stdout.write(f"{mix}\n{os.cpu_count()} cores, {load}, medians of {arguments.rounds}\n")
    sys.stdout.write(table(results))


if __name__ == "__main__":
    main()
