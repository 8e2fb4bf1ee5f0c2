"""How the processes of a simulated cluster of partitions are set, and what a seed makes of that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from replispec.runtime.sim import Rng
from replispec.wire.kafka.options import KafkaFollowerOptions

GENERATIONS: Final = ("0.11.0-IV1", "1.0", "2.2", "2.6")
TO_THE_HIGH_WATERMARK: Final = "0.11.0-IV1"
"""The generation whose followers cut to the high watermark."""
SESSION_MS: Final = 2_000


@dataclass(frozen=True)
class PartitionsSettings:
    """One way to run a cluster. `unclean`: who may lack records may lead; `least`: min.insync.replicas."""

    brokers: int = 3
    generation: str = "1.0"
    unclean: bool = False
    least: int = 1
    loses_power: bool = True
    forgets: bool = False

    @property
    def cuts_by_epoch(self) -> bool:
        """Whether followers ask their leader where to cut."""
        return self.generation != TO_THE_HIGH_WATERMARK

    def follower(self) -> KafkaFollowerOptions:
        """How brokers and the learner follow."""
        return KafkaFollowerOptions(
            replica_fetch_backoff_ms=150, replica_fetch_wait_max_ms=200, replica_socket_timeout_ms=2_500
        )

    def broker(self) -> dict[str, Any]:
        """The parameters of brokers."""
        return {
            "min_insync_replicas": self.least,
            "replica_lag_time_max_ms": 1_200,
            "replica_high_watermark_checkpoint_interval_ms": 700,
            "log_segment_bytes": 3_000,
            "zookeeper_session_timeout_ms": SESSION_MS,
            "inter_broker_protocol_version": self.generation,
            "follower": self.follower(),
        }

    def controller(self) -> dict[str, Any]:
        """The parameters of candidates."""
        return {
            "controller_socket_timeout_ms": 2_500,
            "reassignment_interval_ms": 1_500,
            "unclean_leader_election_enable": self.unclean,
            "zookeeper_session_timeout_ms": SESSION_MS,
            "inter_broker_protocol_version": self.generation,
        }


PLAIN: Final = PartitionsSettings()


def drawn_settings(seed: int) -> PartitionsSettings:
    """What the seed makes of them."""
    rng = Rng(seed ^ 0x5E77)
    return PartitionsSettings(
        brokers=rng.one_of((3, 3, 4, 5)),
        generation=rng.one_of((*GENERATIONS[1:], *GENERATIONS)),
        unclean=rng.happens(150),
        least=rng.one_of((1, 1, 2)),
        loses_power=rng.happens(800),
        forgets=rng.happens(400),
    )
