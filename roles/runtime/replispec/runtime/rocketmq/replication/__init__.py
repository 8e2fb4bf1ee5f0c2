"""Replication of the commit log: the master's side and the replica's, without a socket."""

from replispec.runtime.rocketmq.replication.digest_check import DigestCheck
from replispec.runtime.rocketmq.replication.feed import Feed, SyncStateSetKeeper
from replispec.runtime.rocketmq.replication.log_digests import DigestAnswers
from replispec.runtime.rocketmq.replication.master import HaMaster
from replispec.runtime.rocketmq.replication.replica import Follower, HaReplica
from replispec.runtime.rocketmq.replication.settings import is_durable, is_plain

__all__ = [
    "DigestAnswers",
    "DigestCheck",
    "Feed",
    "Follower",
    "HaMaster",
    "HaReplica",
    "SyncStateSetKeeper",
    "is_durable",
    "is_plain",
]
