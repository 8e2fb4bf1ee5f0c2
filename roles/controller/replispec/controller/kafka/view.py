"""What a controller of a cluster shows of itself: whether it is the one, and who has no leader."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Protocol

from replispec.controller.kafka.links import BrokerLinks
from replispec.controller.kafka.reign import Reign
from replispec.runtime.primitives.metrics import Sample
from replispec.runtime.seeing.process_view import ProcessView
from replispec.runtime.world import Numbers, ReadyCheck
from replispec.wire.kafka import metrics
from replispec.wire.kafka.machines.partition import State
from replispec.wire.kafka.options import KafkaControllerOptions

ROLE: Final = "controller"


class ControllerParts(Protocol):
    """The node, to be looked at."""

    reign: Reign | None
    epoch: int
    unclean_before: int

    @property
    def options(self) -> KafkaControllerOptions:
        """With what it was made."""
        ...

    @property
    def links(self) -> BrokerLinks:
        """Connections to brokers."""
        ...

    @property
    def is_connected(self) -> bool:
        """Whether the store serves its session."""
        ...


class ClusterControllerView(ProcessView):
    """Reads the node, and changes nothing; see `replispec.runtime.world.RoleView`."""

    def __init__(self, node: ControllerParts) -> None:
        super().__init__(ROLE, metrics)
        self._node = node

    def who(self) -> Mapping[str, object]:
        """See `RoleView`."""
        return {"broker": self._node.options.broker_id}

    def checks(self) -> Sequence[ReadyCheck]:
        """See `RoleView`. A candidate that waits is ready, too."""
        holds = self._node.is_connected
        return (ReadyCheck("store", holds, "the store serves a session" if holds else "no session"),)

    def own_samples(self, numbers: Numbers) -> Iterable[Sample]:  # noqa: ARG002
        """What a controller alone shows."""
        node, reign = self._node, self._node.reign
        partitions = [] if reign is None else list(reign.cluster.partitions())
        offline = sum(each.state is not State.ONLINE for each in partitions)
        yield metrics.CONTROLLER_ACTIVE.of(reign is not None and reign.is_active)
        yield metrics.CONTROLLER_EPOCH.of(node.epoch)
        yield metrics.CONTROLLER_BROKERS.of(0 if reign is None else len(reign.cluster.brokers))
        yield metrics.CONTROLLER_TOPICS.of(0 if reign is None else len(reign.cluster.topics))
        yield metrics.CONTROLLER_PARTITIONS.of(len(partitions))
        yield metrics.CONTROLLER_OFFLINE_PARTITIONS.of(offline)
        unclean = node.unclean_before + (0 if reign is None else reign.leaders.unclean)
        yield metrics.CONTROLLER_UNCLEAN_ELECTIONS_TOTAL.of(unclean)
        yield metrics.CONTROLLER_COMMANDS_TOTAL.of(node.links.answered)
