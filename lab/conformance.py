"""Play the suite against every subject that can be had here, and rewrite the table of who does what.

A subject that is not installed is left out, with the reason. A run that fails costs its own row only: what
was started for it is stopped, and the next one begins.
"""

from __future__ import annotations

import argparse
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lab.cluster import Cluster, end_in_order
from lab.errors import LabError, NotInstalledError
from lab.subjects.registry import subjects
from lab.subjects.subject import Subject

SUITE = (sys.executable, "-m", "replispec.cli", "conformance")
RESULTS = Path(__file__).parents[1] / "out" / "conformance"
# Exit code of the suite when cases failed that are not known to fail.
FINDINGS = 1
NOTHING_PLAYED, INTERRUPTED = 2, 130
RUN_S_MAXIMUM = 3600
# Cases at a time that have their subjects started: each is up to three processes.
ADAPTED_JOBS = 2


@dataclass(frozen=True, slots=True)
class Row:
    """How one subject, as one kind, came out: `ok`, `findings`, `skipped` or `failed`, and why."""

    name: str
    kind: str
    outcome: str
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.name:<32}{self.kind:<12}{self.outcome}{': ' if self.reason else ''}{self.reason}"


@dataclass(frozen=True, slots=True)
class SubjectPlan:
    """Who is judged, what plays the suite, and where results go."""

    subjects: Mapping[str, Subject]
    suite: Sequence[str]
    results: Path
    table: Path

    def rows(self, names: Sequence[str]) -> Iterator[Row]:
        """Play the suite against each of these subjects as each kind, one after the other."""
        self.results.mkdir(parents=True, exist_ok=True)
        for name in names:
            subject = self.subjects[name]
            try:
                subject.fetch()
            except LabError as error:
                outcome = "skipped" if isinstance(error, NotInstalledError) else "failed"
                yield Row(name, "", outcome, str(error))
                continue
            for kind in subject.judged:
                yield self._row(subject, kind)
            for kind in subject.adapted:
                yield self._row_by_adapter(subject, kind)

    def compliance(self, table: Path) -> bool:
        """Write the table from all results there are; whether that worked."""
        results = sorted(self.results.glob("*.json"))
        done = subprocess.run([*self.suite, "compliance", "--out", table, *results], check=False)
        return done.returncode == 0

    def _row(self, subject: Subject, kind: str) -> Row:
        """Play one run. Its folder is kept when it failed: logs tell why."""
        written = self._result_of(subject, kind)
        folder = Path(tempfile.mkdtemp(prefix=f"{subject.name}-{kind}-"))
        try:
            with Cluster(folder) as cluster:
                row = self._play(subject, kind, subject.serve(cluster, kind), written)
        except (LabError, OSError, subprocess.TimeoutExpired) as error:
            return Row(subject.name, kind, "failed", f"{error} (folder: {folder})")
        except KeyboardInterrupt:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        shutil.rmtree(folder, ignore_errors=True)
        return row

    def _row_by_adapter(self, subject: Subject, kind: str) -> Row:
        """Play one run whose subject the suite has started itself."""
        options = {"--adapter": shlex.join(subject.adapter()), "--jobs": ADAPTED_JOBS}
        written = self._result_of(subject, kind)
        try:
            return self._judge(subject, kind, {**options, **_numbered(subject), "--json": written})
        except (OSError, subprocess.TimeoutExpired) as error:
            return Row(subject.name, kind, "failed", str(error))

    def _result_of(self, subject: Subject, kind: str) -> Path:
        """Where the result of a run is written; that of an earlier one is gone."""
        written = self.results / f"{subject.name}-{kind}.json"
        written.unlink(missing_ok=True)
        return written

    def _play(self, subject: Subject, kind: str, ready: Mapping[str, object], written: Path) -> Row:
        options = {"--target": ready["target"], **subject.suite_options(ready)}
        return self._judge(subject, kind, {**options, **_numbered(subject), "--json": written})

    def _judge(self, subject: Subject, kind: str, options: Mapping[str, object]) -> Row:
        options = {"--kind": kind, **options}
        given = [
            str(part) for option, value in options.items() if value is not None for part in (option, value)
        ]
        done = subprocess.run([*self.suite, "run", *given], check=False, timeout=RUN_S_MAXIMUM)
        if done.returncode not in (0, FINDINGS):
            return Row(subject.name, kind, "failed", f"the suite ended with exit code {done.returncode}")
        return Row(subject.name, kind, "findings" if done.returncode else "ok")


def _numbered(subject: Subject) -> Mapping[str, object]:
    """The releases of a reference implementation are those of the protocol; others number their own."""
    same = subject.release == subject.speaks
    return {
        "--implementation": subject.implementation if same else subject.name,
        "--release": subject.speaks,
    }


def run_all(plan: SubjectPlan, chosen: Sequence[str]) -> int:
    """Play and print one line for every run.

    The table is that of the plan when all subjects were played and no run failed; otherwise it would lack
    somebody, and it is written beside the results. Returns 0 when all was as it should be, 1 after findings
    and failures, 2 when nothing could be played.
    """
    names = list(plan.subjects)
    if unknown := sorted(set(chosen) - set(names)):
        sys.stderr.write(f"replispec: no subject {unknown[0]}: there are {', '.join(names)}\n")
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
    parser = argparse.ArgumentParser(prog="make conformance", description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="SUBJECT", help="only these (python -m lab.subjects list)"
    )
    parser.add_argument("--table", type=Path, required=True, help="the page that shows who does what")
    arguments = parser.parse_args()
    try:
        return run_all(SubjectPlan(subjects(), SUITE, RESULTS, arguments.table), arguments.names)
    except KeyboardInterrupt:
        sys.stderr.write("conformance: interrupted; all of its processes are ended\n")
        return INTERRUPTED


if __name__ == "__main__":
    end_in_order()
    sys.exit(main())
