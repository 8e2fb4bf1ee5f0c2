"""How the records of a metastore are agreed on: the interface, and the engine of one that is alone."""

from replispec.metastore.consensus.alone import Alone
from replispec.metastore.consensus.interface import Consensus, Entry, Ready

__all__ = ["Alone", "Consensus", "Entry", "Ready"]
