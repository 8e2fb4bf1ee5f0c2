"""One partition that is followed: its log on the machine `fetcher`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Protocol

from replispec.runtime.kafka import rules
from replispec.runtime.kafka.log import PartitionLog
from replispec.runtime.primitives.errors import LocalProtocolError, RemoteProtocolError
from replispec.runtime.primitives.machines import step
from replispec.runtime.primitives.timers import Timers
from replispec.runtime.storage import StorageFull
from replispec.runtime.world import Level, Outbox
from replispec.wire.kafka.clients import (
    ApacheEpochEndOffset,
    ApacheFetchPartition,
    ApacheFetchPartitionResponse,
    ApacheOffsetForLeaderEpochPartition,
)
from replispec.wire.kafka.codes import ErrorCode
from replispec.wire.kafka.constants import NOT_KNOWN
from replispec.wire.kafka.machines import fetcher as machine
from replispec.wire.kafka.machines import fetcher_wire as wire

FollowedKey = tuple[str, int]
"""The topic and the number of a partition."""


class PartitionOwner(Protocol):
    """Who follows: says how it asks, and has logs written."""

    @property
    def bytes_max(self) -> int:
        """How much of one partition an answer may hold."""
        ...

    @property
    def says_epoch(self) -> bool:
        """Whether questions name the epoch of the leader."""
        ...

    @property
    def flush(self) -> Callable[[], None]:
        """Has what was put into logs, and cut of them, brought to the disk."""
        ...


class FollowedPartition:
    """`life` counts commands: what was asked in an earlier one is not heard any more."""

    def __init__(self, outbox: Outbox, log: PartitionLog, owner: PartitionOwner, options: Any) -> None:
        self.log: Final = log
        self.key: Final[FollowedKey] = (log.topic, log.partition)
        self.life = 0
        self.state = machine.MACHINE.initial
        self.variables = machine.MACHINE.variables
        self._outbox = outbox
        self._owner = owner
        self._timers = Timers(machine.MACHINE, options)
        self._waiting: list[machine.Event] = []

    # What the machine asks of its role

    @property
    def partition(self) -> int:
        """See `machines.fetcher_wire.Local`."""
        return self.log.partition

    @property
    def bytes_max(self) -> int:
        """See `machines.fetcher_wire.Local`."""
        return self._owner.bytes_max

    @property
    def log_start(self) -> int:
        """See `machines.fetcher_wire.Local`."""
        return self.log.start

    @property
    def says_epoch(self) -> bool:
        """See `machines.fetcher_wire.Local`."""
        return self._owner.says_epoch

    # What it asks

    @property
    def is_settling(self) -> bool:
        """Whether it waits for the disk before it asks again."""
        return self.state in (machine.State.CUTTING, machine.State.FLUSHING)

    def epoch_question(self) -> ApacheOffsetForLeaderEpochPartition:
        """Where its newest epoch ends at the leader."""
        return wire.ask_epoch(self.variables, self)

    def fetch_question(self) -> ApacheFetchPartition:
        """What comes after its log."""
        return wire.fetch(self.variables, self)

    # What happens

    def follow(self, leader_epoch: int, now_ms: int, *, by_epoch: bool) -> None:
        """It has a leader, of this epoch."""
        self.life += 1
        log = self.log
        event = machine.Followed(
            leader_epoch=leader_epoch,
            by_epoch=by_epoch,
            epoch=log.epochs.newest,
            log_end=log.end,
            high_watermark=log.high_watermark,
        )
        self.take(event, now_ms)

    def stop(self) -> None:
        """It follows nobody."""
        self.life += 1
        self.take(machine.Stopped(), 0)

    def written(self, now_ms: int) -> None:
        """A write of the folder is done."""
        if self.state is machine.State.CUTTING:
            if (event := self._settled()) is not None:
                self.take(event, now_ms)
        elif self.state is machine.State.FLUSHING and self.log.flushed >= self.variables.log_end:
            self.take(machine.Flushed(), now_ms)

    def failed(self, now_ms: int) -> None:
        """What it asked last is not answered."""
        self.take(machine.Failed(), now_ms)

    def refused(self, error: int, now_ms: int) -> None:
        """What it asked last is answered with an error."""
        match error:
            case ErrorCode.FENCED_LEADER_EPOCH:
                self.take(machine.Fenced(), now_ms)
            case ErrorCode.OFFSET_OUT_OF_RANGE if self.state is machine.State.FETCHING:
                self.take(machine.OutOfRange(), now_ms)
            case _:
                self._outbox.note(
                    Level.INFO, "leader refuses", topic=self.key[0], partition=self.key[1], error=error
                )
                self.take(machine.Failed(), now_ms)

    def epoch_told(self, said: ApacheEpochEndOffset, now_ms: int) -> None:
        """The leader knows where an epoch ends, or that it does not."""
        if said.error:
            self.refused(said.error, now_ms)
            return
        log = self.log
        end = None if said.end_offset <= NOT_KNOWN else said.end_offset
        epoch = None if said.leader_epoch is None or said.leader_epoch <= NOT_KNOWN else said.leader_epoch
        cut = rules.cut_by_epoch(log.epochs.entries, log.end, log.high_watermark, epoch, end)
        is_final = end is None or rules.is_cut_final(log.epochs.entries, epoch)
        self.take(machine.EpochTold(cut=cut, is_final=is_final), now_ms)

    def range_told(self, begin: int, end: int, now_ms: int) -> None:
        """The leader's log lies there."""
        if not 0 <= begin <= end:
            self.take(machine.Failed(), now_ms)
            return
        self.take(machine.RangeTold(begin=begin, end=end), now_ms)

    def fetched(self, said: ApacheFetchPartitionResponse, now_ms: int) -> None:
        """The leader answered. Raises StorageFailed."""
        if said.error:
            self.refused(said.error, now_ms)
            return
        log, data = self.log, said.records or b""
        before = log.end
        try:
            log.append_as_follower(data, now_ms)
        except RemoteProtocolError as error:
            self._damaged(str(error), now_ms)
            return
        except StorageFull as error:
            self._outbox.note(Level.ERROR, "no room for what is followed", reason=str(error))
            self.failed(now_ms)
            return
        if data and log.end == before:
            # Else it would be asked for again at once, and again.
            self._damaged("nothing of what came is new and whole", now_ms)
            return
        self.take(machine.Fetched(end=log.end, high_watermark=max(0, said.high_watermark)), now_ms)
        if said.log_start_offset is not None:
            # What is not committed is not dropped, whatever a leader says.
            log.advance_start(min(said.log_start_offset, log.high_watermark))

    def _damaged(self, reason: str, now_ms: int) -> None:
        topic, partition = self.key
        self._outbox.note(
            Level.WARNING, "leader's records are wrong", topic=topic, partition=partition, reason=reason
        )
        self.take(machine.Damaged(), now_ms)

    def ticked(self, now_ms: int) -> None:
        """Ask again what is due."""
        while (event := self._timers.ended(now_ms)) is not None:
            self.take(event, now_ms)

    def deadline_ms(self) -> int | None:
        """When `ticked` has something to do."""
        return self._timers.deadline_ms()

    # The machine

    def take(self, event: machine.Event, now_ms: int) -> None:
        """Take an event, and do what comes of it. Raises StorageFailed."""
        self._waiting.append(event)
        while self._waiting:
            taken = step(machine.MACHINE, self.state, self.variables, self._waiting.pop(0), rules)
            self.state, self.variables = taken.state, taken.variables
            self._timers.follow(taken.edge, now_ms)
            for effect in taken.effects:
                self._carry_out(effect)

    def _carry_out(self, effect: str) -> None:
        match effect:
            case "cut_log":
                self.log.truncate(self.variables.log_end)
                self._go_on_when_settled()
            case "start_anew":
                self.log.start_anew(self.variables.log_end)
                self._go_on_when_settled()
            case "know_committed":
                self.log.high_watermark = max(self.log.start, self.variables.high_watermark)
            case "flush":
                self._owner.flush()
            case "ask_epoch" | "fetch" | "ask_range":
                # Asked together with others, by states, as soon as the leader is free.
                pass
            case _:
                raise LocalProtocolError(f"nobody does {effect}")

    def _go_on_when_settled(self) -> None:
        if (event := self._settled()) is not None:
            self._waiting.append(event)

    def _settled(self) -> machine.Event | None:
        """That the cut is done; None while it is not, and is asked for."""
        log = self.log
        if not log.is_settled:
            self._owner.flush()
            return None
        return machine.CutDone(log_end=log.end, epoch=log.epochs.newest)
