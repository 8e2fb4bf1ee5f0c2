"""Plays the script of a story on real nodes: a controller and brokers, with a gate between them.

    python -m tests.sim.played_story SCRIPT

Each message of the script is waited for, then let through or dropped; acts that a node does by itself (a
write that ends, a pause that is over, a period that has passed) are waited for by what follows them. Then all
are left alone, and it is said what they did. Where a real node does something else than its machine may do in
the story, the script stops there, which is said.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from replispec.runtime.configuration import parse
from replispec.runtime.sim import NetworkConditions, Pace, Rng, World
from replispec.runtime.world import Member
from replispec.wire.rocketmq.codes import RequestCode
from replispec.wire.rocketmq.controller import CleanBrokerDataRequest
from replispec.wire.rocketmq.parameters import ROLES
from tests.sim.asker import Asker, Question
from tests.sim.cluster import BROKER_NAME, CONTROLLER, HOSTS, NAMESERVER, address, maker, properties, role
from tests.sim.gate import Gate, Held

GATE: Final = "127.0.0.3:9878"
WAITS_MS: Final = 30_000
AFTER_MS: Final = 10_000
SYSTEMS: Final = ("registration",)
"""Those whose acts somebody plays."""


class Unplayable(Exception):
    """The nodes did not come to a step of the script."""


@dataclass
class Played:
    """What came of a script: steps that were played, and how often each message came when all was left alone.

    `stopped` says why it ended before its last step.
    """

    promise: str
    steps: int
    stopped: str
    after: Mapping[str, int]
    digest: str

    def __str__(self) -> str:
        """A few lines for people."""
        ended = f", then {self.stopped}" if self.stopped else ", all"
        counts = "".join(f"  {count:>6} x {name}\n" for name, count in self.after.items())
        return (
            f"{self.promise}: {self.steps} steps played{ended}; in {AFTER_MS / 1_000:g} s after it\n{counts}"
        )


@dataclass
class Player:
    """A world in which nothing goes wrong but what the script says."""

    script: Mapping[str, Any]
    world: World = field(init=False)
    gate: Gate = field(init=False)
    names: dict[int, str] = field(init=False)

    def __post_init__(self) -> None:
        if self.script["system"] not in SYSTEMS:
            raise Unplayable(f"nobody plays {self.script['system']}, only {', '.join(SYSTEMS)}")
        calm = NetworkConditions(jitter_us=0, spike_per_mille=0, slow_per_mille=0, cut_per_mille=0)
        self.world = World(0, conditions=calm, pace=Pace())
        messages = [each for each in _all_steps(self.script) if each["happens"] != "act"]
        self.names = {_asked(each): each["name"] for each in messages}
        self.gate = Gate(GATE, address(CONTROLLER), self.names.keys())
        for name in (CONTROLLER, NAMESERVER, *self.brokers):
            text = "".join(f"{key}={value}\n" for key, value in self._properties(name).items())
            self.world.add(name, HOSTS[name], maker(name, parse(text, ROLES[role(name)]).options, Rng(1)))
        self.world.add("gate", GATE.rpartition(":")[0], lambda _: [Member("gate", self.gate)])
        for name in ("gate", CONTROLLER, NAMESERVER):
            self.world.start(name)

    @property
    def brokers(self) -> Sequence[str]:
        """The processes of the brokers."""
        return tuple(f"broker-{number + 1}" for number in range(self.script["instances"]["broker"]))

    def _properties(self, name: str) -> Mapping[str, object]:
        given = properties(name)
        return {**given, "controllerAddr": GATE} if name in self.brokers else given

    def play(self) -> Played:
        """Play the steps, then leave all alone."""
        steps, stopped = 0, ""
        try:
            for step in self.script["steps"]:
                self._step(step)
                steps += 1
        except Unplayable as fault:
            stopped = str(fault)
        self.gate.open_wide()
        before = len(self.gate.passed)
        self.world.run_for(AFTER_MS)
        asked = Counter(each.code for each in self.gate.passed[before:] if not each.is_answer)
        after = {name: asked[code] for code, name in sorted(self.names.items())}
        return Played(self.script["promise"], steps, stopped, after, self.world.digest())

    def _step(self, step: Mapping[str, Any]) -> None:
        match step["happens"]:
            case "act":
                self._act(step)
            case "arrives":
                self.gate.release(self._held(step))
                self.world.run_for(20)
            case "lost":
                self.gate.held.remove(self._held(step))
            case "silence":
                """The node's own patience ends; what it does then is waited for."""
            case other:
                raise Unplayable(f"nobody plays that a message is {other}")

    def _act(self, step: Mapping[str, Any]) -> None:
        name = step["by"].replace(" ", "-")
        match step["act"]:
            case "starts":
                self.world.start(name)
            case "crashes":
                self.world.kill(name)
            case "removes_a_broker":
                self._ask_to_remove(1)
            case "has_written" | "has_renamed" | "pause_is_over" | "asks_who_is_master":
                """A node does it by itself."""
            case other:
                raise Unplayable(f"nobody plays {other}")

    def _ask_to_remove(self, broker_id: int) -> None:
        header = CleanBrokerDataRequest("simulation", BROKER_NAME, None, str(broker_id), True)
        question = Question(RequestCode.CLEAN_BROKER_DATA, header.to_ext_fields())
        asker = Asker(address(CONTROLLER), [question])
        self.world.add("administrator", "127.0.0.41", lambda _: [Member("administrator", asker)])
        self.world.start("administrator")
        self._wait(lambda: asker.is_done, "the administrator has no answer")

    def _held(self, step: Mapping[str, Any]) -> Held:
        """The message of a step, when it has come to the gate."""
        is_answer = step["kind"] == "answer"
        broker = step["to" if is_answer else "from"].replace(" ", "-")
        what = (HOSTS[broker], _asked(step))
        self._wait(lambda: self.gate.find(*what, is_answer=is_answer) is not None, f"no {step['name']} comes")
        held = self.gate.find(*what, is_answer=is_answer)
        assert held is not None, "it was waited for"
        return held

    def _wait(self, is_so: Callable[[], bool], fault: str) -> None:
        if not self.world.run_until(is_so, at_most_ms=WAITS_MS, step_ms=5):
            raise Unplayable(fault)


def _all_steps(script: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [*script["steps"], *script["circle"]]


def _asked(step: Mapping[str, Any]) -> int:
    """The code of the request that a message is, or answers."""
    code: int = step["code"] if step["kind"] == "request" else step["asked"]
    return code


def main() -> int:
    """Play the script that is named."""
    script = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    try:
        played = Player(script).play()
    except Unplayable as fault:
        sys.stderr.write(f"{fault}\n")
        return 2
    sys.stdout.write(f"{played}  digest {played.digest}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
