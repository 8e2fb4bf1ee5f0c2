"""Whether what name servers tell of logical queues was registered by a broker.

A registration may have been before the capture, or come from a host that was not captured. So one is missed
only where the name server knew less on the same connection before, and all brokers that the route names under
these addresses registered with it in the capture; of a static topic each on one connection an older epoch and
a newer one, as whoever registers has one connection at a time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping
from typing import Any

from replispec.replay.events.queue_observations import Mapped
from replispec.replay.events.rocketmq.mappings import LOGICAL, SaidBy
from replispec.replay.events.rocketmq.queue_seen import SeenTopic
from replispec.replay.events.rocketmq.queue_segments import Said, segments_in
from replispec.replay.events.stream_event import StreamEvent
from replispec.runtime.primitives.unknown import UNKNOWN
from replispec.runtime.rocketmq import rules

_REGISTERED = (SaidBy.ASKED, SaidBy.REGISTERED)
Item = tuple[Hashable, ...]
"""What a route tells of one broker: its mapping's epoch, or one of its segments."""


def route_events(seen: SeenTopic) -> Iterator[StreamEvent]:
    """Every mapping, or segment, that a name server told."""
    registered = {item for row in seen.told if row.said_by in _REGISTERED for item, _, _ in _items(row)}
    answers, passed = _Answers(seen), _Passed(seen)
    for row in seen.told:
        if row.said_by != SaidBy.ROUTE:
            continue
        for item, broker, text in _items(row):
            known: Any = item in registered or (
                False if _is_missed(seen, row, broker, item, answers, passed) else UNKNOWN
            )
            yield seen.event(
                "routes",
                "told",
                row,
                what=text,
                registered=known,
                language=row.language or "",
                in_doubt=seen.in_doubt,
            )


def _items(row: Mapped) -> Iterator[tuple[Item, str, str]]:
    """What a row tells, of which broker, and how it is called."""
    if row.form == LOGICAL:
        for each in segments_in(row):
            broker = each.at.rpartition("/")[0]
            yield _segment(each), broker, f"the segment {each.name} of logical queue {each.index}"
    elif row.name is not None and row.mapping_epoch is not None:
        item = row.name, row.mapping_epoch
        yield item, row.name, f"the mapping of {row.name} of epoch {row.mapping_epoch}"


def _segment(said: Said) -> Item:
    start = None if said.segment is None else said.segment.start
    return said.index, said.name, start


class _Answers:
    """What name servers told on each connection, answer by answer."""

    def __init__(self, seen: SeenTopic) -> None:
        self._told: dict[tuple[str, int], dict[int, list[Mapped]]] = defaultdict(lambda: defaultdict(list))
        for row in seen.told:
            if row.said_by in (SaidBy.ROUTE, SaidBy.UNTOLD):
                self._told[row.connection, row.direction][row.order].append(row)

    def knew_less(self, row: Mapped, item: Item, broker: str) -> bool:
        """Whether an answer before this was asked shows that its name server did not know an item."""
        asked = row.order if row.request_order is None else row.request_order
        told: Mapping[int, list[Mapped]] = self._told[row.connection, row.direction]
        return any(_lacks(own, row, item, broker) for order, own in told.items() if order < asked)


def _lacks(answer: list[Mapped], row: Mapped, item: Item, broker: str) -> bool:
    if any(each.said_by == SaidBy.UNTOLD for each in answer):
        return True
    own = [each for each in answer if each.form == row.form]
    if row.form != LOGICAL:
        epochs = [each.mapping_epoch or 0 for each in own if each.name == broker]
        return bool(own) and all(epoch < (row.mapping_epoch or 0) for epoch in epochs)
    items = {_segment(each) for told in own for each in segments_in(told)}
    # A client may ask for some logical queues alone.
    return item not in items and item[0] in {each[0] for each in items}


class _Passed:
    """Which epochs brokers went past between two registrations on one connection. A registration before or
    after that connection may have been on one that was not captured."""

    def __init__(self, seen: SeenTopic) -> None:
        own: dict[tuple[str | None, str], set[int]] = defaultdict(set)
        for row in seen.told:
            if row.said_by in _REGISTERED and row.mapping_epoch is not None:
                own[row.address, row.connection].add(row.mapping_epoch)
        self._of: dict[str | None, list[tuple[int, int]]] = defaultdict(list)
        for (address, _), epochs in own.items():
            self._of[address].append((min(epochs), max(epochs)))

    def by(self, address: str, epoch: int) -> bool:
        """Whether the broker at an address did."""
        return any(least < epoch < greatest for least, greatest in self._of[address])


def _is_missed(
    seen: SeenTopic, row: Mapped, broker: str, item: Item, answers: _Answers, passed: _Passed
) -> bool:
    if seen.unseen or seen.unread:
        return False
    hosts = (each["address"] for each in row.hosts or () if each["broker"] == broker)
    at = {rules.canonical_address(each or "") for each in hosts}
    there = {address for address, server in seen.registrants if server == row.address}
    if row.form != LOGICAL and not all(passed.by(each, row.mapping_epoch or 0) for each in at):
        return False
    return bool(at) and at <= there and answers.knew_less(row, item, broker)
