"""A replica's side of replication: follows one master at a time, for a broker and for a learner.

Source: RIP-44 "Replication solution", "Election Truncation Algorithm"; apache/rocketmq
rocketmq-all-5.4.0, AutoSwitchHAClient. States, guards and order of steps: the machine `ha_replica`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.primitives.machines import Edge
from replispec.runtime.primitives.timers import Timers
from replispec.runtime.rocketmq import rules
from replispec.runtime.rocketmq.log import GroupCommit, MessageStore
from replispec.runtime.rocketmq.replication.feed import MESSAGES_AT_ONCE
from replispec.runtime.rocketmq.replication.frames import Frames
from replispec.runtime.rocketmq.replication.runs import Run
from replispec.runtime.rocketmq.replication.settings import is_durable
from replispec.runtime.rocketmq.replication.stepping import Stepping
from replispec.runtime.storage import StorageFailed
from replispec.runtime.world import Closed, Connected, Level, Outbox, Received
from replispec.wire.rocketmq.ha import (
    HaHandshakeAnswer,
    HaTransferHeaderFixed,
)
from replispec.wire.rocketmq.machines import ha_replica as machine
from replispec.wire.rocketmq.machines import ha_replica_wire as wire
from replispec.wire.rocketmq.options import ReplicationOptions
from replispec.wire.rocketmq.streams import HA_MASTER


class Follower(Protocol):
    """What a replica tells the broker or learner that it belongs to."""

    def confirmed(self, offset: int, now_ms: int) -> None:
        """Messages before this offset may be shown to consumers; it may be less than before."""
        ...

    def truncated(self, offset: int, now_ms: int) -> None:
        """The log was cut at this offset; the index with it."""
        ...


class Comparison(Protocol):
    """Who compares the log with the master's before it is reported."""

    def begin(self, now_ms: int, agreed: Callable[[int], None], /) -> bool:
        """The log is to be reported for the first time on a connection: whether it may be. If not, `agreed`
        is called once it may."""
        ...

    def end(self, now_ms: int, /) -> None:
        """The connection is gone."""
        ...


