"""Where a log began that was copied from its middle on, because its master had deleted what was before.

How many messages a queue had there that got none since, nobody told this broker. They were no more than
bytes of the log, so positions of such a queue go on from this offset: no position is given twice, and a
consumer of it is never moved back.
"""

from __future__ import annotations

from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.rocketmq.log import offset_line
from replispec.runtime.storage import FilesReader, ReplaceFile
from replispec.wire.rocketmq.constants import BEGAN_FILE


class BeganFile:
    """The offset, and the file that keeps it; 0 of a log that was there from its first byte on."""

    def __init__(self, files: FilesReader, first: int, *, counts_are_known: bool) -> None:
        """`first`: where the log begins now, which is after where it began; `counts_are_known`: where the
        queues ended at `first` was read. Raises StorageFailed."""
        data = files.read(BEGAN_FILE)
        if data is None:
            self.offset = 0 if counts_are_known else first
        else:
            found = _read(data)
            self.offset = first if found is None else found
        self._claimed = self._on_disk = self.offset if data is not None else 0

    def begins(self, offset: int) -> None:
        """The log is copied from here on."""
        self.offset = max(self.offset, offset)

    def begin_write(self) -> tuple[ReplaceFile, ...]:
        """What is to be written; nothing when it is on the disk."""
        self._claimed = self.offset
        if self._claimed == self._on_disk:
            return ()
        return (ReplaceFile(BEGAN_FILE, offset_line.encoded(self.offset)),)

    def end_write(self) -> None:
        """The write that was begun last is done."""
        self._on_disk = self._claimed


def _read(data: bytes) -> int | None:
    try:
        return offset_line.decoded(data)
    except RemoteProtocolError:
        return None
