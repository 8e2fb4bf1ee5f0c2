"""What is measured of queues that are mapped to others, by part."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from benchmarks.family import QueuePart
from benchmarks.rocketmq import (
    queues_borders,
    queues_migrations,
    queues_remapping,
    queues_routes,
    queues_traffic,
)

PARTS: Final[Mapping[str, QueuePart]] = {
    "traffic": queues_traffic.PART,
    "migrations": queues_migrations.PART,
    "remapping": queues_remapping.PART,
    "routes": queues_routes.PART,
    "borders": queues_borders.PART,
}
