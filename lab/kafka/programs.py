"""What is started: Apache Kafka and its tools, client libraries of others, and our roles."""

from __future__ import annotations

import hashlib
import shutil
import venv
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from lab.cluster import Cluster, Settings
from lab.errors import LabError
from lab.pinned import cache, fetch_pinned, fetched_jars, java, run_quietly
from lab.zookeeper.fetch import copy_dependencies
from lab.zookeeper.subjects import OURS, ZooKeeper

HERE = Path(__file__).resolve().parent
ARTEFACTS = HERE / "artefacts"
LIBRARIES = HERE / "clients.txt"
BROKER = "broker"
MAIN = "kafka.Kafka"
JVM = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData")
STORE = ZooKeeper("3.5.9")
OUR_ROLES = OURS
"""Starts any role of this checkout, a metastore too."""


class Kafka:
    """One release of Apache Kafka, fetched with Maven; `jvm` are options of its Java."""

    def __init__(self, release: str, jvm: Sequence[str] = JVM) -> None:
        self.release = release
        self._jvm = jvm
        self.name = f"kafka-{release}"

    def fetch(self) -> Path:
        """The folder of its jars. See lab.pinned.fetch_pinned."""
        java()
        return fetch_pinned(ARTEFACTS, self.name, partial(copy_dependencies, HERE / "pom.xml", self.release))

    def command(self, cluster: Cluster, role: str, name: str, settings: Settings) -> Sequence[str]:
        """A broker, which is a candidate for the controller, too."""
        if role != BROKER:
            raise LabError(f"{self.name} has no {role}")
        return self.run(MAIN, str(cluster.configure(name, settings)))

    def run(self, main: str, *arguments: str) -> list[str]:
        """The command of one of its programs."""
        return [java(), *self._jvm, "-cp", f"{fetched_jars(ARTEFACTS, self.name)}/*", main, *arguments]


KAFKA = Kafka("2.8.2")


def fetch() -> None:
    """Fetch what is missing. Raises NotInstalledError and LabError."""
    KAFKA.fetch()
    STORE.fetch()
    client_python()


def client_python() -> Path:
    """The interpreter that has the client libraries, in the pinned versions. Raises LabError."""
    pinned = hashlib.sha256(LIBRARIES.read_bytes()).hexdigest()[:12]
    place = cache() / f"kafka-clients-{pinned}"
    python = place / "bin" / "python"
    if not (place / "whole").exists():
        shutil.rmtree(place, ignore_errors=True)
        venv.create(place, with_pip=True)
        run_quietly([str(python), "-m", "pip", "install", "--quiet", "--requirement", str(LIBRARIES)])
        (place / "whole").touch()
    return python
