"""How the controllers of a group agree on one log: the interface, a group of one, and a member of several."""

from replispec.controller.consensus.group import Chance, Group, GroupNode
from replispec.controller.consensus.interface import Consensus, Entry, LogDamaged, Message, Ready
from replispec.controller.consensus.single_node import SingleNode

__all__ = [
    "Chance",
    "Consensus",
    "Entry",
    "Group",
    "GroupNode",
    "LogDamaged",
    "Message",
    "Ready",
    "SingleNode",
]
