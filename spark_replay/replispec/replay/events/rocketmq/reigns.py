"""In which lives of a broker set an address can have been its master's, as controllers told them.

Absence alone excludes no address: what would name it may not have been captured. A life whose epochs all had
a master at other addresses, up to the latest one that was told, had none at this one. A life of which nothing
was heard, as nobody came back after a removal, had no master.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field
from functools import partial

from replispec.replay.events.observation import Observation, ObservationKind
from replispec.replay.events.rocketmq.lives import Key


@dataclass(slots=True)
class Reigns:
    """The masters of each life by address.

    `masters`: by epoch as controllers named them where the life is told; `perhaps`: as notifications did,
    which may be of any life of the set; `begun`: lives in which somebody was granted an id or named master.
    """

    masters: dict[tuple[Key, int], dict[int, set[str | None]]] = field(
        default_factory=lambda: defaultdict(partial(defaultdict, set))
    )
    perhaps: dict[Key, set[tuple[int | None, str | None]]] = field(default_factory=lambda: defaultdict(set))
    begun: dict[Key, set[int]] = field(default_factory=lambda: defaultdict(set))

    def told(self, key: Key, life: int, row: Observation) -> None:
        """A fact about a life, or a grant in it."""
        if row.kind == ObservationKind.GRANTED or row.master is not None:
            self.begun[key].add(life)
        if row.master is not None and row.master_epoch is not None:
            self.masters[key, life][row.master_epoch].add(row.master_address)

    def notified(self, controller_group: str, name: str, row: Observation) -> None:
        """A fact that may be about any life of this set."""
        self.perhaps[controller_group, name].add((row.master_epoch, row.master_address))

    def lives(self, key: Key, every: range) -> Collection[int]:
        """Of the lives of a set those that began, as far as any did."""
        return self.begun.get(key, every)

    def may_be(self, key: Key, life: int, address: str) -> bool:
        """True unless every epoch of the life had a master, and none of them was at this main address."""
        masters = self.masters.get((key, life), {})
        # Controllers count epochs by one, from 1 on.
        told = [each for epoch, each in masters.items() if epoch > 0]
        if len(told) < max(masters, default=1) or any(address in each or None in each for each in told):
            return True
        return any(where == address and epoch not in masters for epoch, where in self.perhaps.get(key, ()))
