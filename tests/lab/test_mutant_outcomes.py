"""What is known of edits is kept, believed for the same source alone, and told as a table."""

from __future__ import annotations

import subprocess
from datetime import date
from pathlib import Path
from queue import SimpleQueue

import pytest

from lab import mutants
from lab.edits import Edit
from lab.mutant_judges import Stages
from lab.mutant_outcomes import EXPLORER, STORIES, MutantOutcome, known, table, write

BROKEN = "FAILED tests/explorer/test_promises.py::test_a - ['a <b> | c'] == []"
ASKED = [
    ({EXPLORER: "", "unit tests": "FAILED x"}, "", "others, not the explorer"),
    ({EXPLORER: BROKEN, "unit tests": "FAILED x"}, "", "explorer and others"),
    ({EXPLORER: BROKEN, "unit tests": "", "simulation": ""}, "", "explorer alone"),
    ({EXPLORER: "", "unit tests": "", STORIES: "FAILED y"}, "", "nobody"),
    ({EXPLORER: "", "unit tests": "", STORIES: "FAILED y"}, "It heals.", "nobody, and nobody can"),
    ({"refused by the compiler": "no"}, "", "refused by the compiler"),
]


@pytest.mark.parametrize(("asked", "reason", "verdict"), ASKED, ids=[each[2] for each in ASKED])
def test_what_the_explorer_is_worth_is_one_phrase(asked: dict[str, str], reason: str, verdict: str) -> None:
    outcome = MutantOutcome("edge", "a: edge 0 removed", "0", asked, reason, is_whole=True)
    assert outcome.verdict == verdict
    outcome.is_whole = False
    assert outcome.verdict == "not known yet"


def test_outcomes_are_read_as_they_were_written(tmp_path: Path) -> None:
    outcomes = [
        MutantOutcome("edge", f"edit {n}", "0", asked, reason) for n, (asked, reason, _) in enumerate(ASKED)
    ]
    write(outcomes, tmp_path / "kept" / "mutants.json")
    assert known(tmp_path / "kept" / "mutants.json") == {each.edit: each for each in outcomes}
    assert known(tmp_path / "nothing.json") == {}


def test_a_table_is_no_longer_a_table_with_a_bar_of_its_own() -> None:
    outcome = MutantOutcome("edge", "a if b < c", "0", {EXPLORER: BROKEN}, is_whole=True)
    page = table([outcome], "make mutants", "abc", date(2026, 1, 2))
    row = page.splitlines()[-1]
    assert "a if b \\< c" in row
    assert row.replace("\\|", "").count("|") == 6
    assert "FAILED" not in row


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Whom a run asks, without compiling or testing anything: the suite notices, nobody else does."""
    found: list[str] = []

    def failure(_tree: Path, tests: tuple[str, ...]) -> str:
        found.append(tests[0])
        return "FAILED" if tests[0] == "suite" else ""

    monkeypatch.setattr(mutants, "_failure", failure)
    monkeypatch.setattr(mutants, "_compiled", lambda _tree: "")
    monkeypatch.setattr(mutants, "_generated", lambda tree: {"tree": str(tree).encode()})
    return found


def _run(
    outcome: MutantOutcome, tmp_path: Path, until_s: float = float("inf"), now: frozenset[str] = frozenset()
) -> MutantOutcome:
    stages: Stages = {who: (who,) for who in (EXPLORER, "unit tests", "suite", "replay", STORIES)}
    plan = mutants.Plan(lambda _: stages, mutants._is_told)
    asking = mutants.Asking(plan, tmp_path / "out.json", until_s, now)
    asking.kept = [outcome]
    source = next((mutants.ROOT / "spec").rglob("broker_set.yaml"))
    trees: SimpleQueue[Path] = SimpleQueue()
    trees.put(tmp_path / "tree")
    (tmp_path / "tree" / source.relative_to(mutants.ROOT)).parent.mkdir(parents=True, exist_ok=True)
    asking.ask(Edit("edge", outcome.edit, source, lambda: "edited"), outcome, trees)
    return outcome


def test_the_explorer_is_always_asked_and_others_until_one_notices(asked: list[str], tmp_path: Path) -> None:
    outcome = _run(MutantOutcome("edge", "an edit", "0"), tmp_path)
    assert asked == [EXPLORER, "unit tests", "suite"]
    assert outcome.is_whole
    assert outcome.verdict == "others, not the explorer"


def test_what_was_asked_before_is_not_asked_again(asked: list[str], tmp_path: Path) -> None:
    outcome = _run(MutantOutcome("edge", "an edit", "0", {"suite": "FAILED", "unit tests": ""}), tmp_path)
    assert asked == [EXPLORER]
    assert outcome.is_whole


def test_nobody_is_asked_when_time_is_over(asked: list[str], tmp_path: Path) -> None:
    outcome = _run(MutantOutcome("edge", "an edit", "0"), tmp_path, until_s=0.0)
    assert (asked, outcome.is_whole) == ([], False)


def test_who_is_left_for_another_run_is_asked_then(asked: list[str], tmp_path: Path) -> None:
    outcome = _run(MutantOutcome("edge", "an edit", "0"), tmp_path, now=frozenset({EXPLORER}))
    assert (asked, outcome.is_whole) == ([EXPLORER], False)
    assert _run(outcome, tmp_path).is_whole
    assert asked == [EXPLORER, "unit tests", "suite"]


def test_copies_are_where_their_commands_find_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Whoever compiles and tests runs in the copy: what is below a path from here is not below it there."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["mutants"])
    assert mutants._arguments().out == tmp_path / "out" / "mutants.json"


def test_a_copy_of_which_nothing_was_compiled_is_asked_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Its tests would find what is installed, which is not edited."""
    done = subprocess.CompletedProcess[str]([], 0, "", "")
    monkeypatch.setattr(mutants, "_run", lambda _tree, _arguments: done)
    with pytest.raises(RuntimeError, match="nothing was compiled"):
        mutants._compiled(tmp_path)


def test_of_another_source_nothing_is_believed() -> None:
    edit = Edit("edge", "an edit", Path("a.yaml"), lambda: "new")
    fresh = mutants._begun(edit, {})
    fresh.asked["suite"] = "FAILED"
    assert mutants._begun(edit, {"an edit": fresh}).asked == {"suite": "FAILED"}
    other = Edit("edge", "an edit", Path("a.yaml"), lambda: "newer")
    assert mutants._begun(other, {"an edit": fresh}).asked == {}
