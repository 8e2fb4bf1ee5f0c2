"""Play the suite against every target that can be had here, and rewrite the table of who does what.

A target that is not installed is left out, with the reason. A run that fails costs its own row only: what was
started for it is stopped, and the next one begins.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from replispec.wire.rocketmq.controller import EpochEntryCache
from targets.lib.errors import NOT_INSTALLED

CONFORMANCE = Path(__file__).resolve().parents[1]
SUITE = (sys.executable, "-m", "replispec.cli", "conformance")
# Exit code of the suite when cases failed that are not known to fail.
FINDINGS = 1
NOTHING_PLAYED = 2
RUN_S_MAXIMUM = 3600


@dataclass(frozen=True, slots=True)
class Row:
    """How one target, as one kind, came out: `ok`, `findings`, `skipped` or `failed`, and why."""

    name: str
    kind: str
    outcome: str
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.name:<32}{self.kind:<12}{self.outcome}{': ' if self.reason else ''}{self.reason}"


@dataclass(frozen=True, slots=True)
class Plan:
    """Where the targets lie, what plays the suite, and where results go."""

    targets: Path
    suite: Sequence[str]
    results: Path
    table: Path

    def names(self) -> list[str]:
        """All targets: the folders with an entry script."""
        return sorted(
            script.parent.name for script in self.targets.glob("*/run") if script.parent.name != "lib"
        )

    def rows(self, names: Sequence[str]) -> Iterator[Row]:
        """Play the suite against each of these targets as each kind, one after the other."""
        self.results.mkdir(parents=True, exist_ok=True)
        for name in names:
            fetched = self._command(name, "fetch")
            if fetched.returncode:
                outcome = "skipped" if fetched.returncode == NOT_INSTALLED else "failed"
                yield Row(name, "", outcome, _last_line(fetched.stderr))
                continue
            for kind in self._command(name, "kinds").stdout.split():
                yield self._row(name, kind)

    def compliance(self, table: Path) -> bool:
        """Write the table from all results there are; whether that worked."""
        results = sorted(self.results.glob("*.json"))
        done = subprocess.run([*self.suite, "compliance", "--out", table, *results], check=False)
        return done.returncode == 0

    def _row(self, name: str, kind: str) -> Row:
        """Play one run. Its folder is kept when it failed: logs tell why."""
        written = self.results / f"{name}-{kind}.json"
        written.unlink(missing_ok=True)
        folder = Path(tempfile.mkdtemp(prefix=f"{name}-{kind}-"))
        try:
            started = self._command(name, "start", str(folder), kind)
            if started.returncode:
                return Row(name, kind, "failed", f"{_last_line(started.stderr)} (logs: {folder})")
            row = self._play(name, kind, json.loads(started.stdout), written)
        except (ValueError, subprocess.TimeoutExpired) as error:
            return Row(name, kind, "failed", f"{error} (logs: {folder})")
        finally:
            self._command(name, "stop", str(folder))
        shutil.rmtree(folder, ignore_errors=True)
        return row

    def _play(self, name: str, kind: str, ready: Mapping[str, str], written: Path) -> Row:
        options = {
            "--kind": kind,
            "--target": ready["target"],
            "--controller": ready.get("controller"),
            "--broker": ready.get("broker"),
            "--broker-set": EpochEntryCache.from_json(ready).broker_name,
            # Apache's releases are those of the protocol; others have numbers of their own.
            "--implementation": ready["implementation"] if ready["release"] == ready["speaks"] else name,
            "--release": ready["speaks"],
            "--json": str(written),
        }
        given = [part for option, value in options.items() if value is not None for part in (option, value)]
        done = subprocess.run([*self.suite, "run", *given], check=False, timeout=RUN_S_MAXIMUM)
        if done.returncode not in (0, FINDINGS):
            return Row(name, kind, "failed", f"the suite ended with exit code {done.returncode}")
        return Row(name, kind, "findings" if done.returncode else "ok")

    def _command(self, name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        script = self.targets / name / "run"
        return subprocess.run([script, *arguments], capture_output=True, text=True, check=False)


def _last_line(text: str) -> str:
    return text.strip().rpartition("\n")[2]


def run_all(plan: Plan, chosen: Sequence[str]) -> int:
    """Play and print one line for every run.

    The table is that of the plan when all targets were played and no run failed; otherwise it would lack
    somebody, and it is written beside the results. Returns 0 when all was as it should be, 1 after findings
    and failures, 2 when nothing could be played.
    """
    names = plan.names()
    if unknown := sorted(set(chosen) - set(names)):
        sys.stderr.write(f"replispec: no target {unknown[0]}: there are {', '.join(names)}\n")
        return NOTHING_PLAYED
    rows = []
    for row in plan.rows(list(chosen) or names):
        rows.append(row)
        sys.stdout.write(f"{row}\n")
        sys.stdout.flush()
    outcomes = {row.outcome for row in rows}
    sys.stdout.write("\n".join(["", *map(str, rows), ""]))
    if not outcomes & {"ok", "findings"}:
        return NOTHING_PLAYED
    whole = not chosen and "failed" not in outcomes
    table = plan.table if whole else plan.results / plan.table.name
    written = plan.compliance(table)
    sys.stdout.write(f"{table}\n" if written else "the table could not be written\n")
    return 0 if written and outcomes <= {"ok", "skipped"} else 1


def main() -> int:
    """The command behind `make conformance`."""
    parser = argparse.ArgumentParser(prog="run_all", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="TARGET", help="only these, such as apache-5.4.0")
    parser.add_argument("--table", type=Path, required=True, help="the page that shows who does what")
    arguments = parser.parse_args()
    plan = Plan(CONFORMANCE / "targets", SUITE, CONFORMANCE / "results", arguments.table)
    return run_all(plan, arguments.names)


if __name__ == "__main__":
    sys.exit(main())
