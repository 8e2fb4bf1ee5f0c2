"""The figures of a scenario, and what the replay says of its traffic."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lab.errors import LabError

# Beside the rules of the replay: a message that was acknowledged and is lost by its account, as a line of
# lost.jsonl, and one that a consumer does not read, as the line of its producer.
LOST, MISSED = "acknowledged message lost", "acknowledged message not read"
Row = Mapping[str, Any]
Excuse = Callable[[str, Row], str | None]
"""Why other people's programs are known to break a rule so: by its name, and a piece of evidence; None when
that is not known of them."""


@dataclass(slots=True)
class Measured:
    """The figures of one scenario, printed as they come. `known`: what other people's programs are known to
    break in it, as the replay tells it, with the reason; `excuses`: the same by a rule. `missed`: lines of a
    producer whose messages nobody read. `of_losses`: the rule of the replay that each line of lost.jsonl
    breaks once, so that those of its violations that a finding has no room for are judged there."""

    scenario: str
    figures: dict[str, object] = field(default_factory=dict)
    known: dict[str, str] = field(default_factory=dict)
    excuses: list[Excuse] = field(default_factory=list)
    missed: list[Row] = field(default_factory=list)
    of_losses: str = ""

    def note(self, name: str, value: object) -> None:
        """Keep a figure and print it."""
        self.figures[name] = value
        print(f"  {name}: {value}", flush=True)

    def demand(self, holds: bool, what: str, seen: object) -> None:
        """A requirement: printed when it holds, LabError with what was seen instead when it does not."""
        if not holds:
            raise LabError(f"{self.scenario}: {what}: seen {seen}")
        self.note(what, "yes" if seen is True or "\n" in str(seen) else seen)


def as_json(results: Mapping[str, object]) -> str:
    """The figures of all scenarios as a file; what JSON has no form for, a set say, as it is printed."""
    return json.dumps(results, indent=1, default=str) + "\n"


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
    judge_summary(measured, summary, out)


def judge_summary(measured: Measured, summary: Row, out: Path) -> None:
    """Demand of the summary of a replay, and of the lost messages beside it, what `judge` demands. Raises
    LabError."""
    verdicts = {verdict: summary["verdicts"].get(verdict, 0) for verdict in ("ok", "unknown", "diverged")}
    measured.note("verdicts", verdicts)
    broken = [each for each in summary["findings"] if each["verdict"] == "violated"]
    lost = sum(each["acknowledged"] for each in summary["losses"])
    elsewhere = {measured.of_losses: lost}
    unknown = [text for each in broken if (text := _unknown(measured, each, elsewhere)) is not None]
    measured.demand(not unknown, "rules violated", unknown[:3] or 0)
    _judge_losses(measured, summary, out)


def _unknown(measured: Measured, finding: Row, elsewhere: Mapping[str, int]) -> str | None:
    """What a finding shows that is not known, or does not show; None when all that violates is known.
    `elsewhere`: by rule, how many of its violations are judged one by one from what stands beside."""
    rule = finding["invariant"]
    shown = [each for each in finding["evidence"] if each["verdict"] == "violated"]
    reasons = [_reason(measured, rule, each) for each in shown]
    for reason in dict.fromkeys(each for each in reasons if each is not None):
        first = shown[reasons.index(reason)]["text"]
        measured.note(f"known: {rule}, {reasons.count(reason)} shown, such as: {first}", reason)
    strange = [each["text"] for each, reason in zip(shown, reasons, strict=True) if reason is None]
    violated = finding["counts"]["violated"]
    if len(shown) < violated and elsewhere.get(rule) != violated:
        strange.append(f"{violated - len(shown)} more than it shows")
    return f"{rule}: {strange[0]}" if strange else None


def _judge_losses(measured: Measured, summary: Row, out: Path) -> None:
    """Demand that no acknowledged message is lost or not read, but as is known. Raises LabError."""
    lost = sum(each["acknowledged"] for each in summary["losses"])
    path = out / "lost.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    known = [reason for each in lines if (reason := _reason(measured, LOST, each)) is not None]
    read = [reason for each in measured.missed if (reason := _reason(measured, MISSED, each)) is not None]
    for reason in dict.fromkeys([*known, *read]):
        measured.note(f"known: {known.count(reason)} lost, {read.count(reason)} not read", reason)
    what = "acknowledged messages lost by the account of the replay, beside those that are known"
    measured.demand(lost == len(known), what, lost - len(known))
    what = "acknowledged messages that the consumer misses, beside those that are known"
    measured.demand(len(measured.missed) == len(read), what, len(measured.missed) - len(read))


def _reason(measured: Measured, rule: str, row: Row) -> str | None:
    """Why that was to be expected."""
    if (reason := measured.known.get(f"{rule}: {row.get('text')}")) is not None:
        return reason
    return next((told for excuse in measured.excuses if (told := excuse(rule, row)) is not None), None)
