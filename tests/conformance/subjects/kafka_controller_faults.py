"""Controllers that do it wrong: each overrides one choice of the good one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tests.conformance.subjects.kafka_controller import NOBODY, GoodController, Led


class LeadsWithTheDead(GoodController):
    """A new partition is led by the first assigned broker, whether it lives or not."""

    def first(self, assigned: Sequence[int], live: Mapping[int, Any]) -> tuple[int, tuple[int, ...]] | None:
        return (assigned[0], tuple(assigned)) if super().first(assigned, live) else None


class CountsTheDead(GoodController):
    """The ISR of a new partition are all that are assigned."""

    def first(self, assigned: Sequence[int], live: Mapping[int, Any]) -> tuple[int, tuple[int, ...]] | None:
        found = super().first(assigned, live)
        return None if found is None else (found[0], tuple(assigned))


class ElectsAnybodyAlive(GoodController):
    """Who lives may lead, in the ISR or not."""

    def chosen(self, led: Led, isr: Sequence[int]) -> int:  # noqa: ARG002
        return next(each for each in led.assigned if each in self.live)


class ForgetsTheIsr(GoodController):
    """When nobody of the ISR lives it is empty."""

    def next(self, led: Led, live: Mapping[int, Any]) -> tuple[int, tuple[int, ...]]:
        leader, isr = super().next(led, live)
        return leader, () if leader == NOBODY else isr


class ElectsUncleanly(GoodController):
    """When nobody of the ISR lives another one leads."""

    def next(self, led: Led, live: Mapping[int, Any]) -> tuple[int, tuple[int, ...]]:
        there = tuple(each for each in led.assigned if each in live)
        found = super().next(led, live)
        return (there[0], there[:1]) if found[0] == NOBODY and there else found


class KeepsTheEpoch(GoodController):
    """A new leader leads in the old epoch."""

    def next_epoch(self, epoch: int) -> int:
        return epoch


class TakesTheOffice(GoodController):
    """It stands although another one is the controller, and is it whatever the store says."""

    def is_mine(self, owner: int | None) -> bool:  # noqa: ARG002
        return True


class KeepsItsEpoch(GoodController):
    """A new controller has the epoch of the old one."""

    def raised(self, epoch: int) -> int:
        return max(epoch, 1)


class DeletesAtOnce(GoodController):
    """The nodes of a topic go before its replicas."""

    def is_deleted(self, waiting: set[int]) -> bool:  # noqa: ARG002
        return True


class WaitsForNoDeadBroker(GoodController):
    """Who is down keeps its replica."""

    def waited_for(self, assigned: set[int], live: Iterable[int]) -> set[int]:
        return assigned.intersection(live)


class MovesAtOnce(GoodController):
    """A partition leaves its old brokers before the new ones are in sync."""

    def has_moved(self, target: Sequence[int], isr: Sequence[int]) -> bool:  # noqa: ARG002
        return True


class NeverMoves(GoodController):
    """A partition stays on its old brokers, too."""

    def has_moved(self, target: Sequence[int], isr: Sequence[int]) -> bool:  # noqa: ARG002
        return False


class ReadsNoNotices(GoodController):
    """It hears of no ISR that a leader changed."""

    def reads_notices(self) -> bool:
        return False


class CommandsLeadersAlone(GoodController):
    """A follower is not told whom to follow."""

    def commanded(self, led: Led) -> Iterable[int]:
        return (led.leader,)


class CommandsEverybody(GoodController):
    """Each broker is told of each partition."""

    def commanded(self, led: Led) -> Iterable[int]:  # noqa: ARG002
        return self.live


CAUGHT_CONTROLLERS: Mapping[type[GoodController], str] = {
    LeadsWithTheDead: "topics/KV3-TOPIC-1/3",
    CountsTheDead: "topics/KV3-TOPIC-1/2",
    ElectsAnybodyAlive: "failover/KV3-ELECT-1/3",
    ForgetsTheIsr: "failover/KV3-ELECT-2/1",
    ElectsUncleanly: "failover/KV3-ELECT-2/2",
    KeepsTheEpoch: "failover/KV3-EPOCH-1/1",
    TakesTheOffice: "office/KV3-CONTROLLER-3/1",
    KeepsItsEpoch: "office/KAFKA-STORE-2/2",
    DeletesAtOnce: "deletion/KV3-TOPIC-3/2",
    WaitsForNoDeadBroker: "deletion/KV3-TOPIC-3/3",
    MovesAtOnce: "move/KV3-MOVE-2/1",
    NeverMoves: "move/KV3-MOVE-3/2",
    ReadsNoNotices: "failover/KAFKA-STORE-3/1",
    CommandsLeadersAlone: "topics/KV3-TOPIC-1/8",
    CommandsEverybody: "topics/KV3-TOPIC-1/9",
}
"""Each with the case that names its fault."""
