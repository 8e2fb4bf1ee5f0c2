"""How the brokers of a simulated cluster are set, what may happen to them, and what that promises."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from replispec.runtime.sim import Rng

SYNC: Final = "SYNC_FLUSH"
ASYNC: Final = "ASYNC_FLUSH"


class Promise(Enum):
    """When nothing that was acknowledged is lost."""

    WHATEVER_FAILS = "whatever fails"
    ONE_AT_A_TIME = "while one broker at a time fails, and the set is whole before the next does"
    WHILE_THE_MASTER_STAYS = "while the master stays"


@dataclass(frozen=True)
class Settings:
    """One way to run a set. `in_sync` and `in_sync_min` are inSyncReplicas and minInSyncReplicas; without
    `loses_power` processes are killed and machines stay on; with `forgets` connections become half-open: what
    one side sends vanishes for good, and nobody is told. With `drops` so do all connections over which
    nothing comes for a while: what was sent meanwhile is not delivered when the network heals."""

    brokers: int = 3
    flush: str = SYNC
    all_ack: bool = True
    in_sync: int = 1
    in_sync_min: int = 1
    loses_power: bool = True
    forgets: bool = False
    drops: bool = False
    obeys: bool = False
    controllers: int = 1

    @property
    def is_durable(self) -> bool:
        """Whether no broker loses what it said it has."""
        return self.flush == SYNC or not self.loses_power

    @property
    def promise(self) -> Promise:
        """What the cell of docs/durability.md says."""
        if self.all_ack and self.is_durable:
            return Promise.WHATEVER_FAILS
        if self.all_ack or self.in_sync > 1:
            return Promise.ONE_AT_A_TIME
        return Promise.WHILE_THE_MASTER_STAYS

    @property
    def waits_for_some(self) -> bool:
        """Whether some members may have what others have not, though it was acknowledged."""
        return not self.all_ack and 1 < self.in_sync < self.brokers

    @property
    def copies_min(self) -> int:
        """How many brokers have a message on their disks when its sender is told."""
        return self.in_sync_min if self.all_ack else max(self.in_sync, 1)

    def properties(self) -> Mapping[str, object]:
        """What of it stands in a broker's configuration."""
        return {
            "flushDiskType": self.flush,
            "allAckInSyncStateSet": str(self.all_ack).lower(),
            "inSyncReplicas": self.in_sync,
            "minInSyncReplicas": self.in_sync_min,
        }

    def keeping(self) -> Mapping[str, object]:
        """How long messages are kept, of brokers and learners: here for ever, and nobody looks."""
        return {
            "cleanResourceInterval": 600_000,
            "diskSpaceWarningLevelRatio": 100,
            "cleanFileForciblyEnable": "false",
        }

    def __str__(self) -> str:
        """Everything that was drawn."""
        acknowledged = "all" if self.all_ack else f"{self.in_sync}"
        power = "power" if self.loses_power else "kills"
        silent = f"{', half-open' if self.forgets else ''}{', drops' if self.drops else ''}"
        return (
            f"{f'{self.controllers} controllers, ' if self.controllers > 1 else ''}"
            f"{self.brokers} brokers, {self.flush}, acknowledged by {acknowledged}, at least "
            f"{self.in_sync_min} in the set, {power}{silent}: {self.promise.value}"
        )


PLAIN: Final = Settings()
"""What the first seeds vary is what happens, never this."""


def drawn(seed: int) -> Settings:
    """The settings of a seed; they take nothing from its other random numbers."""
    rng = Rng(seed * 2 + 1)
    brokers = rng.between(2, 5)
    all_ack = rng.happens(600)
    return Settings(
        brokers=brokers,
        flush=rng.one_of((SYNC, ASYNC)),
        all_ack=all_ack,
        in_sync=rng.between(1, brokers),
        in_sync_min=rng.one_of((1, 1, 2, brokers)),
        loses_power=rng.happens(600),
        forgets=rng.happens(500),
        obeys=True,
        drops=rng.happens(250),
    )
