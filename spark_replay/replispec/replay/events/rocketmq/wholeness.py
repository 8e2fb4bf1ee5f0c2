"""Whether all was seen that controllers were asked: what is missing may have removed brokers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations

from replispec.replay.events.observation import Observation, ObservationKind, ends_of
from replispec.replay.events.rocketmq.groups import BrokerGroups

_LOST = (ObservationKind.UNSEEN, ObservationKind.UNDECODABLE)


def controllers_were_seen(rows: Sequence[Observation], groups: BrokerGroups) -> bool:
    """False when bytes of a controller's connection were lost; of any, where no controller is known."""
    holed = {row.connection for row in rows if row.kind == ObservationKind.UNSEEN}
    return not any(
        not groups.controllers or not groups.controllers.keys().isdisjoint(ends_of(each)) for each in holed
    )


@dataclass(frozen=True, slots=True)
class Met:
    """The connections of a capture, each with the host of the other end by either end, and those of them that
    lost bytes or hold what could not be read."""

    at: Mapping[str, Sequence[tuple[str, str]]]
    lost: frozenset[str]

    @classmethod
    def of(cls, rows: Iterable[Observation]) -> Met:
        """Of the rows of a capture."""
        every = [(row.connection, row.kind in _LOST) for row in rows]
        at: dict[str, list[tuple[str, str]]] = defaultdict(list)
        for connection in {each for each, _ in every}:
            for own, other in permutations(ends_of(connection), 2):
                at[own].append((host_of(other), connection))
        return cls(at, frozenset(each for each, lost in every if lost))

    def whole(self, hosts: Container[str], listener: str) -> bool:
        """True when connections between one of these hosts and this address are in the capture, and whole:
        without one it may have been taken where there is none."""
        between = [connection for host, connection in self.at.get(listener, ()) if host in hosts]
        return bool(between) and self.lost.isdisjoint(between)


def host_of(end: str) -> str:
    """The host of ADDRESS:PORT."""
    return end.rpartition(":")[0]
