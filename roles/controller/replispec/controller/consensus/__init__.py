"""How the controllers of a group agree on one log: the interface, and a group of one."""

from replispec.controller.consensus.alone import Alone
from replispec.controller.consensus.interface import Consensus, Entry, LogDamaged, Ready

__all__ = ["Alone", "Consensus", "Entry", "LogDamaged", "Ready"]
