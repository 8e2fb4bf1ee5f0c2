"""Play the suite against every subject that can be had here, and rewrite the table of who does what.

Runs go on side by side, the longest first: they wait most of their time. A subject that is not installed is
left out, with the reason. A run that fails costs its own row only, which the table shows with its reason:
what was started for it is stopped, and the next one begins.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from lab.cluster import Cluster, end_in_order
from lab.errors import LabError, NotInstalledError
from lab.side_by_side import Done, Task, side_by_side
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
# Runs at a time that two cores bear without a subject being late; where there are more, more.
AT_ONCE_EACH_CORE = 2


@dataclass(frozen=True, slots=True)
class Row:
    """How one subject, as one kind, came out: `ok`, `findings`, `skipped` or `failed`, and why.

    `about` is what helps whoever looks here: folders, seconds.
    """

    name: str
    kind: str
    outcome: str
    reason: str = ""
    about: str = ""

    def __str__(self) -> str:
        told = f"{self.name:<20}{self.kind:<20}{self.outcome}{': ' if self.reason else ''}{self.reason}"
        return f"{told} ({self.about})" if self.about else told


@dataclass(frozen=True, slots=True)
class SubjectPlan:
    """Who is judged, what plays the suite, where results go, and how many runs go on at a time.

    One at a time is played in this process, and seen at once.
    """

    subjects: Mapping[str, Subject]
    suite: Sequence[str]
    results: Path
    table: Path
    at_once: int = 1

    def kinds(self, name: str) -> Sequence[str]:
        """As what a subject is judged."""
        return (*self.subjects[name].judged, *self.subjects[name].adapted)

    def rows(self, chosen: Sequence[str]) -> Generator[Row]:
        """Play the suite against each of these subjects: NAME as each of its kinds, NAME/KIND as one."""
        self.results.mkdir(parents=True, exist_ok=True)
        runs: list[tuple[Subject, str]] = []
        for name, kinds in self._asked(chosen).items():
            subject = self.subjects[name]
            try:
                subject.fetch()
                subject.prepare()
            except LabError as error:
                outcome = "skipped" if isinstance(error, NotInstalledError) else "failed"
                yield Row(name, "", outcome, str(error))
                continue
            runs += [(subject, kind) for kind in kinds]
        if self.at_once == 1:
            for subject, kind in runs:
                yield self._run(subject, kind)
            return
        runs.sort(key=lambda run: self._lasts_s(*run), reverse=True)
        tasks = [Task(partial(self._run, *run), self._printed(*run)) for run in runs]
        of_task = dict(zip(map(id, tasks), runs, strict=True))
        for done in side_by_side(tasks, self.at_once):
            yield _row_of(done, *of_task[id(done.task)])

    def _asked(self, chosen: Sequence[str]) -> Mapping[str, Sequence[str]]:
        """The kinds by the names of subjects."""
        found: dict[str, list[str]] = {}
        for each in chosen:
            name, _, kind = each.partition("/")
            kinds = found.setdefault(name, [])
            kinds += [one for one in self.kinds(name) if kind in ("", one) and one not in kinds]
        return found

    def _run(self, subject: Subject, kind: str) -> Row:
        return self._row(subject, kind) if kind in subject.judged else self._row_by_adapter(subject, kind)

    def _lasts_s(self, subject: Subject, kind: str) -> float:
        """How long a run took the last time; where that is not known, those come first that start much."""
        with suppress(OSError, ValueError, KeyError, TypeError):
            return float(json.loads(self._written(subject, kind).read_bytes())["took_s"])
        return RUN_S_MAXIMUM * (1 + (kind in subject.adapted)) + self.kinds(subject.name).index(kind)

    def _written(self, subject: Subject, kind: str) -> Path:
        return self.results / f"{subject.name}-{kind}.json"

    def _printed(self, subject: Subject, kind: str) -> Path:
        return self.results / f"{subject.name}-{kind}.txt"

    def compliance(self, table: Path, lacking: Sequence[Row] = ()) -> bool:
        """Write the table from all results there are, with a line for who lacks; whether that worked."""
        results = sorted(self.results.glob("*.json"))
        rows = sorted(lacking, key=lambda row: (row.kind, row.name))
        told = [each for row in rows for each in ("--not-played", row.kind, row.name, row.reason)]
        done = subprocess.run([*self.suite, "compliance", "--out", table, *told, *results], check=False)
        return done.returncode == 0

    def _row(self, subject: Subject, kind: str) -> Row:
        """Play one run. Its folder is kept when it failed: logs tell why."""
        written = self._forgotten(subject, kind)
        folder = Path(tempfile.mkdtemp(prefix=f"{subject.name}-{kind}-"))
        try:
            with Cluster(folder) as cluster:
                row = self._play(subject, kind, subject.serve(cluster, kind), written)
        except (LabError, OSError, subprocess.TimeoutExpired) as error:
            return Row(subject.name, kind, "failed", _without(folder, error), f"folder: {folder}")
        except KeyboardInterrupt:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        shutil.rmtree(folder, ignore_errors=True)
        return row

    def _row_by_adapter(self, subject: Subject, kind: str) -> Row:
        """Play one run whose subject the suite has started itself."""
        options = {"--adapter": shlex.join(subject.adapter(kind)), "--jobs": ADAPTED_JOBS}
        written = self._forgotten(subject, kind)
        try:
            return self._judge(subject, kind, {**options, **_numbered(subject), "--json": written})
        except (OSError, subprocess.TimeoutExpired) as error:
            return Row(subject.name, kind, "failed", str(error))

    def _forgotten(self, subject: Subject, kind: str) -> Path:
        """Where the result of a run is written; that of an earlier one is gone."""
        written = self._written(subject, kind)
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


def _without(folder: Path, error: Exception) -> str:
    """What went wrong, in words that say the same on every machine."""
    return str(error).replace(f" (logs: {folder / 'log'})", "").replace(f"{folder}", "its folder")


def _row_of(done: Done[Row], subject: Subject, kind: str) -> Row:
    """The row of a run beside others, with its seconds; what it printed is shown where not all is well."""
    row = done.found or Row(subject.name, kind, "failed", "it ended before it was done")
    if row.outcome != "ok":
        sys.stdout.write(done.task.printed.read_text(errors="replace"))
    about = f"{done.took_s:.0f} s, {done.cpu_s:.0f} s of CPU"
    return replace(row, about=", ".join(filter(None, (row.about, about))))


def _numbered(subject: Subject) -> Mapping[str, object]:
    """The releases of a reference implementation are those of the protocol; others number their own."""
    same = subject.release == subject.speaks
    return {
        "--implementation": subject.implementation if same else subject.name,
        "--release": subject.speaks,
    }


def run_all(plan: SubjectPlan, chosen: Sequence[str]) -> int:
    """Play and print one line for every run.

    The table is that of the plan when all subjects were asked for; who could not be played has a line in it.
    Otherwise it is written beside the results. Returns 0 when all was as it should be, 1 after findings and
    failures, 2 when nothing could be played.
    """
    names = list(plan.subjects)
    there_are = {*names, *(f"{name}/{kind}" for name in names for kind in plan.kinds(name))}
    if unknown := sorted(set(chosen) - there_are):
        sys.stderr.write(f"replispec: no subject {unknown[0]}: there are {_listed(plan, unknown[0])}\n")
        return NOTHING_PLAYED
    rows, began_s = [], time.monotonic()
    for row in plan.rows(list(chosen) or names):
        rows.append(row)
        sys.stdout.write(f"{row}\n")
        sys.stdout.flush()
    outcomes = {row.outcome for row in rows}
    sys.stdout.write("\n".join(["", *map(str, rows), ""]))
    sys.stdout.write(f"{len(rows)} runs in {(time.monotonic() - began_s) / 60:.1f} minutes\n")
    if not outcomes & {"ok", "findings"}:
        return NOTHING_PLAYED
    table = plan.results / plan.table.name if chosen else plan.table
    written = plan.compliance(table, [row for row in rows if row.outcome in ("skipped", "failed")])
    sys.stdout.write(f"{table}\n" if written else "the table could not be written\n")
    return 0 if written and outcomes <= {"ok", "skipped"} else 1


def _listed(plan: SubjectPlan, asked: str) -> str:
    """What there is: of a subject that there is, its kinds."""
    name = asked.partition("/")[0]
    if name in plan.subjects:
        return ", ".join(f"{name}/{kind}" for kind in plan.kinds(name))
    return ", ".join(plan.subjects)


def main() -> int:
    """The command behind `make conformance`."""
    parser = argparse.ArgumentParser(prog="make conformance", description=__doc__)
    parser.add_argument(
        "names",
        nargs="*",
        metavar="SUBJECT[/KIND]",
        help="only these (python -m lab.subjects list; NAME/ha-master: only as that)",
    )
    parser.add_argument("--table", type=Path, required=True, help="the page that shows who does what")
    cores = os.cpu_count() or 1
    parser.add_argument(
        "--at-once",
        type=int,
        choices=range(1, 65),
        metavar="RUNS",
        default=AT_ONCE_EACH_CORE * cores,
        help="so many runs at a time (default here: %(default)s; 1: each is seen while it goes on)",
    )
    arguments = parser.parse_args()
    try:
        plan = SubjectPlan(subjects(), SUITE, RESULTS, arguments.table, arguments.at_once)
        return run_all(plan, arguments.names)
    except KeyboardInterrupt:
        sys.stderr.write("conformance: interrupted; all of its processes are ended\n")
        return INTERRUPTED


if __name__ == "__main__":
    end_in_order()
    sys.exit(main())
