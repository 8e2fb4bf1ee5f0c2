"""The first member of a new group of controllers, from the store of one that was alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from replispec.cli.foundings import FoundedGroup, FoundingRefused
from replispec.controller.consensus import LogDamaged
from replispec.controller.consensus.raft import ControllerGroup, is_id
from replispec.controller.rocketmq.founding import FirstState, founded, lived_alone
from replispec.controller.rocketmq.process import LOG_NAME
from replispec.runtime.configuration import parse
from replispec.runtime.primitives.errors import LocalProtocolError
from replispec.runtime.storage import Stores
from replispec.runtime.storage.disk_shell import DiskStorage
from replispec.wire.rocketmq import parameters as p
from replispec.wire.rocketmq.options import ControllerOptions
from replispec.wire.rocketmq.parameters import ROLES


def found(text: str, overrides: Mapping[str, str], *, dry_run: bool) -> FoundedGroup:
    """Make the store that a properties file names that of the first member of its group.

    Raises ConfigurationError, FoundingRefused, and StorageFailed.
    """
    options: ControllerOptions = parse(text, ROLES["controller"], overrides=overrides).options
    group = _group(options)
    folder = options.controller_store_path or options.store_path_root_dir
    journal = DiskStorage().journal(f"{folder}/{LOG_NAME}")
    try:
        first = lived_alone(journal)
        operation = founded(group, first)
        if not dry_run:
            Stores(journal=journal).carry_out([operation])
    except (LogDamaged, LocalProtocolError) as error:
        raise FoundingRefused(f"{folder}: {error}") from error
    finally:
        journal.close()
    return FoundedGroup(group.founded, folder, tuple(_lines(first)))


def _group(options: ControllerOptions) -> ControllerGroup:
    members, own = dict(options.controller_d_leger_peers), options.controller_d_leger_self_id
    if list(members) != [own] or not is_id(own):
        raise p.CONTROLLER_D_LEGER_PEERS.refuse(options, f"{own} alone, ID-HOST:PORT: the others join it")
    if options.controller_join:
        raise p.CONTROLLER_JOIN.refuse(options, "nothing: the first member of a group joins nobody")
    return ControllerGroup(options.controller_d_leger_group, own, members)


def _lines(first: FirstState) -> Iterator[str]:
    """What is on record."""
    yield f"{len(first.sets)} broker sets, as of record {first.index} in term {first.term}"
    for each in first.sets:
        master = f"master {each.master}" if each.HasField("master") else "no master"
        in_sync = ", ".join(map(str, each.sync_state_set)) or "nobody"
        yield (
            f"  {each.broker_name} of {each.cluster_name}: {master} of masterEpoch {each.master_epoch}, "
            f"in sync {in_sync} (epoch {each.sync_state_set_epoch})"
        )
        for broker in each.broker_ids:
            yield f"    {broker}  {each.addresses.get(broker, 'nowhere')}"