class HaReplica(Stepping):
    """Copies the log of the master at the address that `follow` names, until `stop`.

    A report says what is on the disk when the options ask for durability, else what has arrived. A disk
    without room ends the connection, and it is tried again after haReconnectInterval; a broken log halts.
    `ticked` is to be called when `deadline_ms` has come. Answers to flushes go to `commit`, which belongs to
    the log.
    """

    MACHINE = machine.MACHINE
    _state: machine.State
    _variables: machine.Variables

    def __init__(
        self,
        outbox: Outbox,
        store: MessageStore,
        commit: GroupCommit,
        follower: Follower,
        options: ReplicationOptions,
        *,
        broker_id: int,
        is_learner: bool = False,
        comparison: Comparison | None = None,
        plain: bool = False,
    ) -> None:
        self._plain = plain
        self._outbox = outbox
        self._comparison = comparison
        self._store = store
        self._follower = follower
        self._options = options
        self.broker_id = broker_id
        self.is_learner = is_learner
        self._commit = commit
        self._commit.listen(self._durable)
        self._address: str | None = None
        self._now_ms = 0
        self._confirmed = 0
        # What runs from the beginning does so once there is a master to copy from.
        self._timers = Timers(machine.MACHINE, options)
        self._state = machine.MACHINE.initial
        self._look_at_log()
        self._lose_connection()

    def _look_at_log(self) -> None:
        """Begin from the log as it is."""
        self._variables = machine.Variables(
            log_end=self._store.log.end,
            epochs=self._store.epochs.entries,
            confirm_offset=min(self._confirmed, self._store.log.end),
        )

    def _lose_connection(self) -> None:
        self._connection: int | None = None
        self._frames = Frames(HA_MASTER)
        self._run = Run()
        self._body: bytes | memoryview = b""
        # What came and was not taken yet, and before it the frame that waits for the log's next file.
        self._coming: deque[Iterator[tuple[str, memoryview]]] = deque()
        self._held: tuple[str, memoryview] | None = None
        self._is_paused = False
        self._reported = -1
        self._report_due = False
        self._repeats = False
        if self._comparison is not None:
            self._comparison.end(self._now_ms)

    # What the machine asks this replica

    @property
    def sync_from_last_file(self) -> bool:
        """Whether an empty log is filled from the newest file on."""
        return self._options.sync_from_last_file

    @property
    def vouched_for(self) -> int:
        """Up to where the log is as durable as is promised."""
        return self._store.log.flushed if is_durable(self._options) else self._store.log.end

    # What the broker sees

    @property
    def state(self) -> machine.State:
        """The state of the machine."""
        return self._state

    @property
    def is_copying(self) -> bool:
        """Whether the master sends bytes of its log."""
        return self._state is machine.State.TRANSFER

    @property
    def confirm_offset(self) -> int:
        """Up to where messages may be shown to consumers, as the master said last."""
        return self._variables.confirm_offset

    @property
    def address(self) -> str | None:
        """The replication address of the master that is followed; None before the first."""
        return self._address

    def follow(self, address: str, now_ms: int) -> None:
        """Copy from the master at this ADDRESS:PORT from now on, at once; without effect when that is so."""
        if address == self._address or self._state in machine.MACHINE.final:
            return
        self._now_ms = now_ms
        self._address = address
        self._close()
        self._step(machine.Closed())
        self._dial(machine.Followed())

    def stop(self, now_ms: int) -> None:
        """Copy nothing more: the process ends, or this broker becomes master."""
        self._now_ms = now_ms
        if self._state not in machine.MACHINE.final:
            self._step(machine.Stop())
            self._commit.forget(self._durable)

    # What the world tells

    def owns(self, connection: int) -> bool:
        """Whether this connection is the replica's."""
        return connection == self._connection

    def connected(self, event: Connected) -> None:
        """The connection to the master is open: introduce this replica."""
        self._now_ms = event.now_ms
        self._step(machine.Connected())

    def received(self, event: Received) -> None:
        """Take the next bytes of the master."""
        self._now_ms = event.now_ms
        self._step(machine.Heard())
        self._coming.append(self._frames.receive(event.data))
        if self._held is None:
            self._take_coming(event.connection)

    def _take_coming(self, connection: int) -> None:
        """Take frames in order, only so many because of one event; from the first that the log has no file
        for, they wait. While some wait the connection is not read."""
        try:
            for _ in range(MESSAGES_AT_ONCE):
                found = self._next_frame()
                if found is None or not self._take(*found):
                    break
            self._take_run()
            if not self.owns(connection):
                return
            self._tell_confirmed()
        except RemoteProtocolError as error:
            self._give_up(Level.WARNING, "master dropped", str(error))
        except StorageFailed as error:
            self._refused("log bytes cannot be kept", error)
        else:
            self._report_if_due()
        if self.owns(connection):
            self._read_or_wait(connection)

    def _next_frame(self) -> tuple[str, memoryview] | None:
        """The next of what came. Raises RemoteProtocolError, with all before it taken."""
        if self._held is not None:
            found, self._held = self._held, None
            return found
        while self._coming:
            try:
                frame = next(self._coming[0], None)
            except RemoteProtocolError:
                self._take_run()
                raise
            if frame is not None:
                return frame
            self._coming.popleft()
        return None

    def _read_or_wait(self, connection: int) -> None:
        waits = self._held is not None or bool(self._coming)
        if waits != self._is_paused:
            self._is_paused = waits
            (self._outbox.pause if waits else self._outbox.resume)(connection)

    def _has_room(self, header: HaTransferHeaderFixed) -> bool:
        log = self._store.log
        if not self.is_copying or header.body_size <= log.room or not log.accepts(header.offset):
            return True
        return log.reserve_bytes(header.offset, header.body_size)

    def _room_changed(self, reason: str, now_ms: int) -> None:
        """The log has another file, or cannot have one."""
        connection = self._connection
        if self._held is None or connection is None:
            return
        self._now_ms = now_ms
        if reason:
            self._give_up(Level.ERROR, "log bytes cannot be kept", reason)
            return
        self._take_coming(connection)

    def closed(self, event: Closed) -> None:
        """The connection is gone, or could not be opened."""
        self._now_ms = event.now_ms
        self._outbox.note(Level.WARNING, "master lost", master=self._address, reason=event.reason)
        self._lose_connection()
        self._step(machine.Closed())

    def ticked(self, now_ms: int) -> None:
        """Do what is due, and go on with what was left."""
        self._now_ms = now_ms
        if self._is_behind and self._connection is not None:
            self._take_coming(self._connection)
        while (event := self._timers.ended(now_ms)) is not None:
            if isinstance(event, machine.DialDue):
                self._dial(event)
                continue
            if isinstance(event, machine.NotOpened):
                self._note_loss(Level.WARNING, "master not reached", "no connection in time")
            self._step(event)
            if isinstance(event, machine.ReportDue):
                self._repeats = True
                self._report_if_due()

    def deadline_ms(self) -> int | None:
        """When `ticked` has something to do."""
        return 0 if self._is_behind else self._timers.deadline_ms()

    @property
    def _is_behind(self) -> bool:
        """Whether something waits for nothing but its turn."""
        return self._held is None and bool(self._coming)

    # The machine

    def _blame(self, edge: Edge[Any]) -> None:
        self._outbox.note(
            Level.WARNING,
            "master broke the protocol",
            master=self._address,
            clauses=" ".join(edge.clauses),
        )

    def _take(self, name: str, frame: memoryview) -> bool:
        """Take one frame, or have it put to those that are taken together; False when no other is to be."""
        header = None if name == HaHandshakeAnswer.__name__ else HaTransferHeaderFixed.decode(frame)
        if header is not None and self._goes_on(header):
            self._run.put(header, frame)
            return True
        connection = self._connection
        self._take_run()
        if connection is None or not self.owns(connection):
            return False
        if header is None:
            self._step(machine.HandshakeAnswered(HaHandshakeAnswer.decode(frame)))
        elif not header.body_size:
            self._step_on(header)
        elif self._has_room(header):
            self._run.put(header, frame)
        else:
            self._held = name, memoryview(bytes(frame))
            self._commit.wait_for_room(self._room_changed)
            return False
        return self.owns(connection)

    def _goes_on(self, header: HaTransferHeaderFixed) -> bool:
        run = self._run
        return run.goes_on_with(header) and run.size + header.body_size <= self._store.log.room

    def _take_run(self) -> None:
        """Take what was put together: all batches of a run are one for the machine."""
        found = self._run.take()
        if found is not None:
            header, self._body = found
            self._step_on(header)

    def _step_on(self, header: HaTransferHeaderFixed) -> None:
        self._step(header, machine.MACHINE.kind_of("HaTransferHeader", header, rules))

    def _do_truncate_tail(self, _event: object) -> None:
        self._step(machine.TailCut(self._store.cut_tail()))

    def _do_dial(self, _event: object) -> None:
        assert self._address is not None
        self._connection = self._outbox.dial(self._address, plain=self._plain)

    def _do_send_handshake(self, _event: machine.Connected) -> None:
        message = wire.handshake_sent(self._variables, self)
        self._send(message.encode())
        self._step(machine.HandshakeSent(message))

    def _do_truncate_log(self, event: machine.HandshakeAnswered) -> None:
        cut = self._variables.log_end
        if cut < self._store.log.end:
            self._outbox.note(
                Level.WARNING,
                "log cut to agree with the master",
                ended=self._store.log.end,
                cut=cut,
                master_ends=event.max_offset,
            )
            self._store.truncate(cut)
            self._follower.truncated(cut, self._now_ms)

    def _do_correct_epochs(self, _event: machine.HandshakeAnswered) -> None:
        self._store.epochs.keep(self._variables.epochs)

    def _do_ask_for_operator(self, event: machine.HandshakeAnswered) -> None:
        self._outbox.note(
            Level.ERROR,
            "no epoch shared with the master: nothing is cut or copied until an operator repairs this log",
            master=self._address,
            our_epochs=_listed(self._variables.epochs),
            our_end=self._variables.log_end,
            master_epochs=_listed(event.entries),
            master_end=event.max_offset,
        )

    def _do_append(self, event: HaTransferHeaderFixed) -> None:
        if not self._store.log.accepts(event.offset):
            raise RemoteProtocolError(f"an empty log of files of another size cannot begin at {event.offset}")
        self._store.log.append_bytes(event.offset, self._body)
        if self._store.log.is_of_other_files:
            size, at = self._store.log.file_bytes, self._store.log.whole_end()
            raise RemoteProtocolError(
                f"its record at {at} crosses the end of a file of {size} bytes: mappedFileSizeCommitLog must "
                "be the same in the whole set"
            )

    def _do_note_epoch(self, _event: HaTransferHeaderFixed) -> None:
        self._store.epochs.keep(self._variables.epochs)

    def _do_advance_confirm_offset(self, _event: HaTransferHeaderFixed) -> None:
        """The follower is told once for all that arrived together."""

    def _do_send_report(self, _event: object) -> None:
        self._report_due = True

    def _do_close_connection(self, _event: object) -> None:
        self._close()

    def _tell_confirmed(self) -> None:
        if self._confirmed != self._variables.confirm_offset:
            self._confirmed = self._variables.confirm_offset
            self._follower.confirmed(self._confirmed, self._now_ms)

    # Reports

    def _report_if_due(self) -> None:
        """Report once for all that arrived together; what must be durable is flushed first.

        The first report of a connection is where the master goes on: it waits until it can name the end, and
        all before it was compared with what the master has. None is sent while something that was cut, or an
        epoch, is not on the disk; one that is to be repeated leaves as soon as that is.
        """
        if not self._report_due:
            return
        self._commit.request()
        reachable = self.vouched_for
        if self._reported < 0:
            is_ready = reachable == self._variables.log_end
        else:
            is_ready = self._repeats or reachable > self._reported
        if is_ready and self._store.is_settled and (self._reported >= 0 or self._may_begin()):
            self._report()

    def _may_begin(self) -> bool:
        return self._comparison is None or self._comparison.begin(self._now_ms, self._compared)

    def _compared(self, now_ms: int) -> None:
        self._now_ms = now_ms
        self._report_if_due()

    def _report(self) -> None:
        report = wire.report_sent(self._variables, self)
        if self._reported < 0:
            values = {"master": self._address, "offset": report.max_offset}
            self._outbox.note(Level.INFO, "copying from the master", **values)
        self._reported = report.max_offset
        self._report_due = self._reported < self._store.log.end
        self._repeats = False
        self._send(report.encode())
        self._step(machine.ReportSent(report))

    def _durable(self, _end: int, now_ms: int) -> None:
        self._now_ms = now_ms
        if self.is_copying:
            self._report_if_due()

    # The connection

    def _send(self, data: bytes) -> None:
        assert self._connection is not None
        self._outbox.send(self._connection, data)

    def _dial(self, event: machine.DialDue | machine.Followed) -> None:
        self._look_at_log()
        try:
            self._step(event)
        except StorageFailed as error:
            self._refused("the log cannot be cut", error)
        else:
            self._commit.request()

    def _refused(self, what: str, error: StorageFailed) -> None:
        """The disk refused: without room it may have some later, with a broken log the process ends."""
        self._give_up(Level.ERROR, what, str(error))
        if self._store.log.broken:
            self._outbox.halt(f"{what}: {error}")

    def _give_up(self, level: Level, what: str, reason: str) -> None:
        """End this attempt and wait for the next, on the log as it is."""
        self._note_loss(level, what, reason)
        self._close()
        self._step(machine.Closed())

    def _note_loss(self, level: Level, what: str, reason: str) -> None:
        self._outbox.note(level, what, master=self._address, reason=reason)

    def _close(self) -> None:
        if self._connection is not None:
            self._outbox.close(self._connection)
        self._lose_connection()


def _listed(entries: Any) -> str:
    return " ".join(f"{entry.epoch}@{entry.start_offset}" for entry in entries) or "none"
