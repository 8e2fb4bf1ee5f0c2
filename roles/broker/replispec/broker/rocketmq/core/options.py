"""What may be configured of a broker, by the names of RocketMQ's configuration.

Source: apache/rocketmq rocketmq-all-5.4.0, BrokerConfig, MessageStoreConfig.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from replispec.runtime.rocketmq.remoting.server import Limits
from replispec.runtime.rocketmq.replication import HaSettings
from replispec.wire.rocketmq.codes import Release

LAST_PRIORITY = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Options:
    """Parameters of one broker; times in milliseconds, sizes in bytes.

    `host` is what others are told to reach it at (brokerIP1), `bind` where it listens. `port`, `ha_port`:
    0 for any free one; the fast port is `fast_port`, none when it is None. `properties` are what
    administrators are shown, as text by RocketMQ's names.
    """

    cluster_name: str
    broker_name: str
    controllers: tuple[str, ...]
    name_servers: tuple[str, ...] = ()
    bind: str = "127.0.0.1"
    host: str = "127.0.0.1"
    port: int = 10911
    fast_port: int | None = 10909
    ha_port: int = 10912
    all_ack: bool = False
    in_sync_replicas: int = 1
    min_in_sync_replicas: int = 1
    auto_create_topics: bool = True
    default_queues: int = 8
    message_bytes_max: int = 4 * 1024 * 1024
    flush_timeout_ms: int = 5_000
    replica_timeout_ms: int = 3_000
    heartbeat_interval_ms: int = 1_000
    heartbeat_timeout_ms: int = 10_000
    election_priority: int = LAST_PRIORITY
    broker_metadata_ms: int = 5_000
    controller_metadata_ms: int = 10_000
    check_set_ms: int = 5_000
    announce_ms: int = 30_000
    offsets_interval_ms: int = 5_000
    log_folder: str = "commitlog"
    log_file_bytes: int = 1024 * 1024 * 1024
    properties: dict[str, str] = field(default_factory=dict)
    ha: HaSettings = field(default_factory=HaSettings)
    limits: Limits = field(default_factory=Limits)
    version: int = Release.V5_4_0

    @property
    def durable(self) -> bool:
        """Whether a message is on the disk before it is acknowledged, or sent to a replica."""
        return self.ha.durable
