"""All targets in one go: what is missing is left out, what fails costs its own row, everything is stopped."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from targets.run_all import Plan, run_all

# A target that notes what is asked of it; its name decides how it behaves.
SCRIPT = """#!/bin/sh
name=$(basename "$(dirname "$0")")
echo "$name $1 $3" >> "$(dirname "$0")/../calls"
case $name-$1 in
absent-fetch) echo "absent: cargo is missing" >&2; exit 3 ;;
broken-start) echo "broken: it ended" >&2; exit 1 ;;
*-kinds) echo controller; test $name = broken || echo ha-master ;;
*-start)
    echo '{"target": "127.0.0.1:1", "controller": "127.0.0.1:2", "broker": "127.0.0.1:3",' \\
        '"brokerName": "a", "implementation": "x", "release": "1.2.3", "speaks": "5.4.0", "kind": "'$3'"}' ;;
esac
"""
# The suite: finds something in HA masters, and ends badly when it is told to judge `odd`.
SUITE = """
import pathlib, sys
words = sys.argv[2:]
options = dict(zip(words[0::2], words[1::2]))
if sys.argv[1] == "compliance":
    names = sorted(pathlib.Path(word).name for word in words[2:])
    pathlib.Path(options["--out"]).write_text(" ".join(names))
elif "odd" in options["--json"]:
    sys.exit(2)
else:
    pathlib.Path(options["--json"]).write_text(" ".join(words))
    sys.exit(options["--kind"] == "ha-master")
"""


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    """A folder for targets, and the fake suite."""
    suite = tmp_path / "suite.py"
    suite.write_text(SUITE)
    (tmp_path / "targets").mkdir()
    command = (sys.executable, str(suite))
    return Plan(tmp_path / "targets", command, tmp_path / "results", tmp_path / "table.md")


def add(plan: Plan, *names: str) -> None:
    """Add targets of these names."""
    for name in names:
        script = plan.targets / name / "run"
        script.parent.mkdir()
        script.write_text(SCRIPT)
        script.chmod(0o755)


def calls(plan: Plan) -> list[str]:
    """What was asked of the targets, in order."""
    return (plan.targets / "calls").read_text().splitlines()


def test_every_target_is_played_as_every_kind_and_stopped(
    plan: Plan, capsys: pytest.CaptureFixture[str]
) -> None:
    add(plan, "one", "two")
    assert run_all(plan, []) == 1, "the suite found something"
    rows = [line.split() for line in capsys.readouterr().out.split("\n\n")[1].splitlines()]
    assert rows == [
        ["one", "controller", "ok"],
        ["one", "ha-master", "findings"],
        ["two", "controller", "ok"],
        ["two", "ha-master", "findings"],
        [str(plan.table)],
    ]
    assert [call for call in calls(plan) if call.startswith("one")] == [
        *("one fetch ", "one kinds "),
        *("one start controller", "one stop "),
        *("one start ha-master", "one stop "),
    ]
    assert plan.table.read_text().split() == [
        *("one-controller.json", "one-ha-master.json", "two-controller.json", "two-ha-master.json")
    ]


def test_the_suite_is_told_all_that_the_ready_line_says(plan: Plan) -> None:
    add(plan, "one", "two")
    run_all(plan, ["one"])
    assert not plan.table.exists(), "a choice of targets makes no table of all"
    words = (plan.results / "one-ha-master.json").read_text().split()
    assert dict(zip(words[0::2], words[1::2], strict=True)) == {
        "--kind": "ha-master",
        "--target": "127.0.0.1:1",
        "--controller": "127.0.0.1:2",
        "--broker": "127.0.0.1:3",
        "--broker-set": "a",
        "--implementation": "one",
        "--release": "5.4.0",
        "--json": str(plan.results / "one-ha-master.json"),
    }


def test_a_target_that_is_not_installed_is_skipped_with_its_reason(
    plan: Plan, capsys: pytest.CaptureFixture[str]
) -> None:
    add(plan, "absent")
    assert run_all(plan, []) == 2, "nothing was left to play"
    assert "skipped: absent: cargo is missing" in capsys.readouterr().out
    assert calls(plan) == ["absent fetch "]


def test_a_target_that_does_not_start_costs_its_own_row(
    plan: Plan, capsys: pytest.CaptureFixture[str]
) -> None:
    add(plan, "broken", "one")
    assert run_all(plan, []) == 1
    assert "failed: broken: it ended (logs: " in capsys.readouterr().out
    assert "broken stop " in calls(plan)
    assert (plan.results / "one-controller.json").exists()


def test_a_suite_that_breaks_off_leaves_no_result_of_an_earlier_run(
    plan: Plan, capsys: pytest.CaptureFixture[str]
) -> None:
    add(plan, "odd", "one")
    plan.results.mkdir()
    (plan.results / "odd-controller.json").write_text(json.dumps("from yesterday"))
    assert run_all(plan, []) == 1
    assert "failed: the suite ended with exit code 2" in capsys.readouterr().out
    assert (plan.results / "table.md").read_text().split() == ["one-controller.json", "one-ha-master.json"]
    assert not plan.table.exists(), "a table that lacks somebody is not shown to everybody"


def test_a_name_that_no_target_has_is_refused_before_anything_starts(
    plan: Plan, capsys: pytest.CaptureFixture[str]
) -> None:
    add(plan, "one")
    assert run_all(plan, ["two"]) == 2
    assert capsys.readouterr().err == "replispec: no target two: there are one\n"
    assert not (plan.targets / "calls").exists()
