"""All broker sets of a controller, by name: what the log, applied record by record, has made of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from replispec.controller.rocketmq.core.broker_set import Acts, BrokerSet
from replispec.controller.rocketmq.core.heartbeats import Heartbeats
from replispec.controller.rocketmq.core.records import event_of
from replispec.event.v1.event_pb2 import ControllerEvent

SETS_MAX: Final = 10_000
"""Broker sets that one controller takes."""
BROKERS_MAX: Final = 1_000
"""Identities of one broker set, those that are dead included."""


class BrokerSets:
    """The applied state, and who is alive of it."""

    def __init__(self) -> None:
        self._sets: dict[str, BrokerSet] = {}
        self.heartbeats = Heartbeats(self._has_identity)

    def __iter__(self) -> Iterator[BrokerSet]:
        return iter(tuple(self._sets.values()))

    def find(self, name: str) -> BrokerSet | None:
        """The broker set of this name, if any record was ever about it."""
        return self._sets.get(name)

    def has_room(self, broker_set: BrokerSet) -> bool:
        """Whether a broker without identity may get one in this set; nobody makes the state grow for ever."""
        known = len(broker_set.variables.broker_ids)
        return known < BROKERS_MAX and (known > 0 or len(self._sets) < SETS_MAX)

    def named(self, name: str) -> BrokerSet:
        """The broker set of this name; one that nobody knows is not remembered by being asked for."""
        return self._sets.get(name) or BrokerSet(name, self.heartbeats)

    def apply(self, record: ControllerEvent) -> tuple[BrokerSet, Acts] | None:
        """Decide about one record of the log; None when it is about no broker set."""
        broker_set = self.named(record.broker_name)
        event = event_of(record, broker_set)
        if event is None:
            return None
        if not broker_set.variables.broker_ids:
            broker_set.cluster = record.cluster_name
        acts = broker_set.receive(event, record.cluster_name)
        if broker_set.variables.broker_ids:
            self._sets[broker_set.name] = broker_set
        return broker_set, acts

    def _has_identity(self, name: str, broker_id: int) -> bool:
        broker_set = self._sets.get(name)
        return broker_set is not None and broker_id in broker_set.variables.broker_ids
