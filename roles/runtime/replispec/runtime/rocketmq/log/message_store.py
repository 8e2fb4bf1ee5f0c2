"""All that a broker keeps of messages: the commit log, its epochs, and where each queue's messages lie.

Source: RIP-44 "Election Truncation Algorithm", "ConfirmOffset"; apache/rocketmq rocketmq-all-5.4.0,
DefaultMessageStore.
"""

from __future__ import annotations

from typing import Final

from replispec.runtime.rocketmq import rules
from replispec.runtime.rocketmq.log.began_file import BeganFile
from replispec.runtime.rocketmq.log.checkpoints import Checkpoints
from replispec.runtime.rocketmq.log.commit_log import CommitLog
from replispec.runtime.rocketmq.log.epoch_file import EpochFile
from replispec.runtime.rocketmq.log.flushed_file import FlushedFile, Saying
from replispec.runtime.rocketmq.log.queue_index import QueueIndex
from replispec.runtime.rocketmq.log.records import Placed
from replispec.runtime.storage import FilesReader, Operation, RemoveFile
from replispec.runtime.world import Level
from replispec.wire.rocketmq.constants import (
    COMMIT_LOG_FILE_BYTES,
    COMMIT_LOG_FOLDER,
    LOG_OFFSET_MAX,
    POSITION_MAX,
)
from replispec.wire.rocketmq.store import LogRecord

RECORDS_AT_ONCE: Final = 2_000
"""Records that are indexed in one go, so that a large backlog holds up nothing else."""


