"""What a process of the roles controller and name server consists of, from its configuration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from replispec.controller.nameserver.node import NameServerNode
from replispec.controller.nameserver.options import NameServerOptions
from replispec.controller.node import ControllerNode
from replispec.controller.options import Options
from replispec.runtime.configuration import Parameter, Settings
from replispec.runtime.configuration import parameters as p
from replispec.runtime.remoting import Limits
from replispec.runtime.storage import Storage
from replispec.runtime.world import Member

CONTROLLER: Final = "controller"
NAME_SERVER: Final = "nameserver"
LOG_NAME: Final = "controller.log.sqlite"
"""The controllers' log, in the folder of the controller."""
_FIXED: Final[Sequence[Parameter[Any]]] = (
    p.BIND_ADDRESS,
    p.LISTEN_PORT,
    p.STORE_PATH_ROOT_DIR,
    p.CONTROLLER_STORE_PATH,
    p.TAP_FILE,
    p.CONFIG_BLACK_LIST,
)
"""What nobody may change over the wire, beside what the configuration itself forbids."""


def members(settings: Settings, storage: Storage, seed: int) -> Sequence[Member]:  # noqa: ARG001
    """The nodes of a controller, or of a name server, with its controller if it is to have one.

    Nothing here depends on chance yet: a controller alone has nobody to vote against. Raises
    ConfigurationError and StorageFailed.
    """
    if settings.role == CONTROLLER:
        return (_controller(settings, storage),)
    name_server = Member(NAME_SERVER, NameServerNode(_name_server_options(settings)))
    if not settings[p.ENABLE_CONTROLLER_IN_NAMESRV]:
        return (name_server,)
    if not settings[p.CONTROLLER_DLEGER_PEERS]:
        allowed = "ID-HOST:PORT: a controller inside a name server listens on a port of its own"
        raise settings.refuse(p.CONTROLLER_DLEGER_PEERS, allowed)
    return name_server, _controller(settings, storage)


def _controller(settings: Settings, storage: Storage) -> Member:
    folder = settings[p.CONTROLLER_STORE_PATH] or settings[p.STORE_PATH_ROOT_DIR]
    options = _controller_options(settings)
    options.ends_process = settings.role == CONTROLLER
    return Member(CONTROLLER, ControllerNode(options, storage.journal(f"{folder}/{LOG_NAME}")))


def _controller_options(settings: Settings) -> Options:
    self_id, peers = settings[p.CONTROLLER_DLEGER_SELF_ID], settings[p.CONTROLLER_DLEGER_PEERS]
    if peers and self_id not in peers:
        raise settings.refuse(p.CONTROLLER_DLEGER_SELF_ID, f"one of {', '.join(peers)}")
    if len(peers) > 1:
        raise settings.refuse(p.CONTROLLER_DLEGER_PEERS, "one member: groups of several are not served yet")
    forbidden = settings[p.CONFIG_BLACK_LIST].split(";")
    return Options(
        listen_address=peers.get(self_id) or _listen_address(settings),
        group=settings[p.CONTROLLER_DLEGER_GROUP],
        self_id=self_id,
        enable_elect_unclean_master=settings[p.ENABLE_ELECT_UNCLEAN_MASTER],
        notify_broker_role_changed=settings[p.NOTIFY_BROKER_ROLE_CHANGED],
        scan_not_active_broker_ms=settings[p.SCAN_NOT_ACTIVE_BROKER_INTERVAL],
        scan_inactive_master_ms=settings[p.SCAN_INACTIVE_MASTER_INTERVAL],
        properties=settings.properties(),
        fixed=frozenset((*(each.strip() for each in forbidden), *(each.name for each in _FIXED))),
        limits=Limits.of(settings),
    )


def _name_server_options(settings: Settings) -> NameServerOptions:
    return NameServerOptions(
        listen_address=_listen_address(settings),
        scan_not_active_broker_ms=settings[p.SCAN_NOT_ACTIVE_BROKER_INTERVAL],
        properties=settings.properties(),
        limits=Limits.of(settings),
    )


def _listen_address(settings: Settings) -> str:
    host = settings[p.BIND_ADDRESS]
    return f"[{host}]:{settings[p.LISTEN_PORT]}" if ":" in host else f"{host}:{settings[p.LISTEN_PORT]}"
