"""What of queues is gone: the first offsets that brokers tell, which retention moves, and expired segments.

Nothing orders two connections, but a beginning never falls: what anybody says is gone may have been gone, and
what an answer says, later ones of its connection say, too.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Hashable, Iterator
from typing import Final, NamedTuple

from replispec.replay.events.queue_observations import Limit, Pulled
from replispec.replay.events.rocketmq.mappings import SaidBy
from replispec.replay.events.rocketmq.queue_seen import SeenTopic, Where
from replispec.replay.events.rocketmq.queue_segments import EXPIRED, Held, segments_in
from replispec.wire.rocketmq.codes import RequestCode, ResponseCode

_MOVED: Final = (ResponseCode.SUCCESS, ResponseCode.PULL_OFFSET_MOVED)
_OF_BROKERS: Final = (SaidBy.SET, SaidBy.TOLD, SaidBy.REGISTERED)


class _Told(NamedTuple):
    """A first offset that was told, in the answer at `order` to a request at `asked`."""

    order: int
    asked: int
    offset: int


def _asked(row: Pulled | Limit) -> int:
    return row.order if row.request_order is None else row.request_order


class Kept:
    """What is known to be gone of the queues of one topic. Offsets are those that the rows have, of physical
    queues their own."""

    def __init__(self, seen: SeenTopic) -> None:
        self._seen = seen
        self._gone: dict[Hashable, int] = {}
        before: dict[Hashable, list[_Told]] = defaultdict(list)
        for row, told in self._told():
            for key in self._keys(row):
                self._gone[key] = max(self._gone.get(key, 0), told)
                if isinstance(row, Limit) or row.code in _MOVED:
                    before[row.connection, row.direction, key].append(_Told(row.order, _asked(row), told))
        for row in seen.pulled:
            if row.redirected and (end := self._expired_end(row)) is not None:
                key = row.connection, row.direction, ("physical", row.address, row.queue_id)
                before[key].append(_Told(row.order, _asked(row), end))
        self._before = {key: sorted(own) for key, own in before.items()}
        self._floors = {key: _running(own) for key, own in self._before.items()}
        self._expired: dict[tuple[int, str, int], int] = {}
        for said in seen.mapping.rows:
            for each in segments_in(said) if said.said_by in _OF_BROKERS else ():
                if each.state == EXPIRED and each.segment is not None:
                    at = each.index, each.at, each.segment.physical_start
                    self._expired[at] = min(self._expired.get(at, said.order), said.order)

    def _told(self) -> Iterator[tuple[Pulled | Limit, int]]:
        for pull in self._seen.pulled:
            if pull.min_offset is not None and pull.min_offset >= 0:
                yield pull, pull.min_offset
        for limit in self._seen.limits:
            told = limit.queue_offset
            if limit.asked_code == RequestCode.GET_MIN_OFFSET and not limit.code and told is not None:
                yield limit, max(told, 0)

    def _keys(self, row: Pulled | Limit) -> Iterator[Hashable]:
        """Of which queue a row speaks: of a logical one, or of one segment of it where messages are read."""
        if not self._seen.is_logical(row):
            yield "physical", row.address, row.queue_id
        elif isinstance(row, Limit):
            yield "logical", row.queue_id
        elif row.offset_delta is not None and row.code == ResponseCode.SUCCESS:
            yield "segment", row.queue_id, row.offset_delta

    def _expired_end(self, row: Pulled) -> int | None:
        """The end of an expired segment that sends on a reader who is not at its end: its messages are gone.
        Who is where it begins may be at the end of the one before."""
        held = self._seen.held(row, row.asked)
        if held is None or row.asked is None or not self._seen.mapping.is_expired(held):
            return None
        own = held.segment
        is_inside = own.end is not None and row.asked < own.end
        return own.end if is_inside and row.asked >= own.physical_start + (own.physical_start > 0) else None

    def _of_pull(self, row: Pulled) -> tuple[Hashable, ...]:
        own = tuple(self._keys(row))
        return (*own, ("logical", row.queue_id)) if self._seen.is_logical(row) else own

    def gone_below(self, row: Pulled, where: Where, held: Held | None) -> int:
        """The logical offset below which messages of the segment of a pull may have been removed."""
        shift = 0 if self._seen.is_logical(row) else where.delta
        found = [self._gone[key] + shift for key in self._of_pull(row) if key in self._gone]
        if held is not None:
            for address, name in self._seen.brokers.items():
                key = "physical", address, held.segment.queue_id
                if name == held.segment.broker and key in self._gone:
                    found.append(self._gone[key] + held.segment.delta)
        return max(found, default=0)

    def floor(self, row: Pulled) -> int | None:
        """The greatest first offset that was told on the same connection before a pull was asked."""
        found: list[int] = []
        for key in self._of_pull(row):
            own = self._before.get((row.connection, row.direction, key), [])
            if at := bisect_left(own, (_asked(row),)):
                found.append(self._floors[row.connection, row.direction, key][at - 1])
        return max(found, default=None)

    def kept_from(self, row: Pulled) -> int | None:
        """The least first offset that was told on the same connection to who asked after this answer."""
        found = [
            each.offset
            for key in self._of_pull(row)
            for each in self._before.get((row.connection, row.direction, key), ())
            if each.asked > row.order
        ]
        return min(found, default=None)

    def is_expired(self, row: Pulled, held: Held | None) -> bool:
        """Whether a broker had said that the segment of a pull is expired before, by the order of the
        capture."""
        if held is None or not row.pulled or not held.has(row.pulled[0]["queue_offset"]):
            return False
        at = held.index, held.segment.place, held.segment.physical_start
        return self._expired.get(at, _asked(row)) < _asked(row)


def _running(own: list[_Told]) -> list[int]:
    found: list[int] = []
    for each in own:
        found.append(max(each.offset, found[-1]) if found else each.offset)
    return found
