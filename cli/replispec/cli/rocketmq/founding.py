"""The first member of a new group of controllers, from the store of one that was alone, from what controllers
of whatever make tell, or from the folder of one of Apache RocketMQ's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from replispec.cli.foundings import FoundedGroup, FoundingRefused, FoundingSource
from replispec.cli.memberships import MembersRefused
from replispec.cli.rocketmq.folders import read_folder
from replispec.cli.rocketmq.members import ask_controller
from replispec.controller.consensus import LogDamaged
from replispec.controller.consensus.raft import ControllerGroup, is_id
from replispec.controller.rocketmq.core.broker_sets import BrokerSets
from replispec.controller.rocketmq.founding import (
    FirstState,
    check_empty,
    founded,
    lived_alone,
    told_by_brokers,
    told_of,
)
from replispec.controller.rocketmq.process import LOG_NAME
from replispec.event.v1.event_pb2 import BrokerSetState
from replispec.runtime.configuration import parse
from replispec.runtime.primitives.errors import LocalProtocolError, RemoteProtocolError
from replispec.runtime.storage import Stores
from replispec.runtime.storage.disk_shell import DiskStorage
from replispec.wire.rocketmq import constants
from replispec.wire.rocketmq import parameters as p
from replispec.wire.rocketmq.codes import RequestCode
from replispec.wire.rocketmq.controller import (
    BrokerNames,
    BrokerReplicasInfo,
    EpochEntryCache,
    GetBrokerEpochCacheRequest,
    GetMetadataRequest,
    GetMetadataResponse,
    GetNextBrokerIdRequest,
    GetNextBrokerIdResponse,
    GetSyncStateDataRequest,
    ReplicasInfo,
)
from replispec.wire.rocketmq.options import ControllerOptions
from replispec.wire.rocketmq.parameters import ROLES

_NOTES = (
    "check codes are not told: a broker that has its id needs none",
    "what changes after this is not in it: brokers must stand still until the old controllers are stopped",
)


_ALONE = (
    "masters are in sync alone, until they are elected and their replicas have caught up once more",
    "brokers that were not asked are not known, and have to be given up or added anew",
)
_STILL = "what changes after this is not in it: brokers must stand still until the group of ours leads"
BEYOND_SHOWN = 10


def found(text: str, overrides: Mapping[str, str], *, dry_run: bool, source: FoundingSource) -> FoundedGroup:
    """Make the store that a properties file names that of the first member of its group, with what `source`
    has or tells, or else with what the store has.

    Raises ConfigurationError, FoundingRefused, and StorageFailed.
    """
    options: ControllerOptions = parse(text, ROLES["controller"], overrides=overrides).options
    group = _group(options)
    folder = options.controller_store_path or options.store_path_root_dir
    journal = DiskStorage().journal(f"{folder}/{LOG_NAME}")
    try:
        if source.is_other:
            check_empty(journal)
            first, as_of, notes = _from_elsewhere(source, options, dry_run=dry_run)
        else:
            first, notes = lived_alone(journal), ()
            as_of = f"record {first.index} in term {first.term}"
        BrokerSets(unclean=False).read(first.sets)
        operation = founded(group, first)
        if not dry_run:
            Stores(journal=journal).carry_out([operation])
    except (LogDamaged, LocalProtocolError, RemoteProtocolError, MembersRefused) as error:
        raise FoundingRefused(f"{folder}: {error}") from error
    finally:
        journal.close()
    return FoundedGroup(group.founded, folder, tuple(_lines(first.sets, as_of)), notes)


def _from_elsewhere(
    source: FoundingSource, options: ControllerOptions, *, dry_run: bool
) -> tuple[FirstState, str, Sequence[str]]:
    """What a group begins with that somebody else has, as of what, and what people are to know."""
    if source.folder:
        kept = read_folder(
            Path(source.folder),
            unclean=options.enable_elect_unclean_master,
            takes_all=source.beyond == "take",
        )
        if kept.beyond and not source.beyond and not dry_run:
            raise FoundingRefused(
                f"{source.folder}: nobody knows whether this is committed: {_some(kept.beyond)}. Say --beyond"
                " take or --beyond leave (docs/change-controllers.md)"
            )
        left = [f"not known to be committed, and left out: {each}" for each in _first(kept.beyond)]
        as_of = f"entry {kept.index} of term {kept.term} in the log of {kept.source}"
        return FirstState(kept.sets, index=1, term=1), as_of, (*left, *kept.notes, _STILL)
    if source.brokers:
        sets = _living(source.brokers, source.master_ids)
        return FirstState(sets, index=1, term=1), "what their brokers tell", (*_ALONE, _STILL)
    first = FirstState(_told(source.controller, source.cluster, source.broker_sets), index=1, term=1)
    return first, "record 1 in term 1", _NOTES


def _first(beyond: Sequence[str]) -> Sequence[str]:
    more = len(beyond) - BEYOND_SHOWN
    return [*beyond[:BEYOND_SHOWN], f"{more} more"] if more > 0 else beyond


def _some(beyond: Sequence[str]) -> str:
    return beyond[0] if len(beyond) == 1 else f"{beyond[0]}, and {len(beyond) - 1} more"


def _told(address: str, cluster: str, names: Sequence[str]) -> Sequence[BrokerSetState]:
    """What the leader of a group of controllers has on record, asked through one of them. Raises
    MembersRefused, FoundingRefused, and RemoteProtocolError."""
    answer = ask_controller(address, RequestCode.CONTROLLER_GET_METADATA_INFO, GetMetadataRequest())
    said = GetMetadataResponse.from_ext_fields(answer.header.ext_fields or {})
    leader = said.controller_leader_address
    if not leader:
        raise FoundingRefused(f"{address} names nobody that leads")
    before = _sets(leader, names)
    found = [told_of(name, cluster, before[name], _next_id(leader, cluster, name)) for name in names]
    if _sets(leader, names) != before:
        raise FoundingRefused(f"what {leader} tells changes while it is asked: let the brokers stand still")
    return found


def _living(addresses: Sequence[str], master_ids: Mapping[str, int]) -> Sequence[BrokerSetState]:
    """What the brokers at these addresses, all of their sets, tell. Raises MembersRefused, FoundingRefused,
    and RemoteProtocolError."""
    answers: dict[str, dict[str, EpochEntryCache]] = {}
    for address in addresses:
        answer = ask_controller(address, RequestCode.GET_BROKER_EPOCH_CACHE, GetBrokerEpochCacheRequest())
        cache = EpochEntryCache.decode(answer.body)
        answers.setdefault(cache.broker_name or "", {})[address] = cache
    if strange := sorted(master_ids.keys() - answers.keys()):
        raise FoundingRefused(f"no broker of {', '.join(strange)} was asked")
    if untold := sorted(answers.keys() - master_ids.keys()):
        raise FoundingRefused(
            f"a master does not tell its own id: --master-id {untold[0]}=ID, as {constants.IDENTITY_FILE} in"
            " its store says"
        )
    return [told_by_brokers(name, each, master_ids[name]) for name, each in sorted(answers.items())]


def _sets(leader: str, names: Sequence[str]) -> Mapping[str, ReplicasInfo]:
    body = BrokerNames(names=list(names)).encode()
    answer = ask_controller(
        leader, RequestCode.CONTROLLER_GET_SYNC_STATE_DATA, GetSyncStateDataRequest(), body
    )
    table = BrokerReplicasInfo.decode(answer.body).replicas_info_table or {}
    if missing := sorted(set(names) - table.keys()):
        raise FoundingRefused(f"{leader} knows no brokers of {', '.join(missing)}")
    return table


def _next_id(leader: str, cluster: str, name: str) -> int:
    question = GetNextBrokerIdRequest(cluster, name)
    answer = ask_controller(leader, RequestCode.CONTROLLER_GET_NEXT_BROKER_ID, question)
    return GetNextBrokerIdResponse.from_ext_fields(answer.header.ext_fields or {}).next_broker_id or 0


def _group(options: ControllerOptions) -> ControllerGroup:
    members, own = dict(options.controller_d_leger_peers), options.controller_d_leger_self_id
    if list(members) != [own] or not is_id(own):
        raise p.CONTROLLER_D_LEGER_PEERS.refuse(options, f"{own} alone, ID-HOST:PORT: the others join it")
    if options.controller_join:
        raise p.CONTROLLER_JOIN.refuse(options, "nothing: the first member of a group joins nobody")
    return ControllerGroup(options.controller_d_leger_group, own, members)


def _lines(sets: Sequence[BrokerSetState], as_of: str) -> Iterator[str]:
    """What is on record."""
    yield f"{len(sets)} broker sets, as of {as_of}"
    for each in sets:
        master = f"master {each.master}" if each.HasField("master") else "no master"
        in_sync = ", ".join(map(str, each.sync_state_set)) or "nobody"
        yield (
            f"  {each.broker_name} of {each.cluster_name}: {master} of masterEpoch {each.master_epoch}, "
            f"in sync {in_sync} (epoch {each.sync_state_set_epoch})"
        )
        for broker in each.broker_ids:
            yield f"    {broker}  {each.addresses.get(broker, 'nowhere')}"
