"""`make mutants`: change one thing in the specification, compile, and see who notices.

A sample of all single edits (edges, guards, effects, assignments, events; what binds machines to messages,
answers, `counts_as` and records; options of bytes; defaults of parameters) of the controller's, the brokers'
and replication's machines and messages. Each is made in a copy of the project;
`make generate` carries it to everything; then the tests run, the quick ones first, until one fails. First of
all a copy without an edit must pass. An edit that nothing notices is a hole in the tests, unless it changes
nothing that anybody could see: those are named in lab/equivalent_edits.yaml, with the reason.

With --judge one of them is asked alone: what it lets pass it does not notice, whoever else does.

With --alone the explorer is asked about each edit, and then the others, the cheapest first, until one of them
notices; each with those of its tests that can see the edited source (lab/mutant_judges.py). Stories of the
machines come last, for they tell the specification again, edge by edge, and notice each edit of it. With
--everybody all are asked about each edit, whatever the others say. A judge that uses more of the processor
than it may has noticed, too; how busy the machine is does not count.

What is known is in --out after each judge; --go-on takes from there what was asked before about the same edit
of the same source, and --minutes ends in good time, so that a run of hours may be cut into as many as one
likes; --judges asks some about every edit before the others are asked about any. --table writes a page of all
that is known.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import subprocess
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from importlib.util import cache_from_source
from pathlib import Path
from queue import SimpleQueue

import yaml

from lab.edits import Edit, edits
from lab.mutant_judges import ORDER, QUICK, SLOW, Stages, judges_of, nearest
from lab.mutant_outcomes import (
    EQUAL,
    EXPLORER,
    REFUSED,
    STORIES,
    SURVIVED,
    MutantOutcome,
    known,
    summary,
    table,
    write,
)

ROOT = Path(__file__).parents[1]
EQUIVALENT = Path(__file__).parent / "equivalent_edits.yaml"
# Of the processor, far beyond what any judge needs without an edit. The clock ends only who waits for ever.
STAGE_CPU_S_MAXIMUM, STAGE_S_MAXIMUM = 1_200, 7_200
DIGEST = re.compile(rb"sha256 [0-9a-f]+")
UNEDITED = "no edit"


@dataclass(frozen=True, slots=True)
class Plan:
    """Who is asked about an edit, and whom what is known already spares."""

    stages: Callable[[Edit], Stages]
    spares: Callable[[MutantOutcome, str], bool]


def main() -> int:
    """Exit code 1 when an edit survived that is not known to be equivalent, 2 when the control fails, 3 when
    not everybody was asked: --minutes are over, or --judges leave some out."""
    arguments = _arguments()
    every = [edit for edit in edits(ROOT / "spec") if arguments.only in edit.name]
    kinds = set(filter(None, arguments.kinds.split(",")))
    if unknown := kinds - {edit.kind for edit in every}:
        sys.exit(f"mutants: no edit is of the kind {', '.join(sorted(unknown))}")
    every = [edit for edit in every if not kinds or edit.kind in kinds]
    if arguments.judge:
        every = [edit for edit in every if arguments.judge in judges_of(edit, ROOT / "spec")]
    chosen = random.Random(arguments.seed).sample(every, min(arguments.count, len(every)))
    print(f"{len(every)} single edits; {len(chosen)} of them, seed {arguments.seed}", flush=True)
    for kind, count in Counter(edit.kind for edit in every).most_common():
        print(f"{count:>5} {kind}, {sum(edit.kind == kind for edit in chosen)} of them", flush=True)
    if arguments.list:
        print("\n".join(edit.name for edit in chosen))
        return 0
    plan = _plan(arguments)
    before = known(arguments.out) if arguments.go_on else {}
    until_s = time.monotonic() + 60 * arguments.minutes
    now = frozenset(filter(None, arguments.judges.split(",")))
    if strangers := now - {who for edit in chosen for who in plan.stages(edit)}:
        sys.exit(f"mutants: nobody who is asked about these edits is called {', '.join(sorted(strangers))}")
    asking = Asking(plan, arguments.out, until_s, now)
    outcomes = [_begun(edit, before) for edit in chosen]
    asking.kept = outcomes if arguments.skip_control else [_control(before), *outcomes]
    trees: SimpleQueue[Path] = SimpleQueue()
    for number in range(arguments.jobs):
        trees.put(_copy(arguments.out.with_suffix("") / str(number)))
    if not arguments.skip_control and (complaint := asking.control(chosen, trees)):
        print(f"mutants: the tests fail without any edit: {complaint}", file=sys.stderr)
        return 2
    with ThreadPoolExecutor(arguments.jobs) as pool:
        pairs = zip(chosen, outcomes, strict=True)
        running = [pool.submit(asking.ask, edit, outcome, trees) for edit, outcome in pairs]
        for done in as_completed(running):
            if (last := done.result()) is not None:
                _say(last, f"{sum(each.is_whole for each in outcomes):>3}/{len(chosen)}")
    if arguments.table:
        asked = f'make mutants ARGS="{" ".join(_lasting(sys.argv[1:]))}"'
        page = table(outcomes, asked, _commit(), datetime.now(UTC).date())
        arguments.table.write_text(page, "utf-8")
    print("\n".join(summary([each for each in outcomes if each.is_whole])))
    if not all(each.is_whole for each in outcomes):
        print("mutants: not everybody was asked; --go-on goes on from here", file=sys.stderr)
        return 3
    return int(any(each.noticed_by == SURVIVED for each in outcomes))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__)
    parser.add_argument("--count", type=int, default=40, help="how many edits (default 40)")
    parser.add_argument("--seed", type=int, default=1, help="which ones (default 1)")
    parser.add_argument("--only", default="", help="only edits whose name contains this")
    parser.add_argument("--kinds", default="", help="only edits of these kinds, such as guard,edge,timer")
    parser.add_argument("--skip-control", action="store_true", help="believe that the tests pass")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="how many at a time")
    asked = parser.add_mutually_exclusive_group()
    asked.add_argument("--quick", action="store_true", help="ask only the quick judges")
    asked.add_argument("--alone", action="store_true", help="say what the explorer alone notices")
    asked.add_argument("--everybody", action="store_true", help="ask every judge, whoever notices")
    asked.add_argument("--judge", choices=ORDER, help="ask this judge alone, about the edits that it can see")
    parser.add_argument("--list", action="store_true", help="name the edits and do nothing")
    # Below it lie the copies, in which commands run: a path from here would be another one there.
    parser.add_argument(
        "--out", type=_absolute, default="out/mutants.json", help="where outcomes go (default %(default)s)"
    )
    parser.add_argument("--go-on", action="store_true", help="believe the outcomes that OUT has already")
    parser.add_argument(
        "--minutes", type=float, default=float("inf"), help="ask nobody any more after so long; exit code 3"
    )
    parser.add_argument(
        "--judges", default="", help="ask only these now, such as explorer; --go-on asks the others later"
    )
    parser.add_argument("--table", type=Path, help="write a page of all edits and who notices them")
    return parser.parse_args()


def _absolute(path: str) -> Path:
    return Path(path).absolute()


def _lasting(arguments: Sequence[str]) -> Iterator[str]:
    """The arguments without those that say only how a run is cut and where its results go."""
    spared = 0
    for each in arguments:
        if spared or each in ("--minutes", "--table", "--jobs", "--out", "--judges"):
            spared = 0 if spared else 1
        elif each not in ("--go-on", "--skip-control"):
            yield each


def _plan(arguments: argparse.Namespace) -> Plan:
    if arguments.judge:
        who = arguments.judge
        return Plan(lambda edit: {who: judges_of(edit, ROOT / "spec")[who]}, lambda _outcome, _who: False)
    if arguments.alone or arguments.everybody:
        spares = _is_told if arguments.alone else lambda _outcome, _who: False
        return Plan(lambda edit: judges_of(edit, ROOT / "spec"), spares)
    stages = QUICK if arguments.quick else {**QUICK, **SLOW}
    return Plan(lambda edit: {**nearest(edit), **stages}, lambda outcome, _: bool(outcome.all_noticed_by))


def _is_told(outcome: MutantOutcome, who: str) -> bool:
    """Whether it is known without this judge if the explorer is alone: another one has noticed."""
    noticed = outcome.all_noticed_by
    return who != EXPLORER and (
        any(each != EXPLORER for each in noticed) or (who == STORIES and bool(noticed))
    )


def _begun(edit: Edit, before: Mapping[str, MutantOutcome]) -> MutantOutcome:
    """What is known of an edit; of another source nothing is."""
    digest = sha256(edit.text.encode()).hexdigest()[:16]
    found = before.get(edit.name)
    fresh = MutantOutcome(edit.kind, edit.name, digest)
    outcome = found if found is not None and found.digest == digest else fresh
    outcome.reason = _equivalent().get(edit.name, "")
    return outcome


def _control(before: Mapping[str, MutantOutcome]) -> MutantOutcome:
    """What is known of the specification as it is: which judges let it pass."""
    sources = sorted(path for path in (ROOT / "spec").rglob("*") if path.is_file())
    digest = sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:16]
    found = before.get(UNEDITED)
    known_yet = found is not None and found.digest == digest
    return found if found is not None and known_yet else MutantOutcome(UNEDITED, UNEDITED, digest)


@dataclass
class Asking:
    """One run: `kept` is written to `out` after each answer; nobody is asked after `until_s`, and who is not
    in `now`, if it names anybody, is left for another run."""

    plan: Plan
    out: Path
    until_s: float
    now: frozenset[str] = frozenset()
    kept: Sequence[MutantOutcome] = ()

    def is_over(self) -> bool:
        """Whether the time of this run is over."""
        return time.monotonic() > self.until_s

    def ask(self, edit: Edit, outcome: MutantOutcome, trees: SimpleQueue[Path]) -> MutantOutcome | None:
        """Edit a copy of the project that nobody else has now, ask, and leave it as it was.

        None for an edit of which all was known, or that is not at its end.
        """
        if outcome.is_whole or self.is_over():
            return None
        tree = trees.get()
        edited = tree / edit.path.relative_to(ROOT)
        began_s = time.monotonic()
        try:
            edited.write_text(edit.text, "utf-8")
            outcome.is_whole = self._asked(tree, outcome, self.plan.stages(edit))
        finally:
            shutil.copy(edit.path, edited)
            trees.put(tree)
        outcome.seconds += round(time.monotonic() - began_s, 1)
        write(self.kept, self.out)
        return outcome if outcome.is_whole else None

    def _asked(self, tree: Path, outcome: MutantOutcome, stages: Stages) -> bool:
        """Ask one judge after the other; whether it is at its end."""
        if refused := _compiled(tree):
            outcome.asked[REFUSED] = refused
            return True
        if _generated(tree) == _generated(ROOT):
            outcome.asked[EQUAL] = "it compiles to the same"
            return True
        is_whole = True
        for who, tests in stages.items():
            if who in outcome.asked or self.plan.spares(outcome, who):
                continue
            if self.is_over():
                return False
            if self.now and who not in self.now:
                is_whole = False
                continue
            outcome.asked[who] = _failure(tree, tests)
            write(self.kept, self.out)
        return is_whole

    def control(self, chosen: Sequence[Edit], trees: SimpleQueue[Path]) -> str:
        """What fails in a copy without an edit; empty when nothing does."""
        outcome = self.kept[0]
        asked = sorted({pair for edit in chosen for pair in self.plan.stages(edit).items()})
        tree = trees.get()
        if not outcome.is_whole and (refused := _compiled(tree)):
            return refused
        for who, tests in asked:
            name = f"{who}: {' '.join(tests)}"
            is_asked_now = not self.now or who in self.now
            if name not in outcome.asked and is_asked_now and not self.is_over():
                outcome.asked[name] = _failure(tree, tests)
                write(self.kept, self.out)
        trees.put(tree)
        outcome.is_whole = len(outcome.asked) >= len(asked)
        return "; ".join(f"{who}: {by}" for who, by in outcome.asked.items() if by)


def _say(outcome: MutantOutcome, place: str) -> None:
    print(f"{place} {outcome.noticed_by} ({outcome.seconds:.0f} s): {outcome.edit}", flush=True)
    for who in outcome.all_noticed_by:
        print(f"        {who}: {outcome.asked[who]}", flush=True)


def _commit() -> str:
    done = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def _generated(tree: Path) -> dict[str, bytes]:
    """What was compiled, without the digests of the sources."""
    return {name: DIGEST.sub(b"", content) for name, content in _files(tree / "generated").items()}


def _files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }


def _equivalent() -> dict[str, str]:
    reasons: dict[str, str] = yaml.safe_load(EQUIVALENT.read_text("utf-8")) or {}
    return reasons


def _copy(folder: Path) -> Path:
    """A copy of the project as it is now; what an earlier run left of one is used, with its bytecode."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    names = {name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()}
    for old in _files(folder):
        if old not in names:
            (folder / old).unlink()
    for name in names:
        _put(folder / name, (ROOT / name).read_bytes(), (ROOT / name).stat().st_mode)
    return folder


