"""Whether a broker set lived on when its first id was granted to somebody else.

A set that is removed knows nobody any more: who is in it afterwards has registered again. So it lived on
where the connection of a broker names the first id's old owner as master, and later that broker itself,
which registered nowhere in between, and where the new owner is told the same after its grant.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from replispec.replay.events.observation import Observation, ObservationKind

_Key = tuple[str, str]
_Reign = tuple[str | None, int | None]
"""A master and its epoch."""


@dataclass(slots=True)
class _Line:
    """What one connection tells of a broker set: `masters` it named by address, `after` each of these who was
    named without a registration between, and `brokers` whose heartbeats it carried."""

    masters: dict[tuple[str, str], set[_Reign]] = field(default_factory=dict)
    brokers: set[str] = field(default_factory=set)
    told: list[tuple[int, _Reign]] = field(default_factory=list)

    def learn(self, row: Observation) -> None:
        """A fact about the set that names a master."""
        reign = row.master, row.master_epoch
        for after in self.masters.values():
            after.add(reign)
        if row.master is not None and row.master_address is not None:
            self.masters.setdefault((row.master, row.master_address), set())
        self.told.append((row.order, reign))


@dataclass(slots=True)
class Continuity:
    """What the connections of one capture tell of the broker sets that `key_of` says rows are about."""

    _lines: dict[_Key, dict[str, _Line]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(_Line))
    )

    @classmethod
    def of(cls, rows: Iterable[Observation], key_of: Callable[[Observation], _Key | None]) -> Continuity:
        """Of the rows of a capture, in its order."""
        found = cls()
        for row in rows:
            key = key_of(row)
            if key is None:
                continue
            line = found._lines[key][row.connection]
            if row.kind == ObservationKind.FACT and row.master is not None:
                line.learn(row)
            elif row.kind in (ObservationKind.REGISTRATION, ObservationKind.CLEANED):
                line.masters.clear()
            elif row.kind == ObservationKind.ALIVE and row.broker_id is not None:
                line.brokers.add(str(row.broker_id))
        return found

    def holds(self, key: _Key, granted: Observation, owner: str | None) -> bool:
        """True when the set lived on over a grant of an id that the broker at `owner` had."""
        if owner is None or owner == granted.address:
            return False
        lines = self._lines[key]
        told = _behind(lines[granted.connection].told, granted.order)
        before = str(granted.broker_id), owner
        return any(
            reign in told and reign[0] in line.brokers
            for line in lines.values()
            for reign in line.masters.get(before, ())
        )


def _behind(told: Sequence[tuple[int, _Reign]], order: int) -> set[_Reign]:
    return {reign for at, reign in told if at > order}
