"""What a name server is told at its start, whoever reads the configuration."""

from __future__ import annotations

from dataclasses import dataclass, field

from replispec.nameserver.rocketmq import routes
from replispec.runtime.rocketmq.remoting import Limits


@dataclass(slots=True)
class NameServerOptions:
    """Where it listens, and how often it looks for brokers that were not heard, in milliseconds.

    `properties` are what administrators are shown, as text by RocketMQ's names.
    """

    listen_address: str
    scan_not_active_broker_ms: int = 5_000
    properties: dict[str, str] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    routes: routes.Limits = field(default_factory=routes.Limits)
