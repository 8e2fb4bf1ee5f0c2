"""This checkout's own roles on loopback, started as anybody starts them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

from lab.cluster import Cluster, Settings
from lab.subjects.subject import Subject


class OwnRoles(Subject):
    """The roles of this checkout, of any family."""

    implementation = "replispec"

    def __init__(self) -> None:
        self.release = metadata.version("replispec")

    @property
    def name(self) -> str:
        """Without a release: it is always this checkout."""
        return self.implementation

    def fetch(self) -> Path:
        """Nothing is to be got: the folder of the interpreter that has the checkout installed."""
        return Path(sys.prefix)

    def adapter(self, kind: str) -> Sequence[str]:  # noqa: ARG002  it brings all kinds to life
        """The command that everybody has."""
        return (sys.executable, "-P", "-m", "replispec.cli", "adapter")

    def command(self, cluster: Cluster, role: str, name: str, settings: Settings) -> Sequence[str]:
        """A role of the command `replispec`."""
        configuration = cluster.configure(name, settings)
        return [sys.executable, "-P", "-m", "replispec.cli", role, "-c", str(configuration)]
