"""Stories of `sync_state_set` and `registration` are played on real nodes; these are asked for the promise.

Each is that of an error that was mended: nodes that have it break the promise, ours keep it.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.explorer.test_mended import ERRORS, compiled
from tests.sim.faulty import broken_on_nodes_that_have
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


@pytest.mark.parametrize("name", TRIED)
def test_the_promise_is_broken_on_nodes_that_have_the_error_and_kept_on_ours(
    name: str, tmp_path: Path
) -> None:
    error = ERRORS[name]
    told = broken_on_nodes_that_have(
        error, compiled(error, tmp_path), tmp_path, passed_over=OVER[error.system]
    )
    first, second = (player_of(told).play() for _ in range(2))
    assert first == second
    assert (first.steps, first.stopped, first.holds) == (error.steps, "", True)
