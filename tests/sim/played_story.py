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
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, ClassVar, Final

from replispec.explorer.composed import Composed
from replispec.explorer.conditions import fields_read
from replispec.explorer.report import Extent, bounded, system_named
from replispec.runtime.configuration import parse
from replispec.runtime.primitives.machines import Configuration
from replispec.runtime.rocketmq.framing import Command
from replispec.runtime.sim import NetworkConditions, Pace, Rng, World
from replispec.runtime.world import Member
from replispec.wire.rocketmq.codes import RequestCode
from replispec.wire.rocketmq.controller import CleanBrokerDataRequest
from replispec.wire.rocketmq.parameters import ROLES
from tests.sim.asker import Asker, Question
from tests.sim.cluster import BROKER_NAME, CONTROLLER, HOSTS, NAMESERVER, address, maker, properties, role
from tests.sim.gate import Gate, Held

FINAL: Final = "/brokerIdentity"
GATE: Final = "127.0.0.3:9878"
WAITS_MS: Final = 30_000
AFTER_MS: Final = 10_000


class Unplayable(Exception):
    """The nodes did not come to a step of the script."""


@dataclass
class Played:
    """What came of a script: steps that were played, and how often each message came when all was left alone.

    `stopped` says why it ended before its last step, `passed_over` how many messages the nodes did without,
    being further by themselves. `holds`: whether the nodes keep the promise, None where nobody asks them.
    """

    promise: str
    steps: int
    stopped: str
    after: Mapping[str, int]
    digest: str
    passed_over: int = 0
    holds: bool | None = None

    def __str__(self) -> str:
        """A few lines for people."""
        ended = f", then {self.stopped}" if self.stopped else ", all"
        counts = "".join(f"  {count:>6} x {name}\n" for name, count in self.after.items())
        over = f", {self.passed_over} of them passed over" if self.passed_over else ""
        kept = "" if self.holds is None else f"  the promise {'holds' if self.holds else 'is broken'}\n"
        steps = f"{self.steps} steps played{over}{ended}"
        return f"{self.promise}: {steps}; in {AFTER_MS / 1_000:g} s after it\n{counts}{kept}"


