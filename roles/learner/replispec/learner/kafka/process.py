"""What a process of the role learner consists of, from its options."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from replispec.learner.kafka.node import LogReaderNode
from replispec.runtime.primitives.hosts import is_place
from replispec.runtime.storage import Storage, Stores
from replispec.runtime.world import Member
from replispec.wire.kafka import parameters as p
from replispec.wire.kafka.options import KafkaLearnerOptions

LEARNER: Final = "learner"


def members(options: KafkaLearnerOptions, storage: Storage, seed: int) -> Sequence[Member]:  # noqa: ARG001
    """The node of a learner; it needs no randomness. Raises ConfigurationError and StorageFailed."""
    servers = options.bootstrap_servers.split(",")
    if not all(map(is_place, servers)):
        raise p.BOOTSTRAP_SERVERS.refuse(options, "HOST:PORT,HOST:PORT")
    topics = options.topics.split(",")
    if not all(topics):
        raise p.TOPICS.refuse(options, "TOPIC,TOPIC")
    files = storage.files(options.export_folder)
    node = LogReaderNode(options, servers, topics, files)
    return (Member(LEARNER, node, Stores(files), node.view),)
