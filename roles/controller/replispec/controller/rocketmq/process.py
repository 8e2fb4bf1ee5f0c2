"""What a process of the role controller consists of, from its options."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from replispec.controller.consensus.raft import ControllerGroup
from replispec.controller.rocketmq.node import ControllerNode
from replispec.runtime.primitives.rng import Rng
from replispec.runtime.rocketmq.rules.addresses import canonical_address
from replispec.runtime.storage import Storage, Stores
from replispec.runtime.world import Member
from replispec.wire.raft.options import MemberOptions
from replispec.wire.rocketmq import parameters as p
from replispec.wire.rocketmq.constants import MEMBERS_MAX, SNAPSHOT_RECORDS
from replispec.wire.rocketmq.options import ControllerOptions

CONTROLLER: Final = "controller"
LOG_NAME: Final = "controller.log.sqlite"
"""The controllers' log, in the folder of the controller."""


def members(options: ControllerOptions, storage: Storage, seed: int) -> Sequence[Member]:
    """The node of a controller; a group of one holds no elections and needs no randomness.

    Raises ConfigurationError and StorageFailed.
    """
    return (controller(options, storage, seed, ends_process=True),)


def controller(
    options: ControllerOptions,
    storage: Storage,
    seed: int,
    *,
    ends_process: bool,
    snapshot_records: int = SNAPSHOT_RECORDS,
    member_options: MemberOptions | None = None,
) -> Member:
    """One controller; `ends_process`: a log that fails ends the process, otherwise the controller alone.
    The others as `ControllerNode` says.

    Raises ConfigurationError and StorageFailed.
    """
    group = _group(options)
    folder = options.controller_store_path or options.store_path_root_dir
    journal = storage.journal(f"{folder}/{LOG_NAME}")
    node = ControllerNode(
        options,
        journal,
        group=group,
        chance=Rng(seed).below,
        ends_process=ends_process,
        snapshot_records=snapshot_records,
        member_options=member_options,
    )
    return Member(CONTROLLER, node, Stores(journal=journal))


def _group(options: ControllerOptions) -> ControllerGroup | None:
    """The group of several that the options name; None for a controller that is alone."""
    members = dict(options.controller_d_leger_peers)
    own = options.controller_d_leger_self_id
    if members and own not in members:
        raise p.CONTROLLER_D_LEGER_SELF_ID.refuse(options, f"one of {', '.join(members)}")
    # Of an even number a majority is larger, and no more of them may be lost.
    if members and (len(members) > MEMBERS_MAX or len(members) % 2 == 0):
        allowed = f"an odd number of members, {MEMBERS_MAX} at most"
        raise p.CONTROLLER_D_LEGER_PEERS.refuse(options, allowed)
    if len(set(map(canonical_address, members.values()))) != len(members):
        raise p.CONTROLLER_D_LEGER_PEERS.refuse(options, "a HOST:PORT of its own for each member")
    if len(members) <= 1:
        return None
    group = ControllerGroup(options.controller_d_leger_group, own, tuple(members))
    if not group.is_distinct:
        raise p.CONTROLLER_D_LEGER_PEERS.refuse(options, "members whose ids have different checksums")
    return group
