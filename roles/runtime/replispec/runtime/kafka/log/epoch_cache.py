"""Where each leader epoch begins in a log, in memory."""

from __future__ import annotations

from collections.abc import Sequence

from replispec.wire.kafka.folder import EpochCheckpoint, EpochStart


class LogEpochs:
    """Epochs and where they begin, both ascending. `is_changed`: since they were written last."""

    def __init__(self, entries: Sequence[EpochStart] = ()) -> None:
        self.entries: list[EpochStart] = []
        for each in entries:
            self.assign(each.epoch, each.start_offset)
        self.is_changed = False

    @property
    def newest(self) -> int | None:
        """The newest epoch; None of a log that knows none."""
        return self.entries[-1].epoch if self.entries else None

    def assign(self, epoch: int, start_offset: int) -> None:
        """An epoch begins at an offset; entries that contradict it go. One that is known already stays."""
        if epoch < 0 or (self.entries and self.entries[-1].epoch == epoch):
            return
        while self.entries and (
            self.entries[-1].epoch > epoch or self.entries[-1].start_offset >= start_offset
        ):
            self.entries.pop()
        self.entries.append(EpochStart(epoch, start_offset))
        self.is_changed = True

    def learn(self, epoch: int, offset: int) -> None:
        """A batch of an epoch begins at an offset, as is found out by reading."""
        if self.newest is None or epoch > self.newest:
            self.assign(epoch, offset)

    def end_at(self, offset: int) -> None:
        """The log ends here: epochs that begin here or later are gone."""
        while self.entries and self.entries[-1].start_offset >= offset:
            self.entries.pop()
            self.is_changed = True

    def begin_at(self, offset: int) -> None:
        """The log begins here: of the epochs before only the one stays in which this offset lies."""
        older = [each for each in self.entries if each.start_offset <= offset]
        if older and (len(older) > 1 or older[0].start_offset < offset):
            self.entries[: len(older)] = [EpochStart(older[-1].epoch, offset)]
            self.is_changed = True

    def encode(self) -> bytes:
        """The file of them."""
        return EpochCheckpoint(list(self.entries)).encode()
