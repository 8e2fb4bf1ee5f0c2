"""What cannot be explored is refused with one line; what does not end is ended at a bound that is said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click import ClickException
from click.testing import CliRunner

from replispec.cli.main import command_line
from replispec.compiler.generate import generate, write
from replispec.explorer import search as searching
from replispec.explorer.report import Extent, explored, system_named
from tests.cli.command import replispec
from tests.explorer.walkthrough import environment, written

SYSTEM = "sync_state_set"
REFUSED = [
    (["no_such_system"], "no system is named 'no_such_system': there are "),
    (
        [SYSTEM, "--set", "floods=1"],
        f"{SYSTEM} has no budget 'floods': it has blindness, crashes, delays, lags, late",
    ),
    ([SYSTEM, "--set", "lost=5000000"], "'lost=5000000' is no NAME=N: give a number from 0 to 9"),
    ([SYSTEM, "--set", "lost=-1"], "'lost=-1' is no NAME=N"),
    ([SYSTEM, "--set", "lost"], "'lost' is no NAME=N"),
    ([SYSTEM, "--set", "lost=many"], "'lost=many' is no NAME=N"),
    ([SYSTEM, "--set", "lost=1", "--set", "lost=0"], "lost is given twice, as 1 and 0: leave one out"),
    ([SYSTEM, "--html", "nowhere/a.html"], "nowhere/a.html: there is no folder nowhere: make it first"),
    ([SYSTEM, "--json", "nowhere/a.json"], "nowhere/a.json: there is no folder nowhere"),
    ([SYSTEM, "--script", "nowhere/a.json"], "nowhere/a.json: there is no folder nowhere"),
    ([SYSTEM, "--count", "learner=1"], f"{SYSTEM} has no party 'learner': it has broker, controller"),
    ([SYSTEM, "--count", "controller=2"], f"{SYSTEM} speaks of one controller: leave its count"),
    ([SYSTEM, "--count", "broker=0"], f"no broker at all: {SYSTEM} needs at least one"),
    ([SYSTEM, "--set", "lost=\N{ARABIC-INDIC DIGIT THREE}"], "is no NAME=N: give a number from 0 to 9"),
    ([SYSTEM, "--set", "lost="], "'lost=' is no NAME=N"),
    ([SYSTEM, "--count", "broker=10"], "'broker=10' is no NAME=N"),
    ([SYSTEM, "--states", "100000001"], "100,000,001 states cannot be explored: ask for at most 100,000,000"),
    ([SYSTEM, "--states", "0"], "Invalid value for '--states'"),
    ([SYSTEM, "--messages", "17"], "Invalid value for '--messages'"),
    ([SYSTEM, "--messages", "0"], "Invalid value for '--messages'"),
    ([SYSTEM, "--seconds", "nan"], "nan seconds are no bound"),
    ([SYSTEM, "--seconds", "inf"], "inf seconds are no bound"),
    ([SYSTEM, "--seconds", "-1"], "Invalid value for '--seconds'"),
]


@pytest.mark.parametrize(("arguments", "says"), REFUSED, ids=[" ".join(each[0]) for each in REFUSED])
def test_what_cannot_be_explored_is_refused_with_one_line(arguments: list[str], says: str) -> None:
    done = CliRunner(catch_exceptions=False).invoke(command_line, ["spec", "explore", *arguments])
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("Error: ")]
    assert says in line
    assert done.exit_code != 0
    assert done.stdout == ""


def test_a_system_may_be_named_with_its_family() -> None:
    assert system_named(f"rocketmq.{SYSTEM}") is system_named(SYSTEM)


def test_without_a_broken_promise_there_is_no_script(tmp_path: Path) -> None:
    path = tmp_path / "story.json"
    done = replispec("spec", "explore", SYSTEM, "--count", "broker=1", "--script", path)
    assert done.returncode == 2
    assert "no promise is broken: there is no story to write as a script" in done.stderr
    assert not path.exists()


def test_a_refusal_has_its_exit_code() -> None:
    assert replispec("spec", "explore", "no_such_system").returncode == 2


def test_a_system_that_never_ends_is_ended_at_a_bound_that_is_said(tmp_path: Path) -> None:
    """Without a budget its customer wants one more thing for ever."""
    folder = written(tmp_path)
    path = folder / "spec/systems/till/one_sale.yaml"
    text = path.read_text().replace("    budget: wishes\n", "").replace(", wishes: 2", "")
    path.write_text(text.replace("{lost: 1}", "{lost: 0}"))
    write(generate(folder / "spec"), folder / "generated")
    arguments = ("one_sale", "--states", "500", "--json", "found.json")
    done = replispec("spec", "explore", *arguments, cwd=folder, environment=environment(folder))
    assert done.returncode == 0, done.stderr
    assert "not to the end" in done.stdout.splitlines()[0]
    assert "open    some_day_content: holds as far as was explored" in done.stdout
    found = json.loads((folder / "found.json").read_text())
    assert (found["finished"], found["kept"]) == (False, [])
    assert 500 < found["states"] < 600


def test_a_bound_of_states_holds_within_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searching, "POPULATION", 20)
    report, search = explored(system_named(SYSTEM), Extent(states=20_000), lambda: 0.0)
    assert 20_000 < report.states < 21_000
    assert not report.finished
    assert report.kept == ()
    assert len(search.ends()) == report.states


def test_a_bound_of_time_is_met_by_the_clock_that_is_handed_in() -> None:
    times = iter(range(10_000))
    report, _ = explored(system_named(SYSTEM), Extent(seconds=20), lambda: float(next(times)))
    assert not report.finished
    assert 20 < report.seconds < 30


def test_how_a_population_is_cut_changes_nothing_that_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    bounds = Extent({"broker": 1}, messages=3)
    whole, _ = explored(system_named(SYSTEM), bounds, lambda: 0.0)
    monkeypatch.setattr(searching, "POPULATION", 7)
    cut, _ = explored(system_named(SYSTEM), bounds, lambda: 0.0)
    assert cut == whole


def test_an_exploration_without_memory_left_is_refused_and_breaks_no_promise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def without_memory(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr(searching.Search, "run", without_memory)
    with pytest.raises(ClickException, match=f"{SYSTEM}: no memory is left for more states"):
        command_line(["spec", "explore", SYSTEM], standalone_mode=False)
