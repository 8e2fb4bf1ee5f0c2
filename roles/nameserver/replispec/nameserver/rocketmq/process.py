"""What a process of the role name server consists of, from its options."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from replispec.controller.rocketmq.process import controller
from replispec.nameserver.rocketmq.node import NameServerNode
from replispec.runtime.rocketmq.access import security_of
from replispec.runtime.storage import Storage
from replispec.runtime.world import Member
from replispec.wire.rocketmq import parameters as p
from replispec.wire.rocketmq.options import NameServerOptions

NAME_SERVER: Final = "nameserver"


def members(options: NameServerOptions, storage: Storage, seed: int) -> Sequence[Member]:
    """The nodes of a name server, with a controller beside it if it is to have one.

    Raises ConfigurationError and StorageFailed.
    """
    security = security_of(options, storage)
    node = NameServerNode(options, security=security)
    name_server = Member(NAME_SERVER, node, view=node.view, watched=security.watched)
    if not options.enable_controller_in_namesrv:
        return (name_server,)
    if not options.controller_d_leger_peers:
        allowed = "ID-HOST:PORT: a controller inside a name server listens on a port of its own"
        raise p.CONTROLLER_D_LEGER_PEERS.refuse(options, allowed)
    return name_server, controller(p.CONTROLLER.like(options), storage, seed, ends_process=False)
