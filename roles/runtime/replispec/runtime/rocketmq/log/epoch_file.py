"""The epoch file: every epoch of a log with the offset of its first byte.

Source: RIP-44 "Epoch file"; apache/rocketmq rocketmq-all-5.4.0, EpochFileCache, CheckpointFile.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.storage import FilesReader, ReplaceFile, StorageFailed
from replispec.wire.rocketmq.constants import EPOCH_FILE
from replispec.wire.rocketmq.ha import HaEpochEntry
from replispec.wire.rocketmq.store import EpochFile as EpochFileText
from replispec.wire.rocketmq.store import EpochFileEntry

OLDER: Final = f"{EPOCH_FILE}.bak"
"""What Apache RocketMQ keeps of the content before the last write; read where the file itself is broken."""


class EpochFile:
    """The epochs of one broker's log, ascending. `entries` are those that count.

    Raises StorageFailed when neither the file nor the older one can be read though one is there: a broker
    that forgets its epochs would copy without comparing.
    """

    def __init__(self, files: FilesReader, name: str = EPOCH_FILE) -> None:
        self._name = name
        self.entries: tuple[HaEpochEntry, ...] = self._read(files)
        self._wanted = self._claimed = self._on_disk = self.entries

    @property
    def last(self) -> HaEpochEntry | None:
        """The newest epoch."""
        return self.entries[-1] if self.entries else None

    def keep(self, entries: Sequence[HaEpochEntry]) -> None:
        """Let exactly these count, and have them written; they may not be reported before they are."""
        self.entries = self._wanted = tuple(entries)

    def announce(self, entries: Sequence[HaEpochEntry]) -> None:
        """Have these written, and let them count from when they are on the disk."""
        self._wanted = tuple(entries)

    @property
    def is_clean(self) -> bool:
        """Whether what counts, or will, is on the disk."""
        return self._wanted == self._on_disk

    def begin_write(self) -> tuple[ReplaceFile, ...]:
        """What is to be written; nothing when it is on the disk."""
        self._claimed = self._wanted
        if self.is_clean:
            return ()
        lines = [EpochFileEntry(entry.epoch, entry.start_offset) for entry in self._wanted]
        return (ReplaceFile(self._name, EpochFileText(entries=lines).encode()),)

    def end_write(self) -> None:
        """The write that was begun last is done."""
        self._on_disk = self._claimed
        if self.is_clean:
            self.entries = self._wanted

    def _read(self, files: FilesReader) -> tuple[HaEpochEntry, ...]:
        faults = []
        for name in (self._name, OLDER):
            data = files.read(name)
            if data is None:
                continue
            try:
                lines = EpochFileText.decode(data).entries
            except RemoteProtocolError as error:
                faults.append(f"{name}: {error}")
                continue
            return tuple(HaEpochEntry(line.epoch, line.start_offset) for line in lines)
        if faults:
            raise StorageFailed("; ".join(faults))
        return ()
