"""The words of an agreement in a report."""

from __future__ import annotations

from replispec.replay.report.family import family_of_rules
from replispec.wire.raft.invariants import INVARIANTS

FAMILY = family_of_rules(
    INVARIANTS,
    "Capture the port of every member.",
    "A capture that begins before an election, at every member, would tell.",
)
