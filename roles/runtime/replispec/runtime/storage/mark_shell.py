"""What a file beside a journal tells of it: that it was there, and whether its process gave it back.

SQLite begins anew where its file is gone, and reads nothing where its write-ahead log is: both without a
word, and what was acknowledged is forgotten. While a process has the journal, and after one that crashed,
the mark holds a word, and both files are there; where the journal was given back the mark is empty, and the
file has everything.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from replispec.runtime.storage.folders_shell import sync_folder
from replispec.runtime.storage.interface import StorageFailed
from replispec.runtime.storage.no_room import NO_ROOM

MARK: Final = "-mark"
"""How the name of a journal's mark ends."""
_IN_USE: Final = b"in use\n"
_ADVICE: Final = "what was acknowledged is in it. Put it back as it was, or replace this store"


class JournalMark:
    """The mark of the journal in this file, whose write-ahead log has another name."""

    def __init__(self, journal: Path, wal: Path) -> None:
        self._journal = journal
        self._wal = wal
        self._path = journal.with_name(journal.name + MARK)

    def check(self) -> None:
        """Before the journal is opened. Raises StorageFailed, with its name, for a file that was there."""
        said, is_there = self._said(), _size(self._journal) > 0
        if not is_there and (said is not None or _size(self._wal) > 0):
            witness = self._path if said is not None else self._wal
            raise StorageFailed(f"{self._journal}: gone or empty, as {witness.name} tells; {_ADVICE}")
        if said and not _size(self._wal):
            raise StorageFailed(f"{self._wal}: gone or empty, as {self._path.name} tells; {_ADVICE}")

    def put(self) -> None:
        """Both files are there, and the journal is in use. Where there is no room the mark stays as it was:
        a loss of the log would then not be noticed. Raises StorageFailed."""
        sync_folder(self._journal.parent)
        try:
            self._write(_IN_USE)
        except OSError as error:
            if error.errno not in NO_ROOM:
                raise StorageFailed(f"{self._path}: {error.strerror}") from error
            self.clear()
        sync_folder(self._journal.parent)

    def clear(self) -> None:
        """The journal's file has everything; this takes no room. Raises StorageFailed."""
        try:
            self._write(b"")
        except FileNotFoundError:
            return
        except OSError as error:
            raise StorageFailed(f"{self._path}: {error.strerror}") from error

    def _said(self) -> bytes | None:
        try:
            return self._path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StorageFailed(f"{self._path}: {error.strerror}") from error

    def _write(self, word: bytes) -> None:
        flags = os.O_WRONLY | os.O_CLOEXEC | (os.O_CREAT if word else 0)
        descriptor = os.open(self._path, flags, 0o644)
        try:
            if not word:
                os.ftruncate(descriptor, 0)
            elif os.pwrite(descriptor, word, 0) == 0:
                raise AssertionError("nothing of a word was written")
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
    except OSError as error:
        raise StorageFailed(f"{path}: {error.strerror}") from error
