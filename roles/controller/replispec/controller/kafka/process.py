"""What a process of the role controller consists of, from its options."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from replispec.controller.kafka.node import ClusterControllerNode
from replispec.runtime.primitives.hosts import is_place
from replispec.runtime.storage import Storage
from replispec.runtime.world import Member
from replispec.wire.kafka import parameters as p
from replispec.wire.kafka.options import KafkaControllerOptions

CONTROLLER: Final = "controller"


def members(options: KafkaControllerOptions, storage: Storage, seed: int) -> Sequence[Member]:  # noqa: ARG001
    """The node of a controller, which keeps nothing of its own. Raises ConfigurationError."""
    return (candidate(options),)


def candidate(options: KafkaControllerOptions) -> Member:
    """One that stands for the controller, in whatever process. Raises ConfigurationError."""
    servers = options.zookeeper_connect.split(",")
    if not all(map(is_place, servers)):
        raise p.ZOOKEEPER_CONNECT.refuse(options, "HOST:PORT,HOST:PORT without a folder")
    node = ClusterControllerNode(options, servers)
    return Member(CONTROLLER, node, view=node.view)
