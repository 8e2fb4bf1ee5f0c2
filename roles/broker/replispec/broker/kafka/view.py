"""What a broker of partitions shows of itself: what it leads, what it copies, and who asks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Protocol

from replispec.broker.kafka.connections import Askers
from replispec.broker.kafka.core.replica import LocalReplica
from replispec.broker.kafka.registering import BrokerRegistration
from replispec.broker.kafka.replicas import LocalReplicas
from replispec.runtime.primitives.metrics import Sample
from replispec.runtime.seeing.process_view import ProcessView
from replispec.runtime.world import Numbers, ReadyCheck
from replispec.wire.kafka import metrics

ROLE: Final = "broker"


class PartitionsBrokerParts(Protocol):
    """The node, to be looked at."""

    @property
    def replicas(self) -> LocalReplicas:
        """What it has."""
        ...

    @property
    def registration(self) -> BrokerRegistration:
        """Whether others can know of it."""
        ...

    @property
    def askers(self) -> Askers:
        """Who asks it."""
        ...

    @property
    def isr_changes(self) -> int:
        """How many changes of an ISR the store has taken."""
        ...

    def is_copying(self, replica: LocalReplica) -> bool:
        """Whether it copies this one at the moment."""
        ...


class PartitionsBrokerView(ProcessView):
    """Reads the node, and changes nothing; see `replispec.runtime.world.RoleView`."""

    def __init__(self, node: PartitionsBrokerParts) -> None:
        super().__init__(ROLE, metrics)
        self._node = node

    def who(self) -> Mapping[str, object]:
        """See `RoleView`."""
        return {"broker": self._node.replicas.broker_id}

    def checks(self) -> Sequence[ReadyCheck]:
        """See `RoleView`."""
        holds = self._node.registration.is_registered
        return (ReadyCheck("registered", holds, "in the store" if holds else "not in the store"),)

    def own_samples(self, numbers: Numbers) -> Iterable[Sample]:  # noqa: ARG002
        """What a broker alone shows."""
        node = self._node
        led = list(node.replicas.led())
        lacking = sum(len(each.isr) < len(each.assigned) for each in led)
        every = node.replicas.by_key.values()
        yield metrics.BROKER_REGISTERED.of(node.registration.is_registered)
        yield metrics.BROKER_REPLICAS.of(sum(each.log is not None for each in every))
        yield metrics.BROKER_LEADS.of(len(led))
        yield metrics.BROKER_UNDER_REPLICATED.of(lacking)
        yield metrics.BROKER_FOLLOWS.of(sum(map(node.is_copying, every)))
        yield metrics.BROKER_ISR_CHANGES_TOTAL.of(node.isr_changes)
        yield metrics.BROKER_REQUESTS_TOTAL.of(node.askers.served)
        yield metrics.BROKER_CLIENTS_DROPPED_TOTAL.of(node.askers.dropped)
        yield metrics.BROKER_REQUEST_BYTES.of(node.askers.held_bytes)
