"""A story that one wire shows becomes a case of the suite: who has the fault fails it, we pass."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cli.command import replispec
from tests.explorer.errors import Error
from tests.explorer.judged_case import verdicts
from tests.explorer.test_mended import ERRORS, ROOT, compiled

MENDED: tuple[str | Path, ...] = ("--mended", ROOT / "spec")


@dataclass(frozen=True)
class Shown:
    """An error that one wire shows, and what the suite says of a controller that has it."""

    error: Error
    symptom: str
    steps: int


SHOWN = {
    # Only what is asked after the story's end tells that epochs fell.
    "epochs": Shown(
        ERRORS["a set that was emptied begins its epochs anew"],
        "step 7: header.syncStateSetEpoch 1 instead of 3",
        7,
    ),
    "identities": Shown(
        Error(
            "statemachines/rocketmq/broker_set",
            "event.owner_code == none and event.broker_id == next_broker_id",
            "event.broker_id <= next_broker_id",
            "registration",
            ("--set", "lost=0", "--set", "crashes=0"),
            "an_id_has_one_owner",
            12,
        ),
        "step 4: code SUCCESS instead of CONTROLLER_BROKER_ID_INVALID",
        4,
    ),
}


def explore(error: Error, folder: Path, *more: str | Path) -> subprocess.CompletedProcess[str]:
    environment = compiled(error, folder)
    return replispec("spec", "explore", error.system, *error.asked, *more, environment=environment)


def judged_with(environment: Mapping[str, str], cases: Path) -> list[str]:
    """What the suite says of a controller of another specification."""
    command = [sys.executable, "-m", "tests.explorer.judged_case", str(cases)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


# The larger systems are explored, and what is found there played, by `make test-full`.
IS_WHOLE = os.environ.get("REPLISPEC_EDITS") == "all"
PLAYED = SHOWN if IS_WHOLE else {"identities": SHOWN["identities"]}


@pytest.mark.parametrize("shown", PLAYED.values(), ids=PLAYED)
def test_a_story_is_a_case_that_finds_its_fault_and_nothing_in_ours(shown: Shown, tmp_path: Path) -> None:
    error, cases = shown.error, tmp_path / "cases"
    environment = compiled(error, tmp_path)
    asked: tuple[str | Path, ...] = (error.system, *error.asked, "--case", cases, *MENDED)
    found = replispec("spec", "explore", *asked, environment=environment)
    assert found.returncode == 1, found.stderr
    assert f"BROKEN  {error.promise}" in found.stdout
    path = cases / "controller" / f"{error.system}.yaml"
    assert found.stdout.endswith(f"written: {path}\n")
    assert path.read_text().count("- send:") == shown.steps
    assert judged_with(environment, cases) == [f"fail: {shown.symptom}"]
    (ours,) = verdicts(cases).results
    assert (ours.verdict.value, ours.symptom) == ("pass", "")


REFUSED = {
    "a refused registration is sent again at once": "controller answers as it should, as far as was asked: "
    "what breaks nobody_repeats_without_pause is on another wire",
    "a refusal in doubt ends it": "sync_state_set does not say whose wire its stories are on: say suite",
}


@pytest.mark.parametrize("name", REFUSED if IS_WHOLE else ["a refusal in doubt ends it"])
def test_a_story_that_no_one_wire_shows_is_refused_with_one_sentence(name: str, tmp_path: Path) -> None:
    done = explore(ERRORS[name], tmp_path, "--case", tmp_path / "cases", *MENDED)
    assert done.returncode == 2
    assert done.stderr == f"Error: the story is no case: {REFUSED[name]}\n"
    assert not (tmp_path / "cases").exists()


def test_without_a_broken_promise_there_is_no_case(tmp_path: Path) -> None:
    asked: tuple[str | Path, ...] = (
        "registration",
        "--count",
        "broker=1",
        "--case",
        tmp_path / "cases",
        *MENDED,
    )
    done = replispec("spec", "explore", *asked)
    assert (done.returncode, done.stderr) == (
        2,
        "Error: no promise is broken: there is no story to write as a case\n",
    )


def test_a_case_needs_the_specification_that_says_what_is_right(tmp_path: Path) -> None:
    done = replispec("spec", "explore", "registration", "--case", tmp_path)
    assert done.returncode == 2
    assert "--case and --mended go together: what is right, a story alone does not say" in done.stderr


def test_an_act_of_the_subject_that_is_no_request_is_named(tmp_path: Path) -> None:
    """Once a broker fell silent, a case would have to wait: no request says it."""
    error = Error(
        "statemachines/rocketmq/broker_set",
        "assign: {master: none, master_epoch: master_epoch + 1}",
        "assign: {master: none, master_epoch: 0}",
        "cleaning",
        ("--set", "removals=0"),
        "epochs_never_fall",
        5,
    )
    done = explore(error, tmp_path, "--case", tmp_path / "cases", *MENDED)
    assert done.returncode == 2, done.stdout
    assert "the story is no case: the act falls_silent is no request to controller" in done.stderr
