"""What a replica would cut of its log if it followed a master, by the epochs of both.

Source: RIP-44 "Election Truncation Algorithm"; apache/rocketmq rocketmq-all-5.4.0, AutoSwitchHAClient.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from replispec.runtime.rocketmq import rules
from replispec.wire.rocketmq.controller import EpochEntryCache
from replispec.wire.rocketmq.ha import HaEpochEntry


@dataclass(frozen=True, slots=True)
class EpochLog:
    """A log by its epochs and its end."""

    epochs: Sequence[HaEpochEntry]
    end: int


@dataclass(frozen=True, slots=True)
class Rejoining:
    """Up to where both logs agree (None: nowhere), where the replica's and the master's end."""

    agree: int | None
    end: int
    master_end: int

    @property
    def cut(self) -> int | None:
        """How many bytes the replica would cut; None when it would neither cut nor copy."""
        return None if self.agree is None else self.end - self.agree

    @property
    def copied(self) -> int | None:
        """How many bytes it would copy then."""
        return None if self.agree is None else self.master_end - self.agree


def log_of(cache: EpochEntryCache) -> EpochLog:
    """A log as a broker tells of it."""
    entries = sorted((each.epoch or 0, each.start_offset or 0) for each in cache.epoch_list or ())
    return EpochLog(
        [HaEpochEntry(epoch=epoch, start_offset=start) for epoch, start in entries], cache.max_offset or 0
    )


def rejoining(replica: EpochLog, master: EpochLog) -> Rejoining:
    """What would come of it; an empty log copies everything."""
    agree: int | None = 0
    if replica.end:
        agree = rules.consistent_point(replica.epochs, replica.end, master.epochs, master.end)
    return Rejoining(agree, replica.end, master.end)
