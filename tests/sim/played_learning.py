"""Plays stories of `learning`: one broker ends, and begins again as a learner or as a replica, on its disk.

The other one is master at first. What the broker asks, who is master and who leads, waits for its turn, and
so do its handshake and what masters ask of their controller. After each step the controller knows of its set
what it does in the story, and a learner of itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from replispec.runtime.configuration import parse
from replispec.runtime.primitives.machines import Configuration
from replispec.runtime.sim import Rng
from replispec.wire.rocketmq.codes import RequestCode
from replispec.wire.rocketmq.controller import AlterSyncStateSetRequest, SyncStateSet
from replispec.wire.rocketmq.machines import learner
from replispec.wire.rocketmq.parameters import ROLES
from tests.sim.asker import Question
from tests.sim.cluster import BROKER_NAME, CONTROLLER, HOSTS, LEARNER, maker, properties, role
from tests.sim.gate import Held
from tests.sim.played_cleaning import numbers_of
from tests.sim.played_copies import CopiesPlayer
from tests.sim.played_set import ASKED
from tests.sim.played_story import Player, Unplayable
from tests.sim.told import Told

MINE: Final = "broker-1"
"""The broker of the story."""
OTHER: Final = "broker-2"
"""Who is master at first."""
LEADER: Final = RequestCode.CONTROLLER_GET_METADATA_INFO
WHO: Final = RequestCode.CONTROLLER_GET_REPLICA_INFO
ALTER: Final = RequestCode.CONTROLLER_ALTER_SYNC_STATE_SET
TIMERS: Final = {
    "asks_soon": "soon",
    "asks_again": "info",
    "searches_again": "search",
    "looks_who_leads_now": "leader",
}
OF_MASTERS: Final = (
    "is_let_in",
    "is_let_in_although_it_learns",
    "is_taken_out",
    "is_elected",
    "lets_the_other_in",
)
MINE_ALONE: Final = {
    # Another length than that of the pause before it asks soon.
    "syncBrokerMetadataPeriod": 1_700,
    "controllerHeartBeatTimeoutMills": 8_000,
}
LIKE_A_BROKER: Final = ("bindAddress", "brokerIP1", "brokerIP2", "controllerAddr", "syncBrokerMetadataPeriod")
"""What a process that begins again as a learner has as it had it before."""


class LearningPlayer(CopiesPlayer):
    """A world in which one broker is master, and the other one has asked nothing yet."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._told = Told(self.script)
        self.gate.only = {LEADER: HOSTS[MINE], WHO: HOSTS[MINE]}
        self.learns = self.greeted = self.wronged = False

    @property
    def brokers(self) -> Sequence[str]:
        """The processes of both."""
        return (MINE, OTHER)

    def _properties(self, name: str) -> Mapping[str, object]:
        return {**super()._properties(name), **(MINE_ALONE if name == MINE else {})}

    def prepare(self) -> None:
        """Register both, in the order of their numbers, and let the other one be master."""
        super().prepare()
        self._elect(OTHER)
        self._compare()

    # Steps

    def _step(self, step: Mapping[str, Any]) -> None:
        if not self._told.follow(step):
            raise Unplayable(f"{step.get('act') or step['name']} cannot happen now")
        Player._step(self, step)
        self._compare()

    def _compare(self) -> None:
        """What the nodes know is what is known in the story."""
        told = self._told.values
        found = {CONTROLLER: (told[self._told.place_of(CONTROLLER)].set, self._machines(CONTROLLER)["set"])}
        if self.learns:
            found[MINE] = (told[self._told.place_of("broker")].learning, self._learning())
        for name, (wanted, known) in found.items():
            if (wanted.state, numbers_of(wanted)) != (known.state, numbers_of(known)):
                knows = f"is {known.state.name} and knows {numbers_of(known)}"
                raise Unplayable(f"{name} {knows}, not {wanted.state.name} and {numbers_of(wanted)}")

    def _act(self, step: Mapping[str, Any]) -> None:
        act = step["act"]
        if act in TIMERS:
            self._wait_for(TIMERS[act])
        elif act in OF_MASTERS:
            self._master_acts(act)
        else:
            self._broker_acts(act)

    def _broker_acts(self, act: str) -> None:
        match act:
            case "begins_again_as_a_learner" | "begins_again_as_a_replica":
                self._begin_again(learns=act.endswith("learner"))
            case "greets_as_a_learner" | "greets_as_a_replica":
                self._connect(MINE, OTHER)
                self.greeted = True
            case "loses_its_master":
                self._break_off(MINE)
                self.greeted = False
            case "hears_who_leads":
                self._wait(self._hears, f"{MINE} does not hear who leads")
            case "hears_nothing":
                self._wait(self._loses_its_question, f"{MINE} does not ask who leads")
            case "asks_who_is_master" | "reports":
                """A node does it by itself."""
            case other:
                raise Unplayable(f"nobody plays {other}")

    def _master_acts(self, act: str) -> None:
        match act:
            case "is_let_in":
                self._let_join(OTHER, MINE)
            case "lets_the_other_in":
                self._let_other_in()
            case "is_taken_out":
                self._wait(self._is_out, f"{OTHER} does not ask it out")
            case "is_let_in_although_it_learns":
                self._ask_in()
            case "is_elected":
                self.gate.silenced.add(HOSTS[OTHER])
                self._wait(lambda: self._set.master == self._id_of(MINE), "the controller does not elect it")
                self.greeted = False

    def _begin_again(self, *, learns: bool) -> None:
        self.world.kill(MINE)
        self.world.run_for(20)
        self.learns, self.greeted = learns, False
        self.gate.codes = ASKED | {LEADER} if learns else ASKED
        name, own = (LEARNER if learns else MINE), self._properties(MINE)
        given = {**properties(LEARNER), **{key: own[key] for key in LIKE_A_BROKER}} if learns else own
        text = "".join(f"{key}={value}\n" for key, value in given.items())
        options = parse(text, ROLES[role(name)]).options
        self.world.processes[MINE].make = maker(name, options, Rng(1))
        self.world.start(MINE)

    def _connect(self, name: str, master: str) -> None:
        """One dials the other; afterwards they talk as they like."""
        gate, host = self.frames[master], HOSTS[name]
        if name == OTHER or not self.learns:
            self._tell(name)
        self._wait(lambda: gate.has_dialled(host), f"{name} does not dial")
        gate.connect(host)
        self._wait(lambda: gate.is_connected(host), f"{name} is not connected")
        gate.hold_back(host)
        gate.let_flow(host)
        self.world.run_for(20)

    def _let_other_in(self) -> None:
        """Who was master before is heard again, copies, and is asked in."""
        self.gate.silenced.clear()
        self._tell(MINE)
        self._connect(OTHER, MINE)
        self._let_join(MINE, OTHER)

    def _hears(self) -> bool:
        """What it asks of who leads is answered."""
        self._release(MINE, LEADER)
        return "search" not in self._runner.timers.armed

    def _loses_its_question(self) -> bool:
        """What it has asked of who leads is lost, so that nobody answers."""
        kept = [each for each in self.gate.held if (each.host, each.code) != (HOSTS[MINE], LEADER)]
        is_lost = len(kept) < len(self.gate.held)
        self.gate.held = kept
        return is_lost

    def _wait_for(self, timer: str) -> None:
        """Until a timer that runs has ended, and perhaps begun anew."""
        armed = self._runner.timers.armed
        before = armed.get(timer)
        if before is None:
            raise Unplayable(f"{MINE} does not wait for {timer}")
        self._wait(lambda: armed.get(timer) != before, f"{timer} does not end")

    def _is_out(self) -> bool:
        self._release(OTHER, ALTER)
        return self._told_id not in self._set.sync_state_set

    def _ask_in(self) -> None:
        """Somebody asks in the master's name; ours would not."""
        self.wronged |= self._learning().variables.is_out
        header = AlterSyncStateSetRequest(BROKER_NAME, None, self._set.master, self._set.master_epoch)
        members = sorted(self._set.sync_state_set | {self._told_id})
        body = SyncStateSet(broker_ids=members, sync_state_set_epoch=self._set.sync_state_set_epoch)
        self._administer(Question(ALTER, header.to_ext_fields(), body.encode()))

    def _release(self, name: str, code: int) -> None:
        """Let what a broker has asked through, and the answer."""
        for is_answer in (False, True):
            found = self.gate.find(HOSTS[name], code, is_answer=is_answer)
            if found is not None:
                self.gate.release(found)

    def _find(self, step: Mapping[str, Any]) -> Held | None:
        """The newest that is held: of one that was asked before nobody awaits the answer."""
        is_answer = step["kind"] == "answer"
        code = step["asked" if is_answer else "code"]
        wanted = (HOSTS[MINE], code, is_answer)
        held = [each for each in self.gate.held if (each.host, each.code, each.is_answer) == wanted]
        return held[-1] if held else None

    def _is_further(self, _step: Mapping[str, Any]) -> bool:
        return False

    # What the nodes have

    @property
    def _runner(self) -> Any:
        """The machine of the learner."""
        if not self.learns:
            raise Unplayable(f"{MINE} is no learner")
        return self._node(MINE)._watch._runner

    @property
    def _set(self) -> Any:
        """What the controller knows of the set."""
        return self._machines(CONTROLLER)["set"].variables

    @property
    def _told_id(self) -> int:
        number: int = self._told.values[self._told.place_of("broker")].number
        return number

    def _machines(self, name: str) -> dict[str, Configuration[Any, Any]]:
        return {} if name == MINE and self.learns else super()._machines(name)

    def _learning(self) -> Configuration[Any, Any]:
        """The machine of a learner; a replica has none, and is one as soon as it has said so."""
        if self.learns:
            return Configuration(self._runner.state, self._runner.variables)
        state = learner.State.REPLICA if self.greeted else learner.State.UNDECLARED
        return Configuration(state, learner.MACHINE.variables)

    def _kept(self, place: str) -> Mapping[str, object]:
        if place == CONTROLLER:
            return {"set": self._machines(CONTROLLER)["set"], "other": self._id_of(OTHER)}
        said = {"learns": self.learns, "greeted": self.greeted, "wronged": self.wronged}
        return {"learning": self._learning(), **said}
