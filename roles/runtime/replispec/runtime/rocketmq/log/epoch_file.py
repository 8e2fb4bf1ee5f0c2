"""The epoch file: every epoch of a log with the offset of its first byte.

Source: RIP-44 "Epoch file"; apache/rocketmq rocketmq-all-5.4.0, EpochFileCache, CheckpointFile.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.storage import Files, StorageFailed
from replispec.wire.rocketmq.ha import HaEpochEntry
from replispec.wire.rocketmq.store import EpochFile as EpochFileText
from replispec.wire.rocketmq.store import EpochFileEntry

NAME: Final = "epochFileCheckpoint"
OLDER: Final = f"{NAME}.bak"
"""What Apache RocketMQ keeps of the content before the last write; read where the file itself is broken."""


class EpochFile:
    """The epochs of one broker's log, ascending, as they are on the disk.

    Raises StorageFailed when neither the file nor the older one can be read though one is there: a broker
    that forgets its epochs would copy without comparing.
    """

    def __init__(self, files: Files, name: str = NAME) -> None:
        self._files = files
        self._name = name
        self.entries: tuple[HaEpochEntry, ...] = self._read()

    @property
    def last(self) -> HaEpochEntry | None:
        """The newest epoch."""
        return self.entries[-1] if self.entries else None

    def keep(self, entries: Sequence[HaEpochEntry]) -> None:
        """Keep exactly these epochs; they are on the disk when this returns. Raises StorageFailed."""
        wanted = tuple(entries)
        if wanted is self.entries or wanted == self.entries:
            return
        lines = [EpochFileEntry(entry.epoch, entry.start_offset) for entry in wanted]
        self._files.replace(self._name, EpochFileText(entries=lines).encode())
        self.entries = wanted

    def _read(self) -> tuple[HaEpochEntry, ...]:
        faults = []
        for name in (self._name, OLDER):
            data = self._files.read(name)
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
