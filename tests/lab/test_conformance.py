"""All subjects in one go: what is missing is left out, what fails costs its own row, everything is ended."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from lab.cluster import Cluster, Settings
from lab.conformance import SubjectPlan, run_all
from lab.errors import LabError, NotInstalledError
from lab.processes import StartedProcess
from lab.rocketmq.roles import RocketmqSubject
from lab.rocketmq.serving import BROKER, CONTROLLER

LASTING = (sys.executable, "-c", "import signal; signal.pause()")
# The suite: finds something in HA masters, and ends badly when it is told to judge `odd`.
SUITE = """
import pathlib, sys
words = sys.argv[2:]
options = dict(zip(words[0::2], words[1::2]))
if sys.argv[1] == "compliance":
    names = sorted(pathlib.Path(word).name for word in words[2:] if word.endswith(".json"))
    lacking = [" ".join(words[at + 1 : at + 4]) for at, word in enumerate(words) if word == "--not-played"]
    pathlib.Path(options["--out"]).write_text("\\n".join([*names, *lacking]))
elif "odd" in options["--json"]:
    sys.exit(2)
else:
    pathlib.Path(options["--json"]).write_text(" ".join(words))
    sys.exit(options["--kind"] == "ha-master")
"""


@dataclass
class Starter:
    """Notes what is asked, starts a process that lasts for each, and gives a ready line."""

    asked: list[str] = field(default_factory=list)
    started: list[StartedProcess] = field(default_factory=list)

    def serve(self, cluster: Cluster, subject: Fake, kind: str) -> dict[str, object]:
        self.asked.append(f"{subject.name} {kind}")
        self.started.append(cluster.launch(kind, LASTING))
        if subject.name == "broken":
            raise LabError("it ended")
        return {
            "target": "127.0.0.1:1",
            "controller": "127.0.0.1:2",
            "broker": "127.0.0.1:3",
            "brokerName": "a",
            "implementation": "x",
            "release": "1.2.3",
            "speaks": "5.4.0",
        }


class Fake(RocketmqSubject):
    """A subject whose name decides how it behaves."""

    implementation, release, speaks = "x", "1.2.3", "5.4.0"

    def __init__(self, name: str, starter: Starter) -> None:
        self._name = name
        self._starter = starter
        kinds = {"controller": CONTROLLER, "ha-master": BROKER}
        self.kinds: Mapping[str, str] = {"controller": CONTROLLER} if name == "broken" else kinds

    @property
    def name(self) -> str:
        return self._name

    def fetch(self) -> Path:
        if self.name == "absent":
            raise NotInstalledError("cargo is missing")
        return Path()

    def command(self, cluster: Cluster, role: str, name: str, settings: Settings) -> Sequence[str]:
        raise NotImplementedError

    def serve(self, cluster: Cluster, kind: str) -> dict[str, object]:
        return self._starter.serve(cluster, self, kind)


@pytest.fixture
def starter() -> Starter:
    """What starts the subjects."""
    return Starter()


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SubjectPlan:
    """A plan without subjects, and the fake suite."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    suite = tmp_path / "suite.py"
    suite.write_text(SUITE)
    command = (sys.executable, str(suite))
    return SubjectPlan({}, command, tmp_path / "results", tmp_path / "table.md")


def of(plan: SubjectPlan, starter: Starter, *names: str) -> SubjectPlan:
    """The plan with subjects of these names."""
    return replace(plan, subjects={name: Fake(name, starter) for name in names})


