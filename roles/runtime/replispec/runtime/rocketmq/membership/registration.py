"""From no identity to being registered with the active controller, on the machine broker_registration.

Source: RIP "persistent broker id"; apache/rocketmq rocketmq-all-5.4.0, ReplicasManager.
"""

from __future__ import annotations

from collections.abc import Callable

from replispec.runtime.primitives.bindings import Call
from replispec.runtime.primitives.headers import Header
from replispec.runtime.rocketmq import rules
from replispec.runtime.rocketmq.framing import Command
from replispec.runtime.rocketmq.membership.answers import Complaints
from replispec.runtime.rocketmq.membership.controllers import Controllers
from replispec.runtime.rocketmq.membership.identity import IdentityFiles, IdentityRefused
from replispec.runtime.rocketmq.membership.machine_runner import MachineRunner, Nothing
from replispec.runtime.rocketmq.remoting.calls import Failure, Outcome
from replispec.runtime.storage import Operation, StorageFailed
from replispec.runtime.world import Level, Outbox, Persisted, Writes, Written
from replispec.wire.rocketmq.machines import broker_registration as machine
from replispec.wire.rocketmq.machines import broker_registration_wire as wire
from replispec.wire.rocketmq.options import BrokerOptions, LearnerOptions

Registered = Callable[[Command, int], None]


