"""What a controller is told at its start, whoever reads the configuration."""

from __future__ import annotations

from dataclasses import dataclass, field

from replispec.runtime.rocketmq.remoting import Limits


@dataclass(slots=True)
class Options:
    """Where it listens, who its group is, how it elects. Times are milliseconds.

    `properties` are what administrators are shown and may change, as text by RocketMQ's names; of them the
    ones below with a name of their own take effect when they are changed. `fixed` may not be changed.
    `ends_process`: a log that fails ends the process; otherwise the controller alone.
    """

    listen_address: str
    group: str = "replispec"
    self_id: str = "n0"
    ends_process: bool = True
    enable_elect_unclean_master: bool = False
    notify_broker_role_changed: bool = True
    scan_not_active_broker_ms: int = 5_000
    scan_inactive_master_ms: int = 5_000
    properties: dict[str, str] = field(default_factory=dict)
    fixed: frozenset[str] = frozenset()
    limits: Limits = field(default_factory=Limits)
