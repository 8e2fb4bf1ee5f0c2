"""How the controllers of a group agree on one log: the interface, and a folder for each engine.

A folder is named after the family whose records it knows (alone) or whose messages its members speak.
"""

from replispec.controller.consensus.interface import (
    Consensus,
    Entry,
    LogDamaged,
    Message,
    Ready,
    Snapshot,
)

__all__ = [
    "Consensus",
    "Entry",
    "LogDamaged",
    "Message",
    "Ready",
    "Snapshot",
]
