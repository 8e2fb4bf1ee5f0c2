"""Which acknowledged records are in the logs of later leaders, by where the records of later epochs begin.

The log of a leader is one: what it appends in its epoch lies behind all that it has of earlier ones. So
whoever has a record of a later epoch at an offset has nothing else there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from replispec.replay.events.kafka.world import Partition
from replispec.replay.events.partition_observations import Appended
from replispec.wire.kafka.codes import ErrorCode


class Write(NamedTuple):
    """A batch of so many records that was acknowledged. `epoch`: in which, None where that is not known;
    `lost_to`: the earliest later epoch whose leader has not got it; `followed`: a record of a later epoch was
    seen; `unclean`: a broker out of the ISR was made leader in between, None where that is not known."""

    row: Appended
    acks: int
    offset: int
    last: int
    records: int
    epoch: int | None
    lost_to: int | None
    followed: bool
    unclean: bool | None


class _End(NamedTuple):
    """A leader of the epoch `by` said that its log has no record of `asked` or earlier from `end` on."""

    by: int
    asked: int
    end: int


class Logs:
    """What the logs of a partition's leaders hold."""

    def __init__(self, own: Partition) -> None:
        self._own = own

    @cached_property
    def writes(self) -> Sequence[Write]:
        """All batches that were acknowledged, in the order of the answers."""
        return [
            self._write(row, each)
            for row in self._own.appended
            if row.code == ErrorCode.NONE and row.acks
            for each in row.batches or ()
        ]

    def _write(self, row: Appended, batch: Mapping[str, int]) -> Write:
        epoch = self._epoch(row, batch)
        acks = row.acks or 0
        lost_to = None if epoch is None else min(self._losing(epoch, batch["last"]), default=None)
        followed = epoch is not None and any(each > epoch for each in self.starts)
        unclean = None if epoch is None or lost_to is None else self._own.unclean_between(epoch, lost_to)
        about = batch["base"], batch["last"], batch["count"]
        return Write(row, acks, *about, epoch, lost_to, followed, unclean)

    def _losing(self, epoch: int, last: int) -> Iterator[int]:
        """The later epochs whose leaders have not got a record of an epoch at an offset."""
        for later, start in self.starts.items():
            if later > epoch and start <= last:
                yield later
        for each in self._ends:
            if each.by > epoch and each.asked >= epoch and each.end <= last:
                yield each.by

    @cached_property
    def starts(self) -> Mapping[int, int]:
        """The smallest offset at which a record of each epoch was seen."""
        found: dict[int, int] = {}
        for row in self._own.fetched:
            for each in row.batches or ():
                found[each["epoch"]] = min(found.get(each["epoch"], each["base"]), each["base"])
        for write in self._own.appended:
            for each in write.batches or () if write.code == ErrorCode.NONE else ():
                epoch = self._epoch(write, each)
                if epoch is not None:
                    found[epoch] = min(found.get(epoch, each["base"]), each["base"])
        return found

    @cached_property
    def _ends(self) -> Sequence[_End]:
        found = []
        for row in self._own.epoch_ends:
            reign = self._own.reign(row.address, row.request_order or 0)
            is_told = row.code == ErrorCode.NONE and row.end_offset is not None and row.end_offset >= 0
            if is_told and reign is not None and row.asked is not None:
                found.append(_End(reign.epoch, row.asked, row.end_offset or 0))
        return found

    @cached_property
    def _epochs(self) -> Mapping[tuple[int, int], set[int]]:
        """In which epochs a batch of a checksum was appended at an offset, as fetches show it."""
        found: dict[tuple[int, int], set[int]] = defaultdict(set)
        for row in self._own.fetched:
            for each in row.batches or ():
                found[each["base"], each["crc"]].add(each["epoch"])
        return found

    def _epoch(self, row: Appended, batch: Mapping[str, int]) -> int | None:
        shown = self._epochs.get((batch["base"], batch["crc"]), set())
        if len(shown) == 1:
            return next(iter(shown))
        reign = self._own.reign(row.address, row.request_order or 0)
        return None if reign is None else reign.epoch
