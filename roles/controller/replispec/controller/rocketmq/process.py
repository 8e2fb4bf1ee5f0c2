"""What a process of the role controller consists of, from its options."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from replispec.controller.consensus.raft import ControllerGroup, is_id
from replispec.controller.consensus.rocketmq.formats import is_of_a_group
from replispec.controller.rocketmq.node import ControllerNode
from replispec.runtime.primitives.rng import Rng
from replispec.runtime.rocketmq.access import security_of
from replispec.runtime.rocketmq.rules.addresses import canonical_address
from replispec.runtime.storage import JournalReader, Storage, StorageFailed, Stores
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
    folder = options.controller_store_path or options.store_path_root_dir
    security = security_of(options, storage)
    journal = storage.journal(f"{folder}/{LOG_NAME}")
    group = _group(options, journal)
    node = ControllerNode(
        options,
        journal,
        group=group,
        chance=Rng(seed).below,
        ends_process=ends_process,
        snapshot_records=snapshot_records,
        member_options=member_options,
        security=security,
    )
    return Member(CONTROLLER, node, Stores(journal=journal), node.view, watched=security.watched)


def _group(options: ControllerOptions, journal: JournalReader) -> ControllerGroup | None:
    """The group that the options name, or the store does; None for a controller that is alone."""
    members = dict(options.controller_d_leger_peers)
    own = options.controller_d_leger_self_id
    if members and own not in members:
        raise p.CONTROLLER_D_LEGER_SELF_ID.refuse(options, f"one of {', '.join(members)}")
    if len(set(map(canonical_address, members.values()))) != len(members):
        raise p.CONTROLLER_D_LEGER_PEERS.refuse(options, "a HOST:PORT of its own for each member")
    is_kept = bool(members) and _is_kept(journal)
    joins = bool(options.controller_join)
    if joins and not is_kept and list(members) != [own]:
        raise p.CONTROLLER_D_LEGER_PEERS.refuse(options, "with controllerJoin, this controller alone")
    # Of an even number a majority is larger, and no more of them may be lost.
    is_founded = not is_kept and bool(members) and not joins
    if is_founded and (len(members) > MEMBERS_MAX or len(members) % 2 == 0):
        allowed = f"an odd number of members, {MEMBERS_MAX} at most"
        raise p.CONTROLLER_D_LEGER_PEERS.refuse(options, allowed)
    if len(members) <= 1 and not joins and not is_kept:
        return None
    group = ControllerGroup(options.controller_d_leger_group, own, members, joins)
    if not group.is_distinct or not all(map(is_id, members)):
        raise p.CONTROLLER_D_LEGER_PEERS.refuse(
            options, "members whose ids have different checksums, and none of / , ; : in them"
        )
    return group


def _is_kept(journal: JournalReader) -> bool:
    """Whether the store is that of a member of a group; of one that cannot be read the start says why."""
    try:
        return is_of_a_group(journal.state())
    except StorageFailed:
        return False
