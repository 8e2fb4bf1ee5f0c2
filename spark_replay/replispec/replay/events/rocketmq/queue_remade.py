"""Whether a static topic was deleted and made again where no deletion is in the capture.

Mappings tell it. A topic is never told under a newer epoch to have fewer segments, or others: items stay, and
go on to be told by who leads. A mapping of nothing but first segments that does not go on with what was told
before is therefore of a topic that was made again, or wrong, and nothing tells which.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import permutations

from replispec.replay.events.queue_observations import Mapped
from replispec.replay.events.rocketmq.mappings import LOGICAL, SaidBy
from replispec.replay.events.rocketmq.queue_segments import segments_in

_BY_BROKERS = (SaidBy.REGISTERED, SaidBy.ASKED)


@dataclass(slots=True)
class _Epoch:
    """What all who speak say under one epoch. `places`: of the items of each logical queue by generations;
    `leads`: places by logical queues, as brokers register them; `since`: where it is told first."""

    number: int
    since: int
    total: int = 0
    places: dict[int, dict[int, str]] = field(default_factory=lambda: defaultdict(dict))
    leads: set[tuple[int, str]] = field(default_factory=set)

    def take(self, row: Mapped) -> None:
        """Take one row of it."""
        self.total = max(self.total, row.total or 0)
        for each in segments_in(row):
            self.places[each.index][each.order] = each.at
        if row.said_by in _BY_BROKERS:
            self.leads.update((each["index"], f"{row.name}/{each['queue_id']}") for each in row.leads or ())

    @property
    def is_fresh(self) -> bool:
        """Whether nothing but first segments are told."""
        return bool(self.places) and all({*own} == {0} for own in self.places.values())

    def goes_on_from(self, before: _Epoch) -> bool:
        """Whether first segments are those of before, and more of them."""
        kept = all(
            {*own} == {0} and self.places.get(index, own) == own for index, own in before.places.items()
        )
        led = all(self.places.get(index, {0: at}) == {0: at} for index, at in before.leads)
        return kept and led and self.total > before.total

    def leads_what_was_left(self, before: _Epoch) -> bool:
        """Whether a broker leads by a queue that an older segment had: none serves a topic twice."""
        for index, at in self.leads:
            for other, own in before.places.items():
                newest = own[max(own)]
                if at in own.values() and (at != newest or other != index):
                    return True
        return False


def may_be_made_again(rows: Iterable[Mapped]) -> bool:
    """Whether what is told of a static topic may be of two, one after the other; `rows`: in the order of the
    capture."""
    every = _epochs(rows).values()
    return any(_are_two(one, two) for one, two in permutations(every, 2))


def _are_two(before: _Epoch, after: _Epoch) -> bool:
    """A clock may be slow, and a connection late: which of two was first is told by neither alone."""
    if after.number < before.number and after.since < before.since:
        return False
    if after.is_fresh:
        return bool(before.places or before.leads) and not after.goes_on_from(before)
    return not after.places and (0 < after.total < before.total or after.leads_what_was_left(before))


def _epochs(rows: Iterable[Mapped]) -> Mapping[int, _Epoch]:
    found: dict[int, _Epoch] = {}
    for row in _of_brokers(rows):
        number = row.mapping_epoch or 0
        found.setdefault(number, _Epoch(number, row.order)).take(row)
    return found


def _of_brokers(rows: Iterable[Mapped]) -> Iterator[Mapped]:
    """What name servers tell is what they were told, or wrong; brokers that were sent nothing of a topic have
    the epoch alone."""
    for row in rows:
        is_told = bool(row.segments) or (row.said_by in _BY_BROKERS and bool(row.leads))
        if row.form != LOGICAL and row.mapping_epoch is not None and is_told:
            yield row
