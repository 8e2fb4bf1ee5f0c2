"""What a process of the role controller consists of, from its options."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from replispec.controller.rocketmq.node import ControllerNode
from replispec.runtime.storage import Storage, Stores
from replispec.runtime.world import Member
from replispec.wire.rocketmq import parameters as p
from replispec.wire.rocketmq.options import ControllerOptions

CONTROLLER: Final = "controller"
LOG_NAME: Final = "controller.log.sqlite"
"""The controllers' log, in the folder of the controller."""


def members(options: ControllerOptions, storage: Storage, seed: int) -> Sequence[Member]:  # noqa: ARG001
    """The node of a controller; a group of one holds no elections and needs no randomness.

    Raises ConfigurationError and StorageFailed.
    """
    return (controller(options, storage, ends_process=True),)


def controller(options: ControllerOptions, storage: Storage, *, ends_process: bool) -> Member:
    """One controller; `ends_process`: a log that fails ends the process, otherwise the controller alone.

    Raises ConfigurationError and StorageFailed.
    """
    members = dict(options.controller_d_leger_peers)
    if members and options.controller_d_leger_self_id not in members:
        raise p.CONTROLLER_D_LEGER_SELF_ID.refuse(options, f"one of {', '.join(members)}")
    if len(members) > 1:
        allowed = "one member: groups of several are not served yet"
        raise p.CONTROLLER_D_LEGER_PEERS.refuse(options, allowed)
    folder = options.controller_store_path or options.store_path_root_dir
    journal = storage.journal(f"{folder}/{LOG_NAME}")
    node = ControllerNode(options, journal, ends_process=ends_process)
    return Member(CONTROLLER, node, Stores(journal=journal))
