"""Metastores on loopback, as the suite judges them: releases of Apache ZooKeeper, and ours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from lab.cluster import Cluster, Settings
from lab.errors import LabError
from lab.pinned import fetch_pinned, fetched_jars, java
from lab.ports import LOOPBACK
from lab.subjects.ours import OwnRoles
from lab.subjects.subject import Subject
from lab.zookeeper.fetch import copy_dependencies
from lab.zookeeper.question import serves
from replispec.wire.zookeeper.constants import SEEN_RELEASES

METASTORE = "metastore"
HERE = Path(__file__).resolve().parent
ARTEFACTS = HERE / "artefacts"
MAIN = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
JVM = ("-Xmx192m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData")
# A machine under load needs minutes; that a process has ended is seen at once.
START_S_MAXIMUM = 300.0
# Half of the default: cases about sessions that expire wait for it.
TICK_MS = 1000


class MetastoreSubject(Subject):
    """One implementation of a metastore."""

    kinds: Mapping[str, str] = {METASTORE: METASTORE}

    def serve(self, cluster: Cluster, kind: str) -> dict[str, object]:
        """A metastore alone. See Subject.serve."""
        if METASTORE not in cluster.processes:
            cluster.start(self, METASTORE, METASTORE, settings(cluster))
        port = cluster.port(METASTORE)
        cluster.until(partial(serves, port), "a metastore that answers", patience_s=START_S_MAXIMUM)
        return {
            "kind": kind,
            "implementation": self.implementation,
            "release": self.release,
            "speaks": self.speaks,
            "target": cluster.address(METASTORE),
            "pids": [process.pid for process in cluster.processes.values()],
        }

    def suite_options(self, ready: Mapping[str, object]) -> Mapping[str, object]:  # noqa: ARG002
        """The target is all that there is to know."""
        return {}


class ZooKeeper(MetastoreSubject):
    """One release of Apache ZooKeeper, fetched with Maven; one server alone. `jvm` is how its Java starts."""

    implementation = "zookeeper"

    def __init__(self, release: str, jvm: Sequence[str] = JVM) -> None:
        self.release = self.speaks = release
        self._jvm = jvm

    def fetch(self) -> Path:
        """The folder of its jars. See lab.pinned.fetch_pinned."""
        java()
        return fetch_pinned(ARTEFACTS, self.name, partial(copy_dependencies, HERE / "pom.xml", self.release))

    def command(self, cluster: Cluster, role: str, name: str, settings: Settings) -> Sequence[str]:
        """A server, with a small heap unless it is told otherwise."""
        if role != METASTORE:
            raise LabError(f"{self.name} has no {role}")
        configuration = cluster.configure(name, {**settings, "admin.enableServer": "false"})
        return [
            *(java(), *self._jvm),
            f"-XX:ErrorFile={cluster.part('log')}/{name}.hs_err",
            f"-Djava.io.tmpdir={cluster.part('tmp')}",
            *("-cp", f"{fetched_jars(ARTEFACTS, self.name)}/*", MAIN, str(configuration)),
        ]


class OurMetastore(OwnRoles, MetastoreSubject):
    """The metastore of this checkout; it speaks the newest release of the specification."""

    speaks = SEEN_RELEASES.split()[-1]

    @property
    def name(self) -> str:
        """Beside the roles of other families."""
        return f"{self.implementation}-{METASTORE}"


OURS = OurMetastore()


def settings(cluster: Cluster) -> Settings:
    """The parameters that both have: where it listens and writes, and its tick."""
    return {
        "clientPort": cluster.port(METASTORE),
        "clientPortAddress": LOOPBACK,
        "dataDir": cluster.part("data", METASTORE),
        "tickTime": TICK_MS,
        "maxClientCnxns": 0,
    }


def subjects() -> Iterator[Subject]:
    """Ours, and every release of Apache ZooKeeper whose jars are pinned."""
    yield OURS
    for path in ARTEFACTS.glob(f"{ZooKeeper.implementation}-*.txt"):
        yield ZooKeeper(path.stem.removeprefix(f"{ZooKeeper.implementation}-"))
