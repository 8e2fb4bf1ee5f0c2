"""How far leaders said that a partition is committed, and how far members of the ISR had asked by then."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from typing import Any, Final

from replispec.replay.events.kafka.world import Partition, Record, Reign
from replispec.replay.events.partition_observations import Fetched
from replispec.runtime.primitives.unknown import UNKNOWN
from replispec.wire.kafka.codes import ErrorCode

Told = tuple[Any, Any]


class _Rising:
    """Numbers that were said at moments, and the largest one said before another moment."""

    def __init__(self) -> None:
        self._orders: list[int] = []
        self._values: list[int] = []

    def add(self, order: int, value: int) -> None:
        """One more; what is added later was not said earlier."""
        self._orders.append(order if not self._orders else max(order, self._orders[-1]))
        self._values.append(value if not self._values else max(value, self._values[-1]))

    def before(self, order: int) -> int | None:
        """The largest one that was said before."""
        at = bisect_left(self._orders, order)
        return self._values[at - 1] if at else None


class Marks:
    """Those of one partition."""

    def __init__(self, own: Partition) -> None:
        self._own: Final = own
        self._said: dict[tuple[str, Reign | None], _Rising] = defaultdict(_Rising)
        self._asked: dict[tuple[str, Reign | None, int], _Rising] = defaultdict(_Rising)
        self._ever = _Rising()
        self._first: dict[tuple[str, Reign | None], int] = {}
        for row in sorted(own.fetched, key=_asked_at):
            if row.member is not None and row.member >= 0 and row.asked is not None:
                reign = own.reign(row.address, _asked_at(row))
                self._asked[row.address or "", reign, row.member].add(_asked_at(row), row.asked)
        for row in own.fetched:
            if (mark := _mark(row)) is not None:
                key = row.address or "", own.reign(row.address, row.order)
                self._said[key].add(row.order, mark)
                self._first.setdefault(key, mark)
                self._ever.add(row.order, mark)

    def told(self, row: Fetched) -> Told | None:
        """What was known before an answer was asked for, and the least that members of the ISR have; None
        where the broker took another command between question and answer."""
        reign = self._own.reign(row.address, row.order)
        if reign != self._own.reign(row.address, _asked_at(row)):
            return None
        key = row.address or "", reign
        known: Any = self._said[key].before(_asked_at(row))
        if reign is None and known is not None:
            known = UNKNOWN
        return known, self._least(row, reign)

    def _least(self, row: Fetched, reign: Reign | None) -> Any:
        key = row.address or "", reign
        before = None if reign is None else self._ever.before(reign.order)
        earlier = max(self._first[key], before or 0)
        if (row.high_watermark or 0) <= earlier:
            return earlier
        if reign is None or self._own.world.hidden:
            return UNKNOWN
        members = self._members(reign, row.order)
        if members is None:
            return UNKNOWN
        asked = [self._asked[*key, member].before(row.order) for member in members]
        if None in asked:
            return UNKNOWN
        return max(
            earlier, min((each for each in asked if each is not None), default=row.high_watermark or 0)
        )

    def _members(self, reign: Reign, order: int) -> frozenset[int] | None:
        """Who was in the ISR, besides the leader, whichever record was in force; None without any."""
        held = [
            each.isr for each in self._own.records if each.version >= reign.version and each.since < order
        ]
        return frozenset.intersection(*held) - {reign.leader} if held else None

    def caught_up(self, record: Record, member: int) -> Told:
        """What a follower had asked for when the leader wrote that it is in sync, and what was committed."""
        if self._own.world.hidden:
            return UNKNOWN, UNKNOWN
        addresses = self._own.world.addresses.get(record.leader if record.leader is not None else -1, ())
        for address in addresses:
            reign = self._own.reign(address, record.since)
            own = [
                row
                for row in self._own.fetched
                if row.member == member
                and row.address == address
                and row.asked is not None
                and _asked_at(row) < record.since
                and self._own.reign(address, _asked_at(row)) == reign
            ]
            if reign is not None and own:
                last = max(own, key=_asked_at)
                known = self._said[address, reign].before(_asked_at(last))
                return max(row.asked or 0 for row in own), known or 0
        return UNKNOWN, UNKNOWN


def _asked_at(row: Fetched) -> int:
    return row.order if row.request_order is None else row.request_order


def _mark(row: Fetched) -> int | None:
    is_told = row.code == ErrorCode.NONE and row.high_watermark is not None and row.high_watermark >= 0
    return row.high_watermark if is_told else None
