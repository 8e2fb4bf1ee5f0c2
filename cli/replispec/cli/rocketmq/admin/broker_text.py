"""What brokers and name servers said, in mqadmin's words and as rows.

Source: apache/rocketmq rocketmq-all-5.4.0, GetBrokerEpochSubCommand, HAStatusSubCommand,
TopicRouteSubCommand, BrokerStatusSubCommand.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from replispec.cli.peers_text import of_peers
from replispec.cli.rocketmq.admin.java_text import in_table, kilobytes, moment, said
from replispec.cli.shown import Display, Row
from replispec.wire.rocketmq.broker import TopicRouteData
from replispec.wire.rocketmq.client import HaRuntimeInfo, RuntimeInfo
from replispec.wire.rocketmq.controller import EpochEntryCache

_LINE_CHARACTERS: Final = 158
_REPLICA: Final = "{:<32}  {:<16} {:>16} {:>16} {:>16} {:>16}\n"
_REPLICA_HEAD: Final = _REPLICA.format(
    "#SlaveAddr", "#SlaveAckOffset", "#Diff", "#TransferSpeed(KB/s)", "#Status", "#TransferFromWhere"
)
_ROUTE: Final = "{:<45} {:<32} {:<50} {:<10} {:<11} {:<5}\n"


@of_peers
def epochs(found: Mapping[str, EpochEntryCache]) -> Display:
    """Of getBrokerEpoch: a row for each epoch of each broker; the last one ends with the log."""
    text, rows = [], []
    for address, cache in in_table(found).items():
        text.append(
            f"\n#clusterName\t{said(cache.cluster_name)}\n#brokerName\t{said(cache.broker_name)}\n"
            f"#brokerAddr\t{address}\n#brokerId\t{said(cache.broker_id)}"
        )
        entries = cache.epoch_list or []
        for number, each in enumerate(entries, 1):
            end = cache.max_offset if number == len(entries) else each.end_offset
            start, epoch = said(each.start_offset), said(each.epoch)
            text.append(f"\n#Epoch: EpochEntry{{epoch={epoch}, startOffset={start}, endOffset={said(end)}}}")
            rows.append(
                {
                    "broker_name": cache.broker_name,
                    "broker_id": cache.broker_id,
                    "broker_address": address,
                    "epoch": each.epoch,
                    "start_offset": each.start_offset,
                    "end_offset": end,
                }
            )
        text.append("\n")
    return Display("".join(text), rows)


@of_peers
def replication(found: Mapping[str, HaRuntimeInfo]) -> Display:
    """Of haStatus: a row for each replica of a master, and for each broker that is one."""
    text, rows = [], []
    for address, status in in_table(found).items():
        if status.master:
            text.append(_master_text(address, status))
            rows += _master_rows(address, status)
        else:
            text.append(_replica_text(status))
            rows.append(_replica_row(address, status))
    return Display("".join(text), rows)


def _master_text(address: str, status: HaRuntimeInfo) -> str:
    replicas = status.ha_connection_info or []
    text = (
        f"\n#MasterAddr\t{address}\n#MasterCommitLogMaxOffset\t{said(status.master_commit_log_max_offset)}\n"
        f"#SlaveNum\t{len(replicas)}\n#InSyncSlaveNum\t{said(status.in_sync_slave_nums)}\n{_REPLICA_HEAD}"
    )
    return text + "".join(
        _REPLICA.format(
            said(each.addr),
            said(each.slave_ack_offset),
            said(each.diff),
            kilobytes(each.transferred_byte_in_second),
            "OK" if each.in_sync else "Fall Behind",
            said(each.transfer_from_where),
        )
        for each in replicas
    )


def _replica_text(status: HaRuntimeInfo) -> str:
    client = status.ha_client_runtime_info
    if client is None:
        return ""
    return (
        f"\n#MasterAddr\t{said(client.master_addr)}\n#CommitLogMaxOffset\t{said(client.max_offset)}\n"
        f"#TransferSpeed(KB/s)\t{kilobytes(client.transferred_byte_in_second)}\n"
        f"#LastReadTime\t{moment(client.last_read_timestamp)}\n"
        f"#LastWriteTime\t{moment(client.last_write_timestamp)}\n"
        f"#MasterFlushOffset\t{said(client.master_flush_offset)}\n"
    )


def _row(address: str, **values: object) -> Row:
    keys = ("role", "peer", "end", "ack_offset", "diff", "in_sync", "bytes_per_second")
    return {"broker_address": address} | {key: values.get(key) for key in keys}


def _master_rows(address: str, status: HaRuntimeInfo) -> list[Row]:
    end = status.master_commit_log_max_offset
    replicas = status.ha_connection_info or []
    if not replicas:
        return [_row(address, role="master", end=end)]
    return [
        _row(
            address,
            role="master",
            peer=each.addr,
            end=end,
            ack_offset=each.slave_ack_offset,
            diff=each.diff,
            in_sync=each.in_sync,
            bytes_per_second=each.transferred_byte_in_second,
        )
        for each in replicas
    ]


def _replica_row(address: str, status: HaRuntimeInfo) -> Row:
    client = status.ha_client_runtime_info
    if client is None:
        return _row(address, role="replica")
    return _row(
        address,
        role="replica",
        peer=client.master_addr,
        end=client.max_offset,
        ack_offset=client.max_offset,
        diff=(client.master_flush_offset or 0) - (client.max_offset or 0),
        bytes_per_second=client.transferred_byte_in_second,
    )


@of_peers
def figures(found: Mapping[str, RuntimeInfo], *, of_cluster: bool) -> Display:
    """Of brokerStatus: a row for each figure of each broker."""
    text, rows = [], []
    for address, info in in_table(found).items():
        for name, value in sorted((info.table or {}).items()):
            before = f"{address:<24} " if of_cluster else ""
            text.append(f"{before}{name:<32}: {value}\n")
            rows.append({"broker_address": address, "name": name, "value": value})
    return Display("".join(text), rows)


@of_peers
def route_list(found: TopicRouteData) -> Display:
    """Of topicRoute -l: a row for each broker set."""
    queues = {each.broker_name or "": each for each in found.queue_datas or ()}
    rows, text = [], [_ROUTE.format(*_ROUTE_HEAD)]
    reads = writes = 0
    for data in sorted(found.broker_datas or (), key=lambda each: each.broker_name or ""):
        name = data.broker_name or ""
        queue = queues[name]
        reads, writes = reads + (queue.read_queue_nums or 0), writes + (queue.write_queue_nums or 0)
        addresses = ", ".join(f"{number}={at}" for number, at in sorted((data.broker_addrs or {}).items()))
        text.append(
            _ROUTE.format(
                said(data.cluster),
                name,
                f"{{{addresses}}}",
                said(queue.read_queue_nums),
                said(queue.write_queue_nums),
                said(queue.perm),
            )
        )
        rows.append(
            {
                "cluster_name": data.cluster,
                "broker_name": name,
                "broker_addrs": [f"{key}={at}" for key, at in sorted((data.broker_addrs or {}).items())],
                "read_queue_nums": queue.read_queue_nums,
                "write_queue_nums": queue.write_queue_nums,
                "perm": queue.perm,
            }
        )
    text += ["-" * _LINE_CHARACTERS, "\n", _ROUTE.format("Total:", len(queues), "", reads, writes, "")]
    return Display("".join(text), rows)


_ROUTE_HEAD: Final = ("#ClusterName", "#BrokerName", "#BrokerAddrs", "#ReadQueue", "#WriteQueue", "#Perm")
