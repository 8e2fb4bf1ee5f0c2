"""From the start of a broker to serving, and its life with the controllers, on the machine replicas_manager.

Source: RIP-44 "RegisterBroker"; apache/rocketmq rocketmq-all-5.4.0, ReplicasManager.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from replispec.runtime.primitives.bindings import Call
from replispec.runtime.primitives.headers import Header
from replispec.runtime.rocketmq.framing import Command
from replispec.runtime.rocketmq.membership import (
    Complaints,
    Controllers,
    IdentityFiles,
    MachineRunner,
    Nothing,
    Registration,
)
from replispec.runtime.rocketmq.remoting.calls import Failure, Outcome
from replispec.runtime.storage import FilesReader
from replispec.runtime.world import Level, Outbox, Writes
from replispec.wire.rocketmq.broker import RegisterBrokerRequest
from replispec.wire.rocketmq.codes import RequestCode
from replispec.wire.rocketmq.constants import ANSWER_TIMEOUT_MS
from replispec.wire.rocketmq.machines import broker_role, broker_role_wire
from replispec.wire.rocketmq.machines import replicas_manager as machine
from replispec.wire.rocketmq.machines import replicas_manager_wire as wire
from replispec.wire.rocketmq.options import BrokerOptions


@dataclass(frozen=True, slots=True)
class LogStatus:
    """What controllers are told of the log: its newest epoch (-1 for none), its end, what is confirmed, and
    whether bytes of a master may still come to it."""

    epoch: int
    max_offset: int
    confirm_offset: int
    copying: bool


@dataclass(frozen=True, slots=True)
class OwnFacts:
    """What only this broker knows when it sends; see `local` of the machine."""

    cluster_name: str
    broker_name: str
    broker_id: int
    address: str
    now_ms: int
    epoch: int
    max_offset: int
    confirm_offset: int
    heartbeat_timeout_ms: int
    election_priority: int
    copying: bool


class ManagerOwner(Protocol):
    """What the manager tells, and asks, the broker."""

    def identified(self, broker_id: int, now_ms: int) -> None:
        """The broker has its id."""
        ...

    def replica_info_received(self, info: broker_role.ReplicaInfoReceived, now_ms: int) -> None:
        """A controller said who is master and who is in the set."""
        ...

    def master_told(self, info: broker_role.ReplicaInfoReceived, asked_ms: int) -> None:
        """A controller that was asked then, or later, named this master."""
        ...

    def announce(self, now_ms: int, /) -> None:
        """The name servers may know this broker."""
        ...

    def let_go_of_master(self, now_ms: int) -> None:
        """Copy nothing more from the master, which its controller misses."""
        ...

    def go_on_with_master(self, now_ms: int) -> None:
        """Copy from it again."""
        ...

    def log_status(self) -> LogStatus:
        """For heartbeats."""
        ...


class ReplicasManager:
    """One broker's life with its controllers."""

    def __init__(
        self,
        outbox: Outbox,
        writes: Writes,
        controllers: Controllers,
        files: FilesReader,
        options: BrokerOptions,
        owner: ManagerOwner,
    ) -> None:
        self._outbox = outbox
        self._complaints = Complaints(outbox)
        self._controllers = controllers
        self._options = options
        self._owner = owner
        self.registration = Registration(
            outbox,
            writes,
            controllers,
            IdentityFiles(files, options.broker_cluster_name, options.broker_name),
            cluster_name=options.broker_cluster_name,
            broker_name=options.broker_name,
            options=options,
            registered=self._registered,
            failed=self._failed,
        )
        self._runner = MachineRunner(machine.MACHINE, self, options)
        self._address = ""
        self._info: broker_role.ReplicaInfoReceived | None = None
        # When the controller was asked because of a notification, while that is open, and whether there was
        # another one since.
        self._asked_after_ms: int | None = None
        self._is_told_again = False

    @property
    def state(self) -> machine.State:
        """The state of the machine."""
        return self._runner.state

    @property
    def is_running(self) -> bool:
        """Whether the broker has had a role since it began."""
        return self._runner.state is machine.State.RUNNING

    def begin(self, address: str, now_ms: int) -> None:
        """Find the active controller and register under this address."""
        self._address = address
        self._runner.begin(now_ms)
        self._take(machine.RetryDue(), now_ms)

    def notified(self, command: Command, now_ms: int) -> None:
        """Somebody told of a role, which is a reason to ask the controller. While such a question is open
        there is no other one; what was told meanwhile is asked after it. Raises RemoteProtocolError when
        the notification cannot be read."""
        header = command.header
        event = wire.event_of(header.code, header.ext_fields or {}, command.body, command.release)
        if event is None:
            return
        if self._asked_after_ms is not None and now_ms < self._asked_after_ms + ANSWER_TIMEOUT_MS:
            self._is_told_again = True
            return
        self._asked_after_ms = now_ms
        self._take(event, now_ms)

    def _go_on_asking(self, now_ms: int) -> None:
        """A question who is master is no longer open."""
        self._asked_after_ms = None
        if self._is_told_again and not self._has_stopped:
            self._is_told_again = False
            self._asked_after_ms = now_ms
            self._runner.now_ms = now_ms
            self._ask_who_is_master()

    def announced(self, request: RegisterBrokerRequest, now_ms: int) -> None:
        """Name servers are told of this broker, which they may be only when its role is known."""
        self._take(machine.Announced(request), now_ms)

    def ask_for_master(self, now_ms: int) -> None:
        """Ask for an election, outside of the start."""
        self._runner.now_ms = now_ms
        self._send_election()

    def ask_for_set(self, now_ms: int) -> None:
        """Ask for master and set now."""
        self._runner.now_ms = now_ms
        self._ask_who_is_master()

    def leave_office(self, now_ms: int) -> None:
        """The broker cannot be the master that it is recorded as: keep silent."""
        if not self._runner.variables.silent:
            what = "the log may lack what was acknowledged: waiting until another master is looked for"
            self._outbox.note(Level.WARNING, what)
        self._take(machine.OfficeLeft(), now_ms)

    def settle_office(self, now_ms: int) -> None:
        """Another masterEpoch began, or there is no master: be heard again."""
        self._take(machine.OfficeSettled(), now_ms)

    def lose_master(self, now_ms: int) -> None:
        """The connection to the master ended: an election may wait for where the log ends now."""
        self._take(machine.MasterOutOfReach(), now_ms)

    def stop(self, now_ms: int) -> None:
        """The broker stops."""
        self.registration.stop()
        self._take(machine.Stop(), now_ms)

    def ticked(self, now_ms: int) -> None:
        """Do what is due."""
        if self._has_stopped:
            return
        self.registration.ticked(now_ms)
        self._runner.ticked(now_ms)

    def deadline_ms(self) -> int | None:
        """When `ticked` has something to do."""
        times = (self._runner.deadline_ms(), self.registration.deadline_ms())
        return min((each for each in times if each is not None), default=None)

    # Effects of the machine

    def ask_leader(self, _event: object) -> Nothing:
        """Ask every controller who is active."""
        self._find_leader()
        return ()

    def register(self, _event: object) -> Nothing:
        """Get an identity, and register it."""
        self.registration.begin(self._address, self._runner.now_ms)
        return ()

    def send_heartbeat(self, _event: object) -> Nothing:
        """Tell every controller that this broker lives."""
        self._send_heartbeat()
        return ()

    def ask_election(self, _event: object) -> Nothing:
        """Ask to become master, or who is."""
        self._send_election()
        return ()

    def ask_who_is_master(self, _event: object) -> Nothing:
        """Ask for master and set."""
        self._ask_who_is_master()
        return ()

    def take_role(self, _event: object) -> Nothing:
        """Hand over what the controller said last."""
        if self._info is not None:
            self._owner.replica_info_received(self._info, self._runner.now_ms)
        return ()

    def announce(self, _event: object) -> Nothing:
        """The role is known: so may the broker be."""
        self._owner.announce(self._runner.now_ms)
        return ()

    def let_go_of_master(self, _event: object) -> Nothing:
        """The controller hears nothing of the master: what it acknowledged with this broker is told."""
        self._owner.let_go_of_master(self._runner.now_ms)
        return ()

    def go_on_with_master(self, _event: object) -> Nothing:
        """It is heard again."""
        self._owner.go_on_with_master(self._runner.now_ms)
        return ()

    # Questions and answers

    def _find_leader(self) -> None:
        call = wire.leader_asked()
        waiting = len(self._controllers.addresses)
        answered_once = False

        def answered(info: machine.LeaderNamed | None, now_ms: int) -> None:
            nonlocal waiting, answered_once
            waiting -= 1
            if info is not None:
                answered_once = True
                self._complaints.over(call.code)
                self._take(info, now_ms)
            elif not answered_once and not waiting:
                self._complaints.tell(call.code, Level.WARNING, "no controller answers", None)
                self._take(machine.RequestFailed(), now_ms)

        self._controllers.find_leader(answered, self._runner.now_ms)
        self._runner.take(machine.LeaderAsked(call.header))

    def _registered(self, answer: Command, now_ms: int) -> None:
        self._owner.identified(self.registration.broker_id, now_ms)
        self._answered(RequestCode.CONTROLLER_REGISTER_BROKER, answer, now_ms)

    def _failed(self, now_ms: int) -> None:
        self._take(machine.RequestFailed(), now_ms)

    def _send_heartbeat(self) -> None:
        call = wire.heartbeat_sent(self._runner.variables, self._known())
        self._controllers.tell_all(call, self._runner.now_ms)
        self._runner.take(machine.HeartbeatSent(call.header))

    def _send_election(self) -> None:
        if not self._ask(wire.ask_election(self._runner.variables, self._known()), self._runner.now_ms):
            self._runner.take(machine.RequestFailed())

    def _ask_who_is_master(self) -> None:
        self._ask(wire.ask_who_is_master(self._runner.variables, self._known()), self._runner.now_ms)

    def _known(self) -> OwnFacts:
        """What is said of this broker now."""
        status, options = self._owner.log_status(), self._options
        return OwnFacts(
            cluster_name=options.broker_cluster_name,
            broker_name=options.broker_name,
            broker_id=self.registration.broker_id,
            address=self._address,
            now_ms=self._runner.now_ms,
            epoch=status.epoch,
            max_offset=status.max_offset,
            confirm_offset=status.confirm_offset,
            heartbeat_timeout_ms=options.controller_heart_beat_timeout_ms,
            election_priority=options.broker_election_priority,
            copying=status.copying,
        )

    def _ask(self, call: Call[Header], now_ms: int) -> bool:
        def answered(outcome: Outcome, at_ms: int) -> None:
            if not isinstance(outcome, Failure) and not self._has_stopped:
                self.registration.answered(call.code, outcome, at_ms)
            info = self._answered(call.code, outcome, at_ms)
            if call.code == RequestCode.CONTROLLER_GET_REPLICA_INFO:
                self._go_on_asking(at_ms)
            if info is not None and info.is_answer:
                self._owner.master_told(info, now_ms)

        return self._controllers.ask(call, answered, now_ms)

    def _answered(self, asked: int, outcome: Outcome, now_ms: int) -> broker_role.ReplicaInfoReceived | None:
        """Take an answer: to this machine it says how the start goes on, to the role who is master."""
        if self._has_stopped:
            return None
        event, role = self._complaints.read(
            asked,
            outcome,
            lambda *answer: (
                wire.outcome_of(asked, *answer),
                broker_role_wire.outcome_of(asked, *answer),
            ),
        )
        assert event is not None, "every outcome of a request of this machine is one of its events"
        if isinstance(event, machine.RequestFailed):
            self._complaints.failed(asked, outcome, Level.WARNING, _FAILED.get(asked, "a controller refused"))
        elif isinstance(event, machine.MasterElected) and event.master_broker_id is None:
            self._complaints.failed(asked, outcome, Level.WARNING, "an election named no master")
        else:
            self._complaints.over(asked)
        self._take_both(event, role, now_ms)
        return role if isinstance(role, broker_role.ReplicaInfoReceived) else None

    def _take_both(self, event: machine.Event, role: broker_role.Event | None, now_ms: int) -> None:
        if isinstance(role, broker_role.ReplicaInfoReceived):
            self._info = role
        self._take(event, now_ms)

    @property
    def _has_stopped(self) -> bool:
        return self._runner.state in machine.MACHINE.final

    def _take(self, event: machine.Event, now_ms: int) -> None:
        """Step the machine, unless the broker has stopped: answers that come then are dropped."""
        if not self._has_stopped:
            self._runner.take(event, now_ms)


_FAILED: Final[Mapping[int, str]] = {
    RequestCode.CONTROLLER_ELECT_MASTER: "no master was elected",
    RequestCode.CONTROLLER_GET_REPLICA_INFO: "the controller does not say who is master",
}
