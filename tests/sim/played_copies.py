"""Plays stories of `replication` and `fail_over` on a controller and brokers that copy from each other.

Every broker names a gate as its replication address, so that each connection and each frame waits for its
step. A message of the story, one byte there, is a record here. A node stores, flushes and counts by itself:
what the story says of it is waited for. In the end the nodes are asked whether the promise holds, each log as
the numbers of its messages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from replispec.runtime.primitives.machines import Configuration
from replispec.runtime.sim import Rng
from replispec.runtime.sim.disk import Content
from replispec.runtime.world import Member, Note
from replispec.wire.rocketmq.codes import RequestCode
from replispec.wire.rocketmq.ha import HaEpochEntry
from replispec.wire.rocketmq.machines import ha_replica
from tests.sim.cluster import CONTROLLER, HOSTS, LEARNER, PORTS, log_files
from tests.sim.frame_gate import END, HEADER, HEARTBEAT, FrameGate
from tests.sim.played_set import SetPlayer
from tests.sim.played_story import Unplayable

MASTER = "broker-1"
OPERATOR = "no epoch shared with the master"
CUT = "log cut to agree with the master"
HA_PORT = PORTS[MASTER] + 1
SILENCES = ("finds_a_replica_silent", "finds_its_master_silent")
"""By the master, and by who copies from it."""
FOREIGN = 128
"""The message of another set."""
SILENCE_MS = 20_000
PATIENCE_MS = 600_000
BEFORE = frozenset({"learns", "brings_a_log"})
"""What a replica is before it is started."""
BY_THEMSELVES = frozenset({"flushes", "is_due_to_dial", "reports_again", "says_that_it_lives", "sends_early"})


def copied_at(name: str) -> str:
    """The host at which replicas think that a broker replicates."""
    return HOSTS[name].replace("127.0.0.", "127.0.7.")


class _Losing(Rng):
    """Decides for a disk that nothing is kept that was not flushed."""

    def below(self, limit: int) -> int:
        """The first of any choice, which of a write is nothing."""
        return min(0, limit - 1)


class CopiesPlayer(SetPlayer):
    """A world in which brokers are registered, and nothing was stored."""

    compares: ClassVar[bool] = False
    """Whether logs are compared before they count: no story knows of it, and it hides errors of copying."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.frames: dict[str, FrameGate] = {}
        for name in self.brokers:
            gate = FrameGate(f"{copied_at(name)}:{HA_PORT}", f"{HOSTS[name]}:{HA_PORT}")
            self.frames[name] = gate
            self.world.add(f"frames-{name}", copied_at(name), lambda _, gate=gate: [Member("gate", gate)])  # type: ignore[misc]
            self.world.start(f"frames-{name}")
        self.acknowledged = b""
        self.helpless: set[str] = set()
        self.lost: set[str] = set()
        self._shown: dict[str, int] = {}
        self.world.notes = self._noted

    @property
    def is_fail_over(self) -> bool:
        """Whether all brokers are of one kind; else there is a master and who copies from it."""
        return "broker" in self.script["instances"]

    @property
    def brokers(self) -> Sequence[str]:
        """The processes of the brokers, and of the learner if there is one."""
        if self.is_fail_over:
            return super().brokers
        learns = any(step.get("act") == "learns" for step in self.script["steps"])
        return (MASTER, LEARNER if learns else "broker-2")

    def _properties(self, name: str) -> Mapping[str, object]:
        given = super()._properties(name)
        # What is played takes longer than a period or two: nobody is silent unless the story says so.
        patience_ms = SILENCE_MS if name in self._impatient() else PATIENCE_MS
        patient = {"haHousekeepingInterval": patience_ms, "haMaxTimeSlaveNotCatchup": PATIENCE_MS}
        if name not in self.brokers:
            return given
        flushing = {"flushDiskType": "ASYNC_FLUSH"} if self._is_careless() else {}
        compared = {"compareLogWithMaster": str(self.compares).lower()}
        return {**given, **patient, **flushing, **compared, "brokerIP2": copied_at(name)}

    def _impatient(self) -> Sequence[str]:
        """Who finds the other end of a connection silent."""
        acts = {step.get("act") for step in self.script["steps"]}
        return [name for name, act in zip(self.brokers, SILENCES, strict=False) if act in acts]

    def _is_careless(self) -> bool:
        """Whether a master sends what is not on its disk yet."""
        return any(step.get("act") == "sends_early" for step in self.script["steps"])

    def prepare(self) -> None:
        """Register the brokers; a learner finds its master by itself."""
        brought = sum(step.get("act") == "brings_a_log" for step in self.script["steps"])
        if brought:
            self.world.processes[self.brokers[1]].disk.contents |= foreign_log(brought)
        for name in self.brokers:
            self.world.start(name)
            if name != LEARNER:
                self._wait(lambda host=HOSTS[name]: self._asks(host), f"{name} asks nothing")  # type: ignore[misc]

    def _asks(self, host: str) -> bool:
        return self.gate.find(host, RequestCode.CONTROLLER_ELECT_MASTER, is_answer=False) is not None

    def process_of(self, place: str) -> str:
        """The process of an instance of the story."""
        return place.replace(" ", "-") if self.is_fail_over else self.brokers[place == "replica"]

    def open_wide(self) -> None:
        """Let everything through from now on."""
        super().open_wide()
        for gate in self.frames.values():
            gate.open_wide()

    def _noted(self, name: str, note: Note) -> None:
        if note.what.startswith(OPERATOR):
            self.helpless.add(name)
        if note.what == CUT:
            cut = note.values["cut"]
            assert isinstance(cut, int), "an offset"
            self.lost |= {name} if cut < self._shown.get(name, 0) else set()

    # Steps

    def _step(self, step: Mapping[str, Any]) -> None:
        if step["happens"] == "act":
            self._act(step)
        elif step["happens"] == "arrives" and step["kind"] == "frame":
            self._frame(step)
        elif step["happens"] == "arrives" and step["kind"] == "end":
            self._end(step)
        else:
            raise Unplayable(f"nobody plays that a {step['kind']} is {step['happens']}")
        for name in self.brokers:
            self._shown[name] = max(self._shown.get(name, 0), self._confirmed(name))
        self._done += 1

    def _act(self, step: Mapping[str, Any]) -> None:
        name = self.process_of(step["by"])
        match step["act"]:
            case "is_elected":
                self._elect(name)
            case "is_told":
                self._tell(name)
            case "stores":
                self._store(name)
            case "acknowledges":
                self._acknowledge(name)
            case "ends" | "crashes":
                self._end_process(name)
            case "connects":
                self._connect(name, self.process_of(step["with"]["other"]))
            case "loses_its_connection":
                self._break_off(name)
            case "finds_its_master_silent":
                gate = self.frames[MASTER]
                self._wait(lambda: not gate.is_connected(HOSTS[name]), f"{name} does not end its connection")
            case "finds_a_replica_silent":
                gate, other = self.frames[name], self.process_of(step["with"]["other"])
                self._wait(lambda: not gate.is_served(HOSTS[other]), f"{name} ends no connection")
            case "is_let_in":
                self._let_join(name, self.process_of(step["with"]["other"]))
            case other if other not in BY_THEMSELVES | BEFORE:
                raise Unplayable(f"nobody plays {other}")

    def _elect(self, name: str) -> None:
        """The first is elected as it asks for an election, later ones as an administrator wishes."""
        known = self._machines(CONTROLLER).get("set")
        if known is not None and known.variables.master_epoch > 0:
            if known.variables.master == self._id_of(name):
                self._miss_all()
            self._wish_for(name)
            now = self._machines(CONTROLLER)["set"].variables
            if now.master != self._id_of(name) or now.master_epoch <= known.variables.master_epoch:
                raise Unplayable(f"the controller does not elect {name}")
            if self.is_fail_over:
                # It is told by a step of its own.
                return
        self._tell(name)
        self._wait(lambda: self._machines(name)["role"].state.name == "MASTER", f"{name} is not elected")

    def _miss_all(self) -> None:
        """Have the controller hear nobody, until it has no master: whoever is one is not elected again."""
        self.gate.silenced = {HOSTS[name] for name in self.brokers}
        self._wait(
            lambda: self._machines(CONTROLLER)["set"].variables.master is None, "the controller misses nobody"
        )
        self.gate.silenced.clear()

    def _acknowledge(self, name: str) -> None:
        count = len(self.acknowledged) + 1
        self._wait(
            lambda: any(each.is_done for each in self.producers[count - 1 :]), f"{name} acknowledges nothing"
        )
        self.acknowledged = max(self.acknowledged, self.log_of(name, self._confirmed(name)), key=len)

    def _connect(self, name: str, master: str) -> None:
        host, gate = HOSTS[name], self.frames[master]
        if name != LEARNER:
            self._tell(name)
        self._wait(lambda: gate.has_dialled(host), f"{name} does not dial")
        gate.connect(host)
        self._wait(lambda: gate.is_connected(host), f"{name} is not connected")
        gate.hold_back(host)

    def _let_join(self, master: str, name: str) -> None:
        """What the master asks of its controller, and the answer, come through."""

        def joins() -> bool:
            for is_answer in (False, True):
                asked = (HOSTS[master], RequestCode.CONTROLLER_ALTER_SYNC_STATE_SET)
                found = self.gate.find(*asked, is_answer=is_answer)
                if found is not None:
                    self.gate.release(found)
            return self._id_of(name) in self._machines(CONTROLLER)["set"].variables.sync_state_set

        self._wait(joins, f"{name} is not let in")

    def _frame(self, step: Mapping[str, Any]) -> None:
        sender, receiver = self.process_of(step["from"]), self.process_of(step["to"])
        is_heartbeat = step["name"] == HEADER and not step["fields"].get("body")
        name = HEARTBEAT if is_heartbeat else step["name"]
        to_master = not step["name"].startswith(HEADER) and step["name"] != "HaHandshakeAnswer"
        replica, master = (sender, receiver) if to_master else (receiver, sender)
        gate, host = self.frames[master], HOSTS[replica]
        self._wait(lambda: gate.has(host, name, to_master=to_master), f"{sender} says no {name}")
        gate.release(host, name, to_master=to_master)
        self.world.run_for(20)

    def _end_process(self, name: str) -> None:
        """The process begins again; where it is careless, without what was not on the disk."""
        self.world.processes[name].disk.rng = _Losing(0)
        self.world.kill(name, power=self._is_careless())
        self.world.start(name)

    def _break_off(self, name: str) -> None:
        gates = [each for each in self.frames.values() if each.is_connected(HOSTS[name])]
        if not gates:
            raise Unplayable(f"{name} is not connected")
        gates[0].break_off(HOSTS[name])

    def _end(self, step: Mapping[str, Any]) -> None:
        """An end of a connection learns that the other is gone; who has ended it meanwhile does without."""
        sender, receiver = self.process_of(step["from"]), self.process_of(step["to"])
        ways = ((self.frames[sender], HOSTS[receiver], False), (self.frames[receiver], HOSTS[sender], True))

        def waiting() -> Sequence[tuple[FrameGate, str, bool]]:
            return [each for each in ways if each[0].has(each[1], END, to_master=each[2])]

        def is_open() -> bool:
            return any(gate.is_connected(host) and gate.is_served(host) for gate, host, _ in ways)

        self._wait(lambda: bool(waiting()) or not is_open(), f"{sender} ends no connection to {receiver}")
        found = waiting()
        self.passed_over += not found
        for gate, host, to_master in found[:1]:
            gate.release(host, END, to_master=to_master)
        self.world.run_for(20)

    # What the nodes have

    def _store_of(self, name: str) -> Any:
        return self._node(name)._store if name == LEARNER else super()._store_of(name)

    def _id_of(self, name: str) -> int:
        node = self._node(name)
        found: int = node._watch.broker_id if name == LEARNER else node._role.broker_id
        return found

    def _confirmed(self, name: str) -> int:
        """Up to where of its log a node shows messages."""
        node = self._node(name)
        if name != LEARNER:
            shown: int = node._log.confirm_offset
            return shown
        return 0 if node._replica is None else node._replica.confirm_offset

    def _messages_before(self, name: str, offset: int) -> int:
        """How many messages of a node's log are before an offset; of one beyond its end one more than all."""
        is_beyond: bool = offset > self._store_of(name).log.end
        return len(self.log_of(name, offset)) + is_beyond

    def _copying(self, name: str) -> Configuration[Any, Any]:
        """The machine of a replica, its offsets as messages count; of a master, one that has ended."""
        node = self._node(name)
        replica = node._replica if name == LEARNER else node._log._replica
        if replica is None:
            return Configuration(next(iter(ha_replica.MACHINE.final)), ha_replica.MACHINE.variables)
        known = replica._variables
        end = self._messages_before(name, known.log_end)
        shown = self._messages_before(name, known.confirm_offset)
        return Configuration(replica.state, replace(known, log_end=end, confirm_offset=shown))

    def _epochs(self, name: str) -> tuple[HaEpochEntry, ...]:
        """The epochs of a node's log, each from the number of the message on with which it begins."""
        entries = self._store_of(name).epochs.entries
        return tuple(
            replace(each, start_offset=self._messages_before(name, each.start_offset)) for each in entries
        )

    def _kept(self, place: str) -> Mapping[str, object]:
        known = self._machines(CONTROLLER)["set"].variables
        if place == "controller":
            return {
                "master": known.master or 0,
                "epoch": known.master_epoch,
                "members": known.sync_state_set,
                "acknowledged": self.acknowledged,
            }
        name = self.process_of(place)
        kept: dict[str, object] = {
            "log": self.log_of(name),
            "epochs": self._epochs(name),
            "flushed": self._messages_before(name, self._store_of(name).log.flushed),
            "confirmed": self._messages_before(name, self._confirmed(name)),
            "copy": self._copying(name),
            "helpless": name in self.helpless,
            "lost": name in self.lost,
            "learns": name == LEARNER,
            "granted": known.master_epoch if known.master else 0,
        }
        if name != LEARNER:
            kept["role"] = self._machines(name)["role"]
            # The only replica has the number 1 in the story.
            counted = self._node(name)._role.counted
            is_asked_in = not self.is_fail_over and self._id_of(self.brokers[1]) in counted
            kept["members"] = frozenset({1} if is_asked_in else ())
        return kept


def foreign_log(count: int) -> dict[str, Content]:
    """The files of a log of another set with these many messages, without its epochs."""
    told = {"system": "fail_over", "instances": {"broker": 1}, "steps": [], "circle": []}
    other = CopiesPlayer(told)
    other.prepare()
    other._elect(MASTER)
    for _ in range(count):
        other._store(MASTER, FOREIGN)
    disk = other.world.processes[MASTER].disk
    return {name: Content(bytearray(disk.contents[name].data)) for name in log_files(disk)}
