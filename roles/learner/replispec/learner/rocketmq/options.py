"""What may be configured of a learner.

Source: apache/rocketmq rocketmq-all-5.4.0, BrokerConfig, MessageStoreConfig.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from replispec.runtime.rocketmq.remoting import Limits
from replispec.runtime.rocketmq.replication import HaSettings
from replispec.wire.rocketmq.codes import Release


@dataclass(frozen=True, slots=True)
class Options:
    """Parameters of one learner; times in milliseconds, sizes in bytes. `port`: 0 for any free one."""

    cluster_name: str
    broker_name: str
    controllers: tuple[str, ...]
    name_servers: tuple[str, ...]
    bind: str = "127.0.0.1"
    host: str = "127.0.0.1"
    port: int = 10921
    broker_metadata_ms: int = 5_000
    controller_metadata_ms: int = 10_000
    announce_ms: int = 30_000
    log_folder: str = "commitlog"
    log_file_bytes: int = 1024 * 1024 * 1024
    ha: HaSettings = field(default_factory=HaSettings)
    limits: Limits = field(default_factory=Limits)
    version: int = Release.V5_4_0