class Registration:
    """One broker's registration. `registered` is called with the controller's answer whenever it succeeds,
    `failed` whenever a step did not; the step is tried again by itself, after pauses that grow.

    Identity files that cannot be used end the process: their owner has to decide. While one is being written,
    the registration stands still; one that cannot be written is tried again after the pause.
    """

    def __init__(
        self,
        outbox: Outbox,
        writes: Writes,
        controllers: Controllers,
        files: IdentityFiles,
        *,
        cluster_name: str,
        broker_name: str,
        options: BrokerOptions | LearnerOptions,
        registered: Registered,
        failed: Callable[[int], None],
    ) -> None:
        self._outbox = outbox
        self._writes = writes
        self._controllers = controllers
        self._files = files
        self.cluster_name = cluster_name
        self.broker_name = broker_name
        self._complaints = Complaints(outbox)
        self._registered = registered
        self._failed = failed
        self._runner = MachineRunner(machine.MACHINE, self, options)
        self._asked = 0
        self._writing = 0
        self._has_stopped = False
        self._answer: Outcome | None = None
        self.address = ""

    @property
    def now_ms(self) -> int:
        """The time of what happened last; see `local` of the machine."""
        return self._runner.now_ms

    @property
    def state(self) -> machine.State:
        """The state of the machine."""
        return self._runner.state

    @property
    def broker_id(self) -> int:
        """The broker's id; 0 until it has been granted."""
        granted = (machine.State.CREATE_METADATA_FILE_DONE, machine.State.REGISTERED)
        return self._runner.variables.broker_id if self.state in granted else 0

    def begin(self, address: str, now_ms: int) -> None:
        """Register under this address: read the files the first time, go on where it stopped later."""
        self.address = address
        if self._writing or self._runner.timers.armed:
            # What was written, or the end of the pause, goes on from here, under the new address.
            return
        if self._runner.variables.begun:
            self._take(machine.RetryDue(), now_ms)
            return
        try:
            identity = self._files.read()
        except (IdentityRefused, StorageFailed) as error:
            self._outbox.halt(str(error))
            return
        temporary = not identity.granted and identity.broker_id > 0
        started = machine.Started(identity.granted, temporary, identity.broker_id, identity.check_code)
        self._take(started, now_ms)

    def answered(self, asked: int, answer: Command, now_ms: int) -> None:
        """Take the code of an answer to a request of others, which may say that this broker is unknown."""
        event = wire.outcome_of(asked, answer.header.code, {}, b"", answer.release)
        if event is not None:
            self._take(event, now_ms)

    def stop(self) -> None:
        """Ask nothing more, and listen to no answer."""
        self._has_stopped = True
        self._asked += 1

    def ticked(self, now_ms: int) -> None:
        """Try again what is due."""
        if not self._stands_still:
            self._runner.ticked(now_ms)

    def deadline_ms(self) -> int | None:
        """When `ticked` has something to do."""
        return None if self._stands_still else self._runner.deadline_ms()

    @property
    def _stands_still(self) -> bool:
        return self._has_stopped or self._writing > 0

    # Effects of the machine

    def ask_next_id(self, _event: object) -> Nothing:
        """Ask which id is free."""
        call = wire.next_id_sent(self._runner.variables, self)
        if self._ask(call):
            self._runner.take(machine.NextIdSent(call.header))
        return ()

    def write_temporary(self, event: object) -> Nothing:
        """Note the id that is going to be applied for."""
        broker_id = self._runner.variables.broker_id
        assert broker_id > 0, "the machine writes no file without an id"
        check_code = rules.check_code(self.address, self.now_ms)

        def written(result: Written) -> None:
            if isinstance(result, Persisted):
                self._take(machine.TemporaryWritten(broker_id, check_code), result.now_ms)
            else:
                self._note("the identity cannot be written", result.reason)
                self.remove_temporary(event)
                self._take(machine.TemporaryFailed(), result.now_ms)

        self._persist(self._files.temporary(broker_id, check_code), written)
        return ()

    def remove_temporary(self, _event: object) -> Nothing:
        """Forget what was noted."""

        def removed(result: Written) -> None:
            if not isinstance(result, Persisted):
                self._note("the temporary identity cannot be removed", result.reason)

        self._persist(self._files.refused(), removed)
        return ()

    def send_application(self, _event: object) -> Nothing:
        """Apply for the id that is noted."""
        call = wire.application_sent(self._runner.variables, self)
        if self._ask(call):
            self._runner.take(machine.ApplicationSent(call.header))
        return ()

    def rename_to_final(self, _event: object) -> Nothing:
        """Keep the granted id for good."""

        def renamed(result: Written) -> None:
            if isinstance(result, Persisted):
                self._take(machine.Renamed(), result.now_ms)
            else:
                self._note("the identity cannot be kept", result.reason)
                self._take(machine.RenameFailed(), result.now_ms)

        self._persist(self._files.granted(), renamed)
        return ()

    def send_registration(self, _event: object) -> Nothing:
        """Tell the controller the present address."""
        call = wire.registration_sent(self._runner.variables, self)
        if self._ask(call):
            self._runner.take(machine.RegistrationSent(call.header))
        return ()

    def find_leader(self, _event: object) -> Nothing:
        """Somebody else may be the active controller by now."""
        self._controllers.find_leader(lambda _leader, _now_ms: None, self.now_ms)
        return ()

    def tell_failure(self, _event: object) -> Nothing:
        """A step has failed, and is tried again."""
        self._failed(self.now_ms)
        return ()

    def take_role(self, _event: machine.Registered) -> Nothing:
        """Hand over what the controller said; see `registered`."""
        assert isinstance(self._answer, Command), "only an answer registers a broker"
        self._registered(self._answer, self.now_ms)
        return ()

    def _persist(self, operation: Operation, then: Callable[[Written], None]) -> None:
        """Have something written; nothing else is begun until it is."""
        self._writing += 1

        def answered(result: Written) -> None:
            self._writing -= 1
            if not self._has_stopped:
                then(result)

        self._writes.persist(operation, then=answered)

    # Answers

    def _ask(self, call: Call[Header]) -> bool:
        """Ask the active controller. Only the answer to the newest question counts."""
        self._asked += 1
        asked = self._asked

        def answered(outcome: Outcome, now_ms: int) -> None:
            if asked == self._asked:
                self._answered(call.code, outcome, now_ms)

        if self._controllers.ask(call, answered, self.now_ms):
            return True
        self._runner.take(machine.Unsent())
        return False

    def _answered(self, asked: int, outcome: Outcome, now_ms: int) -> None:
        self._answer = outcome
        event = self._complaints.read(asked, outcome, lambda *answer: wire.outcome_of(asked, *answer))
        assert event is not None, "every outcome of a request of this machine is one of its events"
        match event:
            case machine.RequestFailed():
                what = (
                    "a controller did not answer" if isinstance(outcome, Failure) else "a controller refused"
                )
                self._complaints.failed(asked, outcome, Level.INFO, what)
            case machine.RegistrationRefused():
                what, broker_id = "the controller does not know this broker's id", self.broker_id
                self._complaints.tell(asked, Level.WARNING, what, broker_id, reason=str(broker_id))
            case machine.ApplicationRefused():
                self._complaints.failed(asked, outcome, Level.INFO, "another broker has the id")
            case _:
                self._complaints.over(asked)
        self._take(event, now_ms)

    def _take(self, event: machine.Event, now_ms: int) -> None:
        self._runner.take(event, now_ms)

    def _note(self, what: str, reason: object) -> None:
        self._outbox.note(Level.WARNING, what, reason=str(reason))
