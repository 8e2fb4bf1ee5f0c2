"""The epoch file: every epoch of a log with the offset of its first byte.

Source: RIP-44 "Epoch file"; apache/rocketmq rocketmq-all-5.4.0, EpochFileCache, CheckpointFile.
"""

from __future__ import annotations

from collections.abc import Sequence

from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.rocketmq.log.flushed_file import Saying
from replispec.runtime.rocketmq.log.recovery import refused
from replispec.runtime.storage import FilesReader, ReplaceFile
from replispec.runtime.world import Level
from replispec.wire.rocketmq.constants import EPOCH_COPY_FILE, EPOCH_FILE
from replispec.wire.rocketmq.ha import HaEpochEntry
from replispec.wire.rocketmq.store import EpochFile as EpochFileText
from replispec.wire.rocketmq.store import EpochFileEntry


class EpochFile:
    """The epochs of one broker's log, ascending. `entries` are those that count; `said` tells what was found.

    They are kept twice, one after the other: of Apache RocketMQ the second is what was before, which is safe
    too, because bytes of an epoch that it lacks are cut and copied again. Raises StorageFailed when neither
    can be read though one is there: a broker that forgets its epochs would copy without comparing, unless its
    log is empty.
    """

    def __init__(self, files: FilesReader, *, is_log_empty: bool = False) -> None:
        self.said: list[Saying] = []
        self.entries: tuple[HaEpochEntry, ...] = self._read(files, is_log_empty)
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
        data = EpochFileText(entries=lines).encode()
        return tuple(ReplaceFile(name, data) for name in (EPOCH_FILE, EPOCH_COPY_FILE))

    def end_write(self) -> None:
        """The write that was begun last is done."""
        self._on_disk = self._claimed
        if self.is_clean:
            self.entries = self._wanted

    def _read(self, files: FilesReader, is_log_empty: bool) -> tuple[HaEpochEntry, ...]:
        faults = []
        for name in (EPOCH_FILE, EPOCH_COPY_FILE):
            data = files.read(name)
            if data is None:
                continue
            try:
                lines = EpochFileText.decode(data).entries
            except RemoteProtocolError as error:
                faults.append(f"{name}: {error}")
                continue
            if faults:
                self._say("the epochs are read from their copy", faults, name)
            return tuple(HaEpochEntry(line.epoch, line.start_offset) for line in lines)
        if faults and not is_log_empty:
            raise refused("; ".join(faults))
        if faults:
            self._say("the epochs of an empty log cannot be read, and count for nothing", faults, "")
        return ()

    def _say(self, what: str, faults: Sequence[str], used: str) -> None:
        self.said.append(Saying(Level.WARNING, what, {"reason": "; ".join(faults), "used": used}))
