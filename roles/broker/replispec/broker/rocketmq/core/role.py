"""Who is master, and who is in its SyncStateSet, on the machine broker_role.

Source: RIP-44 "Master-slave relationship", "AlterSyncStateSet"; apache/rocketmq rocketmq-all-5.4.0,
ReplicasManager, AutoSwitchHAService.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from replispec.runtime.primitives.bindings import Call
from replispec.runtime.primitives.headers import Header
from replispec.runtime.rocketmq.membership import (
    AskedSet,
    Complaints,
    Controllers,
    MachineRunner,
    Nothing,
    asked_set_file,
    read_asked_set,
)
from replispec.runtime.rocketmq.remoting.calls import Outcome
from replispec.runtime.storage import FilesReader
from replispec.runtime.world import Level, Outbox, Persisted, Writes, Written
from replispec.wire.rocketmq.machines import broker_role as machine
from replispec.wire.rocketmq.machines import broker_role_wire as wire
from replispec.wire.rocketmq.options import BrokerOptions


class RoleOwner(Protocol):
    """What follows from a role."""

    def become_master(self, epoch: int, now_ms: int, *, resumed: bool) -> None:
        """Serve as the master of this epoch; `resumed` when the log is of this epoch already."""
        ...

    def become_replica(self, address: str, now_ms: int) -> None:
        """Copy from the master at this address, which is not that of its replication."""
        ...

    def set_changed(self, now_ms: int) -> None:
        """The SyncStateSet that counts is another."""
        ...

    def check_members(self, now_ms: int) -> None:
        """Find the members of the set that no longer keep up."""
        ...

    def lags(self, broker_id: int) -> bool:
        """Whether this member is gone, or does not keep up."""
        ...

    def may_join(self, broker_id: int) -> bool:
        """Whether this replica is connected now, and has what a member must have."""
        ...

    def ask_election(self, now_ms: int) -> None:
        """Ask the controller for a master: there is none."""
        ...

    def ask_who_is_master(self, now_ms: int) -> None:
        """Ask the controller for master and set."""
        ...

    def leave_office(self, now_ms: int) -> None:
        """Have the controller look for another master."""
        ...


class Role:
    """One broker's role; see the machine. What is durable of it is on the disk before a request leaves.
    Raises StorageFailed when what is there cannot be used."""

    def __init__(
        self,
        outbox: Outbox,
        writes: Writes,
        controllers: Controllers,
        files: FilesReader,
        options: BrokerOptions,
        owner: RoleOwner,
    ) -> None:
        self._outbox = outbox
        self._complaints = Complaints(outbox)
        self._writes = writes
        self._controllers = controllers
        self.broker_name = options.broker_name
        self._owner = owner
        self._runner = MachineRunner(machine.MACHINE, self, options)
        kept = read_asked_set(files)
        self._runner.variables = machine.Variables(
            asked=kept.members, asked_epoch=kept.epoch, asked_set_epoch=kept.set_epoch
        )
        self._on_disk: AskedSet | None = kept
        self._asked = 0
        self._told_asking: tuple[frozenset[int], int] | None = None
        self._told_older = 0
        self.master_address: str | None = None

    @property
    def is_master(self) -> bool:
        """Whether this broker is master."""
        return self._runner.state is machine.State.MASTER

    @property
    def is_replica(self) -> bool:
        """Whether another broker is."""
        return self._runner.state is machine.State.REPLICA

    @property
    def broker_id(self) -> int:
        """The broker's own id; 0 before it has one."""
        return self._runner.variables.broker_id

    @property
    def master_epoch(self) -> int:
        """The masterEpoch of the role."""
        return self._runner.variables.master_epoch

    @property
    def members(self) -> frozenset[int]:
        """The SyncStateSet as received from the controller."""
        return self._runner.variables.members

    @property
    def counted(self) -> frozenset[int]:
        """Brokers that must hold a message before it is confirmed: the set, and one that may be the next."""
        return self._runner.variables.members | self._runner.variables.proposed

    @property
    def members_at_least(self) -> int:
        """How many members the set has, as far as this master knows: fewer, if one that was asked for is."""
        known = self._runner.variables
        return min(len(known.members), len(known.proposed) or len(known.members))

    @property
    def now_ms(self) -> int:
        """The time of what happened last; see `local` of the machine."""
        return self._runner.now_ms

    @property
    def state(self) -> machine.State:
        """The state of the machine."""
        return self._runner.state

    @property
    def variables(self) -> machine.Variables:
        """The variables of the machine."""
        return self._runner.variables

    def identified(self, broker_id: int, last_epoch: int, now_ms: int, *, is_sure: bool) -> None:
        """The broker has its id; `last_epoch` is the newest of its log, which has all that was acknowledged
        before, if it `is_sure`."""
        self._take(machine.Identified(broker_id, last_epoch, is_sure=is_sure), now_ms)

    def replica_info_received(self, info: machine.ReplicaInfoReceived, now_ms: int) -> None:
        """Take the master and the SyncStateSet from an answer or a notification of a controller."""
        if info.master is not None and info.master_epoch >= self.master_epoch:
            self.master_address = info.address
        self._take(info, now_ms)

    def caught_up(self, broker_id: int, now_ms: int) -> None:
        """A replica has caught up: it has all that a member must have."""
        self._take(machine.CaughtUp(broker_id), now_ms)

    def lagging(self, broker_ids: Iterable[int], now_ms: int) -> None:
        """Replicas are lagging; who is left out of the set goes with all of them."""
        self._take(machine.Lagging(frozenset(broker_ids)), now_ms)

    def serving(self, now_ms: int) -> None:
        """Log and epoch of this master are on the disk."""
        self._take(machine.Serving(), now_ms)

    def ticked(self, now_ms: int) -> None:
        """Do what is due."""
        self._runner.ticked(now_ms)

    def deadline_ms(self) -> int | None:
        """When `ticked` has something to do."""
        return self._runner.deadline_ms()

    # Effects of the machine

    def become_master(self, event: machine.ReplicaInfoReceived) -> Nothing:
        """Begin a new epoch."""
        self._owner.become_master(event.master_epoch, self.now_ms, resumed=False)
        return ()

    def resume_as_master(self, event: machine.ReplicaInfoReceived) -> Nothing:
        """Go on with the epoch of the log."""
        self._owner.become_master(event.master_epoch, self.now_ms, resumed=True)
        return ()

    def become_replica(self, _event: machine.ReplicaInfoReceived) -> Nothing:
        """Follow another broker."""
        self._owner.become_replica(self.master_address or "", self.now_ms)
        return ()

    def count_again(self, _event: object) -> Nothing:
        """Others must hold a message now."""
        self._owner.set_changed(self.now_ms)
        return ()

    def ask_election(self, _event: machine.ReplicaInfoReceived) -> Nothing:
        """There is no master."""
        self._owner.ask_election(self.now_ms)
        return ()

    def leave_office(self, _event: machine.ReplicaInfoReceived) -> Nothing:
        """It may have lost what it acknowledged in this epoch."""
        self._owner.leave_office(self.now_ms)
        return ()

    def ask_who_is_master(self, _event: object) -> Nothing:
        """The controller knows better."""
        self._owner.ask_who_is_master(self.now_ms)
        return ()

    def ask_alteration(self, _event: object) -> Nothing:
        """Ask for the proposed set, which counts from now on."""
        self._owner.set_changed(self.now_ms)
        self._send_alteration()
        return ()

    def find_leader(self, _event: object) -> Nothing:
        """Somebody else may be the active controller by now."""
        self._controllers.find_leader(lambda _leader, _now_ms: None, self.now_ms)
        return ()

    def tell_older(self, event: machine.ReplicaInfoReceived) -> Nothing:
        """The controller's records are not those under which this log was written."""
        if event.master_epoch != self._told_older:
            self._told_older = event.master_epoch
            self._outbox.note(
                Level.ERROR,
                "a controller counts fewer elections than this log: it has lost its records",
                told=event.master_epoch,
                log=self.master_epoch,
            )
        return ()

    def call_waiting(self, _event: object) -> Nothing:
        """Say how those are now who waited for the end of the question."""
        known, owner = self._runner.variables, self._owner
        lagging = frozenset(each for each in known.leaving if owner.lags(each))
        joining = next((each for each in known.joining[:1] if owner.may_join(each)), None)
        self._take(machine.TurnCame(lagging, joining), self.now_ms)
        return ()

    def check_members(self, _event: object) -> Nothing:
        """Members that do not keep up are to leave the set."""
        self._owner.check_members(self.now_ms)
        return ()

    def _send_alteration(self) -> None:
        """Send the request of the machine as it is now, once whom it asks in can not be forgotten."""
        known = self._runner.variables
        call = wire.ask_alteration(known, self)
        kept = AskedSet(known.asked, known.asked_epoch, known.asked_set_epoch)
        if self._told_asking != (known.proposed, known.set_epoch):
            self._told_asking = known.proposed, known.set_epoch
            members = sorted(known.proposed)
            what = "asking for another SyncStateSet"
            self._outbox.note(Level.INFO, what, members=members, epoch=known.set_epoch)
        self._asked += 1
        asked = self._asked
        joining = known.proposed - known.members
        if kept == self._on_disk:
            self._ask_for(joining, call, asked, self.now_ms)
            return

        def written(result: Written) -> None:
            self._on_disk = kept if isinstance(result, Persisted) else None
            if asked != self._asked:
                return
            if isinstance(result, Persisted):
                self._ask_for(joining, call, asked, result.now_ms)
            else:
                self._outbox.note(Level.ERROR, "the set to be asked for cannot be kept", reason=result.reason)
                self._take(machine.AlterationUnsent(), result.now_ms)

        self._writes.persist(asked_set_file(kept), then=written)

    def _ask_for(self, joining: Iterable[int], call: Call[Header], asked: int, now_ms: int) -> None:
        """Ask, if whom it takes in still keeps up: it was looked at before the write, which may take long."""
        if all(self._owner.may_join(broker_id) for broker_id in joining):
            self._ask(call, asked, now_ms)
        else:
            self._take(machine.LeftMeanwhile(), now_ms)

    def _ask(self, call: Call[Header], asked: int, now_ms: int) -> None:
        """Ask the active controller; only the answer to the newest question counts."""

        def answered(outcome: Outcome, now_ms: int) -> None:
            if asked == self._asked:
                told = self._complaints
                event = told.read(call.code, outcome, lambda *answer: wire.outcome_of(call.code, *answer))
                assert event is not None, "every outcome of a request of this machine is one of its events"
                if isinstance(event, machine.AlterationRefused):
                    told.failed(call.code, outcome, Level.WARNING, "another SyncStateSet was refused")
                elif isinstance(event, machine.Altered):
                    told.over(call.code)
                self._take(event, now_ms)

        if not self._controllers.ask(call, answered, now_ms):
            self._take(machine.AlterationUnsent(), now_ms)

    def _take(self, event: machine.Event, now_ms: int) -> None:
        self._runner.take(event, now_ms)
