"""Errors that the explorer found in the specification: each is put back, and found again, by its promise.

A copy of the specification is edited in one place, compiled and explored in a process of its own.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from replispec.compiler.generate import generate, write
from replispec.explorer.report import system_named, systems
from tests.explorer.errors import EVERYWHERE, OF_SETS, Error
from tests.explorer.errors_of_agreement import OF_AGREEMENT
from tests.explorer.errors_of_copies import OF_COPIES
from tests.explorer.errors_of_followers import OF_FOLLOWERS
from tests.explorer.errors_of_hearings import OF_HEARINGS
from tests.explorer.errors_of_learners import OF_LEARNERS
from tests.explorer.errors_of_moves import OF_MOVES
from tests.explorer.errors_of_queues import OF_QUEUES

ROOT = Path(__file__).parents[2]

ERRORS = {
    **OF_SETS,
    **OF_COPIES,
    **OF_LEARNERS,
    **OF_AGREEMENT,
    **OF_HEARINGS,
    **OF_QUEUES,
    **OF_MOVES,
    **OF_FOLLOWERS,
}


def compiled(error: Error, folder: Path) -> dict[str, str]:
    """The environment of processes that import the specification with an error, which is compiled here."""
    spec = folder / "spec"
    shutil.copytree(ROOT / "spec", spec)
    path = spec / f"{error.file}.yaml"
    text = path.read_text("utf-8")
    assert error.now in text, f"{error.file}: {error.now!r}"
    path.write_text(text.replace(error.now, error.before), "utf-8")
    write(generate(spec), folder / "generated")
    return {**os.environ, "PYTHONPATH": str(folder / "generated")}


def explored(error: Error, folder: Path) -> dict[str, Any]:
    """What the explorer finds in the specification with an error."""
    environment = compiled(error, folder)
    out = folder / "found.json"
    command = [sys.executable, "-m", "replispec.cli", "spec", "explore", error.system, *error.asked]
    ended = subprocess.run(  # our own command, with arguments from above
        [*command, "--json", str(out)], env=environment, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 1, ended.stdout + ended.stderr
    found: dict[str, Any] = json.loads(out.read_text("utf-8"))
    return found


UNBROKEN = {
    (system, promise): "no error of this kind was ever found in Kafka's machines"
    for system in ("partition_in_transition", "topic")
    for promise in ("one_leader_per_epoch", "leader_is_in_sync", "some_day_a_leader")
}
"""Promises, by system and name, that no error here breaks, and why."""

# Each compiles a specification: every sixteenth one, all in `make test-full`.
TRIED = list(ERRORS)[:: 1 if os.environ.get("REPLISPEC_EDITS") == "all" else 16]


def test_each_promise_of_each_system_is_broken_by_an_error() -> None:
    """A promise that nothing breaks may promise nothing; by one name two systems may promise two things."""
    promised = {(name, each.name) for name in systems() for each in system_named(name).properties}
    broken = {(each.system, name) for each in ERRORS.values() for name in (each.promise, *dict(each.beside))}
    assert {each for each in broken if each[1] != EVERYWHERE} | UNBROKEN.keys() == promised
    assert not broken & UNBROKEN.keys()


def test_what_each_error_changes_is_in_the_specification() -> None:
    """A usual run puts only some errors back: what others change must not leave the specification unseen."""
    texts = {each.file: (ROOT / "spec" / f"{each.file}.yaml").read_text("utf-8") for each in ERRORS.values()}
    assert [name for name, each in ERRORS.items() if each.now not in texts[each.file]] == []


@pytest.mark.parametrize("error", [ERRORS[name] for name in TRIED], ids=TRIED)
def test_an_error_that_was_mended_is_found_by_the_promise_that_it_breaks(
    error: Error, tmp_path: Path
) -> None:
    found = explored(error, tmp_path)
    steps = sorted((each["promise"], len(each["steps"])) for each in found["stories"])
    assert steps == sorted([(error.promise, error.steps), *error.beside])
