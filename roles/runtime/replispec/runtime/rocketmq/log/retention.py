"""How long messages are kept: the oldest files of the commit log go, and a full disk takes no messages.

Source: apache/rocketmq rocketmq-all-5.3.3, DefaultMessageStore.CleanCommitLogService,
MappedFileQueue.deleteExpiredFileByTime.
"""

from __future__ import annotations

from collections.abc import Callable

from replispec.runtime.rocketmq import rules
from replispec.runtime.rocketmq.derived_options import hours_of
from replispec.runtime.rocketmq.log.group_commit import GroupCommit
from replispec.runtime.rocketmq.log.message_store import MessageStore
from replispec.runtime.storage import FilesReader
from replispec.runtime.world import Level, Outbox
from replispec.wire.rocketmq.constants import ASKED_DELETIONS, DAY_HOURS, HOUR_MS
from replispec.wire.rocketmq.options import RetentionOptions


class Retention:
    """Looks at clock and disk once an interval, and has files deleted of one store.

    A file is deleted when every byte of it may go, as `safe_up_to` says (it is told whether room is needed),
    and when the first message after it is old, so that all in it are. On a disk that is nearly full age does
    not count, where that is allowed. Files go oldest first, so no hole appears, and the newest one stays.
    `hold` is told where the log is to begin, and says up to where it may be deleted now.
    """

    def __init__(
        self,
        outbox: Outbox,
        files: FilesReader,
        store: MessageStore,
        commit: GroupCommit,
        options: RetentionOptions,
        safe_up_to: Callable[[bool], int],
        hold: Callable[[int], int] = lambda end: end,
    ) -> None:
        self._outbox = outbox
        self._files = files
        self._store = store
        self._commit = commit
        self._options = options
        self._hours = hours_of(options)
        self._safe_up_to = safe_up_to
        self._hold = hold
        self._look_ms: int | None = None
        # How often it is still to delete at any hour, because somebody asked for it.
        self._asked = 0
        self._is_stuck = False
        self.percent = 0
        """How much of the disk was used when it was looked at last."""
        self.is_full = False
        """Whether no messages are taken, because the disk is nearly full."""

    def start(self, now_ms: int) -> None:
        """Look for the first time."""
        self._look(now_ms)

    def ticked(self, now_ms: int) -> None:
        """Look again, when it is time."""
        if self._look_ms is not None and now_ms >= self._look_ms:
            self._look(now_ms)

    def delete_now(self, now_ms: int) -> None:
        """Somebody asks for old files to be deleted: look at once, and at any hour for some time."""
        self._asked = ASKED_DELETIONS
        self._look_ms = now_ms

    def deadline_ms(self) -> int | None:
        """When `ticked` has something to do."""
        return self._look_ms

    def _look(self, now_ms: int) -> None:
        options = self._options
        self._look_ms = now_ms + options.clean_resource_interval_ms
        use = self._files.disk_use()
        self.percent = 0 if use is None else rules.used_percent(*use)
        forcibly_above = options.disk_space_clean_forcibly_ratio
        full_above = options.disk_space_warning_level_ratio
        self._note_full(
            is_full=rules.is_disk_full(self.percent, full_above, forcibly_above, was_full=self.is_full)
        )
        bounds = (options.disk_max_used_space_ratio, forcibly_above, full_above)
        hour = now_ms // HOUR_MS % DAY_HOURS
        is_asked = self._asked > 0
        self._asked -= is_asked
        if rules.may_clean(hour, self._hours, self.percent, bounds, is_asked=is_asked):
            is_allowed = options.clean_file_forcibly_enable
            self._clean(
                now_ms,
                takes_young=rules.may_clean_young(self.percent, forcibly_above, is_allowed=is_allowed),
            )

    def _clean(self, now_ms: int, *, takes_young: bool) -> None:
        """Delete what may go. Not while a cut or an epoch is on its way to the disk: next time."""
        if not self._store.is_settled:
            return
        first = self._store.log.first
        end = self._end(now_ms, takes_young=takes_young)
        if end > first:
            self._is_stuck = False
            self._store.delete_before(end)
            self._outbox.note(
                Level.WARNING if takes_young else Level.INFO,
                "old files of the log deleted",
                first=self._store.log.first,
                deleted=self._store.log.first - first,
                disk_percent=self.percent,
                before_their_time=takes_young,
            )
            self._commit.request()
        elif self.is_full and not self._is_stuck:
            self._is_stuck = True
            self._outbox.note(
                Level.ERROR,
                "the disk is nearly full, and nothing of the log may be deleted",
                first=first,
                end=self._store.log.end,
                deletable=self._safe_up_to(takes_young),
            )

    def _end(self, now_ms: int, *, takes_young: bool) -> int:
        """Where the log is to begin."""
        log, limit = self._store.log, self._safe_up_to(takes_young)
        first = log.first
        last = min(log.last_file, first + self._options.delete_file_batch_max * log.file_bytes)
        while first < last and first + log.file_bytes <= limit:
            if not takes_young and not self._is_old(first + log.file_bytes, now_ms):
                break
            first += log.file_bytes
        return self._hold(first) // log.file_bytes * log.file_bytes if first > log.first else first

    def _is_old(self, offset: int, now_ms: int) -> bool:
        """Whether the message at an offset, and so all before it, are older than messages are kept."""
        placed = next(self._store.log.records(offset, self._store.log.end), None)
        reserved_ms = self._options.file_reserved_time * HOUR_MS
        return placed is not None and placed.record.store_timestamp + reserved_ms <= now_ms

    def _note_full(self, *, is_full: bool) -> None:
        if is_full and not self.is_full:
            self._outbox.note(
                Level.ERROR, "the disk is nearly full: no messages are taken", disk_percent=self.percent
            )
        elif self.is_full and not is_full:
            self._is_stuck = False
            self._outbox.note(
                Level.INFO, "the disk has room again: messages are taken", disk_percent=self.percent
            )
        self.is_full = is_full
