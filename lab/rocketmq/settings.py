"""Configurations of the lab's processes, in RocketMQ's parameters: every subject reads the same files.

What differs from the defaults, besides names, addresses and folders, says why. `more` overrides.
"""

from __future__ import annotations

from lab.cluster import BROKER_NAME, CLUSTER_NAME, Cluster
from lab.ports import LOOPBACK
from replispec.wire.rocketmq.constants import COMMIT_LOG_FOLDER

Settings = dict[str, object]
# Default 1 GiB: sparse, but whoever copies or hashes a folder meets its whole length.
LOG_FILE_BYTES = 16 * 1024 * 1024


def nameserver(cluster: Cluster, name: str = "nameserver") -> Settings:
    """A name server on loopback."""
    data = cluster.part("data", name)
    return {
        "bindAddress": LOOPBACK,
        "listenPort": cluster.port(name),
        "kvConfigPath": data / "kvConfig.json",
        "configStorePath": data / "nameserver.properties",
    }


def controller(cluster: Cluster, name: str = "controller", **more: object) -> Settings:
    """A controller that is its whole group."""
    data = cluster.part("data", name)
    return {
        "bindAddress": LOOPBACK,
        "listenPort": cluster.port(name),
        "controllerDLegerGroup": "lab",
        "controllerDLegerPeers": f"n1-{cluster.address(name)}",
        "controllerDLegerSelfId": "n1",
        "controllerStorePath": data / "store",
        "configStorePath": data / "controller.properties",
        "mappedFileSize": LOG_FILE_BYTES,
        **more,
    }


def broker(cluster: Cluster, name: str, **more: object) -> Settings:
    """A broker of the one broker set, in controller mode; every member acknowledges what is sent."""
    data = cluster.part("data", name)
    return {
        "brokerClusterName": CLUSTER_NAME,
        "brokerName": BROKER_NAME,
        "brokerIP1": LOOPBACK,
        "brokerIP2": LOOPBACK,
        "bindAddress": LOOPBACK,
        "listenPort": cluster.port(name),
        # The default distance, said all the same: releases up to 5.1.0 know no other.
        "haListenPort": cluster.ha_port(name),
        "namesrvAddr": cluster.address("nameserver"),
        "enableControllerMode": "true",
        "controllerAddr": cluster.address("controller"),
        "storePathRootDir": data,
        "storePathCommitLog": data / COMMIT_LOG_FOLDER,
        "mappedFileSizeCommitLog": LOG_FILE_BYTES,
        "mappedFileSizeConsumeQueue": 600_000,
        "allAckInSyncStateSet": "true",
        **more,
    }


def learner(cluster: Cluster, name: str = "learner", **more: object) -> Settings:
    """A learner: a broker's settings, and where it exports messages."""
    data = cluster.part("data", name)
    return broker(cluster, name, asyncLearner="true", exportPath=data / "messages.jsonl", **more)
