"""What a process of the role name server consists of, from its configuration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from replispec.controller.rocketmq.process import controller
from replispec.nameserver.rocketmq.node import NameServerNode
from replispec.nameserver.rocketmq.options import NameServerOptions
from replispec.runtime.configuration import Settings
from replispec.runtime.rocketmq import parameters as p
from replispec.runtime.rocketmq.places import listen_address
from replispec.runtime.rocketmq.remoting import Limits
from replispec.runtime.storage import Storage
from replispec.runtime.world import Member

NAME_SERVER: Final = "nameserver"


def members(settings: Settings, storage: Storage, seed: int) -> Sequence[Member]:  # noqa: ARG001
    """The nodes of a name server, with a controller beside it if it is to have one.

    Raises ConfigurationError and StorageFailed.
    """
    name_server = Member(NAME_SERVER, NameServerNode(_options(settings)))
    if not settings[p.ENABLE_CONTROLLER_IN_NAMESRV]:
        return (name_server,)
    if not settings[p.CONTROLLER_DLEGER_PEERS]:
        allowed = "ID-HOST:PORT: a controller inside a name server listens on a port of its own"
        raise settings.refuse(p.CONTROLLER_DLEGER_PEERS, allowed)
    return name_server, controller(settings, storage, ends_process=False)


def _options(settings: Settings) -> NameServerOptions:
    return NameServerOptions(
        listen_address=listen_address(settings),
        scan_not_active_broker_ms=settings[p.SCAN_NOT_ACTIVE_BROKER_INTERVAL],
        properties=settings.properties(),
        limits=Limits.of(settings),
    )
