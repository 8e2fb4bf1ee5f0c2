"""How the records of a metastore are agreed on: the interface, and the engine of one that is alone."""

from replispec.metastore.consensus.alone import Alone
from replispec.metastore.consensus.interface import LogConsensus, LogEntry, LogReady

__all__ = ["Alone", "LogConsensus", "LogEntry", "LogReady"]
