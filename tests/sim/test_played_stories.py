"""A story of the explorer is played on real nodes: its fault shows where they have it, and only there.

The story is that of an error that was mended: a broker whose registration is refused asks again at once.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from replispec.wire.rocketmq.codes import RequestCode
from tests.explorer.test_mended import ERRORS, ROOT, compiled
from tests.sim.played_story import Player, Unplayable, player_of

ERROR = ERRORS["a refused registration is sent again at once"]
REPEATED = "RegisterBrokerToControllerRequest"
WITHOUT_PAUSE = 1_000
WITH_PAUSES = 30


@dataclass(frozen=True)
class Faulty:
    """The specification with the error: the environment of its processes, and the script of its story."""

    environment: dict[str, str]
    script: Path

    def run(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        """Run a module of ours with the faulty specification."""
        command = [sys.executable, "-m", *map(str, arguments)]
        return subprocess.run(
            command, cwd=ROOT, env=self.environment, capture_output=True, text=True, check=False
        )


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Faulty:
    folder = tmp_path_factory.mktemp("faulty")
    found = Faulty(compiled(ERROR, folder), folder / "story.json")
    asked: tuple[str | Path, ...] = (ERROR.system, *ERROR.asked, "--script", found.script)
    assert found.run("replispec.cli", "spec", "explore", *asked).returncode == 1
    return found


def script(faulty: Faulty) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(faulty.script.read_text("utf-8"))
    return found


def test_a_script_says_what_the_story_says(faulty: Faulty) -> None:
    found = script(faulty)
    assert (found["promise"], len(found["steps"])) == (ERROR.promise, ERROR.steps)
    assert [step["happens"] for step in found["circle"]] == ["arrives", "arrives"]
    assert {step["name"] for step in found["circle"]} == {REPEATED}


def test_the_fault_shows_on_real_nodes_that_have_it_the_same_twice(faulty: Faulty) -> None:
    first, second = (faulty.run("tests.sim.played_story", faulty.script) for _ in range(2))
    assert first.returncode == 0, first.stderr
    assert first.stdout == second.stdout
    (line,) = [line for line in first.stdout.splitlines() if line.endswith(f" x {REPEATED}")]
    assert int(line.split()[0]) > WITHOUT_PAUSE


def test_the_fault_does_not_show_on_real_nodes_that_are_mended(faulty: Faulty) -> None:
    first, second = (Player(script(faulty)).play() for _ in range(2))
    assert first == second
    assert 0 < first.after[REPEATED] < WITH_PAUSES
    # The administrator removes the broker while the answer to its registration is on its way.
    assert first.steps > [step.get("act") for step in script(faulty)["steps"]].index("removes_a_broker")


def test_a_lost_answer_is_never_heard(faulty: Faulty) -> None:
    found = script(faulty)
    at = next(number for number, step in enumerate(found["steps"]) if step.get("kind") == "answer")
    found["steps"] = [*found["steps"][:at], {**found["steps"][at], "happens": "lost"}]
    player = Player(found)
    player.play()
    asked = [held for held in player.gate.passed if held.code == found["steps"][at]["asked"]]
    assert [held.is_answer for held in asked][:2] == [False, False]


def test_what_nobody_plays_is_said(faulty: Faulty) -> None:
    with pytest.raises(Unplayable, match="nobody plays elections"):
        player_of({**script(faulty), "system": "elections"})
    torn = [{**script(faulty)["steps"][1], "happens": "torn"}]
    played = Player({**script(faulty), "steps": torn}).play()
    assert (played.steps, played.stopped) == (0, "nobody plays that a message is torn")


def said(code: int, name: str) -> list[dict[str, Any]]:
    """Two steps: the broker asks, and hears the answer."""
    ends = {"name": name, "code": code, "asked": code, "happens": "arrives"}
    return [
        {**ends, "kind": "request", "from": "broker 1", "to": "controller"},
        {**ends, "kind": "answer", "from": "controller", "to": "broker 1"},
    ]


def test_what_a_process_asked_is_gone_with_it() -> None:
    """It ends while its registration is on its way, and registers after its next start."""
    first: dict[str, Any] = {"happens": "act", "act": "starts", "by": "broker 1", "with": {}}
    steps = [
        first,
        *said(RequestCode.CONTROLLER_GET_NEXT_BROKER_ID, "GetNextBrokerIdRequest"),
        *said(RequestCode.CONTROLLER_APPLY_BROKER_ID, "ApplyBrokerIdRequest"),
        {**first, "act": "crashes"},
        first,
        *said(RequestCode.CONTROLLER_REGISTER_BROKER, "RegisterBrokerToControllerRequest"),
        {**first, "by": "broker 2"},
    ]
    told = {
        "system": "registration",
        "promise": "registered_is_known",
        "shape": "always",
        "instances": {"controller": 1, "broker": 2},
        "steps": steps,
        "circle": [],
    }
    played = Player(told).play()
    assert (played.steps, played.stopped, played.holds) == (len(steps), "", True)
