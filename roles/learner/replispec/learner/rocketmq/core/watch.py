"""What a learner asks of controllers: an id, and who is master. On the machine learner.

Source: RIP-44 "Async Learner"; RIP "persistent broker id".
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from replispec.runtime.rocketmq.membership import (
    Complaints,
    Controllers,
    IdentityFiles,
    MachineRunner,
    Nothing,
    Registration,
)
from replispec.runtime.rocketmq.remoting.calls import Outcome
from replispec.runtime.storage import FilesReader
from replispec.runtime.world import Level, Outbox, Writes
from replispec.wire.rocketmq.machines import learner as machine
from replispec.wire.rocketmq.machines import learner_wire as wire
from replispec.wire.rocketmq.machines.replicas_manager import LeaderNamed
from replispec.wire.rocketmq.options import LearnerOptions


class Watch:
    """`identified` is called once, with the id that is for good, as soon as it is on the disk; `stand_still`
    whenever a controller names this learner master: nobody is copied then, until another one is named."""

    def __init__(
        self,
        outbox: Outbox,
        writes: Writes,
        controllers: Controllers,
        files: FilesReader,
        options: LearnerOptions,
        identified: Callable[[int, int], None],
        stand_still: Callable[[int], None],
    ) -> None:
        self._outbox = outbox
        self._complaints = Complaints(outbox)
        self._controllers = controllers
        self._options = options
        self._identified = identified
        self._stand_still = stand_still
        self._registration = Registration(
            outbox,
            writes,
            controllers,
            IdentityFiles(files, options.broker_cluster_name, options.broker_name),
            cluster_name=options.broker_cluster_name,
            broker_name=options.broker_name,
            options=options,
            registered=lambda _answer, now_ms: self._tell_id(now_ms),
            failed=self._tell_id,
        )
        self._runner = MachineRunner(machine.MACHINE, self, options)
        self._is_configured = False
        self._master: str | None = None
        self._serves = True

    @property
    def broker_id(self) -> int:
        """The learner's id; 0 before it has one."""
        return self._registration.broker_id

    @property
    def broker_name(self) -> str:
        """The name of the broker set."""
        return self._options.broker_name

    def may_follow(self, address: str) -> bool:
        """Whether a broker at this address may be copied from: the controller names no other as master."""
        return self._serves and self._master in (None, address)

    def begin(self, address: str, now_ms: int) -> None:
        """Get the id, and find the controllers."""
        self._registration.begin(address, now_ms)
        self._take(machine.Configured(), now_ms)
        self._tell_id(now_ms)

    def master_lost(self, now_ms: int) -> None:
        """The connection to the master ended: there may soon be another one."""
        self._master = None
        self._take(machine.MasterGone(), now_ms)

    def ticked(self, now_ms: int) -> None:
        """Do what is due."""
        self._registration.ticked(now_ms)
        self._tell_id(now_ms)
        self._runner.ticked(now_ms)

    def deadline_ms(self) -> int | None:
        """When `ticked` has something to do."""
        times = (self._registration.deadline_ms(), self._runner.deadline_ms())
        return min((each for each in times if each is not None), default=None)

    def ask_who_is_master(self, _event: machine.InfoDue) -> Nothing:
        """Ask the active controller, if anybody knows which it is."""
        call = wire.ask_who_is_master(self._runner.variables, self)
        self._controllers.ask(call, partial(self._answered, call.code), self._runner.now_ms)
        return ()

    def refuse_to_serve(self, _event: machine.ReplicaInfoReceived) -> Nothing:
        """A controller has made this learner master: nothing is taken from it, and nothing copied."""
        self._outbox.note(Level.ERROR, "a controller names this learner master; it stands still")
        self._serves = False
        self._stand_still(self._runner.now_ms)
        return ()

    def find_leader(self, _event: object) -> Nothing:
        """Ask every controller who is active."""

        def answered(named: LeaderNamed | None, now_ms: int) -> None:
            if named is not None and named.controller_leader_address:
                self._take(machine.LeaderKnown(), now_ms)

        self._controllers.find_leader(answered, self._runner.now_ms)
        return ()

    def _take(self, event: machine.Event, now_ms: int) -> None:
        self._runner.take(event, now_ms)

    def _tell_id(self, now_ms: int) -> None:
        if not self._is_configured and self.broker_id > 0:
            self._is_configured = True
            self._identified(self.broker_id, now_ms)

    def _answered(self, asked: int, outcome: Outcome, now_ms: int) -> None:
        event = self._complaints.read(
            asked,
            outcome,
            lambda code, fields, body, release: wire.outcome_of(asked, code, fields, body, self, release),
        )
        if isinstance(event, machine.ReplicaInfoReceived):
            self._complaints.over(asked)
            self._serves = True
            self._master = event.address
            if self.broker_id:
                self._take(event, now_ms)
