"""Stories of `cleaning` are played on real nodes: an administrator removes brokers that a controller knows.

Each is that of an error that was mended: nodes that have it break the promise, ours keep it. After each step
the controller knows of its set what it does in the story.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.explorer.test_mended import ERRORS, compiled
from tests.sim.faulty import broken_on_nodes_that_have
from tests.sim.played_cleaning import CleaningPlayer
from tests.sim.played_story import player_of

# What no sound party asks for nobody plays.
PLAYED = [
    name for name, error in ERRORS.items() if error.system == "cleaning" and "strays=1" not in error.asked
]
# Each compiles a specification: every third one, all in `make test-full`.
TRIED = PLAYED[:: 1 if os.environ.get("REPLISPEC_EDITS") == "all" else 3]


@pytest.mark.parametrize("name", TRIED)
def test_the_promise_is_broken_on_nodes_that_have_the_error_and_kept_on_ours(
    name: str, tmp_path: Path
) -> None:
    error = ERRORS[name]
    told = broken_on_nodes_that_have(error, compiled(error, tmp_path), tmp_path)
    first, second = (player_of(told).play() for _ in range(2))
    assert first == second
    assert (first.steps, first.stopped, first.holds) == (error.steps, "", True)


def story(*acts: tuple[str, str]) -> dict[str, Any]:
    """A script of acts, each with the broker that it happens to, if any."""
    return {
        "system": "cleaning",
        "promise": "epochs_never_fall",
        "shape": "always",
        "instances": {"controller": 1, "broker": 3},
        "circle": [],
        "steps": [
            {"happens": "act", "act": act, "by": "controller", "with": {"one": broker} if broker else {}}
            for act, broker in acts
        ],
    }


GROWN = (
    ("grants_an_id", "broker 1"),
    ("elects", "broker 1"),
    ("grants_an_id", "broker 2"),
    ("expands", "broker 2"),
)


def test_a_controller_knows_after_each_act_what_it_does_in_the_story() -> None:
    acts = (
        ("grants_an_id", "broker 3"),
        ("designates", "broker 2"),
        ("removes_one", "broker 3"),
        ("falls_silent", "broker 2"),
        ("loses_the_master", ""),
        # Nobody has what the set had.
        ("designates", "broker 1"),
        ("removes_one", "broker 2"),
        ("designates", "broker 1"),
        ("removes_all", ""),
    )
    played = player_of(story(*GROWN, *acts)).play()
    assert (played.steps, played.stopped, played.holds) == (len(GROWN) + len(acts), "", True)


def test_a_controller_that_knows_something_else_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """An administrator who is not heard removes nobody."""
    monkeypatch.setattr(CleaningPlayer, "_ask_to_remove", lambda *_: None)
    played = player_of(story(*GROWN, ("removes_one", "broker 2"))).play()
    assert played.steps == len(GROWN)
    assert played.stopped.startswith("the controller knows {'master': 1, ")


def test_what_cannot_happen_and_what_nobody_plays_is_said() -> None:
    played = player_of(story(("removes_one", "broker 2"))).play()
    assert played.stopped == "removes_one cannot happen now"
    played = player_of(story(("asks_for_an_id", "broker 1"))).play()
    assert played.stopped == "nobody plays asks_for_an_id"
