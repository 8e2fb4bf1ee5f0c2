"""Stories of `replication` and `fail_over` are played on real nodes, frame by frame.

The nodes are asked whether they keep the promise: those that have the error break it, ours keep it.
"""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from tests.explorer.test_mended import ERRORS, compiled
from tests.sim.played_copies import CopiesPlayer
from tests.sim.played_story import player_of
from tests.sim.test_played_sets import processed

JOINS = ERRORS["a replica joins before it has what is confirmed"]
PLAYED = {
    "a replica joins before it has what is confirmed, in a set that may fail over": replace(
        JOINS, system="fail_over", asked=(), promise="nothing_acknowledged_is_lost", steps=12
    ),
    "a replica joins before it has what is confirmed": JOINS,
    "a learner is asked to join": ERRORS["a learner is asked to join"],
    "an empty log disagrees, in a set that may fail over": replace(
        ERRORS["an empty log disagrees"], system="fail_over", asked=(), steps=16
    ),
}
# Each compiles a specification: the first, all in `make test-full`.
TRIED = list(PLAYED)[: None if os.environ.get("REPLISPEC_EDITS") == "all" else 1]


@pytest.mark.parametrize("name", TRIED)
def test_the_promise_is_broken_on_nodes_that_have_the_error_and_kept_on_ours(
    name: str, tmp_path: Path
) -> None:
    error, script = PLAYED[name], tmp_path / "story.json"
    environment = compiled(error, tmp_path)
    asked = ("replispec.cli", "spec", "explore", error.system, *error.asked, "--script", str(script))
    found = processed(environment, asked)
    assert found.returncode == 1, found.stderr
    told = json.loads(script.read_text("utf-8"))
    assert (told["promise"], len(told["steps"])) == (error.promise, error.steps)
    first, second = (processed(environment, ("tests.sim.played_story", str(script))) for _ in range(2))
    assert first.stdout == second.stdout, "the same twice"
    assert f": {error.steps} steps played, all;" in first.stdout, first.stdout + first.stderr
    assert "  the promise is broken\n" in first.stdout
    assert player_of(told).play().holds


def test_a_master_is_elected_again_when_nobody_was_heard_for_a_while() -> None:
    """No controller elects whoever is its master: it finds nobody first."""
    again = {"happens": "act", "act": "is_elected", "by": "broker 2", "with": {}}
    told = {
        "system": "fail_over",
        "promise": "same_bytes",
        "shape": "always",
        "instances": {"controller": 1, "broker": 2},
        "circle": [],
        "steps": [again, again, {**again, "act": "is_told"}],
    }
    player = CopiesPlayer(told)
    played = player.play()
    assert (played.steps, played.stopped, played.holds) == (3, "", True)
    known = player._machines("controller")["set"].variables
    assert (known.master, known.master_epoch) == (2, 3)
    assert player._machines("broker-2")["role"].variables.master_epoch == 3
