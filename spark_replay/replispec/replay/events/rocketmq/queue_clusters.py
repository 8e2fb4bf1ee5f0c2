"""Which brokers and name servers of a capture are of one cluster, and which one speaks of a topic.

Brokers that register with one name server are of one cluster to whoever asks it, and so are those that one
mapping names.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from replispec.replay.events.observation import Acknowledged, Broker, ends_of
from replispec.replay.events.queue_observations import Limit, Mapped, Position, Pulled
from replispec.replay.events.rocketmq.queue_segments import segments_in

Row = TypeVar("Row", bound=Mapped | Pulled | Position | Limit | Acknowledged)


class Clusters:
    """By the registrations with name servers."""

    def __init__(self, brokers: Iterable[Broker]) -> None:
        self._of: dict[str, int] = {}
        self._names: dict[int, set[str]] = defaultdict(set)
        self._labels: dict[int, set[str]] = defaultdict(set)
        self._servers: dict[int, set[str]] = defaultdict(set)
        for row in brokers:
            if row.controller is not None or row.name is None or row.address is None:
                continue
            server = ends_of(row.connection)[1 - row.direction]
            at = self._joined({row.address, server})
            self._names[at].add(row.name)
            self._labels[at].add(row.cluster or "")
            self._servers[at].add(server)

    def _joined(self, addresses: Iterable[str]) -> int:
        """The number of the one cluster that these are of from now on."""
        known = sorted({self._of[each] for each in addresses if each in self._of})
        at = known[0] if known else len(self._of)
        self._of.update(dict.fromkeys(addresses, at))
        for other in known[1:]:
            for told in (self._names, self._labels, self._servers):
                told[at] |= told.pop(other)
            self._of.update({address: at for address, own in self._of.items() if own == other})
        return at

    def parts(self, rows: Sequence[Row]) -> tuple[Mapping[str, Sequence[Row]], bool]:
        """What each cluster tells of one topic, by how it is called: without a name where it is the only
        one. Also whether that is sure; where it is not, all is told of one."""
        ones = self._ones(rows)
        found: dict[int | None, list[Row]] = defaultdict(list)
        for row in rows:
            at = self._of.get(row.address or "")
            found[None if at is None else ones.get(at, at)].append(row)
        several = len(found.keys() - {None}) > 1
        if not several or None in found:
            return {"": rows}, not several
        return {self._label(at, found.keys()): own for at, own in found.items() if at is not None}, True

    def _ones(self, rows: Iterable[Row]) -> dict[int, int]:
        """Clusters that are one, as a mapping of one names brokers that only another one has."""
        ones: dict[int, int] = {}
        for row in rows:
            at = self._of.get(row.address or "") if isinstance(row, Mapped) else None
            if at is None or not isinstance(row, Mapped):
                continue
            at = ones.get(at, at)
            named = {row.name, *(each.at.rpartition("/")[0] for each in segments_in(row))} - {None}
            missing = named - self._names[at]
            for other, own in self._names.items():
                if missing & own and ones.get(other, other) != at:
                    was = ones.get(other, other)
                    ones.update({each: at for each in self._names if ones.get(each, each) == was})
        return ones

    def _label(self, at: int, others: Iterable[int | None]) -> str:
        own = ", ".join(sorted(self._labels[at]))
        shared = sum(each is not None and self._labels[each] == self._labels[at] for each in others) > 1
        return min(self._servers[at]) if shared or not own else own
