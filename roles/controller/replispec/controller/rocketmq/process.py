"""What a process of the role controller consists of, from its configuration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from replispec.controller.rocketmq.node import ControllerNode
from replispec.controller.rocketmq.options import Options
from replispec.runtime.configuration import Parameter, Settings
from replispec.runtime.rocketmq import parameters as p
from replispec.runtime.rocketmq.places import listen_address
from replispec.runtime.rocketmq.remoting import Limits
from replispec.runtime.storage import Storage, Stores
from replispec.runtime.world import Member

CONTROLLER: Final = "controller"
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
    """The node of a controller; a group of one holds no elections and needs no randomness.

    Raises ConfigurationError and StorageFailed.
    """
    return (controller(settings, storage, ends_process=True),)


def controller(settings: Settings, storage: Storage, *, ends_process: bool) -> Member:
    """One controller; `ends_process`: a log that fails ends the process, otherwise the controller alone."""
    folder = settings[p.CONTROLLER_STORE_PATH] or settings[p.STORE_PATH_ROOT_DIR]
    options = _controller_options(settings)
    options.ends_process = ends_process
    journal = storage.journal(f"{folder}/{LOG_NAME}")
    return Member(CONTROLLER, ControllerNode(options, journal), Stores(journal=journal))


def _controller_options(settings: Settings) -> Options:
    self_id, peers = settings[p.CONTROLLER_DLEGER_SELF_ID], settings[p.CONTROLLER_DLEGER_PEERS]
    if peers and self_id not in peers:
        raise settings.refuse(p.CONTROLLER_DLEGER_SELF_ID, f"one of {', '.join(peers)}")
    if len(peers) > 1:
        raise settings.refuse(p.CONTROLLER_DLEGER_PEERS, "one member: groups of several are not served yet")
    forbidden = settings[p.CONFIG_BLACK_LIST].split(";")
    return Options(
        listen_address=peers.get(self_id) or listen_address(settings),
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
