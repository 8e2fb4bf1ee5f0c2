"""The figures of a scenario, and what the replay says of its traffic."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lab.errors import LabError


@dataclass(slots=True)
class Measured:
    """The figures of one scenario, printed as they come. `known`: what other people's programs are known to
    break in it, as the replay tells it, with the reason."""

    scenario: str
    figures: dict[str, object] = field(default_factory=dict)
    known: dict[str, str] = field(default_factory=dict)

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
    """Replay a capture, and demand that no rule is broken, but as is known, and no acknowledged message
    lost."""
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
    told = [(each["counts"]["violated"], _told(each)) for each in broken]
    for text in sorted({text for _, texts in told for text in texts} & measured.known.keys()):
        measured.note(f"known: {text}", measured.known[text])
    # A finding is known when all that violates is: what it does not show is not.
    unknown = [texts for count, texts in told if len(texts) < count or set(texts) - measured.known.keys()]
    measured.demand(not unknown, "rules violated", [texts[0] for texts in unknown][:3] or 0)
    lost = sum(each["acknowledged"] for each in summary["losses"])
    measured.demand(not lost, "acknowledged messages lost by the account of the replay", lost)


def _told(finding: Mapping[str, Any]) -> list[str]:
    """What the evidence of a finding says that violates its rule."""
    shown = (each for each in finding["evidence"] if each["verdict"] == "violated")
    return [f"{finding['invariant']}: {each['text']}" for each in shown]
