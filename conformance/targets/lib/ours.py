"""This checkout's own roles on loopback, started as anybody starts them, with the files that Java reads."""

from __future__ import annotations

import sys
from importlib import metadata
from pathlib import Path

from targets.lib.cluster import Cluster
from targets.lib.running import Running


class Ours(Cluster):
    """The roles of this checkout; they speak the newest release that the specification knows."""

    implementation = "replispec"
    speaks = "5.5.0"

    def __init__(self, _release: str) -> None:
        self.release = metadata.version("replispec")

    def fetch(self) -> Path:
        """Nothing is to be got: the folder of the interpreter that has the checkout installed."""
        return Path(sys.prefix)

    def launch(self, running: Running, name: str) -> None:
        """Start one role."""
        if running.state.living(name):
            return
        configuration = running.fill(f"{name}.properties")
        running.launch(name, [sys.executable, "-P", "-m", "replispec.cli", name, "-c", str(configuration)])
