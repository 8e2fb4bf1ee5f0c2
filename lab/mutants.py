"""`make mutants`: change one thing in the specification, compile, and see who notices.

A sample of all single edits (edges, guards, effects, assignments, events; what binds machines to messages,
answers, `counts_as` and records; options of bytes; defaults of parameters) of the controller's, the brokers'
and replication's machines and messages. Each is made in a copy of the project;
`make generate` carries it to everything; then the tests run, the quick ones first, until one fails. First of
all a copy without an edit must pass. An edit that nothing notices is a hole in the tests, unless it changes
nothing that anybody could see: those are named in lab/equivalent_edits.yaml, with the reason.

With --alone the explorer is asked about what nobody else noticed, the cheapest first, each with those of its
tests that can see the edited source (lab/mutant_judges.py); stories of the machines come last, for they tell
the specification again, edge by edge, and notice each edit of it. With --everybody all are asked about each
edit, whatever the others say. A judge that uses more of the processor than it may has noticed, too; how busy
the machine is does not count.

What is known is in --out after each edit; --go-on takes from there what was asked before, so that a run of
hours may be ended and begun again.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import subprocess
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory

import yaml

from lab.edits import Edit, edits
from lab.mutant_judges import QUICK, SLOW, Stages, judges_of, nearest

ROOT = Path(__file__).parents[1]
EQUIVALENT = Path(__file__).parent / "equivalent_edits.yaml"
# Of the processor, far beyond what any judge needs without an edit. The clock ends only who waits for ever.
STAGE_CPU_S_MAXIMUM, STAGE_S_MAXIMUM = 1_200, 7_200
DIGEST = re.compile(rb"sha256 [0-9a-f]+")
SURVIVED, EQUAL, REFUSED = "survived", "equivalent", "refused by the compiler"


@dataclass(frozen=True, slots=True)
class Plan:
    """Who is asked about an edit, and how many must notice before the others are spared; None: all."""

    stages: Callable[[Edit], Stages]
    enough: int | None


@dataclass(frozen=True, slots=True)
class MutantOutcome:
    """What became of one edit: who noticed it, and by which test or message.

    `all_noticed_by` are all who noticed it, as far as they were asked.
    """

    kind: str
    edit: str
    noticed_by: str
    by: str
    seconds: float
    all_noticed_by: tuple[str, ...] = ()


def main() -> int:
    """Exit code 1 when an edit survived that is not known to be equivalent, 2 when the control fails."""
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
    parser.add_argument("--list", action="store_true", help="name the edits and do nothing")
    parser.add_argument("--out", type=Path, default=Path("out/mutants.json"), help="where outcomes go")
    parser.add_argument("--go-on", action="store_true", help="believe the outcomes that OUT has already")
    arguments = parser.parse_args()
    spec = ROOT / "spec"
    kinds = set(filter(None, arguments.kinds.split(",")))
    found = [edit for edit in edits(spec) if arguments.only in edit.name]
    if unknown := kinds - {edit.kind for edit in found}:
        parser.error(f"no edit is of the kind {', '.join(sorted(unknown))}")
    every = [edit for edit in found if not kinds or edit.kind in kinds]
    chosen = random.Random(arguments.seed).sample(every, min(arguments.count, len(every)))
    print(f"{len(every)} single edits; {len(chosen)} of them, seed {arguments.seed}", flush=True)
    for kind, count in Counter(edit.kind for edit in every).most_common():
        print(f"{count:>5} {kind}, {sum(edit.kind == kind for edit in chosen)} of them", flush=True)
    if arguments.list:
        print("\n".join(edit.name for edit in chosen))
        return 0
    plan = _plan(arguments)
    if not arguments.skip_control and (complaint := _control(chosen, plan)):
        print(f"mutants: the tests fail without any edit: {complaint}", file=sys.stderr)
        return 2
    known = _known(arguments.out) if arguments.go_on else {}
    outcomes: list[MutantOutcome] = []
    with TemporaryDirectory(prefix="replispec-mutant-") as folder, ThreadPoolExecutor(arguments.jobs) as pool:
        trees: SimpleQueue[Path] = SimpleQueue()
        for number in range(arguments.jobs):
            trees.put(_copy(Path(folder) / str(number)))
        outcomes += (known[edit.name] for edit in chosen if edit.name in known)
        running = [pool.submit(_try, edit, plan, trees) for edit in chosen if edit.name not in known]
        # As they end, so that what is known is written, whatever takes long.
        for done in as_completed(running):
            last = done.result()
            outcomes.append(last)
            _write(outcomes, arguments.out)
            _say(last, f"{len(outcomes):>3}/{len(chosen)}")
    return _report(outcomes)


def _plan(arguments: argparse.Namespace) -> Plan:
    if arguments.alone or arguments.everybody:
        return Plan(lambda edit: judges_of(edit, ROOT / "spec"), 1 if arguments.alone else None)
    stages = QUICK if arguments.quick else {**QUICK, **SLOW}
    return Plan(lambda edit: {**nearest(edit), **stages}, 1)


def _say(outcome: MutantOutcome, place: str) -> None:
    print(f"{place} {outcome.noticed_by} ({outcome.seconds:.0f} s): {outcome.edit}", flush=True)
    if outcome.by:
        print(f"        {outcome.by}", flush=True)
    if len(outcome.all_noticed_by) > 1:
        print(f"        noticed by {', '.join(outcome.all_noticed_by)}", flush=True)


def _write(outcomes: list[MutantOutcome], out: Path) -> None:
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps([asdict(each) for each in outcomes], indent=1) + "\n")


def _known(out: Path) -> dict[str, MutantOutcome]:
    """What a run before found, by the name of the edit; nothing where there was none."""
    if not out.exists():
        return {}
    found = [MutantOutcome(**each) for each in json.loads(out.read_text())]
    return {each.edit: replace(each, all_noticed_by=tuple(each.all_noticed_by)) for each in found}


def _report(outcomes: list[MutantOutcome]) -> int:
    for who, count in Counter(each.noticed_by for each in outcomes).most_common():
        print(f"{count:>4} {who}")
    for kind in sorted({each.kind for each in outcomes}):
        found = Counter(each.noticed_by for each in outcomes if each.kind == kind)
        print(f"     {kind}: {', '.join(f'{count} {who}' for who, count in found.most_common())}")
    alone = Counter(each.all_noticed_by[0] for each in outcomes if len(each.all_noticed_by) == 1)
    everybody = Counter(who for each in outcomes for who in each.all_noticed_by)
    for who, count in everybody.most_common() if len(everybody) > 1 else ():
        print(f"{count:>4} noticed by {who}, {alone[who]} by nobody else")
    return int(any(each.noticed_by == SURVIVED for each in outcomes))


def _control(chosen: Sequence[Edit], plan: Plan) -> str:
    """What fails in a copy without an edit; empty when nothing does."""
    asked = {pair for edit in chosen for pair in plan.stages(edit).items()}
    with TemporaryDirectory(prefix="replispec-mutant-") as folder:
        tree = _copy(Path(folder))
        complaints = [
            each for pair in sorted(asked) for each in _noticed(tree, dict([pair]), is_edited=False)
        ]
    return "; ".join(f"{who}: {by}" for who, by in complaints)


def _try(edit: Edit, plan: Plan, trees: SimpleQueue[Path]) -> MutantOutcome:
    """Edit a copy of the project that nobody else has now, ask, and leave it as it was."""
    began_s = time.monotonic()
    reason = _equivalent().get(edit.name)
    tree = trees.get()
    edited = tree / edit.path.relative_to(ROOT)
    try:
        edited.write_text(edit.text, "utf-8")
        stages = plan.stages(edit)
        found = list(islice(_noticed(tree, stages), plan.enough))
    finally:
        shutil.copy(edit.path, edited)
        trees.put(tree)
    who, by = found[0] if found else (EQUAL, reason) if reason else (SURVIVED, "")
    judges = tuple(judge for judge, _ in found if judge in stages)
    return MutantOutcome(edit.kind, edit.name, who, by, time.monotonic() - began_s, judges)


def _generated(tree: Path) -> dict[str, bytes]:
    """What was compiled, without the digests of the sources."""
    return {
        str(path.relative_to(tree)): DIGEST.sub(b"", path.read_bytes())
        for path in sorted((tree / "generated").rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }


def _equivalent() -> dict[str, str]:
    known: dict[str, str] = yaml.safe_load(EQUIVALENT.read_text()) or {}
    return known


def _copy(folder: Path) -> Path:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    return folder


def _noticed(tree: Path, stages: Stages, *, is_edited: bool = True) -> Iterator[tuple[str, str]]:
    """Who notices what is in the tree, and by what, one judge after the other."""
    # Bytecode knows its source by size and second alone, and this one is written again and again.
    for stale in list((tree / "generated").rglob("__pycache__")):
        shutil.rmtree(stale)
    done = _run(tree, ["-m", "replispec.compiler.generate"])
    if done.returncode:
        yield REFUSED, (done.stderr.strip().splitlines() or ["without a word"])[-1]
        return
    if is_edited and _generated(tree) == _generated(ROOT):
        yield EQUAL, "it compiles to the same"
        return
    for who, arguments in stages.items():
        places = [
            each
            for each in arguments
            if not each.startswith("tests") or (tree / each.partition("::")[0]).exists()
        ]
        if not any(each.startswith("tests") for each in places):
            continue
        done = _run(tree, ["-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *places])
        if done.returncode:
            failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
            yield who, (failed or done.stdout.strip().splitlines()[-1:] or ["time over"])[0][:200]


def _run(tree: Path, arguments: list[str]) -> subprocess.CompletedProcess[str]:
    """Run Python with the packages of the copy in front of those that are installed."""
    build = tomllib.loads((tree / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
    rooms = os.pathsep.join(str(tree / room) for room in build["dev-mode-dirs"])
    environment = {**os.environ, "PYTHONPATH": rooms}
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
