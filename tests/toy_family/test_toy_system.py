"""The toy has a system: who is told that it leads is explored, and an error in its machine is a story."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from replispec.compiler.generate import generate, write
from tests.cli.command import replispec
from tests.toy_family.test_toy_family import HERE, ROOT

SYSTEM = "one_lease"
ERRORS = {
    "another leader has the epoch of the one before": (
        "assign: {holder: event.holder, epoch: epoch + 1}",
        "assign: {holder: event.holder, epoch: 'epoch + (1 if epoch == 0 else 0)'}",
        "one_leader_an_epoch",
        5,
    ),
    "a lease that lapsed is granted to nobody": (
        "do: [grant]\n    assign:",
        "do: [refuse]\n    assign:",
        "every_event_has_an_edge",
        1,
    ),
    "a lease lapses and stays held": (
        "to: KEEPING, assign: {holder: none}",
        "to: KEEPING, assign: {holder: 'none', epoch: '0'}",
        "one_leader_an_epoch",
        5,
    ),
}


def explored(folder: Path, before: str = "", after: str = "") -> dict[str, Any]:
    """What is found in the toy's specification, edited in one place."""
    spec = folder / "spec"
    shutil.copytree(HERE / "spec", spec)
    options = "proto/replispec/options"
    shutil.copytree(ROOT / "spec" / options, spec / options)
    path = spec / "statemachines/toy/lease_keeper.yaml"
    assert before in path.read_text()
    path.write_text(path.read_text().replace(before, after) if before else path.read_text())
    write(generate(spec), folder / "generated")
    paths = os.pathsep.join(map(str, (folder / "generated", HERE / "package")))
    out = folder / "found.json"
    done = replispec("spec", "explore", SYSTEM, "--json", out, environment={"PYTHONPATH": paths})
    assert out.exists(), done.stderr
    found: dict[str, Any] = json.loads(out.read_text())
    return found


def test_its_system_keeps_what_it_promises(tmp_path: Path) -> None:
    found = explored(tmp_path)
    assert found["stories"] == []
    assert found["finished"]
    promises = {"every_event_has_an_edge", "one_leader_an_epoch", "some_day_somebody_leads"}
    assert set(found["kept"]) == promises
    assert found["never_due"] == []
    assert found["never_happened"] == []
    (coverage,) = found["coverage"]
    assert coverage["never"] == []


@pytest.mark.parametrize("name", ERRORS)
def test_an_error_of_its_machine_is_a_story(name: str, tmp_path: Path) -> None:
    before, after, promise, steps = ERRORS[name]
    found = explored(tmp_path, before, after)
    assert [(each["promise"], len(each["steps"])) for each in found["stories"]] == [(promise, steps)]
