"""How the controllers of a group agree on one log: the interface, a group of one, and a member of several.

Each folder holds an engine for several, and is named after the family whose messages its members speak.
"""

from replispec.controller.consensus.interface import (
    Consensus,
    Entry,
    LogDamaged,
    Message,
    Ready,
    Snapshot,
)
from replispec.controller.consensus.single_node import SingleNode, term_alone

__all__ = [
    "Consensus",
    "Entry",
    "LogDamaged",
    "Message",
    "Ready",
    "SingleNode",
    "Snapshot",
    "term_alone",
]
