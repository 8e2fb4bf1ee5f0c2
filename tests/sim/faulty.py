"""Real nodes that have an error which was mended, and what a story shows on them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.explorer.errors import Error
from tests.explorer.test_mended import ROOT


def processed(environment: Mapping[str, str], run: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    """A module of ours, run with another specification."""
    command = [sys.executable, "-m", *run]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


def broken_on_nodes_that_have(
    error: Error, environment: Mapping[str, str], folder: Path, *, passed_over: str = ""
) -> dict[str, Any]:
    """Explore and play the story of an error that was put back: every step of it is played, the promise is
    broken, and it is so the same twice. `passed_over`: what is said of steps that nodes do without.

    The script of the story. Raises AssertionError.
    """
    script = folder / "story.json"
    explore = ("replispec.cli", "spec", "explore", error.system, *error.asked, "--script", str(script))
    found = processed(environment, explore)
    assert found.returncode == 1, found.stderr
    told: dict[str, Any] = json.loads(script.read_text("utf-8"))
    assert (told["promise"], len(told["steps"])) in ((error.promise, error.steps), *error.beside)
    # Of two promises that one step breaks the nodes are asked for the one that the error is about.
    told["promise"] = error.promise
    script.write_text(json.dumps(told), "utf-8")
    first, second = (processed(environment, ("tests.sim.played_story", str(script))) for _ in range(2))
    assert first.stdout == second.stdout, "the same twice"
    said = f"{error.promise}: {error.steps} steps played{passed_over}, all;"
    assert said in first.stdout, first.stdout + first.stderr
    assert "  the promise is broken\n" in first.stdout
    return told
