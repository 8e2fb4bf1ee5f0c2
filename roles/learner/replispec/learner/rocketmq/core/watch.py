"""What a learner asks of controllers: an id, and who is master. On the machine learner.

Source: RIP-44 "Async Learner"; RIP "persistent broker id".
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from replispec.runtime.rocketmq.membership import (
    Controllers,
    IdentityFiles,
    MachineRunner,
    Nothing,
    Registration,
    read_answer,
)
from replispec.runtime.rocketmq.remoting.calls import Outcome
from replispec.runtime.storage import FilesReader
from replispec.runtime.world import Level, Outbox, Writes
from replispec.wire.rocketmq import constants
from replispec.wire.rocketmq.machines import learner as machine
from replispec.wire.rocketmq.machines import learner_wire as wire
from replispec.wire.rocketmq.options import LearnerOptions


class Watch:
    """`identified` is called once, with the id that is for good, as soon as it is on the disk."""

    def __init__(
        self,
        outbox: Outbox,
        writes: Writes,
        controllers: Controllers,
        files: FilesReader,
        options: LearnerOptions,
        identified: Callable[[int, int], None],
    ) -> None:
        self._outbox = outbox
        self._controllers = controllers
        self._options = options
        self._identified = identified
        self._registration = Registration(
            outbox,
            writes,
            controllers,
            IdentityFiles(files, options.broker_cluster_name, options.broker_name),
            cluster_name=options.broker_cluster_name,
            broker_name=options.broker_name,
            retry_interval_ms=options.registration_retry_interval_ms,
            registered=lambda _answer, now_ms: self._tell_id(now_ms),
            failed=self._tell_id,
        )
        self._runner = MachineRunner(machine.MACHINE, self)
        self._is_configured = False
        self._master: str | None = None
        self._serves = True
        self._now_ms = 0
        self._leader_ms: int | None = None
        self._info_ms: int | None = None

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
        self._runner.take(machine.Configured())
        self._registration.begin(address, now_ms)
        self._find_leader(now_ms)
        self._info_ms = now_ms + constants.RETRY_MS
        self._tell_id(now_ms)

    def master_lost(self, now_ms: int) -> None:
        """The connection to the master ended: there may soon be another one."""
        self._master = None
        if self._info_ms is not None:
            self._info_ms = min(self._info_ms, now_ms + constants.RETRY_MS)

    def ticked(self, now_ms: int) -> None:
        """Do what is due."""
        self._registration.ticked(now_ms)
        self._tell_id(now_ms)
        if self._leader_ms is not None and now_ms >= self._leader_ms:
            self._find_leader(now_ms)
        if self._info_ms is not None and now_ms >= self._info_ms:
            self._info_ms = now_ms + self._options.sync_broker_metadata_period_ms
            self._now_ms = now_ms
            self._runner.take(machine.InfoDue())

    def deadline_ms(self) -> int | None:
        """When `ticked` has something to do."""
        times = (self._registration.deadline_ms(), self._leader_ms, self._info_ms)
        return min((each for each in times if each is not None), default=None)

    def ask_who_is_master(self, _event: machine.InfoDue) -> Nothing:
        """Ask the active controller, if anybody knows which it is."""
        call = wire.ask_who_is_master(self._runner.variables, self)
        self._controllers.ask(call, partial(self._answered, call.code), self._now_ms)
        return ()

    def refuse_to_serve(self, _event: machine.ReplicaInfoReceived) -> Nothing:
        """A controller has made this learner master: nothing is taken from it, and nothing copied."""
        self._outbox.note(Level.ERROR, "a controller names this learner master; it stands still")
        self._serves = False
        return ()

    def _find_leader(self, now_ms: int) -> None:
        known = self._controllers.leader is not None
        period_ms = self._options.sync_controller_metadata_period_ms
        self._leader_ms = now_ms + (period_ms if known else constants.RETRY_MS)
        self._controllers.find_leader(lambda _leader, _now_ms: None, now_ms)

    def _tell_id(self, now_ms: int) -> None:
        if not self._is_configured and self.broker_id > 0:
            self._is_configured = True
            self._identified(self.broker_id, now_ms)

    def _answered(self, asked: int, outcome: Outcome, _now_ms: int) -> None:
        event = read_answer(
            self._outbox,
            outcome,
            lambda code, fields, body, release: wire.outcome_of(asked, code, fields, body, self, release),
        )
        if isinstance(event, machine.ReplicaInfoReceived):
            self._serves = True
            self._master = event.address
            if self.broker_id:
                self._runner.take(event)
