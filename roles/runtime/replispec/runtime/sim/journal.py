"""The journal of a simulated process, and everything it keeps together."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from replispec.runtime.sim.disk import Disk, Left, RecordedChanges
from replispec.runtime.sim.files import SimulatedFiles
from replispec.runtime.sim.lines import SimulatedLines
from replispec.runtime.storage import StorageFailed


class SimulatedJournal:
    """An ordered log of records; see `replispec.runtime.storage.Journal`."""

    def __init__(self, disk: Disk, name: str = "journal") -> None:
        self._disk = disk
        self._life = disk.life
        self._name = name
        self._records = disk.journals.setdefault(name, RecordedChanges())

    def records(self) -> Sequence[tuple[int, bytes]]:
        """All records, ascending by index."""
        self._disk.reading(self._life, f"records {self._name}")
        for index in self._records.damaged:
            raise StorageFailed(f"record {index} of {self._name} is not what was written")
        return tuple(self._records.records.items())

    def append(self, records: Sequence[tuple[int, bytes]], *, state: bytes | None = None) -> None:
        """Write records after the last, and the value if given, durably or not at all."""
        _check(records, self._last())

        def take_effect(left: Left) -> None:
            if self._disk.whole(left):
                self._remember()
                self._put(records, state)

        more_bytes = sum(len(record) for _, record in records)
        self._disk.change(self._life, f"append {self._name}", take_effect, more_bytes)

    def replace(
        self,
        index: int,
        snapshot: bytes,
        *,
        records: Sequence[tuple[int, bytes]] = (),
        state: bytes | None = None,
        is_all: bool = False,
    ) -> None:
        """See `Journal.replace`: durably or not at all."""
        last = index if is_all else self._last()
        _check(records, last)
        end = records[-1][0] if records else last
        assert end is not None, f"records up to {index}, of none"
        assert index <= end, f"records up to {index} of {end}"

        def take_effect(left: Left) -> None:
            if self._disk.whole(left):
                self._remember()
                held = self._records.records
                if is_all:
                    held.clear()
                self._put(records, state)
                for each in [each for each in held if each <= index]:
                    del held[each]
                self._records.snapshot = (index, bytes(snapshot))

        more_bytes = len(snapshot) + sum(len(record) for _, record in records)
        self._disk.change(self._life, f"replace {self._name}", take_effect, more_bytes)

    def _last(self) -> int | None:
        last = next(reversed(self._records.records), None)
        if last is None and self._records.snapshot is not None:
            return self._records.snapshot[0]
        return last

    def _put(self, records: Sequence[tuple[int, bytes]], state: bytes | None) -> None:
        held = self._records.records
        for index in [index for index in held if records and index >= records[0][0]]:
            del held[index]
        held.update((index, bytes(record)) for index, record in records)
        if state is not None:
            self._records.state = bytes(state)

    def snapshot(self) -> tuple[int, bytes] | None:
        """What replaced the first records, and the index of the last of them."""
        self._disk.reading(self._life, f"snapshot {self._name}")
        return self._records.snapshot

    def _remember(self) -> None:
        kept = self._records
        if not self._disk.keeps_flushes and kept.durable is None:
            kept.durable = (dict(kept.records), kept.state, kept.snapshot)

    def state(self) -> bytes | None:
        """The value written last."""
        self._disk.reading(self._life, f"state {self._name}")
        return self._records.state


def _check(records: Sequence[tuple[int, bytes]], last: int | None) -> None:
    indexes = [index for index, _ in records]
    assert all(right == left + 1 for left, right in itertools.pairwise(indexes)), "a gap"
    assert not records or last is None or indexes[0] <= last + 1, f"{indexes[0]} after {last}"


class SimulatedStorage:
    """All that one process keeps; see `replispec.runtime.storage.Storage`."""

    def __init__(self, disk: Disk, contents: Mapping[str, bytes] | None = None) -> None:
        """`contents`: files that somebody else wrote."""
        self._disk = disk
        self._contents = contents or {}

    def content(self, name: str) -> bytes:
        """What a file holds that somebody else writes. Raises StorageFailed."""
        if name not in self._contents:
            raise StorageFailed(f"{name}: not there")
        return self._contents[name]

    def files(self, folder: str) -> SimulatedFiles:
        """The files of a folder."""
        return SimulatedFiles(self._disk, folder)

    def journal(self, name: str) -> SimulatedJournal:
        """The journal of this file name."""
        return SimulatedJournal(self._disk, name)

    def lines(self, name: str) -> SimulatedLines:
        """The text file of this name."""
        return SimulatedLines(self._disk, name)
