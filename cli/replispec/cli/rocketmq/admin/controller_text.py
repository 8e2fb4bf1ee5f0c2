"""What controllers said, in mqadmin's words and as rows.

Source: apache/rocketmq rocketmq-all-5.4.0, GetSyncStateSetSubCommand, GetControllerMetaDataSubCommand,
GetControllerConfigSubCommand, ReElectMasterSubCommand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from replispec.administrator.rocketmq.controllers import Wanted
from replispec.cli.peers_text import of_peers
from replispec.cli.rocketmq.admin.java_text import in_table, said
from replispec.cli.shown import Display, Row
from replispec.wire.rocketmq.controller import (
    ElectMasterResponse,
    GetMetadataResponse,
    ReplicaIdentity,
    ReplicasInfo,
)


@of_peers
def sync_state_sets(found: Mapping[str, ReplicasInfo]) -> Display:
    """Of getSyncStateSet: a row for each member."""
    return Display(
        "".join(_set_text(name, info) for name, info in in_table(found).items()),
        [row for name, info in sorted(found.items()) for row in _set_rows(name, info)],
    )


def _set_text(name: str, info: ReplicasInfo) -> str:
    members = info.in_sync_replicas or []
    head = (
        f"\n#brokerName\t{name}\n#MasterBrokerId\t{said(info.master_broker_id)}\n"
        f"#MasterAddr\t{said(info.master_address)}\n#MasterEpoch\t{said(info.master_epoch)}\n"
        f"#SyncStateSetEpoch\t{said(info.sync_state_set_epoch)}\n#SyncStateSetNums\t{len(members)}\n"
    )
    lines = [head, *(f"\nInSyncReplica:\t{_identity(each)}\n" for each in members)]
    lines += [f"\nNotInSyncReplica:\t{_identity(each)}\n" for each in info.not_in_sync_replicas or ()]
    return "".join(lines)


def _identity(replica: ReplicaIdentity) -> str:
    return (
        f"ReplicaIdentity{{brokerName='{said(replica.broker_name)}', brokerId={said(replica.broker_id)}, "
        f"brokerAddress='{said(replica.broker_address)}', alive={said(replica.alive)}}}"
    )


def _set_rows(name: str, info: ReplicasInfo) -> list[Row]:
    members = [(True, each) for each in info.in_sync_replicas or ()]
    others = [(False, each) for each in info.not_in_sync_replicas or ()]
    return [
        {
            "broker_name": name,
            "broker_id": each.broker_id,
            "broker_address": each.broker_address,
            "alive": each.alive,
            "in_sync": in_sync,
            "is_master": each.broker_id == info.master_broker_id,
            "master_epoch": info.master_epoch,
            "sync_state_set_epoch": info.sync_state_set_epoch,
        }
        for in_sync, each in (*members, *others)
    ]


@of_peers
def metadata(found: GetMetadataResponse) -> Display:
    """Of getControllerMetaData."""
    peers = [each for each in (found.peers or "").split(";") if each]
    text = (
        f"\n#ControllerGroup\t{said(found.group)}\n#ControllerLeaderId\t{said(found.controller_leader_id)}"
        f"\n#ControllerLeaderAddress\t{said(found.controller_leader_address)}"
    )
    row = {
        "group": found.group,
        "controller_leader_id": found.controller_leader_id,
        "controller_leader_address": found.controller_leader_address,
        "peers": peers,
    }
    return Display(text + "".join(f"\n#Peer:\t{each}" for each in peers) + "\n", [row])


@of_peers
def configurations(found: Mapping[str, Mapping[str, str]]) -> Display:
    """Of getControllerConfig: a row for each parameter of each controller."""
    text, rows = [], []
    for address, values in in_table(found).items():
        text.append(f"============{address}============\n")
        text += [f"{name:<50}=  {value}\n" for name, value in in_table(values).items()]
        rows += [
            {"controller_address": address, "name": name, "value": value}
            for name, value in sorted(values.items())
        ]
    return Display("".join(text), rows)


@of_peers
def configured(controllers: Sequence[str], name: str, value: str) -> Display:
    """Of updateControllerConfig."""
    rows = [{"controller_address": each, "name": name, "value": value} for each in controllers]
    text = f"update controller config success![{', '.join(controllers)}]\n{name} : {value}\n"
    return Display(text, rows)


@of_peers
def elected(wanted: Wanted, found: ElectMasterResponse) -> Display:
    """Of electMaster."""
    text = (
        f"\n#ClusterName\t{wanted.cluster}\n#BrokerName\t{wanted.broker}\n"
        f"#BrokerMasterAddr\t{said(found.master_address)}\n#MasterEpoch\t{said(found.master_epoch)}\n"
        f"#SyncStateSetEpoch\t{said(found.sync_state_set_epoch)}\n"
    )
    row = {
        "cluster_name": wanted.cluster,
        "broker_name": wanted.broker,
        "master_broker_id": found.master_broker_id,
        "master_address": found.master_address,
        "master_epoch": found.master_epoch,
        "sync_state_set_epoch": found.sync_state_set_epoch,
    }
    return Display(text, [row])
