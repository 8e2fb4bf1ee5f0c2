"""Stories of `learning` are played on real nodes: a broker begins again as a learner, and as a replica.

Each is that of an error that was mended, as the broker's own process meets it: nodes that have it break the
promise, ours keep it. After each step the controller, and the learner, know what they do in the story.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.explorer.test_mended import ERRORS, compiled
from tests.sim.faulty import broken_on_nodes_that_have
from tests.sim.played_learning import OF_MASTERS, LearningPlayer
from tests.sim.played_story import player_of

OWN = ("--set", "sightings=0")
"""Nothing happens that is only seen from outside."""
PLAYED = {
    "a learner that was a member before blames who tells it so": (OWN, 7),
    "a member that is named master learns beside it": (OWN, 8),
    "a learner that is asked in blames nobody": (OWN, 10),
    "a learner leaves a set that it is out of": (OWN, 5),
    # Nobody is elected: a controller misses the heartbeats of a master that learns, whatever this one asks.
    "a learner asks once who is master": ((*OWN, "--set", "elections=0"), 8),
}
# Each compiles a specification: the first, all in `make test-full`.
TRIED = list(PLAYED)[:: 1 if os.environ.get("REPLISPEC_EDITS") == "all" else len(PLAYED)]


@pytest.mark.parametrize("name", TRIED)
def test_the_promise_is_broken_on_nodes_that_have_the_error_and_kept_on_ours(
    name: str, tmp_path: Path
) -> None:
    asked, steps = PLAYED[name]
    error = replace(ERRORS[name], asked=(*ERRORS[name].asked, *asked), steps=steps)
    told = broken_on_nodes_that_have(error, compiled(error, tmp_path), tmp_path)
    first, second = (player_of(told).play() for _ in range(2))
    assert first == second
    assert (first.steps, first.stopped, first.holds) == (steps, "", True)


def story(*acts: str) -> dict[str, Any]:
    """A script of acts, each by whom it happens to."""
    by = ("broker", "controller")
    return {
        "system": "learning",
        "promise": "it_is_what_it_said",
        "shape": "always",
        "instances": {"controller": 1, "broker": 1},
        "circle": [],
        "steps": [{"happens": "act", "act": act, "by": by[act in OF_MASTERS], "with": {}} for act in acts],
    }


JOINED = ("greets_as_a_replica", "is_let_in")


def test_all_know_after_each_act_what_they_do_in_the_story() -> None:
    acts = (
        "begins_again_as_a_learner",
        "greets_as_a_learner",
        "is_taken_out",
        "hears_who_leads",
        "loses_its_master",
        "begins_again_as_a_replica",
        *JOINED,
        "is_elected",
        "lets_the_other_in",
    )
    told = story(*JOINED, *acts)
    played = player_of(told).play()
    assert (played.steps, played.stopped, played.holds) == (len(told["steps"]), "", True)


def test_a_controller_that_knows_something_else_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody is asked out."""
    monkeypatch.setattr(LearningPlayer, "_is_out", lambda _: True)
    acts = ("begins_again_as_a_learner", "greets_as_a_learner", "is_taken_out")
    played = player_of(story(*JOINED, *acts)).play()
    assert played.steps == len(JOINED) + 2
    assert played.stopped.startswith("controller is LED and knows {'master': 2, ")


def test_what_only_who_watches_knows_nobody_plays() -> None:
    played = player_of(story("is_made_a_learner")).play()
    assert played.stopped == "nobody plays is_made_a_learner"
    played = player_of(story("greets_as_a_learner")).play()
    assert played.stopped == "greets_as_a_learner cannot happen now"
