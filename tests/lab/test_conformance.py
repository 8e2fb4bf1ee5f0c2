"""All subjects in one go: what is missing is left out, what fails costs its own row, everything is ended."""

from __future__ import annotations

import json
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
    names = sorted(pathlib.Path(word).name for word in words[2:])
    pathlib.Path(options["--out"]).write_text(" ".join(names))
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
    assert rows == [
        ["one", "controller", "ok"],
        ["one", "ha-master", "findings"],
        ["two", "controller", "ok"],
        ["two", "ha-master", "findings"],
        [str(plan.table)],
    ]
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


def test_a_subject_that_does_not_start_costs_its_own_row(
    plan: SubjectPlan, starter: Starter, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_all(of(plan, starter, "broken", "one"), []) == 1
    assert "failed: it ended (folder: " in capsys.readouterr().out
    assert not starter.started[0].alive
    assert (plan.results / "one-controller.json").exists()


def test_a_suite_that_breaks_off_leaves_no_result_of_an_earlier_run(
    plan: SubjectPlan, starter: Starter, capsys: pytest.CaptureFixture[str]
) -> None:
    plan.results.mkdir()
    (plan.results / "odd-controller.json").write_text(json.dumps("from yesterday"))
    assert run_all(of(plan, starter, "odd", "one"), []) == 1
    assert "failed: the suite ended with exit code 2" in capsys.readouterr().out
    assert (plan.results / "table.md").read_text().split() == ["one-controller.json", "one-ha-master.json"]
    assert not plan.table.exists(), "a table that lacks somebody is not shown to everybody"


def test_a_name_that_no_subject_has_is_refused_before_anything_starts(
    plan: SubjectPlan, starter: Starter, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_all(of(plan, starter, "one"), ["two"]) == 2
    assert capsys.readouterr().err == "replispec: no subject two: there are one\n"
    assert starter.asked == []


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