def test_every_subject_is_played_as_every_kind_and_ended(
    plan: SubjectPlan, starter: Starter, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_all(of(plan, starter, "one", "two"), []) == 1, "the suite found something"
    rows = [line.split() for line in capsys.readouterr().out.split("\n\n")[1].splitlines()]
    assert rows[:-2] == [
        ["one", "controller", "ok"],
        ["one", "ha-master", "findings"],
        ["two", "controller", "ok"],
        ["two", "ha-master", "findings"],
    ]
    assert rows[-2][:3] == ["4", "runs", "in"]
    assert rows[-1] == [str(plan.table)]
    assert starter.asked == ["one controller", "one ha-master", "two controller", "two ha-master"]
    assert not any(process.alive for process in starter.started)
    assert plan.table.read_text().split() == [
        *("one-controller.json", "one-ha-master.json", "two-controller.json", "two-ha-master.json")
    ]


def test_the_suite_is_told_all_that_the_ready_line_says(plan: SubjectPlan, starter: Starter) -> None:
    run_all(of(plan, starter, "one", "two"), ["one"])
    assert not plan.table.exists(), "a choice of subjects makes no table of all"
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


def test_what_a_subject_is_adapted_to_is_played_without_starting_it_here(
    plan: SubjectPlan, starter: Starter
) -> None:
    adapted = Fake("one", starter)
    adapted.kinds, adapted.adapted = {}, ["name-server"]
    assert run_all(replace(plan, subjects={"one": adapted}), []) == 0
    words = (plan.results / "one-name-server.json").read_text()
    assert f"--kind name-server --adapter {sys.executable} -m lab.adapter one --jobs 2" in words
    assert words.endswith(
        f"--implementation one --release 5.4.0 --json {plan.results / 'one-name-server.json'}"
    )
    assert starter.asked == []


def test_a_subject_that_is_not_installed_is_skipped_with_its_reason(
    plan: SubjectPlan, starter: Starter, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_all(of(plan, starter, "absent"), []) == 2, "nothing was left to play"
    assert "skipped: cargo is missing" in capsys.readouterr().out
    assert starter.asked == []


def test_a_subject_that_does_not_start_costs_its_own_row_and_is_a_line_of_the_table(
    plan: SubjectPlan, starter: Starter, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_all(of(plan, starter, "broken", "one"), []) == 1
    assert "failed: it ended (folder: " in capsys.readouterr().out
    assert not starter.started[0].alive
    assert plan.table.read_text().splitlines() == [
        *("one-controller.json", "one-ha-master.json", "controller broken it ended")
    ]


def test_a_suite_that_breaks_off_leaves_no_result_of_an_earlier_run(
    plan: SubjectPlan, starter: Starter, capsys: pytest.CaptureFixture[str]
) -> None:
    plan.results.mkdir()
    (plan.results / "odd-controller.json").write_text(json.dumps("from yesterday"))
    assert run_all(of(plan, starter, "odd", "one"), []) == 1
    assert "failed: the suite ended with exit code 2" in capsys.readouterr().out
    assert plan.table.read_text().splitlines() == [
        "one-controller.json",
        "one-ha-master.json",
        "controller odd the suite ended with exit code 2",
        "ha-master odd the suite ended with exit code 2",
    ]


def test_a_name_that_no_subject_has_is_refused_before_anything_starts(
    plan: SubjectPlan, starter: Starter, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_all(of(plan, starter, "one"), ["two"]) == 2
    assert capsys.readouterr().err == "replispec: no subject two: there are one\n"
    assert run_all(of(plan, starter, "one"), ["one/learner"]) == 2
    assert "there are one/controller, one/ha-master" in capsys.readouterr().err
    assert starter.asked == []


def test_one_kind_of_a_subject_may_be_asked_for(plan: SubjectPlan, starter: Starter) -> None:
    run_all(of(plan, starter, "one", "two"), ["two/controller", "one", "one/controller"])
    assert starter.asked == ["two controller", "one controller", "one ha-master"]


def test_an_interrupted_run_leaves_no_folder_and_no_process(plan: SubjectPlan) -> None:
    class Interrupted(Starter):
        def serve(self, cluster: Cluster, subject: Fake, kind: str) -> dict[str, object]:
            super().serve(cluster, subject, kind)
            raise KeyboardInterrupt

    starter = Interrupted()
    folder = plan.results.parent
    before = {*folder.iterdir()}
    with pytest.raises(KeyboardInterrupt):
        run_all(of(plan, starter, "one"), [])
    assert {*folder.iterdir()} - before == {plan.results}
    assert not any(process.alive for process in starter.started)


def test_runs_side_by_side_give_the_same_rows_with_their_seconds(
    plan: SubjectPlan, starter: Starter, capsys: pytest.CaptureFixture[str]
) -> None:
    side_by_side = replace(of(plan, starter, "broken", "odd", "one"), at_once=3)
    assert run_all(side_by_side, []) == 1
    shown = capsys.readouterr().out.rpartition("\n\n")[2].splitlines()
    changing = re.compile(r"\d+ s, \d+ s of CPU|folder: [^,)]*")
    assert sorted(changing.sub("..", " ".join(row.split())) for row in shown[:-2]) == [
        "broken controller failed: it ended (.., ..)",
        "odd controller failed: the suite ended with exit code 2 (..)",
        "odd ha-master failed: the suite ended with exit code 2 (..)",
        "one controller ok (..)",
        "one ha-master findings (..)",
    ]
    assert shown[-2].startswith("5 runs in ")
    assert plan.table.read_text().splitlines()[:3] == [
        *("one-controller.json", "one-ha-master.json", "controller broken it ended")
    ]


def test_what_took_longest_begins_first(plan: SubjectPlan, starter: Starter) -> None:
    plan.results.mkdir()
    for name, took_s in (("one-controller", 7.5), ("one-ha-master", 9.0), ("two-controller", 8.0)):
        (plan.results / f"{name}.json").write_text(json.dumps({"took_s": took_s}))
    rows = replace(of(plan, starter, "one", "two"), at_once=2).rows(["one", "two"])
    assert [next(rows).kind for _ in range(1)] == ["ha-master"], "of which nothing is known"
    rows.close()
