"""Stories of `sync_state_set` and `registration` are played on real nodes; these are asked for the promise.

Each is that of an error that was mended: nodes that have it break the promise, ours keep it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.explorer.test_mended import ERRORS, ROOT, compiled
from tests.sim.played_story import player_of

PLAYED = (
    "whom it asked in is forgotten with an epoch in which nothing was written",
    "whom it asked in counts no more after a master began again",
    "a refusal in doubt ends it",
    "nobody asks for a master where an administrator removed it",
    "an alteration without an answer is waited for for ever",
    "a master takes a newer set under the older number",
    "an id that another broker has is granted",
    "a broker registers by another id than its disk holds",
)
# Each compiles a specification: every fourth one, all in `make test-full`.
TRIED = PLAYED[:: 1 if os.environ.get("REPLISPEC_EDITS") == "all" else 4]
OVER = {"sync_state_set": ", 2 of them passed over", "registration": ""}
"""Brokers ask for an election before they ask who is master."""


def processed(environment: dict[str, str], run: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    """A module of ours, run with another specification."""
    command = [sys.executable, "-m", *run]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", TRIED)
def test_the_promise_is_broken_on_nodes_that_have_the_error_and_kept_on_ours(
    name: str, tmp_path: Path
) -> None:
    error, script = ERRORS[name], tmp_path / "story.json"
    environment = compiled(error, tmp_path)
    explore = ("replispec.cli", "spec", "explore", error.system, *error.asked, "--script", str(script))
    runs = [explore, *[("tests.sim.played_story", str(script))] * 2]
    done = [processed(environment, run) for run in runs]
    assert done[0].returncode == 1, done[0].stderr
    assert done[1].stdout == done[2].stdout, "the same twice"
    assert f": {error.steps} steps played{OVER[error.system]}, all;" in done[1].stdout
    assert "  the promise is broken\n" in done[1].stdout
    told = json.loads(script.read_text("utf-8"))
    first, second = (player_of(told).play() for _ in range(2))
    assert first == second
    assert (first.steps, first.stopped, first.holds) == (error.steps, "", True)