def _put(path: Path, content: bytes, mode: int = 0o644) -> None:
    """Give a file its content. Bytecode knows its source by size and second alone: it is removed."""
    if path.is_file() and path.read_bytes() == content:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    path.chmod(mode)
    if path.suffix == ".py":
        Path(cache_from_source(path)).unlink(missing_ok=True)


def _compiled(tree: Path) -> str:
    """Compile the tree, and change of generated/ only what is different; why it is refused, or nothing."""
    fresh = tree / "out" / "generated"
    done = _run(tree, ["-m", "replispec.compiler.generate", "--out", str(fresh)])
    if done.returncode:
        return (done.stderr.strip().splitlines() or ["without a word"])[-1]
    made = _files(fresh)
    if not made:
        raise RuntimeError(f"{fresh}: nothing was compiled")
    for old in _files(tree / "generated").keys() - made.keys():
        (tree / "generated" / old).unlink()
    for name, content in made.items():
        _put(tree / "generated" / name, content)
    return ""


def _failure(tree: Path, arguments: Sequence[str]) -> str:
    """The first of these tests that fails in a tree, with what it says; empty when none does."""
    places = [
        each
        for each in arguments
        if not each.startswith("tests") or (tree / each.partition("::")[0]).exists()
    ]
    if not any(each.startswith("tests") for each in places):
        return ""
    done = _run(tree, ["-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *places])
    if not done.returncode:
        return ""
    failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return (failed or done.stdout.strip().splitlines()[-1:] or ["time over"])[0][:300]


def _run(tree: Path, arguments: list[str]) -> subprocess.CompletedProcess[str]:
    """Run Python with the packages of the copy in front of those that are installed."""
    build = tomllib.loads((tree / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
    rooms = os.pathsep.join(str(tree / room) for room in build["dev-mode-dirs"])
    # Whoever says what failed says it in one line of this width.
    environment = {**os.environ, "PYTHONPATH": rooms, "COLUMNS": "300"}
    limited = ["sh", "-c", f'ulimit -t {STAGE_CPU_S_MAXIMUM} && exec "$@"', "sh"]
    command = [*limited, sys.executable, *arguments]
    try:
        return subprocess.run(
            command,
            cwd=tree,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=STAGE_S_MAXIMUM,
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 1, "", "time over")


if __name__ == "__main__":
    sys.exit(main())
