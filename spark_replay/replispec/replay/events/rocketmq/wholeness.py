"""Whether all was seen that controllers were asked: what is missing may have removed brokers."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass

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
    """The connections of a capture, and those of them that lost bytes or hold what could not be read."""

    connections: frozenset[str]
    lost: frozenset[str]

    @classmethod
    def of(cls, rows: Iterable[Observation]) -> Met:
        """Of the rows of a capture."""
        every = [(row.connection, row.kind in _LOST) for row in rows]
        return cls(frozenset(each for each, _ in every), frozenset(each for each, lost in every if lost))

    def whole(self, hosts: Container[str], listener: str) -> bool:
        """True when connections between one of these hosts and this address are in the capture, and whole:
        without one it may have been taken where there is none."""
        between = [each for each in self.connections if _joins(ends_of(each), hosts, listener)]
        return bool(between) and self.lost.isdisjoint(between)


def host_of(end: str) -> str:
    """The host of ADDRESS:PORT."""
    return end.rpartition(":")[0]


def _joins(ends: Sequence[str], hosts: Container[str], listener: str) -> bool:
    return listener in ends and any(host_of(each) in hosts for each in ends if each != listener)
