"""The words of partitions in a report."""

from __future__ import annotations

from replispec.replay.report.family import family_of_rules
from replispec.wire.kafka.invariants import INVARIANTS

FAMILY = family_of_rules(
    INVARIANTS,
    "Capture the ports of every broker and of the store.",
    "A capture from before the brokers start, of every broker and the store, would tell.",
)
