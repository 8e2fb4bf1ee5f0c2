"""Which controllers are one cluster's, where several clusters call their controllers by one name.

Controllers belong together when one of them calls the other one leader, or when a broker speaks with both, or
is called master by one and speaks with the other. A broker that tells them different clusters is two: it was
moved from one to the other, and begins anew. That peers are listed together joins nothing: such lists
hold names that two clusters may both use. Those that nothing joins are taken for one group all the
same, unless brokers of one name belong to both: then these are two broker sets.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from replispec.replay.events.observation import Observation, ObservationKind

_OF_BROKERS = (ObservationKind.BROKER, ObservationKind.ALIVE, ObservationKind.GRANTED)


class _Parts:
    """Things that belong together, by any of them."""

    def __init__(self) -> None:
        self._above: dict[str, str] = {}

    def of(self, thing: str) -> str:
        """What stands for all that belong together with it."""
        while (above := self._above.get(thing, thing)) != thing:
            self._above[thing] = self._above.get(above, above)
            thing = above
        return thing

    def join(self, one: str, other: str) -> None:
        self._above[self.of(one)] = self.of(other)


def by_cluster(controllers: Mapping[str, str], rows: Sequence[Observation]) -> dict[str, str]:
    """The controller group of each controller's address, with its cluster where a group is several ones'.

    `controllers`: by address the name that it is called by.
    """
    parts = _Parts()
    clusters = _clusters(rows)
    for row in rows:
        if row.kind == ObservationKind.LEADER and row.address and row.controller:
            parts.join(row.address, row.controller)
        elif row.controller and row.name and (broker := _broker(row)):
            said = {row.cluster} if row.kind in _OF_BROKERS and row.cluster else clusters[row.controller]
            told = clusters[row.name, broker]
            cluster = _only(said) or _only(told & said or told)
            if cluster or not told:
                parts.join(row.controller, f"{row.name} {broker} {cluster}")
    found = dict(controllers)
    for name in set(controllers.values()):
        own = [each for each, group in controllers.items() if group == name]
        if len({parts.of(each) for each in own}) > 1:
            found |= _told_apart(name, own, parts, rows)
    return found


def _clusters(rows: Iterable[Observation]) -> dict[str | tuple[str, str], set[str]]:
    """The clusters that were told to each controller, and by each broker: its name and address."""
    found: dict[str | tuple[str, str], set[str]] = defaultdict(set)
    for row in rows:
        if row.kind in _OF_BROKERS and row.cluster and row.controller and row.name and row.address:
            found[row.controller].add(row.cluster)
            found[row.name, row.address].add(row.cluster)
    return found


def _only(clusters: Collection[str]) -> str | None:
    """The cluster, if there is one alone."""
    return next(iter(clusters)) if len(clusters) == 1 else None


def _broker(row: Observation) -> str | None:
    """The main address of the broker that a row is about."""
    if row.kind in _OF_BROKERS:
        return row.address
    return row.master_address if row.kind == ObservationKind.FACT else None


def _told_apart(
    name: str, controllers: Iterable[str], parts: _Parts, rows: Iterable[Observation]
) -> dict[str, str]:
    """The parts of a controller group that share a broker's name, each called by its cluster, if no other has
    that name, or else by its first controller."""
    own: dict[str, list[str]] = defaultdict(list)
    for each in controllers:
        own[parts.of(each)].append(each)
    names, clusters = defaultdict[str, set[str]](set), defaultdict[str, set[str]](set)
    for row in rows:
        if row.controller and row.name and row.kind in _OF_BROKERS and row.address:
            part = parts.of(row.controller)
            names[row.name].add(part)
            if row.cluster:
                clusters[part].add(row.cluster)
    several = {part for each in names.values() if len(each & own.keys()) > 1 for part in each & own.keys()}
    found: dict[str, str] = {}
    for part in several:
        others = [each for other in several - {part} for each in clusters[other]]
        called = clusters[part].difference(others)
        label = called.pop() if len(clusters[part]) == len(called) == 1 else min(own[part])
        found |= dict.fromkeys(own[part], f"{name} ({label})")
    return found