class MessageStore:
    """Log, epochs and index of one broker, cut together; `begin_write` says what has to be written.

    `index` shows consumers what `index_up_to` names, and nothing else. Methods that put bytes into the log
    raise StorageFailed.
    """

    def __init__(
        self,
        files: FilesReader,
        *,
        file_bytes: int = COMMIT_LOG_FILE_BYTES,
        log_folder: str = COMMIT_LOG_FOLDER,
    ) -> None:
        self.index = QueueIndex()
        self._flushed = FlushedFile(files)
        self._checkpoints = Checkpoints(files, self.index, file_bytes)
        self.log = CommitLog(
            files,
            file_bytes=file_bytes,
            folder=log_folder,
            mark=self._flushed.mark,
            visit=self.index.put,
            known=self._checkpoints.load,
        )
        first = self.log.first
        counts_are_known = not first or self._checkpoints.end > first
        self._began = BeganFile(files, first, counts_are_known=counts_are_known)
        if first == self.log.end:
            # The process ended before the first bytes of a copy were on the disk: others may be the first.
            self.log.begin_anew()
        self.index.unknown = self._began.offset
        self._is_setting_back = False
        self.epochs = EpochFile(files, is_log_empty=self.log.is_empty)
        self._said = [*self._flushed.said, *self.log.said, *self.epochs.said]
        # How often there was less of the log, or an epoch began after all of it; opening it counts as one.
        self._cuts = 1
        self._cuts_claimed = self._cuts_on_disk = 0
        kept = rules.epochs_before(self.epochs.entries, self.log.end)
        self.epochs.keep(rules.epochs_after_deletion(kept, self.log.first))
        if self._is_of_no_epoch():
            self._said.append(Saying(Level.INFO, "bytes of no epoch were cut", {"cut": self.log.end}))
            self.truncate(self.log.first)

    def _is_of_no_epoch(self) -> bool:
        """Whether the process ended before the epoch of its first bytes was on the disk: nobody was told of
        them, and no master can say whether they are its own. A log without a mark is another's."""
        mark = self._flushed.mark
        is_told = bool(self.epochs.entries) or mark is None or mark.offset > 0 or self.log.first > 0
        return self.log.end > 0 and not is_told

    # Bringing it to the disk

    @property
    def is_clean(self) -> bool:
        """Whether everything is on the disk."""
        return self.log.is_clean and self.is_settled

    @property
    def is_settled(self) -> bool:
        """Whether what was cut, and the epochs, are on the disk: bytes that were put since may be not."""
        return self.epochs.is_clean and self._cuts == self._cuts_on_disk

    def begin_write(self) -> tuple[Operation, ...]:
        """What is to be written, in order; nothing when everything is on the disk.

        Before a cut the note of what is on the disk is set back, alone; the next call begins the cut.
        An epoch is on the disk before its bytes are, and bytes that were cut are gone before their epoch is:
        else a crash between would give them to another one.
        """
        cut_first = self._cuts != self._cuts_on_disk
        self._cuts_claimed = self._cuts
        self._is_setting_back = self._flushed.is_wrong
        if self._is_setting_back:
            return (self._flushed.set_back(self.log.flushed_runs()),)
        self.log.finish_cut()
        self._began.begins(self.log.began)
        self.index.unknown = self._began.offset
        began = self._began.begin_write()
        log, epochs = self.log.begin_flush(), self.epochs.begin_write()
        if not log and not epochs:
            self._cuts_on_disk = self._cuts
        # Old files go before their epochs do: bytes without an epoch would be given to another one.
        gone = [each for each in log if isinstance(each, RemoveFile)]
        flushed = [each for each in log if not isinstance(each, RemoveFile)]
        found = (*gone, *began, *((*flushed, *epochs) if cut_first else (*epochs, *flushed)))
        if self._flushed.lags(self.log.odd_end):
            # Nobody is told of a record that looks torn before the note says that it is not.
            return (*found, self._flushed.forwarded(self.log.flushed_runs(with_flush=True)))
        return found

    def end_write(self) -> int:
        """What was begun last is on the disk; returns up to where the log is durable."""
        if self._is_setting_back:
            self._flushed.is_set_back()
            return self.log.flushed
        self._cuts_on_disk = self._cuts_claimed
        self._began.end_write()
        self.epochs.end_write()
        return self.log.end_flush()

    def no_room(self) -> None:
        """There was no room for what was begun last."""
        if self._is_setting_back:
            self._flushed.no_room()

    @property
    def note_lags(self) -> bool:
        """Whether the log is on the disk further than is noted there."""
        return self._flushed.lags(self.log.flushed_records)

    def wanted_notes(self, *, stops: bool = False) -> tuple[Operation, ...]:
        """What notes, in order, how far the log is on the disk, if that is further than is noted, and what of
        it a start need not read again; it may fail."""
        notes: list[Operation] = []
        if self.note_lags:
            notes.append(self._flushed.forwarded(self.log.flushed_runs()))
        if not self._flushed.is_wrong:
            notes += self._checkpoints.wanted(self.log.first, self.log.flushed_runs(), stops=stops)
        return tuple(notes)

    def notes_written(self) -> None:
        """What `wanted_notes` gave last is on the disk."""
        self._checkpoints.written()

    def notes_failed(self) -> None:
        """What `wanted_notes` gave last is not on the disk, or not all of it."""
        self._checkpoints.failed()

    def take_said(self) -> list[Saying]:
        """What was found and cut since this was last asked, for the log of the process."""
        said, self._said = self._said, []
        return said

    # As a master

    def begin_as_master(self, epoch: int) -> None:
        """Become master of this epoch: a half-copied record goes, the epoch starts at the end of the log and
        counts when it is on the disk, and what was copied and not read yet is counted."""
        self.truncate(self._cut_said())
        self._cuts += 1
        self.epochs.announce(tuple(rules.epochs_as_master(self.epochs.entries, epoch, self.log.end)))
        self._count_positions()

    def resume_as_master(self) -> None:
        """Go on as master of the newest epoch of this log, after a restart without an election."""
        self.truncate(self._cut_said())
        self._count_positions()

    def _count_positions(self) -> None:
        for placed in self.log.records(self._unread(), self.log.end):
            self.index.put(placed)

    def put(self, record: LogRecord) -> Placed:
        """Store a message of a producer: its position in its queue and its offset are filled in.

        There has to be room for it. Nothing was stored when this raises ValueError for one that is too long,
        or when log or queue are at the end of their numbers.
        """
        record.queue_offset = self.next_position(record.topic, record.queue_id)
        if record.queue_offset >= POSITION_MAX or self.log.end > LOG_OFFSET_MAX:
            raise ValueError("no number is left for another message")
        placed = self.log.append(record)
        self.index.put(placed)
        return placed

    def next_position(self, topic: str, queue_id: int) -> int:
        """The position that the next message of a queue gets, shown to consumers or not; for a master."""
        return self.index.bounds(topic, queue_id).end

    # As a replica

    def truncate(self, offset: int) -> None:
        """Cut everything at an offset of the log. The cut may not be reported before it is settled."""
        if offset < self.log.end:
            self._cuts += 1
            self.index.truncate(offset)
            self._truncate_log(offset)
            self.epochs.keep(tuple(rules.epochs_before(self.epochs.entries, offset)))

    def cut_tail(self) -> int:
        """Cut a half-copied record at the end; returns where the log ends then."""
        end = self._cut_said()
        self._cuts += end < self.log.end
        self.index.truncate(end)
        self._truncate_log(end)
        return end

    def _cut_said(self) -> int:
        """Where the last whole record ends; what is cut after it will be said."""
        end = self.log.whole_end()
        if end < self.log.end:
            values = {"end": end, "cut": self.log.end - end}
            self._said.append(
                Saying(Level.INFO, "a half-copied record at the end of the log was cut", values)
            )
        return end

    def _truncate_log(self, offset: int) -> None:
        self._flushed.truncated(offset)
        self._checkpoints.truncated(offset)
        self.log.truncate(offset, later=self._flushed.is_wrong)

    # As either

    def index_up_to(self, offset: int, records_max: int = RECORDS_AT_ONCE) -> bool:
        """Show consumers what lies before an offset; False when more of it remains for another call."""
        is_done = True
        for count, placed in enumerate(self.log.records(self._unread(), offset), start=1):
            self.index.put(placed)
            if count >= records_max:
                is_done = False
                break
        self.index.show(offset)
        return is_done

    def _unread(self) -> int:
        """Where the first record lies that no queue has; a log that began later has none before."""
        return max(self.index.read, self.log.first)

    @property
    def deletable(self) -> int:
        """Up to where the log may be deleted without a queue losing count, now or after a start."""
        return min(self.index.read, self._checkpoints.kept)

    def delete_before(self, offset: int) -> None:
        """Remove the oldest files, as far as all of them lies before an offset, and what leads to them."""
        first = self.log.first
        self.log.delete_before(offset)
        if self.log.first > first:
            self._flushed.deleted()
            self._checkpoints.deleted(self.log.first)
        self.index.delete_before(self.log.first)
        self.epochs.keep(tuple(rules.epochs_after_deletion(self.epochs.entries, self.log.first)))
