"""Tables of a master's that a replica copies beside the log, and keeps for when it is master, or a broker of
Apache's is.

Source: apache/rocketmq rocketmq-all-5.4.0, SlaveSynchronize, SubscriptionGroupManager,
ScheduleMessageService, MessageRequestModeManager.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Generic, TypeVar

from replispec.broker.rocketmq.core.table_file import TableFile
from replispec.broker.rocketmq.core.topics import Kept
from replispec.runtime.primitives.json_messages import JsonMessage
from replispec.runtime.storage import FilesReader
from replispec.runtime.world import Level, Outbox, Persisted, Writes, Written
from replispec.wire.rocketmq import constants
from replispec.wire.rocketmq.client import DelayOffsetTable, MessageRequestModes, SubscriptionGroupTable

TableT = TypeVar("TableT", bound=JsonMessage)


class CopiedTable(Generic[TableT]):
    """One table, as the file that Apache RocketMQ keeps it in. Raises StorageFailed when the file is there
    and cannot be read.

    Only what is on the disk is told to others. What could not be written, and what is told while a write is
    under way, the master tells again a few seconds later.
    """

    def __init__(
        self,
        outbox: Outbox,
        writes: Writes,
        file: TableFile,
        kind: type[TableT],
        holds: Callable[[TableT], bool],
    ) -> None:
        self._outbox = outbox
        self._writes = writes
        self._file = file
        found, _ = file.read(kind.decode, "it is copied again from a master that has it")
        # Apache's write empty ones, too: to tell those would have a replica delete its own.
        self.table = found if found is not None and holds(found) else None
        self._is_writing = False
        if self.table is not None and self._encoded(self.table) is None:
            # An answer of so many bytes would end the connection of who asked, with what else it asked for.
            self.table = None

    @property
    def is_writing(self) -> bool:
        """Whether one is on its way to the disk."""
        return self._is_writing

    def adopt(self, table: TableT) -> None:
        """Take over a master's, if it is another one and none too long to keep."""
        if not self._is_writing and table != self.table:
            self._keep(table, lambda _reason, _now_ms: None)

    def put(self, table: TableT, now_ms: int, kept: Kept) -> None:
        """Keep one while no other is being written; `kept` is told when it is on the disk, or why not."""
        if not self._keep(table, kept):
            kept("the table is too long", now_ms)

    def _keep(self, table: TableT, kept: Kept) -> bool:
        """Write one; False for one that is too long."""
        data = self._encoded(table)
        if data is None:
            return False
        self._is_writing = True
        self._writes.persist(*self._file.whole(data), then=lambda event: self._written(table, event, kept))
        return True

    def _encoded(self, table: TableT) -> bytes | None:
        """A table as it is kept and told; None, and a line, for one that is too long for that."""
        data = table.encode()
        if len(data) <= constants.COPIED_TABLE_BYTES_MAX:
            return data
        reason = f"{len(data)} bytes are more than {constants.COPIED_TABLE_BYTES_MAX}"
        self._complain(Level.WARNING, reason)
        return None

    def _written(self, table: TableT, event: Written, kept: Kept) -> None:
        self._is_writing = False
        if isinstance(event, Persisted):
            self._file.is_written()
            self.table = table
            kept("", event.now_ms)
            return
        self._complain(Level.ERROR, event.reason)
        kept(event.reason, event.now_ms)

    def _complain(self, level: Level, reason: str) -> None:
        self._outbox.note(
            level, "a table cannot be kept for the next master", file=self._file.name, reason=reason
        )


class CopiedTables:
    """All of them. Raises StorageFailed."""

    def __init__(self, outbox: Outbox, writes: Writes, files: FilesReader) -> None:
        self.groups: Final = CopiedTable(
            outbox,
            writes,
            TableFile(files, constants.GROUPS_FILE),
            SubscriptionGroupTable,
            lambda table: bool(table.subscription_group_table),
        )
        self.delays: Final = CopiedTable(
            outbox,
            writes,
            TableFile(files, constants.DELAYS_FILE),
            DelayOffsetTable,
            lambda table: bool(table.offset_table),
        )
        self.modes: Final = CopiedTable(
            outbox,
            writes,
            TableFile(files, constants.REQUEST_MODES_FILE),
            MessageRequestModes,
            lambda table: bool(table.message_request_mode_map),
        )
