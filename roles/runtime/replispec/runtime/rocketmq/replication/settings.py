"""What may be configured of replication, with the defaults of Apache RocketMQ.

Source: apache/rocketmq rocketmq-all-5.4.0, MessageStoreConfig. The intervals' defaults are those of the
machines' timers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from replispec.runtime.configuration import Settings
from replispec.runtime.rocketmq import parameters as p
from replispec.wire.rocketmq.machines import ha_master, ha_replica
from replispec.wire.rocketmq.streams import HA_MASTER

BATCH_BYTES_MAX: Final = HA_MASTER.form("HaTransferHeader").maximum


def _default_ms(event: type) -> int:
    info = {**ha_master.EVENTS, **ha_replica.EVENTS}[event]
    assert info.default_ms is not None
    return info.default_ms


@dataclass(frozen=True, slots=True)
class HaSettings:
    """Parameters of both sides, by their names in RocketMQ's configuration.

    `heartbeat_ms`: haSendHeartbeatInterval; `housekeeping_ms`: haHousekeepingInterval; `reconnect_ms`:
    haReconnectInterval; `batch_bytes`: haTransferBatchSize; `not_caught_up_ms`: haMaxTimeSlaveNotCatchup;
    `sync_from_last_file`: syncFromLastFile; `durable`: flushDiskType is SYNC_FLUSH. Ours alone:
    `window_bytes` leave for one replica in one write; `dial_ms`: how long a connection may take to open.
    """

    heartbeat_ms: int = _default_ms(ha_master.HeartbeatDue)
    housekeeping_ms: int = _default_ms(ha_master.Silence)
    reconnect_ms: int = _default_ms(ha_replica.DialDue)
    batch_bytes: int = 32 * 1024
    not_caught_up_ms: int = 15_000
    sync_from_last_file: bool = False
    durable: bool = True
    window_bytes: int = 1024 * 1024
    dial_ms: int = 3_000

    @classmethod
    def of(cls, settings: Settings) -> HaSettings:
        """What was configured."""
        return cls(
            heartbeat_ms=settings[p.HA_SEND_HEARTBEAT_INTERVAL],
            housekeeping_ms=settings[p.HA_HOUSEKEEPING_INTERVAL],
            reconnect_ms=settings[p.HA_RECONNECT_INTERVAL],
            batch_bytes=settings[p.HA_TRANSFER_BATCH_SIZE],
            not_caught_up_ms=settings[p.HA_MAX_TIME_SLAVE_NOT_CATCHUP],
            sync_from_last_file=settings[p.SYNC_FROM_LAST_FILE],
            durable=settings[p.FLUSH_DISK_TYPE] == "SYNC_FLUSH",
        )

    def __post_init__(self) -> None:
        assert 1 <= self.batch_bytes <= BATCH_BYTES_MAX, f"haTransferBatchSize {self.batch_bytes}"
