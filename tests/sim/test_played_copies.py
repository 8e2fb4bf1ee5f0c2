"""Stories of `replication` and `fail_over` are played on real nodes, frame by frame.

The nodes are asked whether they keep the promise: those that have the error break it, ours keep it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.explorer.errors import Error
from tests.explorer.test_mended import ERRORS, compiled
from tests.sim.faulty import broken_on_nodes_that_have
from tests.sim.played_copies import CopiesPlayer
from tests.sim.played_story import player_of

EMPTY = ERRORS["an empty log disagrees"]
PLAYED = {
    "an empty log disagrees, in a set that may fail over": replace(
        EMPTY, system="fail_over", asked=(), steps=16
    ),
    # Over a connection that breaks, and over one on which nothing is heard.
    "an empty log disagrees": EMPTY,
    "an empty log disagrees, after a silence": replace(
        EMPTY, asked=(*EMPTY.asked, "--set", "breaks=0", "--set", "silences=1"), steps=13
    ),
    # Of a log that was another set's.
    "a log without epochs is taken for the master's": replace(
        ERRORS["a log without epochs is taken for the master's"], promise="same_bytes"
    ),
    **{
        name: ERRORS[name]
        for name in (
            "a replica joins before it has what is confirmed",
            "a learner is asked to join",
            "a replica forgets what it has appended",
            "a replica cuts more than what differs",
            "what the log holds already is not sent",
            "a master that may lack what it had sent goes on in its epoch",
        )
    },
}
# Each compiles a specification: the first, all in `make test-full`.
TRIED = list(PLAYED)[: None if os.environ.get("REPLISPEC_EDITS") == "all" else 1]


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Error], dict[str, str]]:
    """The environment of processes that have an error; each is compiled once, whatever story is about it."""
    known: dict[tuple[str, str, str], dict[str, str]] = {}

    def found(error: Error) -> dict[str, str]:
        edit = (error.file, error.now, error.before)
        if edit not in known:
            known[edit] = compiled(error, tmp_path_factory.mktemp("specification"))
        return known[edit]

    return found


@pytest.mark.parametrize("name", TRIED)
def test_the_promise_is_broken_on_nodes_that_have_the_error_and_kept_on_ours(
    name: str,
    faulty: Callable[[Error], dict[str, str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    error = PLAYED[name]
    told = broken_on_nodes_that_have(error, faulty(error), tmp_path)
    assert player_of(told).play().holds
    monkeypatch.setattr(CopiesPlayer, "compares", True)
    assert player_of(told).play().holds, "with logs that are compared, too"


def script(system: str, *steps: Mapping[str, Any]) -> dict[str, Any]:
    """A script of these steps."""
    parties = {"fail_over": {"controller": 1, "broker": 2}, "replication": {"master": 1, "replica": 1}}
    return {
        "system": system,
        "promise": "same_bytes",
        "shape": "always",
        "instances": parties[system],
        "circle": [],
        "steps": steps,
    }


def act(name: str, by: str, **others: str) -> dict[str, Any]:
    """A step that is an act."""
    return {"happens": "act", "act": name, "by": by, "with": others}


def arrives(name: str, to: str, kind: str = "frame") -> dict[str, Any]:
    """A step in which a replica or its master hears something of the other."""
    other = {"master": "replica", "replica": "master"}[to]
    return {"happens": "arrives", "from": other, "to": to, "kind": kind, "name": name, "fields": {}}


BEGUN = (
    act("is_elected", "master"),
    act("connects", "replica", other="master"),
    arrives("HaHandshakeId", "master"),
    arrives("HaHandshakeAnswer", "replica"),
    arrives("HaReport", "master"),
)


def test_a_master_is_elected_again_when_nobody_was_heard_for_a_while() -> None:
    """No controller elects whoever is its master: it finds nobody first."""
    again = act("is_elected", "broker 2")
    player = CopiesPlayer(script("fail_over", again, again, act("is_told", "broker 2")))
    played = player.play()
    assert (played.steps, played.stopped, played.holds) == (3, "", True)
    known = player._machines("controller")["set"].variables
    assert (known.master, known.master_epoch) == (2, 3)
    assert player._machines("broker-2")["role"].variables.master_epoch == 3


@pytest.mark.parametrize("how", ["breaks", "replica is silent", "master is silent"])
def test_a_connection_ends_when_the_story_says_so(how: str) -> None:
    """Either end learns of it in its turn, and the replica comes back."""
    ends = {
        "breaks": (act("loses_its_connection", "replica"), arrives("", "replica", "end")),
        "replica is silent": (
            act("finds_a_replica_silent", "master", other="replica"),
            arrives("", "replica", "end"),
        ),
        "master is silent": (
            act("finds_its_master_silent", "replica"),
            arrives("", "master", "end"),
        ),
    }
    steps = (*BEGUN, *ends[how], *BEGUN[1:], act("stores", "master"), arrives("HaTransferHeader", "replica"))
    played = CopiesPlayer(script("replication", *steps)).play()
    assert (played.steps, played.stopped) == (len(steps), "")
    assert (played.holds, played.passed_over) == (True, 0)


def test_nobody_says_that_a_promise_holds_of_what_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    known = CopiesPlayer._kept
    monkeypatch.setattr(
        CopiesPlayer,
        "_kept",
        lambda player, place: {name: each for name, each in known(player, place).items() if name != "epochs"},
    )
    assert CopiesPlayer(script("replication", *BEGUN[:1])).play().holds is None
