"""What a process of the role controller consists of, from its options."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from replispec.controller.consensus import Group
from replispec.controller.rocketmq.node import ControllerNode
from replispec.runtime.primitives.rng import Rng
from replispec.runtime.rocketmq.rules.addresses import canonical_address
from replispec.runtime.storage import Storage, Stores
from replispec.runtime.world import Member
from replispec.wire.rocketmq import parameters as p
from replispec.wire.rocketmq.options import ControllerOptions

CONTROLLER: Final = "controller"
LOG_NAME: Final = "controller.log.sqlite"
"""The controllers' log, in the folder of the controller."""
SIZES: Final = (1, 3, 5)
"""Members of a group: of one more a majority is larger, and no more of them may be lost."""


def members(options: ControllerOptions, storage: Storage, seed: int) -> Sequence[Member]:
    """The node of a controller; a group of one holds no elections and needs no randomness.

    Raises ConfigurationError and StorageFailed.
    """
    return (controller(options, storage, seed, ends_process=True),)


def controller(options: ControllerOptions, storage: Storage, seed: int, *, ends_process: bool) -> Member:
    """One controller; `ends_process`: a log that fails ends the process, otherwise the controller alone.

    Raises ConfigurationError and StorageFailed.
    """
    group = _group(options)
    folder = options.controller_store_path or options.store_path_root_dir
    journal = storage.journal(f"{folder}/{LOG_NAME}")
    node = ControllerNode(options, journal, group=group, chance=Rng(seed).below, ends_process=ends_process)
    return Member(CONTROLLER, node, Stores(journal=journal))


def _group(options: ControllerOptions) -> Group | None:
    """The group of several that the options name; None for a controller that is alone."""
    members = dict(options.controller_d_leger_peers)
    own = options.controller_d_leger_self_id
    if members and own not in members:
        raise p.CONTROLLER_D_LEGER_SELF_ID.refuse(options, f"one of {', '.join(members)}")
    if len(members) not in (0, *SIZES):
        sizes = f"{', '.join(map(str, SIZES[:-1]))} or {SIZES[-1]}"
        raise p.CONTROLLER_D_LEGER_PEERS.refuse(options, f"a group of {sizes} members")
    if len(set(map(canonical_address, members.values()))) != len(members):
        raise p.CONTROLLER_D_LEGER_PEERS.refuse(options, "a HOST:PORT of its own for each member")
    if len(members) <= 1:
        return None
    group = Group(options.controller_d_leger_group, own, tuple(members))
    if not group.is_distinct:
        raise p.CONTROLLER_D_LEGER_PEERS.refuse(options, "members whose ids have different checksums")
    return group
