"""All replicas of this broker, and who is told when something happens to one."""

from __future__ import annotations

from collections.abc import Iterator

from replispec.broker.kafka.core.deciding import AskedPartition
from replispec.broker.kafka.core.places import ToldPlaces
from replispec.broker.kafka.core.replica import LocalReplica, ReplicaKey
from replispec.runtime.kafka.stores.forms import StoreForm
from replispec.wire.kafka.constants import NO_OFFSET


class LocalReplicas:
    """The replicas by topic and partition. `touched` are those to which something has happened."""

    def __init__(self, form: StoreForm, broker_id: int, places: ToldPlaces) -> None:
        self._form = form
        self.broker_id = broker_id
        self._places = places
        self.by_key: dict[ReplicaKey, LocalReplica] = {}
        self.touched: set[ReplicaKey] = set()

    def get(self, key: ReplicaKey) -> LocalReplica:
        """The replica of this name, one of which nothing is known yet if there is none."""
        if key not in self.by_key:
            self.by_key[key] = LocalReplica(self._form, key, self.broker_id)
        return self.by_key[key]

    def epoch_of(self, key: ReplicaKey) -> int:
        """The epoch of the leader that was commanded last; NO_OFFSET for no command."""
        found = self.by_key.get(key)
        return NO_OFFSET if found is None else found.known.leader_epoch

    def led(self) -> Iterator[LocalReplica]:
        """Those that this broker leads."""
        return (each for each in self.by_key.values() if each.leads)

    def look(self, key: ReplicaKey, asked_epoch: int | None) -> tuple[AskedPartition, LocalReplica | None]:
        """Look for the partition of a request; the replica is there if it may be served."""
        asked, found = AskedPartition(), self.by_key.get(key)
        is_found = asked.look(
            leads=found is not None and found.leads,
            leader_epoch=None if found is None else found.known.leader_epoch,
            told_of=self._places.knows(*key),
            asked_epoch=asked_epoch,
        )
        return asked, found if is_found else None

    def commit(self) -> None:
        """More is on the disk: raise high watermarks."""
        for each in self.led():
            self.touched.add(each.key)
            each.commit()
