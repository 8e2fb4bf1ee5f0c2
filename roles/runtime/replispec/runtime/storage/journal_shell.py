"""The journal in one sqlite file: a transaction for each append, on the disk before it returns.

One connection only: SQLite below 3.51.3 can damage a write-ahead log that two connections write or
checkpoint at once. SQLite does not check its pages, so each record carries a checksum.
"""

from __future__ import annotations

import sqlite3
import weakref
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from replispec.runtime.storage.interface import StorageFailed, StorageFull
from replispec.runtime.storage.mark_shell import JournalMark
from replispec.runtime.storage.wal import check_wal

WAL: Final = "-wal"
"""How the name of SQLite's write-ahead log ends."""
_STATE: Final = -1
"""Where the value beside the log stands: no record has this index."""
_SNAPSHOT: Final = -2
"""Where the value stands that replaced the first records, behind the index of the last of them."""
_INDEX_BYTES: Final = 8
_COLUMNS: Final = "position INTEGER PRIMARY KEY, crc INTEGER NOT NULL, data BLOB NOT NULL"
_INSERT: Final = "INSERT INTO records (position, crc, data) VALUES (?, ?, ?)"
_PUT: Final = "INSERT OR REPLACE INTO records (position, crc, data) VALUES (?, ?, ?)"
_PREPARE: Final = (
    "PRAGMA locking_mode = EXCLUSIVE",
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",
    f"CREATE TABLE IF NOT EXISTS records ({_COLUMNS})",
)
_TOUCH: Final = "PRAGMA user_version = 1"
"""Writes a page without a meaning of its own, so that there is a write-ahead log."""


