"""A controller of Kafka's replication as a node: what the store and brokers say in, changes and commands out.

It listens nowhere: brokers are dialled where they registered. Source: Kafka replication, detailed design V3;
apache/kafka 2.8.2, KafkaController.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from replispec.controller.kafka.links import BrokerLinks
from replispec.controller.kafka.office import ControllerOffice
from replispec.controller.kafka.profiles import profile_of
from replispec.controller.kafka.reign import Reign
from replispec.controller.kafka.store import FencedStore
from replispec.controller.kafka.view import ClusterControllerView
from replispec.runtime.primitives.errors import LocalProtocolError
from replispec.runtime.world import (
    Closed,
    Connected,
    Effect,
    Event,
    Outbox,
    Received,
    Started,
    Stopping,
    Ticked,
)
from replispec.runtime.zookeeper.client import MetastoreClient, SessionStanding
from replispec.wire.kafka.options import KafkaControllerOptions


class ClusterControllerNode:
    """One candidate for the controller of a cluster, at these servers of the store, HOST:PORT each."""

    listeners: Mapping[str, str] = {}

    def __init__(self, options: KafkaControllerOptions, servers: Sequence[str]) -> None:
        self._options = options
        self._outbox = Outbox()
        self._now_ms = 0
        self._client: Final = MetastoreClient(
            self._outbox, servers, options.zookeeper_session_timeout_ms, stands=self._stands
        )
        self._profile: Final = profile_of(options)
        self._office: Final = ControllerOffice(
            self._outbox, self._client, self, self._profile.store, options.broker_id, lambda: self._now_ms
        )
        self.links: Final = BrokerLinks(
            self._outbox,
            self._profile.frames,
            str(options.broker_id),
            options.controller_socket_timeout_ms,
            options.controller_retry_pause_ms,
        )
        self.reign: Reign | None = None
        self.epoch = 0
        self.unclean_before = 0
        self._begins_again = False
        self.view = ClusterControllerView(self)

    @property
    def options(self) -> KafkaControllerOptions:
        """With what it was made."""
        return self._options

    @property
    def is_connected(self) -> bool:
        """Whether the store serves its session."""
        return self._client.session.is_connected

    def receive(self, event: Event) -> Sequence[Effect]:
        """Take one event and return its effects, in order."""
        self._now_ms = event.now_ms
        match event:
            case Received():
                _ = self._client.received(event) or self.links.received(event)
            case Connected():
                _ = self._client.connected(event) or self.links.connected(event)
            case Closed():
                _ = self._client.closed(event) or self.links.closed(event)
            case Ticked():
                self._client.ticked(event.now_ms)
                self.links.ticked(event.now_ms)
            case Started():
                self._client.begin(event.now_ms)
            case Stopping():
                self._client.leave()
                return self._outbox.take()
            case _:
                pass
        if self._begins_again:
            self._begins_again = False
            self._client.begin(event.now_ms)
        if self.reign is not None:
            self.reign.settle(event.now_ms)
        return self._outbox.take()

    def deadline_ms(self) -> int | None:
        """When time matters."""
        reign = None if self.reign is None else self.reign.deadline_ms()
        times = (self._client.deadline_ms(), self.links.deadline_ms(), reign)
        return min((each for each in times if each is not None), default=None)

    # What the office wants

    def read_everything(self, epoch: int, epoch_version: int) -> None:
        """See `OfficeHolder`."""
        self.epoch = epoch
        store = FencedStore(self._client, self._profile.store.controller_epoch, epoch, epoch_version)
        self.reign = Reign(
            self._outbox, self._options, store, self.links, self._profile, self._office.everything_read
        )
        self.reign.begin()

    def go_on(self, effects: Sequence[str]) -> None:
        """See `OfficeHolder`."""
        assert self.reign is not None, "who has read everything is in office"
        for effect in effects:
            match effect:
                case "tell_everything":
                    self.reign.tell_everything()
                case "change_leaders" | "lead_new_partitions":
                    # Partitions without a record are decided with the others: both go by who lives.
                    self.reign.change_leaders()
                case "move_replicas" | "change_partitions":
                    # Partitions are added by their topic's node, which was read.
                    self.reign.move_replicas()
                case _:
                    raise LocalProtocolError(f"nobody does {effect}")

    def resign(self) -> None:
        """See `OfficeHolder`."""
        if self.reign is not None:
            self.unclean_before += self.reign.leaders.unclean
            self.reign.end()
            self.reign = None

    def _stands(self, standing: SessionStanding) -> None:
        self._office.stands(standing)
        if standing is SessionStanding.LOST:
            self._begins_again = True
