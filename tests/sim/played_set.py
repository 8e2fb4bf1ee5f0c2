"""Plays stories of `sync_state_set` on a controller and brokers, and asks these whether the promise holds.

What brokers and their controller ask each other passes one gate, what the controller notifies a broker of
another one, at the address that the broker says is its own. Brokers are registered before the first step, and
everything of one that the script is not about is held until it is to catch up.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from replispec.runtime.primitives.machines import Configuration
from replispec.runtime.rocketmq.framing import Command
from replispec.runtime.world import Member
from replispec.wire.rocketmq.broker import SendMessageV2Request
from replispec.wire.rocketmq.codes import RequestCode
from replispec.wire.rocketmq.controller import ElectMasterRequest
from tests.sim.asker import Asker, Question
from tests.sim.client import TOPIC, number_of, records
from tests.sim.cluster import BROKER_NAME, CONTROLLER, HOSTS, address
from tests.sim.gate import Gate, Held
from tests.sim.played_story import Player, Unplayable

NOTICE = RequestCode.NOTIFY_BROKER_ROLE_CHANGED
ASKED = {
    RequestCode.CONTROLLER_ELECT_MASTER,
    RequestCode.CONTROLLER_GET_REPLICA_INFO,
    RequestCode.CONTROLLER_ALTER_SYNC_STATE_SET,
}


def notified_at(name: str) -> str:
    """Where the gate of a broker's notices listens: as long an address as the broker's."""
    return address(name).replace("127.0.0.1", "127.0.0.5", 1)


class SetPlayer(Player):
    """A world in which brokers are registered, and nothing else has happened."""

    outlives: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self.gate.codes = ASKED
        self.notices = {name: Gate(notified_at(name), address(name), {NOTICE}) for name in self.brokers}
        for name, gate in self.notices.items():
            host = notified_at(name).rpartition(":")[0]
            self.world.add(f"notices-{name}", host, lambda _, gate=gate: [Member("gate", gate)])  # type: ignore[misc]
            self.world.start(f"notices-{name}")
        self.producers: list[Asker] = []
        self._done = 0

    def _properties(self, name: str) -> Mapping[str, object]:
        given = super()._properties(name)
        return {**given, "brokerIP1": notified_at(name).rpartition(":")[0]} if name in self.brokers else given

    def prepare(self) -> None:
        """Register all brokers, in the order of their numbers, so that these are their ids."""
        for name in self.brokers:
            self.world.start(name)
            first = (HOSTS[name], RequestCode.CONTROLLER_ELECT_MASTER)
            self._wait(lambda: self.gate.find(*first, is_answer=False) is not None, f"{name} asks nothing")  # noqa: B023

    def _kept(self, place: str) -> Mapping[str, object]:
        """What an instance of the story keeps, as its node has it, and maybe more."""
        machines = self._machines(place.replace(" ", "-"))
        return {**machines, "living": self._living()} if place == CONTROLLER else machines

    def _machines(self, name: str) -> dict[str, Configuration[Any, Any]]:
        node: Any = next(iter(self.world.processes[name].nodes), None)
        if node is None:
            return {}
        known = node._sets.find(BROKER_NAME) if name == CONTROLLER else node._role
        if known is None:
            return {}
        return {"set" if name == CONTROLLER else "role": Configuration(known.state, known.variables)}

    def open_wide(self) -> None:
        """Let everything through from now on."""
        super().open_wide()
        for gate in self.notices.values():
            gate.open_wide()

    def _step(self, step: Mapping[str, Any]) -> None:
        if step["happens"] == "silence":
            name = step["to"].replace(" ", "-")
            before = self._machines(name)
            self._wait(lambda: self._machines(name) != before, f"{name} does not give up")
        super()._step(step)
        if step["happens"] == "arrives" and step["kind"] == "notice":
            self._answer_told(step["to"].replace(" ", "-"))
        self._done += 1

    def _answer_told(self, name: str) -> None:
        """A broker that is notified asks the controller: notice, question and answer are one step."""
        told = (HOSTS[name], RequestCode.CONTROLLER_GET_REPLICA_INFO)
        for is_answer in (False, True):
            held = [
                each
                for each in self.gate.held
                if (each.host, each.code, each.is_answer) == (*told, is_answer)
            ]
            if not held:
                return
            self.gate.release(held[-1])
            self.world.run_for(20)

    def _act(self, step: Mapping[str, Any]) -> None:
        name = step["by"].replace(" ", "-")
        match step["act"]:
            case "polls" | "asks_again" | "outlasts_the_doubt" | "loses_the_master":
                """A node does it by itself."""
            case "catches_up":
                # It copies until its master asks it in.
                self._tell(step["with"]["replica"].replace(" ", "-"))
                asked = (HOSTS[name], RequestCode.CONTROLLER_ALTER_SYNC_STATE_SET)
                self._wait(
                    lambda: self.gate.find(*asked, is_answer=False) is not None, f"{name} asks nobody in"
                )
            case "begins_again" | "begins_again_without_its_epoch":
                # An epoch in which nothing was stored is forgotten.
                if step["act"] == "begins_again" and self._machines(name)["role"].state.name == "MASTER":
                    self._store(name)
                self.world.kill(name)
                self.world.start(name)
            case "removes_the_master":
                known = self._machines(CONTROLLER)["set"].variables
                self._ask_to_remove(known.master)
            case other:
                raise Unplayable(f"nobody plays {other}")

    def _wish_for(self, name: str) -> Command:
        """An administrator names the master; nobody is elected who was not heard."""
        self._wait(lambda: self._is_heard(name), f"{name} sends no heartbeat")
        wish = ElectMasterRequest(
            "simulation", BROKER_NAME, broker_id=self._id_of(name), designate_elect=True
        )
        return self._administer(Question(RequestCode.CONTROLLER_ELECT_MASTER, wish.to_ext_fields()))

    def _is_heard(self, name: str) -> bool:
        return self._id_of(name) in self._living()

    def _living(self) -> frozenset[int]:
        """The brokers whose heartbeats the controller has in time."""
        node: Any = next(iter(self.world.processes[CONTROLLER].nodes))
        living: frozenset[int] = node._sets.local(node._sets.named(BROKER_NAME)).living
        return living

    def _id_of(self, name: str) -> int:
        found: int = self._machines(name)["role"].variables.broker_id
        return found

    def _tell(self, name: str) -> None:
        """Let what a broker asks its controller through until it knows who is master."""
        held = [(HOSTS[name], code, is_answer) for code in sorted(ASKED) for is_answer in (False, True)]

        def knows() -> bool:
            for host, code, is_answer in held:
                found = self.gate.find(host, code, is_answer=is_answer)
                if found is not None and code != RequestCode.CONTROLLER_ALTER_SYNC_STATE_SET:
                    self.gate.release(found)
            known, controller = self._machines(name).get("role"), self._machines(CONTROLLER).get("set")
            return (
                known is not None
                and controller is not None
                and known.state.name != "UNDECIDED"
                and known.variables.master_epoch == controller.variables.master_epoch
            )

        self._wait(knows, f"{name} is not told who is master")

    def _store(self, name: str, number: int | None = None) -> None:
        """A producer sends the next message; whoever waits for its acknowledgement waits long."""
        count = len(self.producers) + 1
        number = count if number is None else number
        header = SendMessageV2Request(
            producer_group="simulation",
            topic=TOPIC,
            default_topic="TBW102",
            default_topic_queue_nums=1,
            queue_id=0,
            born_timestamp=0,
            sys_flag=0,
            flag=0,
        )
        question = Question(RequestCode.SEND_MESSAGE_V2, header.to_ext_fields(), b"%03d." % number)
        self.producers.append(Asker(address(name), [question], timeout_ms=600_000))
        self._begin(f"producer-{count}", f"127.0.0.{100 + count}", self.producers[-1])
        end = len(self.log_of(name))
        self._wait(lambda: number in self.log_of(name)[end:], f"{name} stores nothing")

    def _node(self, name: str) -> Any:
        return next(iter(self.world.processes[name].nodes))

    def _store_of(self, name: str) -> Any:
        return self._node(name)._log.store

    def log_of(self, name: str, end: int | None = None) -> bytes:
        """The numbers of the messages in a node's log, one byte each; those before an offset alone."""
        log = self._store_of(name).log
        last = log.end if end is None else min(end, log.end)
        return bytes(number_of(each) for each in records(bytes(log.view(log.first, last - log.first))))

    def _find(self, step: Mapping[str, Any]) -> Held | None:
        if step["kind"] != "notice":
            return super()._find(step)
        return self._gate_of(step).find(HOSTS[CONTROLLER], NOTICE, is_answer=False)

    def _gate_of(self, step: Mapping[str, Any]) -> Gate:
        return self.notices[step["to"].replace(" ", "-")] if step["kind"] == "notice" else self.gate

    def _is_further(self, step: Mapping[str, Any]) -> bool:
        """A broker asks for an election where it is told that there is no master, before it asks who is."""
        if step["kind"] == "notice":
            name = step["to"].replace(" ", "-")
            return bool(self._machines(name)) and self.is_told(name)
        steps, names = self.script["steps"][self._done + 1 :], (step["from"], step["to"])
        later = [each for each in steps if each.get("kind") == "request" and each["from"] in names]
        return any(super(SetPlayer, self)._find(each) is not None for each in later)

    def is_told(self, name: str) -> bool:
        """Whether a broker knows already what a notice would tell it."""
        known, controller = self._machines(name)["role"], self._machines(CONTROLLER)
        set_known = controller["set"].variables if controller else None
        return set_known is not None and known.variables.set_epoch >= set_known.sync_state_set_epoch
