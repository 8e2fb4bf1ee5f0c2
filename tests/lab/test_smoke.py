"""`make smoke` stays what it says: quick, without a JDK, and red when something is broken."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from lab import smoke
from lab.errors import LabError
from tests.house.rules import imports, within
from tests.house.tree import ROOT, files, shown

# Some hundred: fewer prove little, more take longer than a minute.
FEWEST, MOST = 300, 1_200
SLOW_OR_JAVA = ("pandas", "pyspark", "replispec.replay", "replispec.compiler", "lab")


def test_the_list_of_quick_tests_names_some_hundred() -> None:
    listed = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--collect-only", *smoke.QUICK_TESTS, smoke.FRESHNESS],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    found = re.search(r"^(\d+) tests collected", listed.stdout, re.MULTILINE)
    assert found
    assert FEWEST <= int(found[1]) <= MOST


def test_no_quick_test_starts_spark_or_java_or_compiles() -> None:
    complaints = [
        f"{shown(path)}: line {line}: imports {name}"
        for path in files(*smoke.QUICK_TESTS, suffix=".py")
        for line, name in imports(path.read_text())
        if within(name, SLOW_OR_JAVA)
    ]
    assert complaints == []


def test_the_steps_that_cost_little_pass_and_say_what_they_did() -> None:
    assert [step() for step in (smoke.environment, smoke.command_line)][1] == "replispec --help"
    assert "220 acknowledged messages were lost" in smoke.replay()
    assert "a controller leads and answers" in smoke.live_process()


def test_a_replay_that_finds_something_else_is_red(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(smoke, "LOST", 219)
    with pytest.raises(LabError, match=r"220 lost messages found in .* instead of 219"):
        smoke.replay()


def test_the_first_step_that_fails_ends_the_run_with_what_it_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    broken = tmp_path / "test_broken.py"
    broken.write_text("def test_something() -> None:\n    raise ValueError('it is broken')\n")
    monkeypatch.setattr(smoke, "FRESHNESS", str(broken))
    monkeypatch.setattr(smoke, "STEPS", (smoke.generated_code, smoke.quick_tests))
    monkeypatch.setattr(sys, "argv", ["smoke"])
    assert smoke.main() == 1
    said = capsys.readouterr()
    assert "smoke: generated_code failed: pytest ended with exit code 1" in said.err
    assert "it is broken" in said.err
    assert said.out == ""
