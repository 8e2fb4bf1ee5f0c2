"""What a process of the role controller consists of, from its options."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from replispec.controller.kafka.node import ClusterControllerNode
from replispec.runtime.primitives.texts import decimal_of
from replispec.runtime.storage import Storage
from replispec.runtime.world import Member
from replispec.wire.kafka import parameters as p
from replispec.wire.kafka.options import KafkaControllerOptions

CONTROLLER: Final = "controller"


def members(options: KafkaControllerOptions, storage: Storage, seed: int) -> Sequence[Member]:  # noqa: ARG001
    """The node of a controller, which keeps nothing of its own. Raises ConfigurationError."""
    node = ClusterControllerNode(options, _servers(options))
    return (Member(CONTROLLER, node, view=node.view),)


def _servers(options: KafkaControllerOptions) -> Sequence[str]:
    servers = options.zookeeper_connect.split(",")
    for each in servers:
        host, _, port = each.rpartition(":")
        if not host or decimal_of(port) is None or "/" in each:
            raise p.ZOOKEEPER_CONNECT.refuse(options, "HOST:PORT,HOST:PORT without a folder")
    return servers