class DiskJournal:
    """See `Journal`. The file is this connection's alone: a second process is refused."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._wal = path.with_name(path.name + WAL)
        self._mark = JournalMark(path, self._wal)
        self._check_wal()
        self._mark.check()
        with self._failing():
            self._base = sqlite3.connect(path, isolation_level=None, timeout=0, check_same_thread=False)
            # SQLite closes what nobody closed, at the end of the process too, and then removes its log.
            self._give_back = weakref.finalize(self, _give_back, self._base, self._mark, self._wal)
            for statement in _PREPARE:
                self._base.execute(statement)
            # Takes the lock that a second process would need.
            self._base.execute("BEGIN IMMEDIATE")
            self._base.execute("COMMIT")
            self._last = self._end()
            self._put_mark()

    def records(self) -> Sequence[tuple[int, bytes]]:
        """All records, ascending. Raises StorageFailed when one is damaged or one is missing."""
        with self._failing():
            rows = self._base.execute(
                "SELECT position, crc, data FROM records WHERE position > ? ORDER BY position", (_STATE,)
            ).fetchall()
        records = [(position, self._checked(position, crc, data)) for position, crc, data in rows]
        replaced = self.snapshot()
        first = records[0][0] if records else 0
        is_next = replaced is None or not records or first == replaced[0] + 1
        if not is_next or (records and records[-1][0] - first + 1 != len(records)):
            raise StorageFailed(f"{self._path}: a record is missing")
        return records

    def snapshot(self) -> tuple[int, bytes] | None:
        """What replaced the first records, and the index of the last of them. Raises StorageFailed."""
        data = self._value(_SNAPSHOT)
        if data is None:
            return None
        return int.from_bytes(data[:_INDEX_BYTES], "big"), data[_INDEX_BYTES:]

    def replace(
        self,
        index: int,
        snapshot: bytes,
        *,
        records: Sequence[tuple[int, bytes]] = (),
        state: bytes | None = None,
        is_all: bool = False,
    ) -> None:
        """See `Journal.replace`. Raises StorageFull, StorageFailed."""
        data = index.to_bytes(_INDEX_BYTES, "big") + snapshot
        with self._failing(), self._transaction():
            last = self._last
            if is_all:
                self._base.execute("DELETE FROM records WHERE position > ?", (_STATE,))
                last = index
            last = self._put(last, records, state)
            assert index <= last, f"records up to {index} of {last}"
            self._base.execute("DELETE FROM records WHERE position > ? AND position <= ?", (_STATE, index))
            self._base.execute(_PUT, (_SNAPSHOT, _crc(_SNAPSHOT, data), data))
        self._last = last

    def append(self, records: Sequence[tuple[int, bytes]], *, state: bytes | None = None) -> None:
        """Write records and the value, all of it durably or nothing. Raises StorageFull, StorageFailed."""
        is_one = state is None and len(records) == 1 and records[0][0] > self._last
        # One statement alone is a transaction of its own.
        with self._failing(), self._transaction(is_begun=not is_one):
            last = self._put(self._last, records, state)
        self._last = last

    @contextmanager
    def _transaction(self, *, is_begun: bool = True) -> Iterator[None]:
        try:
            if is_begun:
                self._base.execute("BEGIN IMMEDIATE")
            yield
            if is_begun:
                self._base.execute("COMMIT")
        except BaseException as error:
            # After a failed commit there may be nothing left to roll back.
            if self._base.in_transaction:
                self._base.execute("ROLLBACK")
            if _is_full(error) and self._end() == self._last:
                raise StorageFull(f"{self._path}: {error}") from error
            raise

    def state(self) -> bytes | None:
        """The value written last. Raises StorageFailed when it is damaged."""
        return self._value(_STATE)

    def _value(self, position: int) -> bytes | None:
        with self._failing():
            row = self._base.execute(
                "SELECT crc, data FROM records WHERE position = ?", (position,)
            ).fetchone()
        return None if row is None else self._checked(position, *row)

    def close(self) -> None:
        """Give the file back. Raises StorageFailed."""
        with self._failing():
            self._give_back()

    def _put_mark(self) -> None:
        """From here on the write-ahead log is on the disk, and its loss is told."""
        if not self._wal.exists() or not self._wal.stat().st_size:
            try:
                self._base.execute(_TOUCH)
            except sqlite3.Error as error:
                if not _is_full(error):
                    raise
                return
        self._mark.put()

    def _check_wal(self) -> None:
        """Raises StorageFailed for a write-ahead log that was damaged; SQLite reads it without a word."""
        try:
            check_wal(self._wal.read_bytes())
        except FileNotFoundError:
            return
        except (OSError, StorageFailed) as error:
            raise StorageFailed(f"{self._wal}: {error}") from error

    def _end(self) -> int:
        """The index of the last record that is in the file; below every index when there is none."""
        found: int | None = self._base.execute("SELECT max(position) FROM records").fetchone()[0]
        if found is not None and found > _STATE:
            return found
        replaced = self.snapshot()
        return _STATE if replaced is None else replaced[0]

    def _put(self, last: int, records: Sequence[tuple[int, bytes]], state: bytes | None) -> int:
        """Write records after the `last` and the value; returns the index of the last one then."""
        if records:
            first = records[0][0]
            assert first > _STATE, f"a record at {first}"
            assert [position for position, _ in records] == list(range(first, first + len(records))), "a gap"
            assert last == _STATE or first <= last + 1, f"a record at {first} after {last}"
            if first <= last:
                self._base.execute("DELETE FROM records WHERE position >= ?", (first,))
            rows = [(position, _crc(position, data), data) for position, data in records]
            if len(rows) == 1:
                self._base.execute(_INSERT, rows[0])
            else:
                self._base.executemany(_INSERT, rows)
            last = records[-1][0]
        if state is not None:
            self._base.execute(_PUT, (_STATE, _crc(_STATE, state), state))
        return last

    def _checked(self, position: int, crc: int, data: object) -> bytes:
        if not isinstance(data, bytes) or _crc(position, data) != crc:
            raise StorageFailed(f"{self._path}: record {position} is not what was written")
        return data

    @contextmanager
    def _failing(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise StorageFailed(f"{self._path}: {error}") from error


def _give_back(base: sqlite3.Connection, mark: JournalMark, wal: Path) -> None:
    if _is_all_in_the_file(base):
        mark.clear()
    base.close()
    # SQLite removes its log when it could move everything.
    if not wal.exists():
        mark.clear()


def _is_all_in_the_file(base: sqlite3.Connection) -> bool:
    """Whether everything was moved from the log to the file, so that the log may go."""
    try:
        is_busy: int = base.execute("PRAGMA wal_checkpoint(FULL)").fetchone()[0]
    except sqlite3.Error:
        # No room, or worse: the log stays, and the next start reads it.
        return False
    return not is_busy


def _is_full(error: BaseException) -> bool:
    """Whether there was no room. SQLite then undoes the transaction: no frame of it counts."""
    return isinstance(error, sqlite3.Error) and error.sqlite_errorcode == sqlite3.SQLITE_FULL


def _crc(position: int, data: bytes) -> int:
    return zlib.crc32(data, zlib.crc32(position.to_bytes(8, "big", signed=True)))
