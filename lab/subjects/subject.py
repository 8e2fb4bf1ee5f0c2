"""What the lab asks of everything that it can start."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path

from lab.cluster import Cluster, Settings


class Subject(ABC):
    """One release of one implementation.

    `speaks` is the release of the protocol that it is asked about; `kinds` maps what the suite can judge it
    as to the role that is judged, the most usual kind first. As what is `adapted` it is judged too, by cases
    that have it started.
    """

    implementation: str
    release: str
    speaks: str
    kinds: Mapping[str, str]
    adapted: Sequence[str] = ()

    @property
    def name(self) -> str:
        """How it is called on command lines and in tables."""
        return f"{self.implementation}-{self.release}"

    @abstractmethod
    def fetch(self) -> Path:
        """Get what it consists of, unless it is there; where it lies.

        Raises NotInstalledError when something is missing that cannot be fetched, LabError when fetching
        fails.
        """

    def prepare(self) -> Sequence[Path]:
        """Make the files that its later starts are cheaper with, unless they are there. Raises LabError."""
        return ()

    @property
    def judged(self) -> Sequence[str]:
        """As what it is judged when all are: as each kind, unless something speaks against it."""
        return tuple(self.kinds)

    def adapter(self, kind: str) -> Sequence[str]:  # noqa: ARG002  of what differs by kind
        """The command of the adapter that starts it for a suite that judges it as this kind."""
        return (sys.executable, "-m", "lab.adapter", self.name)

    @abstractmethod
    def command(self, cluster: Cluster, role: str, name: str, settings: Settings) -> Sequence[str]:
        """The command that starts it in one of its roles, its configuration written. Raises LabError."""

    @abstractmethod
    def serve(self, cluster: Cluster, kind: str) -> dict[str, object]:
        """Start what does not run yet, wait until it serves, and give what a user of it must know: `target`
        is the address that the suite judges. Raises LabError and OSError."""

    @abstractmethod
    def suite_options(self, ready: Mapping[str, object]) -> Mapping[str, object]:
        """Options of the suite beside kind, target and release, from what `serve` gave."""
