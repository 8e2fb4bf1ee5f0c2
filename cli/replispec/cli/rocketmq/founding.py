"""The first member of a new group of controllers, from the store of one that was alone, or from what
controllers of whatever make tell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from replispec.cli.foundings import FoundedGroup, FoundingRefused
from replispec.cli.memberships import MembersRefused
from replispec.cli.rocketmq.members import ask_controller
from replispec.controller.consensus import LogDamaged
from replispec.controller.consensus.raft import ControllerGroup, is_id
from replispec.controller.rocketmq.founding import (
    FirstState,
    check_empty,
    founded,
    lived_alone,
    told_of,
)
from replispec.controller.rocketmq.process import LOG_NAME
from replispec.event.v1.event_pb2 import BrokerSetState
from replispec.runtime.configuration import parse
from replispec.runtime.primitives.errors import LocalProtocolError, RemoteProtocolError
from replispec.runtime.storage import Stores
from replispec.runtime.storage.disk_shell import DiskStorage
from replispec.wire.rocketmq import parameters as p
from replispec.wire.rocketmq.codes import RequestCode
from replispec.wire.rocketmq.controller import (
    BrokerNames,
    BrokerReplicasInfo,
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


def found(
    text: str,
    overrides: Mapping[str, str],
    *,
    dry_run: bool,
    controller: str = "",
    cluster: str = "",
    broker_sets: Sequence[str] = (),
) -> FoundedGroup:
    """Make the store that a properties file names that of the first member of its group. `controller`: begin
    with what this one tells of these broker sets of a cluster, not with what the store has.

    Raises ConfigurationError, FoundingRefused, and StorageFailed.
    """
    options: ControllerOptions = parse(text, ROLES["controller"], overrides=overrides).options
    group = _group(options)
    folder = options.controller_store_path or options.store_path_root_dir
    journal = DiskStorage().journal(f"{folder}/{LOG_NAME}")
    try:
        if controller:
            check_empty(journal)
            first = FirstState(_told(controller, cluster, broker_sets), index=1, term=1)
        else:
            first = lived_alone(journal)
        operation = founded(group, first)
        if not dry_run:
            Stores(journal=journal).carry_out([operation])
    except (LogDamaged, LocalProtocolError, RemoteProtocolError, MembersRefused) as error:
        raise FoundingRefused(f"{folder}: {error}") from error
    finally:
        journal.close()
    return FoundedGroup(group.founded, folder, tuple(_lines(first)), _NOTES if controller else ())


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
