"""The controller of RocketMQ-Rust on loopback, once somebody has built it, which takes too long unasked.

Of its settings only addresses, folders, `storageBackend` (`File`: the other one needs RocksDB compiled) and
`scanNotActiveBrokerInterval` differ from the defaults. They follow the crate's own documentation: no build of
it has come to its end here yet, so whoever builds it first should expect to correct them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from lab.cluster import Cluster, Settings
from lab.errors import LabError, NotInstalledError
from lab.ports import LOOPBACK
from lab.rocketmq.fetch import cache
from lab.rocketmq.roles import RocketmqSubject
from lab.rocketmq.serving import CONTROLLER

CRATE, BINARY = "rocketmq-controller", "rocketmq-controller-rust"
# The file store: the default one compiles RocksDB, which takes the longest.
FEATURES = "--no-default-features --features dev-single"
SCAN_INTERVAL = "scanNotActiveBrokerInterval"


class RustController(RocketmqSubject):
    """One release of the crate. It follows Apache's newest releases, so it is asked what they are asked."""

    implementation = "rocketmq-rust-controller"
    kinds: Mapping[str, str] = {"controller": CONTROLLER}
    speaks = "5.5.0"

    def __init__(self, release: str) -> None:
        self.release = release

    def fetch(self) -> Path:
        """The folder of the program. Raises NotInstalledError, with the command that builds it."""
        root = cache() / self.name
        if not (root / "bin" / BINARY).is_file():
            version = f"{CRATE} --version {self.release} --locked {FEATURES}"
            raise NotInstalledError(f"not installed, long to build: cargo install {version} --root {root}")
        return root

    def command(self, cluster: Cluster, role: str, name: str, settings: Settings) -> Sequence[str]:
        """The controller alone; of the settings it takes the interval of its scans."""
        if role != CONTROLLER:
            raise LabError(f"{self.name} has no {role}")
        data = cluster.part("data", name)
        document = {
            "rocketmqHome": str(data),
            "configStorePath": str(data / "controller.json"),
            "controllerStorePath": str(data / "controller"),
            "storagePath": str(data / "storage"),
            "storageBackend": "File",
            "nodeId": 1,
            "listenAddr": cluster.address(name),
            "raftPeers": [{"id": 1, "addr": f"{LOOPBACK}:{cluster.port(name) + 1}"}],
            **({SCAN_INTERVAL: settings[SCAN_INTERVAL]} if SCAN_INTERVAL in settings else {}),
        }
        path = cluster.part("conf") / f"{name}.json"
        path.write_text(json.dumps(document, indent=1) + "\n")
        return [str(self.fetch() / "bin" / BINARY), "--config-file", str(path)]
