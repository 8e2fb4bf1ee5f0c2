"""What brokers said of a topic, merged: the same in a name server (LQ) and in a client (ST)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from replispec.runtime.rocketmq.queues.model import LogicalQueue, Segment
from replispec.runtime.rocketmq.queues.profiles import Profile
from replispec.wire.rocketmq.constants import UNDECIDED


@dataclass(frozen=True, slots=True)
class Holding:
    """What one broker holds of a topic, by index; of a static topic, what it leads, as of an epoch."""

    broker_name: str
    segments: Mapping[int, tuple[Segment, ...]] = field(default_factory=dict)
    epoch: int = UNDECIDED
    total: int = 0


def with_holding(known: Mapping[str, Holding], said: Holding) -> Mapping[str, Holding]:
    """After a broker said what it holds. An older epoch changes nothing; nobody speaks for others."""
    before = known.get(said.broker_name)
    return known if before is not None and before.epoch > said.epoch else {**known, said.broker_name: said}


def merged(known: Mapping[str, Holding], profile: Profile) -> Mapping[int, LogicalQueue]:
    """The logical queues that all brokers together hold, by index, ascending.

    Of a static topic, the greatest epoch tells who leads an index, and the greater name where two are alike.
    """
    found: dict[int, list[Segment]] = {}
    for holding in sorted(known.values(), key=lambda each: (each.epoch, each.broker_name)):
        for index, segments in holding.segments.items():
            if profile.leader_keeps_all:
                found[index] = list(segments)
            else:
                found.setdefault(index, []).extend(segments)
    return {index: LogicalQueue.of(index, found[index]) for index in sorted(found)}
