"""All that a broker keeps of messages: the commit log, its epochs, and where each queue's messages lie.

Source: RIP-44 "Election Truncation Algorithm", "ConfirmOffset"; apache/rocketmq rocketmq-all-5.4.0,
DefaultMessageStore.
"""

from __future__ import annotations

from typing import Final

from replispec.runtime import rules
from replispec.runtime.log.commit_log import FILE_BYTES, FOLDER, CommitLog, Placed
from replispec.runtime.log.epoch_file import EpochFile
from replispec.runtime.log.queue_index import QueueIndex
from replispec.runtime.storage import Files
from replispec.wire.rocketmq.store import LogRecord

RECORDS_AT_ONCE: Final = 2_000
"""Records that are indexed in one go, so that nobody waits for a large backlog."""


class MessageStore:
    """Log, epochs and index of one broker, cut together. Methods that change it raise StorageFailed.

    `index` holds what may be shown to consumers: it grows by `index_up_to` alone.
    """

    def __init__(self, files: Files, *, file_bytes: int = FILE_BYTES, log_folder: str = FOLDER) -> None:
        self.log = CommitLog(files, file_bytes=file_bytes, folder=log_folder)
        self.epochs = EpochFile(files)
        self.epochs.keep(tuple(rules.epochs_before(self.epochs.entries, self.log.end)))
        self.index = QueueIndex(self.log.first)
        self._next: dict[tuple[str, int], int] = {}

    # As a master

    def begin_as_master(self, epoch: int) -> None:
        """Become master of this epoch: a half-copied record goes, the epoch starts at the end of the log,
        which is on the disk, and the next position of every queue is counted anew."""
        self.truncate(self.log.whole_end())
        self.log.flush()
        self.epochs.keep(tuple(rules.epochs_as_master(self.epochs.entries, epoch, self.log.end)))
        self._count_positions()

    def resume_as_master(self) -> None:
        """Go on as master of the newest epoch of this log, after a restart that nobody noticed."""
        self.truncate(self.log.whole_end())
        self.log.flush()
        self._count_positions()

    def _count_positions(self) -> None:
        self._next = {key: queue.next for key, queue in self.index.queues.items()}
        for placed in self.log.records(self.index.end, self.log.end):
            self._next[placed.record.topic, placed.record.queue_id] = placed.record.queue_offset + 1

    def put(self, record: LogRecord) -> Placed:
        """Store a message of a producer: its position in its queue and its offset are filled in.

        Nothing was stored when this raises StorageFailed, or ValueError for one that is too long.
        """
        key = (record.topic, record.queue_id)
        record.queue_offset = self._next.get(key, 0)
        placed = self.log.append(record)
        self._next[key] = record.queue_offset + 1
        return placed

    def next_position(self, topic: str, queue_id: int) -> int:
        """The position that the next message of a queue gets, shown to consumers or not; for a master."""
        return self._next.get((topic, queue_id), 0)

    # As a replica

    def truncate(self, offset: int) -> None:
        """Cut everything at an offset of the log, the index first: nobody is led to what is gone."""
        if offset < self.log.end:
            self.index.truncate(offset)
            self.log.truncate(offset)
            self.epochs.keep(tuple(rules.epochs_before(self.epochs.entries, offset)))

    def cut_tail(self) -> int:
        """Cut a half-copied record at the end; returns where the log ends then."""
        end = self.log.whole_end()
        self.index.truncate(end)
        self.log.truncate(end)
        return self.log.end

    # As either

    def index_up_to(self, offset: int, records_max: int = RECORDS_AT_ONCE) -> bool:
        """Show consumers what lies before an offset; False when more of it remains for another call."""
        if self.index.end < self.log.first:
            self.index.delete_before(self.log.first)
        for count, placed in enumerate(self.log.records(self.index.end, offset), start=1):
            self.index.put(placed)
            if count >= records_max:
                return False
        return True

    def delete_before(self, offset: int) -> None:
        """Remove the oldest files, as far as all of them lies before an offset, and what leads to them."""
        self.log.delete_before(offset)
        self.index.delete_before(self.log.first)
        self.epochs.keep(tuple(rules.epochs_after_deletion(self.epochs.entries, self.log.first)))
