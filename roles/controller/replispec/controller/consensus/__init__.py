"""How the controllers of a group agree on one log: the interface, and a group of one."""

from replispec.controller.consensus.interface import Consensus, Entry, LogDamaged, Ready
from replispec.controller.consensus.single_node import SingleNode

__all__ = ["Consensus", "Entry", "LogDamaged", "Ready", "SingleNode"]
