"""The log of a metastore: what is proposed is written together, then applied, in order.

One write is under way at a time. What is proposed meanwhile goes out together in the next one: one flush for
all that arrived together. Nothing is applied, and so nobody is answered or told, before it is on the disk.
Without room a record counts as never proposed, and its proposer is told so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from replispec.metastore.consensus import Alone, LogConsensus, LogReady
from replispec.metastore.zookeeper.core.records import (
    MetastoreLogDamaged,
    decode_record,
    encode_record,
)
from replispec.metastore.zookeeper.core.tree import NodeTree
from replispec.metastore.zookeeper.core.values import Request, TreeOutcome, TreeRefusal
from replispec.metastore.zookeeper.snapshots import SnapshotWriter
from replispec.runtime.storage import AppendRecords, FilesReader, JournalReader
from replispec.runtime.world import Level, Outbox, Persisted, Writes, Written

Then = Callable[[TreeOutcome, int], None]
"""What is done once it is known what came of a request; it is given the time."""


@dataclass(frozen=True, slots=True)
class _Proposed:
    request: Request
    time_ms: int
    size: int
    grows: int
    then: Then


class MetastoreLog:
    """Proposes requests and applies them to the `tree`. `settled` is called when a write has ended and all
    that follows from it is done; `failed` when what is on the disk is unknown and nothing may be decided."""

    def __init__(
        self,
        outbox: Outbox,
        writes: Writes,
        journal: JournalReader,
        files: FilesReader,
        tree: NodeTree,
        *,
        snapshot_bytes: int,
        failed: Callable[[str], None],
    ) -> None:
        self._outbox = outbox
        self._writes = writes
        self._journal = journal
        self._tree = tree
        self._snapshot_bytes = snapshot_bytes
        self._failed = failed
        self._snapshots = SnapshotWriter(outbox, writes, files, tree, self._snapshot_ended)
        self._consensus: LogConsensus | None = None
        self._proposed: dict[int, _Proposed] = {}
        self._under_way: LogReady | None = None
        self._log_bytes = 0
        self._is_broken = False
        self.is_full = False
        """Whether there was no room for the last write."""
        self.waiting_bytes = 0
        """What is proposed and not known to be on the disk."""
        self.growing_bytes = 0
        """By how much that makes the tree larger at most."""
        self.written = self.snapshots = 0
        """How many writes and how many snapshots there were."""

    def start(self) -> None:
        """Read what is there. Raises StorageFailed, and LogDamaged for what no metastore wrote."""
        kept, records = self._journal.snapshot(), self._journal.records()
        if kept is not None:
            self._snapshots.read(*kept)
        elif records and records[0][0] != 1:
            raise MetastoreLogDamaged(
                f"the log begins with record {records[0][0]} and has no snapshot before it"
            )
        self._consensus = Alone(records, replaced=self._tree.zxid)
        ready = self._consensus.ready()
        for entry in () if ready is None else ready.entries:
            time_ms, request = decode_record(entry.index, entry.data)
            self._tree.apply(entry.index, time_ms, request)
            self._log_bytes += len(entry.data)
        self._snapshots.clear()
        if records or kept is not None:
            self._outbox.note(
                Level.INFO,
                "log read",
                records=len(records),
                zxid=self._tree.zxid,
                nodes=self._tree.size,
                sessions=len(self._tree.sessions),
            )

    @property
    def is_writing(self) -> bool:
        """Whether something is proposed and not applied yet."""
        return bool(self._proposed)

    def propose(self, request: Request, now_ms: int, then: Then, *, grows: int = 0) -> None:
        """Put a request on record; `then` is called once, when it is applied or refused. See `commit`.
        `grows`: by how many bytes it makes the tree larger at most."""
        assert self._consensus is not None, "a proposal before the log was read"
        data = encode_record(request, now_ms)
        number = self._consensus.propose(data)
        self._proposed[number] = _Proposed(request, now_ms, len(data), grows, then)
        self.waiting_bytes += len(data)
        self.growing_bytes += grows

    def commit(self) -> None:
        """Have what was proposed written, unless a write is under way. To be called once for all that one
        event brought."""
        if self._under_way is not None or self._consensus is None or self._is_broken:
            return
        ready = self._consensus.ready()
        if ready is None:
            return
        self._under_way = ready
        records = [(entry.index, entry.data) for entry in ready.entries]
        self._writes.persist(AppendRecords(records), then=self._written)

    def _written(self, event: Written) -> None:
        ready, self._under_way = self._under_way, None
        assert ready is not None, "a write ended that was not asked for"
        assert self._consensus is not None
        if isinstance(event, Persisted):
            self.written += 1
            self._consensus.persisted()
            self._room(is_full=False)
            self._apply(ready, event.now_ms)
            if self._log_bytes >= max(self._snapshot_bytes, self._snapshots.bytes):
                self._replace()
        elif event.is_full:
            self._consensus.refused()
            self._room(is_full=True, reason=event.reason)
            for entry in ready.entries:
                self._taken(entry.proposal).then(TreeOutcome(refusal=TreeRefusal.SYSTEM_ERROR), event.now_ms)
        else:
            self._break(event.reason)

    def _apply(self, ready: LogReady, now_ms: int) -> None:
        for entry in ready.entries:
            proposed = self._taken(entry.proposal)
            outcome = self._tree.apply(entry.index, proposed.time_ms, proposed.request)
            assert outcome is not None, f"record {entry.index} was applied before"
            self._log_bytes += proposed.size
            proposed.then(outcome, now_ms)

    def _taken(self, proposal: int | None) -> _Proposed:
        assert proposal is not None, "a record of nobody"
        found = self._proposed.pop(proposal)
        self.waiting_bytes -= found.size
        self.growing_bytes -= found.grows
        return found

    def _replace(self) -> None:
        """Keep what the records have made instead of them. Whatever becomes of it, the log says the same."""
        if not self._snapshots.is_under_way:
            self._log_bytes = 0
            self._snapshots.begin()

    def _snapshot_ended(self, event: Written) -> None:
        if isinstance(event, Persisted):
            self.snapshots += 1
        elif event.is_full:
            self._room(is_full=True, reason=event.reason)
        else:
            self._break(event.reason)

    def _break(self, reason: str) -> None:
        self._is_broken = True
        self._failed(f"the log of the metastore cannot be written: {reason}")

    def _room(self, *, is_full: bool, reason: str = "") -> None:
        if is_full and not self.is_full:
            self._outbox.note(Level.ERROR, "no room for the log: changes are refused", reason=reason)
        elif self.is_full and not is_full:
            self._outbox.note(Level.INFO, "room for the log again: changes are taken")
        self.is_full = is_full
