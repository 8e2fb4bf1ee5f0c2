"""Up to where a commit log once was on the disk, so that a damage is told from the end that a crash leaves.

A crash takes only bytes that were not flushed. A log that ends before what this file names, and not where a
cut left zeros, was damaged later: to go on there would throw away messages that were acknowledged.
"""

from __future__ import annotations

import zlib
from typing import Final

from replispec.runtime.storage import FilesReader, ReplaceFile, StorageFailed
from replispec.wire.rocketmq.constants import FLUSHED_FILE

STEPS_MAX: Final = 16
"""The file is written anew while a file of the log grows, so many times."""


class FlushedFile:
    """One offset and its checksum. It may lag behind, and is gone before a cut below it reaches the disk.

    Raises StorageFailed when the file is there and cannot be read.
    """

    def __init__(self, files: FilesReader, file_bytes: int) -> None:
        self._step = max(file_bytes // STEPS_MAX, 1)
        data = files.read(FLUSHED_FILE)
        self.offset = 0 if data is None else _offset(data)
        # The largest that may be on the disk, and whether a cut made it wrong.
        self._asked = self.offset
        self.is_wrong = False

    def truncated(self, offset: int) -> None:
        """The log is cut here. What is wrong then has to be removed before a byte of the log changes."""
        self.is_wrong = self.is_wrong or offset < self._asked

    def removed(self) -> None:
        """It is gone from the disk."""
        self.is_wrong = False
        self._asked = 0

    def wanted(self, flushed: int, *, at_once: bool = False) -> ReplaceFile | None:
        """What is to be written now that the log is on the disk up to an offset at which a record ends; when
        it cannot be, the older offset is as true."""
        if self.is_wrong or flushed < self._asked + (1 if at_once else self._step):
            return None
        self._asked = flushed
        return ReplaceFile(FLUSHED_FILE, _text(flushed))


def _text(offset: int) -> bytes:
    number = b"%d" % offset
    return b"%s %d\n" % (number, zlib.crc32(number))


def _offset(data: bytes) -> int:
    number = data.partition(b" ")[0]
    if not number.isdigit() or data != _text(int(number[:20])):
        raise StorageFailed(f"{FLUSHED_FILE}: no offset with its checksum; the log is read without it, too")
    return int(number)
