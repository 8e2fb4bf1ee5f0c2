"""Replication of the commit log: the master's side and the replica's, without a socket."""

from replispec.runtime.replication.feed import Feed, SyncStateSetKeeper
from replispec.runtime.replication.master import HaMaster
from replispec.runtime.replication.replica import Follower, HaReplica
from replispec.runtime.replication.settings import HaSettings

__all__ = ["Feed", "Follower", "HaMaster", "HaReplica", "HaSettings", "SyncStateSetKeeper"]
