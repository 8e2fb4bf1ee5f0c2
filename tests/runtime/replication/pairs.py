"""A master and its replicas in one process, joined by connections that lose nothing: events in, effects out,
bytes as messages a reader can follow."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator

from replispec.runtime.rocketmq.log import GroupCommit, MessageStore
from replispec.runtime.rocketmq.replication import HaMaster, HaReplica
from replispec.runtime.rocketmq.replication.frames import Frames
from replispec.runtime.sim import Disk
from replispec.runtime.world import (
    Accepted,
    Close,
    Closed,
    Connected,
    Dial,
    Halt,
    Note,
    Outbox,
    Persist,
    PersistFailed,
    Received,
    Send,
    Writable,
    Writes,
)
from replispec.wire.rocketmq.ha import (
    HaHandshakeAnswer,
    HaHandshakeId,
    HaReport,
    HaTransferHeaderFixed,
)
from replispec.wire.rocketmq.options import ReplicationOptions
from replispec.wire.rocketmq.streams import HA_MASTER, HA_REPLICA
from tests.runtime.log.sample_logs import WrittenStore, log_bytes, store_on
from tests.runtime.log.sample_logs import disk as new_disk
from tests.runtime.storage.writing import carried_out

STEPS_MAX = 1_000
ADDRESS = "127.0.0.1:10912"


class Keeper:
    """A SyncStateSet that follows every wish at once and remembers them."""

    def __init__(self, store: MessageStore) -> None:
        self.store = store
        self.members: set[int] = set()
        self.received: list[tuple[str, int]] = []
        self.confirm_offset = store.log.end
        self.served_from = 0

    def is_member(self, broker_id: int) -> bool:
        return broker_id in self.members

    def acknowledged(self, broker_id: int, offset: int, now_ms: int) -> None:  # noqa: ARG002
        self.received.append((f"{broker_id} has", offset))

    def request_expand(self, broker_id: int, now_ms: int) -> None:  # noqa: ARG002
        self.received.append(("expand", broker_id))
        self.members.add(broker_id)

    def request_shrink(self, broker_id: int, now_ms: int) -> None:  # noqa: ARG002
        self.received.append(("shrink", broker_id))
        self.members.discard(broker_id)


class Reader:
    """What a replica tells its broker."""

    def __init__(self) -> None:
        self.received: list[tuple[str, int]] = []

    def confirmed(self, offset: int, now_ms: int) -> None:  # noqa: ARG002
        self.received.append(("confirmed", offset))

    def truncated(self, offset: int, now_ms: int) -> None:  # noqa: ARG002
        self.received.append(("truncated", offset))


class MasterSide:
    """A master on a disk of its own."""

    def __init__(self, store: WrittenStore, settings: ReplicationOptions | None = None) -> None:
        self.store = store
        self.outbox = Outbox()
        self.keeper = Keeper(store)
        self.ha = HaMaster(self.outbox, store, self.keeper, settings or ReplicationOptions())


class ReplicaSide:
    """A replica on a disk of its own."""

    def __init__(
        self,
        disk: Disk | None = None,
        *,
        store: WrittenStore | None = None,
        broker_id: int = 2,
        is_learner: bool = False,
        settings: ReplicationOptions | None = None,
    ) -> None:
        self.disk = disk or new_disk()
        self.store = store or store_on(self.disk)
        self.stores = self.store.stores
        self.outbox = Outbox()
        self.reader = Reader()
        self.writes = Writes(self.outbox)
        self.commit = GroupCommit(self.outbox, self.writes, self.store)
        self.ha = HaReplica(
            self.outbox,
            self.store,
            self.commit,
            self.reader,
            settings or ReplicationOptions(),
            broker_id=broker_id,
            is_learner=is_learner,
        )
        self.fails_writes = ""
        self.holds_writes = False
        self.held: list[Persist] = []

    def persist(self, effect: Persist, now_ms: int) -> None:
        """Write, or fail to."""
        if self.fails_writes:
            self.writes.answered(PersistFailed(effect.token, self.fails_writes, False, now_ms))
        elif self.holds_writes:
            self.held.append(effect)
        else:
            self.writes.answered(carried_out(effect, self.stores, now_ms))


class Pair:
    """One master, one replica, and the connection between them. `lines` is what happened, to be read."""

    def __init__(
        self,
        master: MasterSide,
        replica: ReplicaSide,
        *,
        cut: Callable[[bytes], Iterator[bytes]] | None = None,
    ) -> None:
        self.master, self.replica = master, replica
        self.now_ms = 1_000
        self.lines: list[str] = []
        self.notes: list[Note] = []
        self.said = {HA_REPLICA.name: bytearray(), HA_MASTER.name: bytearray()}
        self.halted = ""
        self.frozen: object = None
        self._cut = cut or iter_whole
        self._accepted = 0
        self._ends: dict[int, int] = {}
        self._watch: dict[int, Frames] = {}
        self._work: deque[Callable[[], None]] = deque()

    def follow(self) -> None:
        """Let the replica follow the master until nothing more happens."""
        self.replica.ha.follow(ADDRESS, self.now_ms)
        self.settle()

    def settle(self) -> None:
        """Carry out effects until there are none left, without time passing."""
        while self._collect() or self._work:
            while self._work:
                self._work.popleft()()
                self._collect()

    def wait(self, ms: int) -> None:
        """Let time pass, deadline by deadline."""
        end = self.now_ms + ms
        cores = [core for core in (self.master.ha, self.replica.ha) if core is not self.frozen]
        for _ in range(STEPS_MAX):
            self.settle()
            deadlines = [each for each in (core.deadline_ms() for core in cores) if each is not None]
            self.now_ms = max(self.now_ms, min([end, *deadlines]))
            for core in cores:
                core.ticked(self.now_ms)
            if self.now_ms >= end:
                self.settle()
                return
        raise AssertionError("a deadline stays in the past")

    def same(self) -> bool:
        """Whether both logs and their epochs are the same."""
        ours, theirs = self.replica.store, self.master.store
        return log_bytes(ours) == log_bytes(theirs) and ours.epochs.entries == theirs.epochs.entries

    def _collect(self) -> bool:
        found = False
        for effect in self.replica.outbox.take():
            found = True
            self._of_replica(effect)
        for effect in self.master.outbox.take():
            found = True
            self._of_master(effect)
        return found

    def _of_replica(self, effect: object) -> None:
        if isinstance(effect, Dial):
            self._open(effect.connection)
        elif isinstance(effect, Send):
            self._carry(effect, HA_REPLICA.name, self._ends.get(effect.connection, 0))
        elif isinstance(effect, Close):
            self._close(effect.connection, self.master.ha.closed)
        elif isinstance(effect, Persist):
            self._work.append(lambda: self.replica.persist(effect, self.now_ms))
        elif isinstance(effect, Note):
            self._note("replica", effect)
        elif isinstance(effect, Halt):
            self.halted = effect.reason

    def _of_master(self, effect: object) -> None:
        if isinstance(effect, Send):
            self._carry(effect, HA_MASTER.name, self._ends.get(effect.connection, 0))
            if effect.tell:
                self._work.append(lambda: self.master.ha.writable(Writable(effect.connection, self.now_ms)))
        elif isinstance(effect, Close):
            self._close(effect.connection, self.replica.ha.closed)
        elif isinstance(effect, Note):
            self._note("master", effect)

    def _open(self, dialled: int) -> None:
        self._accepted += 1
        accepted = self._accepted
        self._ends |= {dialled: accepted, accepted: dialled}
        self._watch |= {dialled: Frames(HA_REPLICA), accepted: Frames(HA_MASTER)}
        self.lines.append("replica connects")
        self._work.append(lambda: self.master.ha.accepted(Accepted(accepted, "ha", "peer", self.now_ms)))
        self._work.append(lambda: self.replica.ha.connected(Connected(dialled, "local", self.now_ms)))

    def _carry(self, effect: Send, stream: str, other: int) -> None:
        data = bytes(effect.data)
        self.said[stream] += data
        self.lines += [
            f"{'replica' if stream == HA_REPLICA.name else 'master'}: {shown(name, frame)}"
            for name, frame in self._watch[effect.connection].receive(data)
        ]
        for piece in self._cut(data):
            self._work.append(lambda piece=piece: self._arrive(other, piece))  # type: ignore[misc]

    def _arrive(self, connection: int, piece: bytes) -> None:
        event = Received(connection, piece, self.now_ms)
        if self.master.ha.serves(connection):
            self.master.ha.received(event)
        elif self.replica.ha.owns(connection):
            self.replica.ha.received(event)

    def _close(self, connection: int, tell: Callable[[Closed], None]) -> None:
        other = self._ends.get(connection, 0)
        self.lines.append(f"{'replica' if connection < 0 else 'master'} closes the connection")
        owner = self.replica.ha.owns if other < 0 else self.master.ha.serves
        self._work.append(
            lambda: tell(Closed(other, "closed by peer", self.now_ms)) if owner(other) else None
        )

    def _note(self, who: str, note: Note) -> None:
        if note.what == "log read":
            return
        self.notes.append(note)
        values = ", ".join(f"{name}={value}" for name, value in note.values.items())
        self.lines.append(f"{who} notes: {note.what} ({values})")


def iter_whole(data: bytes) -> Iterator[bytes]:
    """All bytes at once."""
    yield data


def shown(name: str, frame: memoryview) -> str:
    """A message as a line."""
    if name == HaHandshakeId.__name__:
        handshake = HaHandshakeId.decode(frame)
        learner = " as a learner" if handshake.async_learner else ""
        newest = " from the newest file" if handshake.sync_from_last_file else ""
        return f"handshake of broker {handshake.broker_id}{learner}{newest}"
    if name == HaReport.__name__:
        return f"report {HaReport.decode(frame).max_offset}"
    if name == HaHandshakeAnswer.__name__:
        answer = HaHandshakeAnswer.decode(frame)
        entries = " ".join(f"{entry.epoch}@{entry.start_offset}" for entry in answer.entries)
        return f"answer, epochs {entries}, end {answer.max_offset}"
    head = HaTransferHeaderFixed.decode(frame)
    what = f"{head.body_size} bytes from {head.offset}" if head.body_size else f"heartbeat at {head.offset}"
    return f"{what}, epoch {head.epoch}@{head.epoch_start_offset}, confirmed {head.confirm_offset}"
