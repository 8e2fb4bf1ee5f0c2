"""What a process of the role broker consists of, from its options."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from replispec.broker.kafka.node import PartitionsBrokerNode
from replispec.controller.kafka.process import candidate
from replispec.runtime.primitives.hosts import is_place
from replispec.runtime.storage import Storage, Stores
from replispec.runtime.world import Member
from replispec.wire.kafka import parameters as p
from replispec.wire.kafka.constants import PLAIN_PROTOCOL
from replispec.wire.kafka.options import KafkaBrokerOptions

BROKER: Final = "broker"


def members(options: KafkaBrokerOptions, storage: Storage, seed: int) -> Sequence[Member]:
    """The node of a broker, with a candidate for the controller beside it if it is to have one.

    Raises ConfigurationError and StorageFailed.
    """
    servers = options.zookeeper_connect.split(",")
    if not all(is_place(each) for each in servers):
        raise p.ZOOKEEPER_CONNECT.refuse(options, "HOST:PORT,HOST:PORT without a folder")
    listen = _place_in(options.listeners)
    if listen is None:
        raise p.LISTENERS.refuse(options, f"{PLAIN_PROTOCOL}://HOST:PORT, one of them")
    told = _place_in(options.advertised_listeners)
    if told is None and options.advertised_listeners:
        raise p.ADVERTISED_LISTENERS.refuse(options, f"{PLAIN_PROTOCOL}://HOST:PORT, one of them")
    if "," in options.log_dirs:
        raise p.LOG_DIRS.refuse(options, "one folder")
    files = storage.files(options.log_dirs)
    node = PartitionsBrokerNode(options, servers, listen, told, files, seed)
    broker = Member(BROKER, node, Stores(files), node.view)
    if not options.controller_candidate:
        return (broker,)
    # It has a session of its own: what one of the two is told is never the other's.
    return broker, candidate(p.CONTROLLER.like(options))


def _place_in(listener: str) -> str | None:
    """HOST:PORT of a listener without TLS; None where it is another one, or none."""
    name, _, place = listener.partition("://")
    return place if name == PLAIN_PROTOCOL and is_place(place) else None
