"""Rules about epochs: where two logs part, and which epochs a log has.

An epoch entry is anything with `epoch` and `start_offset`; lists are ascending by epoch. An epoch
ends where the next one starts, the last one where the log ends. Offsets are bytes of the commit log.
Source: RIP-44 "Election Truncation Algorithm", "Epoch file updates and corrections"; golden examples
in spec/vectors/rocketmq/epochs.yaml.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Protocol, cast

from replispec.wire.rocketmq.ha import HaEpochEntry


class EpochStart(Protocol):
    """One epoch and the offset of its first byte."""

    @property
    def epoch(self) -> int:
        """The masterEpoch."""
        ...

    @property
    def start_offset(self) -> int:
        """Offset of the epoch's first byte."""
        ...


def consistent_point(
    ours: Sequence[EpochStart], our_end: int, theirs: Sequence[EpochStart], their_end: int
) -> int | None:
    """The offset up to which both logs agree; None when they share no epoch with the same start."""
    known = {entry.epoch: (entry.start_offset, end) for entry, end in _with_ends(theirs, their_end)}
    for entry, end in reversed(list(_with_ends(ours, our_end))):
        start, their_epoch_end = known.get(entry.epoch, (None, 0))
        if start == entry.start_offset:
            return min(end, their_epoch_end)
    return None


def _with_ends(entries: Sequence[EpochStart], log_end: int) -> Iterator[tuple[EpochStart, int]]:
    """Every entry with the offset at which its epoch ends."""
    for number, entry in enumerate(entries, start=1):
        yield entry, entries[number].start_offset if number < len(entries) else log_end


def epochs_before(epochs: Sequence[EpochStart], offset: int) -> tuple[HaEpochEntry, ...]:
    """The epochs of a log that was cut at `offset`."""
    return _copied([entry for entry in epochs if entry.start_offset < offset])


def with_epoch(epochs: Sequence[EpochStart], epoch: int, start_offset: int) -> tuple[HaEpochEntry, ...]:
    """The epochs with one more, unless it is earlier than the last in number or in start; it takes the place
    of one in which nothing was written."""
    if epochs and (epoch <= epochs[-1].epoch or start_offset < epochs[-1].start_offset):
        # Asked for every run of a log: no copy of what stays as it is.
        return cast("tuple[HaEpochEntry, ...]", epochs) if isinstance(epochs, tuple) else _copied(epochs)
    written = [entry for entry in epochs if entry.start_offset < start_offset]
    return (*_copied(written), HaEpochEntry(epoch=epoch, start_offset=start_offset))


def epochs_as_master(epochs: Sequence[EpochStart], epoch: int, log_end: int) -> tuple[HaEpochEntry, ...]:
    """The epochs of a broker that becomes master of `epoch` with a log that ends at `log_end`; who was
    its master before, and comes back, goes on with it."""
    kept = [entry for entry in epochs if entry.start_offset < log_end and entry.epoch <= epoch]
    return with_epoch(kept, epoch, log_end)


def epochs_after_deletion(epochs: Sequence[EpochStart], first_offset: int) -> tuple[HaEpochEntry, ...]:
    """The epochs of a log whose bytes before `first_offset` were deleted; the last epoch always stays."""
    kept = [
        entry
        for number, entry in enumerate(epochs, start=1)
        if number == len(epochs) or epochs[number].start_offset > first_offset
    ]
    return _copied(kept)


def with_start(epochs: Sequence[EpochStart], epoch: int, start_offset: int) -> tuple[HaEpochEntry, ...]:
    """The epochs with what some source says about one; of two starts of an epoch the smaller is kept."""
    starts = {entry.epoch: entry.start_offset for entry in epochs}
    known = starts.get(epoch)
    if known is not None and known <= start_offset:
        return _copied(epochs)
    starts[epoch] = start_offset
    return tuple(HaEpochEntry(epoch=each, start_offset=starts[each]) for each in sorted(starts))


def start_inside(starts: Sequence[int], low: int, high: int) -> bool:
    """True when one of `starts`, ascending, lies strictly between `low` and `high`."""
    at = bisect_right(starts, low)
    return at < len(starts) and starts[at] < high


def next_start(epochs: Sequence[EpochStart], epoch: int) -> int | None:
    """The smallest start of all later epochs; None when there is none."""
    return min((entry.start_offset for entry in epochs if entry.epoch > epoch), default=None)


def epoch_at(epochs: Sequence[EpochStart], offset: int) -> int:
    """The epoch of the byte at an offset, the oldest known one for older bytes; 0 without any."""
    return epochs[max(_begun(epochs, offset) - 1, 0)].epoch if epochs else 0


def start_at(epochs: Sequence[EpochStart], offset: int) -> int:
    """Where the epoch of the byte at an offset begins, as `epoch_at` names it; 0 without any epoch."""
    return epochs[max(_begun(epochs, offset) - 1, 0)].start_offset if epochs else 0


def run_size(epochs: Sequence[EpochStart], offset: int, log_end: int, at_hand: int) -> int:
    """How long the run is that starts at an offset, of so many bytes at hand: it crosses the start of no
    epoch, and not the end of the log."""
    number = _begun(epochs, offset)
    end = min(epochs[number].start_offset, log_end) if number < len(epochs) else log_end
    return min(at_hand, end - offset)


def _begun(epochs: Sequence[EpochStart], offset: int) -> int:
    """How many epochs begin at an offset or before it."""
    return bisect_right(epochs, offset, key=_start)


def _start(entry: EpochStart) -> int:
    return entry.start_offset


def start_of(epochs: Sequence[EpochStart], epoch: int) -> int:
    """Where an epoch begins; 0 for one that is not known."""
    return next((entry.start_offset for entry in epochs if entry.epoch == epoch), 0)


def survives(epochs: Sequence[EpochStart], epoch: int, offset: int) -> bool:
    """True when what was written at `offset` under `epoch` lies before every later epoch."""
    end = next_start(epochs, epoch)
    return end is None or offset < end


def _copied(entries: Sequence[EpochStart]) -> tuple[HaEpochEntry, ...]:
    return tuple(HaEpochEntry(epoch=entry.epoch, start_offset=entry.start_offset) for entry in entries)