@dataclass
class Player:
    """A world in which nothing goes wrong but what the script says."""

    script: Mapping[str, Any]
    world: World = field(init=False)
    gate: Gate = field(init=False)
    names: dict[int, str] = field(init=False)
    outlives: ClassVar[bool] = False
    """Whether what a node asked before its process ended may still arrive; see the gate."""

    def __post_init__(self) -> None:
        calm = NetworkConditions(jitter_us=0, spike_per_mille=0, slow_per_mille=0, cut_per_mille=0)
        self.world = World(0, conditions=calm, pace=Pace())
        messages = [
            each for each in _all_steps(self.script) if each.get("kind", "frame") not in ("frame", "end")
        ]
        self.names = {_asked(each): each["name"] for each in messages}
        self.gate = Gate(GATE, address(CONTROLLER), self.names.keys(), outlives=self.outlives)
        for name in (CONTROLLER, NAMESERVER, *self.brokers):
            text = "".join(f"{key}={value}\n" for key, value in self._properties(name).items())
            self.world.add(name, HOSTS[name], maker(name, parse(text, ROLES[role(name)]).options, Rng(1)))
        self.world.add("gate", GATE.rpartition(":")[0], lambda _: [Member("gate", self.gate)])
        for name in ("gate", CONTROLLER, NAMESERVER):
            self.world.start(name)
        self.passed_over = 0
        self._asked = 0

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
            self.prepare()
            for step in self.script["steps"]:
                self._step(step)
                steps += 1
        except Unplayable as fault:
            stopped = str(fault)
        is_some_day = self.script["shape"] == "eventually"
        holds = None if is_some_day else self.holds()
        self.open_wide()
        before = len(self.gate.passed)
        self.leave_alone()
        asked = Counter(each.code for each in self.gate.passed[before:] if not each.is_answer)
        after = {name: asked[code] for code, name in sorted(self.names.items())}
        if is_some_day:
            holds = self.holds()
        over = self.passed_over
        return Played(self.script["promise"], steps, stopped, after, self.world.digest(), over, holds)

    def prepare(self) -> None:
        """Bring the nodes to where the system begins."""

    def holds(self) -> bool | None:
        """Ask the promise of what the nodes keep; None when it asks for what is not known of them."""
        system = bounded(system_named(self.script["system"]), Extent(self.script["instances"]))
        promise = next(each for each in system.properties if each.name == self.script["promise"])
        if promise.holds is None:
            return None
        composed = Composed(system)
        values = dict(enumerate(composed.start()))
        reads = [each for each in (promise.whenever, promise.holds) if each is not None]
        read = fields_read(reads)
        if read is None:
            return None
        for place, spot in enumerate(composed.places):
            kept, names = self._kept(spot.name), {each.name for each in fields(values[place])}
            if not read & names - {"number"} <= kept.keys():
                return None
            values[place] = replace(values[place], **{name: kept[name] for name in names & kept.keys()})
        is_due = promise.whenever is None or composed.holds(promise.whenever, values)
        return not is_due or composed.holds(promise.holds, values)

    def _kept(self, place: str) -> Mapping[str, object]:
        """What an instance of the story keeps, as its node has it, and maybe more."""
        name = place.replace(" ", "-")
        node: Any = next(iter(self.world.processes[name].nodes), None)
        if name == CONTROLLER:
            known = node._sets.find(BROKER_NAME)
            return {} if known is None else {"set": Configuration(known.state, known.variables)}
        files = self.world.processes[name].disk.contents
        identity = [bytes(files[each].data) for each in files if each.endswith(FINAL)]
        kept: dict[str, object] = {"final_id": int(identity[0].split(b"#")[2]) if identity else 0}
        if node is not None:
            registration = node._manager.registration
            kept["registration"] = Configuration(registration.state, registration._runner.variables)
        return kept

    def open_wide(self) -> None:
        """Let everything through from now on."""
        self.gate.open_wide()

    def leave_alone(self) -> None:
        """Nothing more happens to the nodes; what is promised some day may need those that do not run."""
        for name in self.brokers:
            if self.script["shape"] == "eventually" and not self.world.processes[name].is_alive:
                self.world.start(name)
        self.world.run_for(AFTER_MS)

    def _step(self, step: Mapping[str, Any]) -> None:
        match step["happens"]:
            case "act":
                self._act(step)
            case "arrives":
                held = self._held(step)
                if held is not None:
                    self._gate_of(step).release(held)
                    self.world.run_for(20)
            case "lost":
                held = self._held(step)
                if held is not None:
                    self._gate_of(step).held.remove(held)
            case "silence" | "late":
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
                # What it had asked ends with it.
                self.world.run_for(20)
            case "removes_a_broker":
                self._ask_to_remove(1)
            case "has_written" | "has_renamed" | "pause_is_over" | "asks_who_is_master":
                """A node does it by itself."""
            case other:
                raise Unplayable(f"nobody plays {other}")

    def _ask_to_remove(self, broker_id: int | None) -> None:
        """An administrator removes a broker, or with None the whole set."""
        listed = None if broker_id is None else str(broker_id)
        header = CleanBrokerDataRequest("simulation", BROKER_NAME, None, listed, True)
        self._administer(Question(RequestCode.CLEAN_BROKER_DATA, header.to_ext_fields()))

    def _administer(self, question: Question) -> Command:
        """Ask the controller as an administrator, and wait for the answer."""
        self._asked += 1
        asker = Asker(address(CONTROLLER), [question])
        self._begin(f"administrator-{self._asked}", f"127.0.1.{self._asked}", asker)
        self._wait(lambda: asker.is_done, "the administrator has no answer")
        return asker.answers[0]

    def _begin(self, name: str, host: str, asker: Asker) -> None:
        self.world.add(name, host, lambda _: [Member(name, asker)])
        self.world.start(name)

    def _held(self, step: Mapping[str, Any]) -> Held | None:
        """The message of a step, when it has come to its gate; None when the node is further already."""
        self._wait(lambda: self._find(step) is not None or self._is_further(step), f"no {step['name']} comes")
        held = self._find(step)
        self.passed_over += held is None
        return held

    def _find(self, step: Mapping[str, Any]) -> Held | None:
        is_answer = step["kind"] == "answer"
        broker = step["to" if is_answer else "from"].replace(" ", "-")
        return self.gate.find(HOSTS[broker], _asked(step), is_answer=is_answer)

    def _is_further(self, _step: Mapping[str, Any]) -> bool:
        """Whether the node did without a message, and what it says later in the script is here."""
        return False

    def _gate_of(self, _step: Mapping[str, Any]) -> Gate:
        return self.gate

    def _wait(self, is_so: Callable[[], bool], fault: str) -> None:
        if not self.world.run_until(is_so, at_most_ms=WAITS_MS, step_ms=5):
            raise Unplayable(fault)


def _all_steps(script: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [*script["steps"], *script["circle"]]


def _asked(step: Mapping[str, Any]) -> int:
    """The code of the request that a message is, or answers."""
    code: int = step["asked"] if step["kind"] in ("answer", "silence") else step["code"]
    return code


def player_of(script: Mapping[str, Any]) -> Player:
    """Who plays the acts of a system. Raises Unplayable."""
    from tests.sim.played_cleaning import CleaningPlayer
    from tests.sim.played_copies import CopiesPlayer
    from tests.sim.played_learning import LearningPlayer
    from tests.sim.played_set import SetPlayer

    players: dict[str, type[Player]] = {
        "registration": Player,
        "sync_state_set": SetPlayer,
        "replication": CopiesPlayer,
        "fail_over": CopiesPlayer,
        "cleaning": CleaningPlayer,
        "learning": LearningPlayer,
    }
    if script["system"] not in players:
        raise Unplayable(f"nobody plays {script['system']}, only {', '.join(players)}")
    return players[script["system"]](script)


def main() -> int:
    """Play the script that is named."""
    script = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    try:
        played = player_of(script).play()
    except Unplayable as fault:
        sys.stderr.write(f"{fault}\n")
        return 2
    sys.stdout.write(f"{played}  digest {played.digest}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
