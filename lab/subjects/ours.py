"""This checkout's own roles on loopback, started as anybody starts them, with the files that Java reads."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

from lab.cluster import Cluster, Settings
from lab.subjects.subject import Subject
from replispec.wire.rocketmq.codes import Release


class Ours(Subject):
    """The roles of this checkout; they speak the newest release that the specification knows."""

    implementation = "replispec"
    speaks = max(Release).name.removeprefix("V").replace("_", ".")

    def __init__(self) -> None:
        self.release = metadata.version("replispec")

    @property
    def name(self) -> str:
        """Without a release: it is always this checkout."""
        return self.implementation

    def fetch(self) -> Path:
        """Nothing is to be got: the folder of the interpreter that has the checkout installed."""
        return Path(sys.prefix)

    def command(self, cluster: Cluster, role: str, name: str, settings: Settings) -> Sequence[str]:
        """A role of the command `replispec`: controller, nameserver, broker or learner."""
        configuration = cluster.configure(name, settings)
        return [sys.executable, "-P", "-m", "replispec.cli", role, "-c", str(configuration)]


OURS = Ours()
