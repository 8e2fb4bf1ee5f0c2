"""One replica's connection on the master's side.

States, guards and order of steps: the machine `ha_master`. Source: RIP-44 "Replication solution",
"Epoch file updates and corrections"; apache/rocketmq rocketmq-all-5.4.0, AutoSwitchHAConnection.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, Protocol

from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.primitives.machines import Edge
from replispec.runtime.primitives.timers import Timers
from replispec.runtime.rocketmq import rules
from replispec.runtime.rocketmq.log import MessageStore
from replispec.runtime.rocketmq.replication.frames import Frames
from replispec.runtime.rocketmq.replication.settings import is_durable
from replispec.runtime.rocketmq.replication.stepping import Stepping
from replispec.runtime.world import Level, Outbox
from replispec.wire.rocketmq.ha import (
    HaEpochEntry,
    HaHandshakeAddress,
    HaHandshakeId,
    HaReport,
)
from replispec.wire.rocketmq.machines import ha_master as machine
from replispec.wire.rocketmq.machines import ha_master_wire as wire
from replispec.wire.rocketmq.options import ReplicationOptions
from replispec.wire.rocketmq.streams import HA_MASTER, HA_REPLICA

EPOCHS_MAX: Final = HA_MASTER.form("HaHandshakeAnswer").maximum // len(HaEpochEntry().encode())
"""An answer holds no more epochs; of more, the newest are sent."""

MESSAGES_AT_ONCE: Final = 64
"""Messages of one replica that are taken because of one event; others are in the next turn."""


class SyncStateSetKeeper(Protocol):
    """Who keeps the SyncStateSet of a master: the broker. Broker ids are those of handshakes."""

    @property
    def confirm_offset(self) -> int:
        """Up to where messages may be shown to consumers; goes into every header."""
        ...

    @property
    def served_from(self) -> int:
        """Where the log ended when this broker began to serve as master."""
        ...

    def is_member(self, broker_id: int) -> bool:
        """Whether this replica is in the set, or in one that was asked for."""
        ...

    def acknowledged(self, broker_id: int, offset: int, now_ms: int) -> None:
        """A replica has reported the end of its log; learners and replicas without an id do not count."""
        ...

    def request_expand(self, broker_id: int, now_ms: int) -> None:
        """This replica has caught up: the controller is to be asked to add it to the SyncStateSet."""
        ...

    def request_shrink(self, broker_id: int, now_ms: int) -> None:
        """The last connection of this replica ended: the controller is to be asked to remove it, if
        it is a member."""
        ...


class Feed(Stepping):
    """What one replica asked for, and what it was sent."""

    MACHINE = machine.MACHINE
    _state: machine.State
    _variables: machine.Variables

    def __init__(
        self,
        outbox: Outbox,
        store: MessageStore,
        keeper: SyncStateSetKeeper,
        options: ReplicationOptions,
        *,
        connection: int,
        peer: str,
        now_ms: int,
        admits: Callable[[Feed, int], bool],
    ) -> None:
        """`admits` is asked before a replica goes by an id whether this connection may."""
        self._outbox = outbox
        self._store = store
        self._keeper = keeper
        self._options = options
        self._connection = connection
        self.peer = peer
        self.broker_id: int | None = None
        self.caught_up_ms = now_ms
        self.has_reported = False
        self.wants_to_shrink = False
        self._admits = admits
        self._frames = Frames(HA_REPLICA)
        # What came and waits for the next turn of the loop.
        self._left: deque[Iterator[tuple[str, memoryview]]] = deque()
        self._is_paused = False
        self._state = machine.MACHINE.initial
        self._variables = machine.Variables(log_end=self._end)
        self._timers = Timers(machine.MACHINE, options)
        self._timers.begin(now_ms)
        self._now_ms = self._received_ms = now_ms
        self._end_at_send, self._sent_ms = 0, now_ms
        self._deletion_is_noted = False

    # What is known of the replica

    @property
    def is_learner(self) -> bool:
        """Whether it called itself an async learner."""
        return self._variables.is_learner

    @property
    def is_answered(self) -> bool:
        """Whether it has introduced itself."""
        return self._variables.answered

    @property
    def may_join(self) -> bool:
        """Whether the machine would ask it in by what it told last, were it no member."""
        considered = self._considered(is_member=False)
        is_copying = self._state is machine.State.TRANSFER
        return is_copying and considered is not None and "ask_to_expand" in self._edge(considered).do

    def _considered(self, *, is_member: bool) -> machine.MembershipConsidered | None:
        """By what the machine decides whether this replica may join; None for a log without an epoch."""
        keeper, last = self._keeper, self._store.epochs.last
        if last is None:
            return None
        known = (keeper.confirm_offset, last.start_offset, keeper.served_from)
        return machine.MembershipConsidered(*known, is_member)

    @property
    def acknowledged(self) -> int:
        """The end of its log, as it told last."""
        return self._variables.acknowledged

    @property
    def next_offset(self) -> int:
        """The next byte to send."""
        cursor = self._variables.next_offset
        if cursor >= 0:
            return cursor
        log = self._store.log
        return log.last_file if self._variables.sync_from_last_file else log.first

    @property
    def has_ended(self) -> bool:
        """Whether this side has closed the connection, or knows that it is gone."""
        return self._state in machine.MACHINE.final

    @property
    def _end(self) -> int:
        """Where the log ends for replicas. What this disk may still lose is not sent, where durability is
        asked for: a master that comes back without it, in the same epoch, would write other bytes there."""
        log = self._store.log
        return log.flushed if is_durable(self._options) else log.end

    @property
    def heard_ms(self) -> int:
        """When something came from it last."""
        return self._received_ms

    # What happens

    def received(self, data: bytes, now_ms: int) -> None:
        """Take the next bytes."""
        self._now_ms = self._received_ms = now_ms
        self._step(machine.Heard())
        self._left.append(self._frames.receive(data))
        if len(self._left) == 1:
            self._take_some()

    def _take_some(self) -> None:
        """Take messages, as many as a turn may have; while some are left, no bytes are taken."""
        count = 0
        try:
            while self._left and count < MESSAGES_AT_ONCE:
                message = next(self._left[0], None)
                if message is None:
                    self._left.popleft()
                    continue
                count += 1
                self._take(*message)
                if self.has_ended:
                    self._left.clear()
                    return
            if bool(self._left) != self._is_paused:
                self._is_paused = bool(self._left)
                (self._outbox.pause if self._is_paused else self._outbox.resume)(self._connection)
        except RemoteProtocolError as error:
            self._left.clear()
            self._outbox.note(Level.WARNING, "replica dropped", peer=self.peer, reason=str(error))
            self._outbox.close(self._connection)
            self._step(machine.Closed())

    def writable(self, now_ms: int) -> None:
        """The runs that were sent have left."""
        self._now_ms = now_ms
        self._step(machine.Left())

    def log_grew(self, now_ms: int) -> None:
        """The log has a new end."""
        self._now_ms = now_ms
        self._step(machine.LogGrew(self._end))

    def epoch_began(self, now_ms: int) -> None:
        """This master was elected again."""
        self._now_ms = now_ms
        self._step(machine.EpochBegan())

    def confirmed(self, now_ms: int) -> None:
        """More of the log is confirmed."""
        self._now_ms = now_ms
        self._step(machine.Confirmed())

    def closed(self, reason: str, now_ms: int) -> None:
        """The connection is gone."""
        self._now_ms = now_ms
        self._outbox.note(Level.WARNING, "replica lost", peer=self.peer, broker=self.broker_id, reason=reason)
        self._step(machine.Closed())

    def stop(self, now_ms: int) -> None:
        """Close the connection on our own account."""
        self._now_ms = now_ms
        self._step(machine.Stop())

    def ticked(self, now_ms: int) -> None:
        """Do what is due."""
        self._now_ms = now_ms
        if self._left:
            self._take_some()
        while (event := self._timers.ended(now_ms)) is not None:
            if isinstance(event, machine.Silence):
                self._outbox.note(Level.WARNING, "replica silent", peer=self.peer, broker=self.broker_id)
            self._step(event)

    def deadline_ms(self) -> int | None:
        """When `ticked` has something to do."""
        return 0 if self._left else self._timers.deadline_ms()

    # The machine

    def _blame(self, edge: Edge[Any]) -> None:
        self._outbox.note(
            Level.WARNING,
            "replica broke the protocol",
            peer=self.peer,
            broker=self.broker_id,
            clauses=" ".join(edge.clauses),
        )

    def _take(self, name: str, frame: memoryview) -> None:
        if name == HaReport.__name__:
            self._step(machine.ReportReceived(HaReport.decode(frame)))
        elif name == HaHandshakeId.__name__:
            handshake = HaHandshakeId.decode(frame)
            self._go_by(handshake.broker_id)
            self._step(machine.HandshakeReceived(handshake))
        else:
            self._step(machine.HandshakeReceived(HaHandshakeAddress.decode(frame)))

    def _go_by(self, broker_id: int) -> None:
        """Reports of this connection are of this replica, from now on and for good. Raises
        RemoteProtocolError."""
        if self.broker_id not in (None, broker_id):
            raise RemoteProtocolError(f"broker {self.broker_id} goes by {broker_id}, too")
        if not self._admits(self, broker_id):
            raise RemoteProtocolError(f"broker {broker_id} is connected from elsewhere, and is heard")
        self.broker_id = broker_id

    def _do_send_answer(self, _event: machine.HandshakeReceived) -> None:
        """Header and epochs leave in one write: a replica of Apache's asks again until it has all."""
        answer = wire.answer_sent(self._variables, self._sending())
        self._outbox.send(self._connection, answer.encode())
        self._step(machine.AnswerSent(answer))

    def _do_note_report(self, _event: machine.ReportReceived) -> None:
        self.caught_up_ms = rules.caught_up_at(
            self._variables.acknowledged,
            self._end,
            self._end_at_send,
            self._sent_ms,
            self._now_ms,
            self.caught_up_ms,
        )
        if not self.has_reported:
            values = {"peer": self.peer, "broker": self.broker_id, "offset": self._variables.acknowledged}
            self._outbox.note(Level.INFO, "replica copies", **values)
        self.has_reported = True
        if self.broker_id is not None and not self.is_learner:
            self._keeper.acknowledged(self.broker_id, self._variables.acknowledged, self._now_ms)

    def _do_consider_membership(self, _event: machine.ReportReceived) -> None:
        if self.broker_id is None:
            return
        considered = self._considered(is_member=self._keeper.is_member(self.broker_id))
        if considered is not None:
            self._step(considered)

    def _do_ask_to_expand(self, _event: machine.MembershipConsidered) -> None:
        assert self.broker_id is not None, "only a replica with an id is considered"
        self._keeper.request_expand(self.broker_id, self._now_ms)

    def _do_advance_confirm_offset(self, _event: machine.ReportReceived) -> None:
        """The keeper has done so when it was told of the report."""

    def _do_send_batches(self, _event: object) -> None:
        """Send the next runs in one write, of which the world tells when it has left."""
        parts = self._runs(self._options.ha_window_bytes_max)
        if parts:
            self._sent_ms = self._now_ms
            self._end_at_send = self._end
            self._outbox.send(self._connection, b"".join(parts), tell=True)
            self._step(machine.KeptBack())

    def _do_send_heartbeat(self, _event: object) -> None:
        header = wire.heartbeat_sent(self._variables, self._sending(), rules)
        self._outbox.send(self._connection, header.encode())
        self._step(header, machine.HeartbeatSent)

    def _do_close_connection(self, _event: object) -> None:
        self._outbox.close(self._connection)

    def _do_ask_to_shrink(self, _event: object) -> None:
        self.wants_to_shrink = True

    # Sending

    def _runs(self, size_max: int) -> list[bytes | memoryview]:
        """Headers and bodies of the next runs, of about so many bytes together."""
        parts: list[bytes | memoryview] = []
        size = 0
        log = self._store.log
        while size < size_max and self._has_next():
            at = self.next_offset
            together = log.view(at, self._options.ha_transfer_batch_size)
            run = _Sending(self._store, self._keeper, len(together))
            header = wire.batch_sent(self._variables, run, rules)
            parts += (header.encode(), together[: header.body_size])
            size += header.body_size
            self._step(header, machine.BatchSent)
        return parts

    def _has_next(self) -> bool:
        log, at = self._store.log, self.next_offset
        if log.first <= at < self._variables.log_end:
            return True
        if at < log.first and not self._deletion_is_noted:
            self._deletion_is_noted = True
            self._outbox.note(
                Level.ERROR, "replica wants deleted bytes", peer=self.peer, offset=at, first=log.first
            )
        return False

    def _sending(self) -> _Sending:
        """What is sent without bytes of the log."""
        return _Sending(self._store, self._keeper)


class _Sending:
    """What only this side knows when it sends; see `local` of the machine."""

    __slots__ = ("_keeper", "_store", "at_hand")

    def __init__(self, store: MessageStore, keeper: SyncStateSetKeeper, at_hand: int = 0) -> None:
        self._store = store
        self._keeper = keeper
        self.at_hand = at_hand

    @property
    def first(self) -> int:
        """Where the log begins."""
        return self._store.log.first

    @property
    def last_file(self) -> int:
        """Where the newest file of the log begins."""
        return self._store.log.last_file

    @property
    def entries(self) -> Sequence[HaEpochEntry]:
        """The newest epochs of the log, ascending."""
        return self._store.epochs.entries[-EPOCHS_MAX:]

    @property
    def last_epoch(self) -> int:
        """The newest epoch of the log, 0 for none."""
        last = self._store.epochs.last
        return last.epoch if last is not None else 0

    @property
    def epochs(self) -> Sequence[HaEpochEntry]:
        """All epochs of the log, ascending."""
        return self._store.epochs.entries

    @property
    def confirm_offset(self) -> int:
        """Up to where the log is confirmed."""
        return self._keeper.confirm_offset
