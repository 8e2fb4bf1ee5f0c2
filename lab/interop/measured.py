"""The figures of a scenario, and what the replay says of its traffic."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from lab.errors import LabError


@dataclass(slots=True)
class Measured:
    """The figures of one scenario, printed as they come."""

    scenario: str
    figures: dict[str, object] = field(default_factory=dict)

    def note(self, name: str, value: object) -> None:
        """Keep a figure and print it."""
        self.figures[name] = value
        print(f"  {name}: {value}", flush=True)

    def demand(self, holds: bool, what: str, seen: object) -> None:
        """A requirement: printed when it holds, LabError with what was seen instead when it does not."""
        if not holds:
            raise LabError(f"{self.scenario}: {what}: seen {seen}")
        self.note(what, "yes" if seen is True or "\n" in str(seen) else seen)


def judge(measured: Measured, capture: Path, out: Path, *, options: tuple[str, ...] = ()) -> None:
    """Replay a capture, and demand that no rule is broken and no acknowledged message lost."""
    began_s = time.monotonic()
    command = [sys.executable, "-m", "replispec.cli", "replay", str(capture), "--engine", "local", "--quiet"]
    done = subprocess.run(
        [*command, "--out", str(out), *options], capture_output=True, text=True, check=False
    )
    if done.returncode not in (0, 1):
        raise LabError(f"replay: {done.stderr.strip()[-400:]}")
    summary = json.loads((out / "summary.json").read_text())
    took_s = time.monotonic() - began_s
    measured.note("replayed", f"{capture.stat().st_size / 1e6:.1f} MB of traffic in {took_s:.1f} s")
    verdicts = {verdict: summary["verdicts"].get(verdict, 0) for verdict in ("ok", "unknown", "diverged")}
    measured.note("verdicts", verdicts)
    broken = [each for each in summary["findings"] if each["verdict"] == "violated"]
    texts = [f"{each['invariant']}: {each['evidence'][0]['text']}" for each in broken]
    measured.demand(not broken, "rules violated", texts[:3] or 0)
    lost = sum(each["acknowledged"] for each in summary["losses"])
    measured.demand(not lost, "acknowledged messages lost by the account of the replay", lost)
