"""Folders of controllers of Apache RocketMQ 5.4.0 as they were left, and what was told before the end."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from replispec.cli.rocketmq.folders import _rocksdb
from replispec.controller.rocketmq.apache.dledger import DledgerFiles
from replispec.controller.rocketmq.apache.jraft import JraftFiles
from replispec.event.v1.event_pb2 import BrokerSetState

PACKED = Path(__file__).with_name("apache_folders")
# Unpacked once for all tests of a process, which change copies alone.
_PLACE = TemporaryDirectory(prefix="replispec-folders-")
FOLDERS = Path(_PLACE.name)
for _packed in PACKED.glob("*.tar.xz"):
    with tarfile.open(_packed) as _archive:
        _archive.extractall(FOLDERS, filter="data")
DLEDGER, JRAFT = FOLDERS / "dledger", FOLDERS / "jraft"
SNAPSHOT = JRAFT / "snapshot/snapshot_77"
SNAPSHOT_INDEX = 77


def dledger(data: bytes | None = None, checkpoint: bytes | None = None) -> DledgerFiles:
    """What DLedger's controller left, with another log or other notes."""
    member = DLEDGER / "dledger-n1"
    log = (member / "data/00000000000000000000").read_bytes() if data is None else data
    noted = (member / "checkpoint").read_bytes() if checkpoint is None else checkpoint
    return DledgerFiles("n1", {0: log}, noted)


def entries() -> list[tuple[int, bytes]]:
    """The log of jRaft's controller."""
    found, why = _rocksdb(JRAFT / "log")
    assert found is not None, why
    return found


def jraft(log: list[tuple[int, bytes]] | None = None, *, snapshot: bool = True) -> JraftFiles:
    """What jRaft's controller left, with another log, or without its snapshot."""
    files = {each.name: each.read_bytes() for each in SNAPSHOT.iterdir()} if snapshot else {}
    return JraftFiles(files, entries() if log is None else log)


def told(kind: str) -> Mapping[str, Any]:
    """What the controller answered to 1006 and 1012, in the words of `shown`."""
    said = json.loads((PACKED / f"{kind}.json").read_text())
    return {
        name: {
            "master": each.get("masterBrokerId"),
            "epochs": (each["masterEpoch"], each["syncStateSetEpoch"]),
            "in sync": sorted(one["brokerId"] for one in each["inSyncReplicas"]),
            "addresses": {
                one["brokerId"]: one["brokerAddress"]
                for one in (*each["inSyncReplicas"], *each["notInSyncReplicas"])
            },
            "next": int(said["next"][name]),
        }
        for name, each in said["replicasInfoTable"].items()
    }


def shown(state: BrokerSetState) -> Mapping[str, Any]:
    """What of a broker set is told."""
    return {
        "master": state.master if state.HasField("master") else None,
        "epochs": (state.master_epoch, state.sync_state_set_epoch),
        "in sync": list(state.sync_state_set),
        "addresses": dict(state.addresses),
        "next": state.next_broker_id,
    }
