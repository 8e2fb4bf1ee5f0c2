"""What a master confirms, beside what the members of its SyncStateSet have reported to it.

A master tells every replica what it confirms, and on that replica's connection its reports stand before or
behind. What others reported on connections of their own is in no order with that: it can clear a master, not
accuse it. Nor is a master accused of leaving out a member that it may not know of yet: it was told of it on
a connection of its own, and what it sends elsewhere a moment later may have been made before.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Final

from replispec.replay.events.observation import Observation, ObservationKind
from replispec.runtime.primitives.unknown import UNKNOWN

SURELY_TOLD: Final = 3
"""So often a controller answers a master with a member in the set until the master surely counts it: it asked
for the set, asked who is in it as it does again and again, and would not have asked once more before it knew
the answer."""
_KNOWING: Final = (ObservationKind.ALTERATION, ObservationKind.FACT)


@dataclass(slots=True)
class _Set:
    """What is known of one group at a moment: master, its epoch, its SyncStateSet, and who reported what.

    A replica's reports count on its latest connection alone: what it told a master that it has left may come
    much later, and says nothing to the present one. `told`: how often the master was told of each member.
    """

    master: str | None = None
    epoch: int | None = None
    members: frozenset[str] | None = None
    replicas: dict[str, str] = field(default_factory=dict)
    latest: dict[str, str] = field(default_factory=dict)
    reported: dict[str, int] = field(default_factory=dict)
    told: Counter[str] = field(default_factory=Counter)


def confirms(rows: Sequence[Observation], *, all_ack: bool) -> Iterator[SimpleNamespace]:
    """The events of the stream `confirms`: transfer headers with the epoch of the latest known master."""
    sets: dict[str, _Set] = defaultdict(_Set)
    askers = _askers(rows)
    for row in rows:
        if row.group is None:
            continue
        now = sets[row.group]
        if row.kind == ObservationKind.FACT:
            _learn(now, row, askers)
        elif row.kind == ObservationKind.HANDSHAKE:
            replica = now.replicas[row.connection] = str(row.broker_id) if row.text is None else row.text
            now.latest[replica] = row.connection
            now.reported.pop(replica, None)
        elif row.kind == ObservationKind.REPORT and row.connection in now.replicas:
            replica = now.replicas[row.connection]
            if now.latest[replica] == row.connection:
                now.reported[replica] = row.max_offset or 0
        elif (
            row.kind in (ObservationKind.BATCH, ObservationKind.HEARTBEAT)
            and row.epoch == now.epoch
            and (row.offset or 0) >= 0
        ):
            yield SimpleNamespace(
                row=row,
                group=row.group,
                all_ack=all_ack,
                confirm_offset=row.confirm_offset,
                covered=_covered(now, row),
            )


def _askers(rows: Sequence[Observation]) -> Mapping[str, str]:
    """By connection with a controller: the broker that speaks on it, as far as it named itself."""
    return {
        row.connection: str(row.requester)
        for row in rows
        if row.kind in _KNOWING and row.requester is not None
    }


def _learn(now: _Set, row: Observation, askers: Mapping[str, str]) -> None:
    if row.master is not None and row.master_epoch is not None:
        if row.master_epoch != now.epoch:
            now.reported.clear()
            now.told.clear()
        now.master, now.epoch = row.master, row.master_epoch
    if row.members is not None:
        now.members = frozenset(row.members)
        now.told = Counter({each: now.told[each] for each in now.members})
        if askers.get(row.connection) == now.master:
            now.told.update(now.members)


def _covered(now: _Set, row: Observation) -> int | None:
    """The least that another member of the set reported; none without one. Unknown when a member's report was
    not seen, or is too small and came on another connection than the row, or when the master may not know of
    that member."""
    unseen: int | None = UNKNOWN
    if now.members is None or now.master is None:
        return unseen
    others = now.members - {now.master}
    replica = now.replicas.get(row.connection)
    confirmed = row.confirm_offset or 0
    if replica in others and replica in now.reported and now.latest[replica] == row.connection:
        own = now.reported[replica]
        if own < confirmed:
            return own if own == 0 or now.told[replica] >= SURELY_TOLD else unseen
    if not others <= now.reported.keys():
        return unseen
    least = min((now.reported[each] for each in others), default=None)
    return unseen if least is not None and least < confirmed else least
