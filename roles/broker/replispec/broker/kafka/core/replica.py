"""One replica of this broker: what the controller said of it, its log, and its followers while it leads.

Source: Kafka replication, detailed design V3, procedures C and G; apache/kafka 2.8.2, Partition.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Final

from replispec.broker.kafka.core.following import KnownFollower
from replispec.runtime.kafka import rules
from replispec.runtime.kafka.log import PartitionLog
from replispec.runtime.kafka.stores.forms import StoreForm
from replispec.runtime.primitives.machines import Machine, step
from replispec.wire.kafka.machines import followed_replica as followed
from replispec.wire.kafka.machines import replica as machine
from replispec.wire.kafka.machines.replica import State

ReplicaKey = tuple[str, int]
"""The topic and the number of a partition."""


class LocalReplica:
    """A replica. `log` is there once the machine wanted it opened. `decided_by`: the epoch of the controller
    that decided who leads; `assigned`: the brokers that have a replica."""

    def __init__(self, form: StoreForm, key: ReplicaKey, broker_id: int) -> None:
        self.key: Final = key
        self._machine = _machine(form.software, form.release)
        self.state = self._machine.initial
        self._variables = replace(self._machine.variables, broker_id=broker_id)
        self._broker_id: Final = broker_id
        self.log: PartitionLog | None = None
        self.followers: dict[int, KnownFollower] = {}
        self.assigned: Sequence[int] = ()
        self.decided_by = 0
        self.epoch_start = 0
        self.is_writing = False

    @property
    def known(self) -> machine.Variables:
        """What the machine knows."""
        return self._variables

    @property
    def leads(self) -> bool:
        """Whether this broker leads the partition."""
        return self.state is State.LEADER

    @property
    def isr(self) -> frozenset[int]:
        """The ISR, as far as it is decided."""
        return frozenset(self._variables.isr)

    def take(self, event: machine.Event) -> Sequence[str]:
        """Take an event and return the effects that the machine wants, in order."""
        taken = step(self._machine, self.state, self._variables, event, rules)
        self.state, self._variables = taken.state, taken.variables
        return taken.effects

    def lead(self, now_ms: int) -> None:
        """This broker leads from now on, in the epoch that the machine knows."""
        log = self._opened
        self.epoch_start = log.end
        log.begin_epoch(self._variables.leader_epoch)
        others = [each for each in self.assigned if each != self._broker_id]
        self.followers = {each: KnownFollower() for each in others}
        for broker_id, each in self.followers.items():
            each.take(followed.Led(in_sync=broker_id in self.isr, now_ms=now_ms))
        self.commit()

    def fetched(self, broker_id: int, offset: int, now_ms: int) -> frozenset[int] | None:
        """An assigned follower fetches from an offset on; returns the ISR that is wanted because of it."""
        one, log = self.followers[broker_id], self._opened
        one.take(followed.Fetched(offset=offset, leader_end=log.end, now_ms=now_ms))
        wanted = None
        if broker_id not in self.isr:
            event = followed.JoiningConsidered(
                high_watermark=log.high_watermark, epoch_start=self.epoch_start
            )
            if "want_in" in one.take(event):
                wanted = self.isr | {broker_id}
        self.commit()
        return wanted

    def shrunk(self, now_ms: int, lag_ms: int) -> frozenset[int] | None:
        """The ISR without those that lag; None when nobody does."""
        out = set()
        for broker_id in self.isr & self.followers.keys():
            event = followed.StayingConsidered(leader_end=self._opened.end, now_ms=now_ms, lag_ms=lag_ms)
            if "want_out" in self.followers[broker_id].take(event):
                out.add(broker_id)
        return self.isr - out if out else None

    def commit(self) -> None:
        """Raise the high watermark to what all who count have on the disk.

        Who is wanted in the ISR counts until it is decided, and so does who is wanted out of it.
        """
        log = self._opened
        counted = (self.isr | self.known.wanted) - {self._broker_id}
        ends = [self.followers[each].log_end if each in self.followers else -1 for each in counted]
        self.take(machine.AllFetched(min([log.flushed, *ends])))
        log.high_watermark = max(log.high_watermark, min(self.known.high_watermark, log.end))

    @property
    def _opened(self) -> PartitionLog:
        assert self.log is not None, f"{self.key} leads without a log"
        return self.log


@cache
def _machine(software: str, release: tuple[int, ...]) -> Machine[State, machine.Variables]:
    """The machine as this release walks it: one for all replicas."""
    return machine.MACHINE.for_release(software, release)
