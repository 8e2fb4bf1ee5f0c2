"""The observations of members of a group: what they say to each other."""

from __future__ import annotations

from replispec.replay.events.family import ObservedFamily
from replispec.replay.events.raft.members import CODES, observe_members

FAMILY = ObservedFamily((observe_members,), codes=CODES)
