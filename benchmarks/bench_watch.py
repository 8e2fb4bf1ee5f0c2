"""`make bench-watch`: a folder fed file by file for ten minutes, its watcher killed and started again.

The capture is generated, with losses that are known. The watcher is `replispec watch` in a process of its
own, killed with -9 at even distances. At the end its verdict is compared with that of `replispec replay
--rotated`, its alerts are counted, and its memory is shown over time. It ends by itself; the exit code is 1
where anything is wrong.
"""

from __future__ import annotations

import argparse
import itertools
import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.family import MeasuredFamily, capture_options
from replispec.replay.capture.files import open_capture

OUT = Path("out/bench-watch")
# A file is written in so many parts, as capture tools do when their buffers are full.
PARTS = 8
END_S_MAXIMUM, REPLAY_S_MAXIMUM = 900.0, 900.0
CURVE_POINTS = 20


@dataclass(slots=True)
class Watching:
    """A watcher that may be killed and started again, and what was seen of it."""

    command: Sequence[str]
    alerts: Path
    begun_s: float = field(default_factory=time.monotonic)
    process: subprocess.Popen[bytes] | None = None
    memory: list[tuple[float, int]] = field(default_factory=list)
    alert_s: float | None = None

    def start(self) -> None:
        """Start it."""
        with (OUT / "watch.log").open("ab") as log:
            self.process = subprocess.Popen(self.command, stdout=log, stderr=log)

    def kill(self) -> None:
        """Kill it, as a machine that fails would."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def look(self) -> None:
        """Note its memory, and when the first alert was there. Raises RuntimeError when it is gone."""
        assert self.process is not None
        if self.process.poll() is not None:
            raise RuntimeError(f"the watcher ended with {self.process.returncode}; {OUT}/watch.log says why")
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        resident = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
        self.memory.append((self.now_s(), int(resident.split()[1]) // 1024))
        if self.alert_s is None and self.alerts.exists() and self.alerts.stat().st_size:
            self.alert_s = self.now_s()

    def now_s(self) -> float:
        """Since the beginning."""
        return time.monotonic() - self.begun_s

    def end(self) -> tuple[int, int]:
        """Ask it to end; its exit code, and its greatest memory in MiB meanwhile."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        until_s, most = time.monotonic() + END_S_MAXIMUM, 0
        while self.process.poll() is None:
            if time.monotonic() > until_s:
                self.process.kill()
                raise RuntimeError(f"the watcher did not end within {END_S_MAXIMUM:g} s")
            most = max(most, self._resident_mib())
            time.sleep(0.1)
        return self.process.returncode, most

    def _resident_mib(self) -> int:
        assert self.process is not None
        try:
            status = Path(f"/proc/{self.process.pid}/status").read_text()
        except OSError:
            return 0
        return next(
            (int(line.split()[1]) // 1024 for line in status.splitlines() if line.startswith("VmRSS:")), 0
        )


def feed(
    capture: Path, folder: Path, files: int, watching: Watching, seconds: float, kills: int
) -> list[Path]:
    """Write the capture into the folder, in files, evenly over the time; the files."""
    data = capture.read_bytes()
    with open_capture(capture) as opened:
        places = opened.records().record_offset.tolist()
    borders = [places[len(places) * at // files] for at in range(files)] + [len(data)]
    written: list[Path] = []
    steps, step = files * PARTS, 0
    killed = 0
    for number, (start, end) in enumerate(itertools.pairwise(borders)):
        path = folder / f"trace_{number:05}.pcap"
        content = data[: places[0]] + data[start:end]
        written.append(path)
        for part in range(PARTS):
            with path.open("ab") as file:
                file.write(content[len(content) * part // PARTS : len(content) * (part + 1) // PARTS])
            step += 1
            if killed < kills and step >= steps * (killed + 1) // (kills + 1):
                watching.kill()
                watching.start()
                killed += 1
            while watching.now_s() < seconds * step / steps:
                time.sleep(min(0.5, max(0.0, seconds * step / steps - watching.now_s())))
                watching.look()
    return written


def compare(out: Path, files: Sequence[Path], truth: Mapping[str, Any]) -> dict[str, Any]:
    """What the watch told beside a replay and what is known. Raises RuntimeError where they differ."""
    replayed = OUT / "replayed"
    command = [sys.executable, "-m", "replispec.cli", "replay", *map(str, files), "--rotated", "--quiet"]
    with (OUT / "replay.log").open("wb") as log:
        subprocess.run(
            [*command, "--engine", "local", "--out", str(replayed)],
            stdout=log,
            stderr=log,
            check=False,
            timeout=REPLAY_S_MAXIMUM,
        )
    left, right = (json.loads((folder / "summary.json").read_text()) for folder in (out, replayed))
    for each in (left, right):
        each["provenance"].pop("command")
    differing = [name for name in right if left.get(name) != right[name]]
    if differing:
        raise RuntimeError(f"the watch and a replay differ in {', '.join(differing)}")
    alerts = [json.loads(line) for line in (out / "alerts.jsonl").read_text().splitlines()]
    if len({alert["id"] for alert in alerts}) != len(alerts):
        raise RuntimeError("an alert was told twice")
    told = sum(alert["messages"] for alert in alerts if alert["kind"] == "loss")
    lost = sum(loss["acknowledged"] for loss in right["losses"])
    if told != lost:
        raise RuntimeError(f"{lost} messages are lost, alerts tell of {told}")
    if any(alert["kind"] == "withdrawn" for alert in alerts):
        raise RuntimeError("an alert was taken back")
    return {"alerts": len(alerts), "lost": lost, "verdicts": right["verdicts"], "bytes": truth["bytes"]}


def main() -> None:
    """See the module."""
    try:
        _bench(*_options())
    except RuntimeError as error:
        sys.exit(f"bench-watch: {error}")


def _options() -> tuple[MeasuredFamily, argparse.Namespace]:
    family, parser = capture_options(__doc__)
    parser.set_defaults(megabytes=60, lost=20)
    parser.add_argument("--seconds", type=float, default=600.0, help="how long the folder is fed")
    parser.add_argument("--files", type=int, default=60)
    parser.add_argument("--kills", type=int, default=2)
    parser.add_argument("--stretch-mib", type=int, default=8, help="of the watcher")
    parser.add_argument("--engine", default="local", help="of the watcher")
    return family, parser.parse_args()


def _bench(family: MeasuredFamily, arguments: argparse.Namespace) -> None:
    """What was asked for. Raises RuntimeError when anything is wrong."""
    shutil.rmtree(OUT, ignore_errors=True)
    folder, out = OUT / "folder", OUT / "watched"
    folder.mkdir(parents=True)
    capture = OUT / "generated.pcap"
    truth: Any = family.generate_capture(capture, arguments)
    command = [sys.executable, "-m", "replispec.cli", "watch", str(folder), "--out", str(out)]
    command += ["--stretch-mib", str(arguments.stretch_mib), "--engine", arguments.engine]
    watching = Watching(command, out / "alerts.jsonl")
    watching.start()
    try:
        files = feed(capture, folder, arguments.files, watching, arguments.seconds, arguments.kills)
        fed_s = watching.now_s()
        while watching.alert_s is None and truth["losses"] and watching.now_s() < fed_s + END_S_MAXIMUM:
            time.sleep(0.1)
            watching.look()
        code, at_end = watching.end()
    except BaseException:
        watching.kill()
        raise
    found = compare(out, files, truth)
    curve = watching.memory[:: max(1, len(watching.memory) // CURVE_POINTS)]
    document = {
        **found,
        "exit_code": code,
        "kills": arguments.kills,
        "seconds": fed_s,
        "first_alert_behind_last_byte_s": None if watching.alert_s is None else watching.alert_s - fed_s,
        "memory_mib": curve,
        "memory_at_end_mib": at_end,
    }
    (OUT / "watch.json").write_text(json.dumps(document, indent=1) + "\n")
    sys.stdout.write(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
