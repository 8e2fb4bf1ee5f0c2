"""What brokers say of themselves, and what is kept of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from replispec.nameserver.rocketmq.mappings import Said
from replispec.wire.rocketmq import constants
from replispec.wire.rocketmq.broker import DataVersion, QueueData, TopicConfig


@dataclass(frozen=True, slots=True)
class Limits:
    """What brokers may make grow: registrations that count, topics, once for each broker set, and segments of
    logical queues. When one of them is reached the host that has most of it gives way to others."""

    brokers: int = 10_000
    topics: int = 500_000
    segments: int = constants.ROUTED_SEGMENTS_MAX


@dataclass(frozen=True, slots=True)
class RouteRegistration:
    """What one broker says about itself."""

    cluster: str
    broker_name: str
    broker_id: int
    address: str
    ha_address: str
    version: DataVersion
    topics: Mapping[str, TopicConfig]
    timeout_ms: int | None = None
    acting_master: bool | None = None
    zone: str | None = None
    mappings: Said = field(default_factory=Said)


@dataclass(slots=True)
class Live:
    """A broker that is heard, and where from."""

    registration: RouteRegistration
    connection: int
    host: str
    received_ms: int
    is_whole: bool = False
    """All is known of it up to the version that it registered."""

    @property
    def until_ms(self) -> int:
        """When it counts no more unless it is heard again."""
        timeout_ms = self.registration.timeout_ms
        return self.received_ms + (constants.ROUTE_TIMEOUT_MS if timeout_ms is None else timeout_ms)


@dataclass(slots=True)
class RegisteredSet:
    """One broker set: addresses by id, queues by topic."""

    cluster: str
    addresses: dict[int, str] = field(default_factory=dict)
    queues: dict[str, QueueData] = field(default_factory=dict)
    acting_master: bool = False
    zone: str | None = None

    def told(self) -> tuple[object, ...]:
        """What of it is told with every topic."""
        return self.cluster, self.zone, self.acting_master, sorted(self.addresses.items())
