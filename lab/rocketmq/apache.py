"""Apache RocketMQ on loopback: its servers, and the command line for its other programs."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from lab.cluster import Cluster, Settings
from lab.errors import LabError
from lab.pinned import java
from lab.rocketmq import archives, serving
from lab.rocketmq.adapter import UNCONTROLLED
from lab.rocketmq.fetch import fetch_apache, jars
from lab.rocketmq.roles import GROUP, NAME_SERVER, PLAYED, STATIC_TOPIC, RocketmqSubject
from lab.rocketmq.serving import BROKER, CONTROLLER, NAMESERVER

MAINS = {
    CONTROLLER: "org.apache.rocketmq.controller.ControllerStartup",
    NAMESERVER: "org.apache.rocketmq.namesrv.NamesrvStartup",
    BROKER: "org.apache.rocketmq.broker.BrokerStartup",
}
# Heaps in MiB, as small as all of the releases work with.
HEAPS = {CONTROLLER: 96, NAMESERVER: 64, BROKER: 256}
# Direct memory in MiB: what the sockets' buffers need while a backlog is copied.
DIRECT = 512
# Packages that the releases open by reflection; a JDK from 17 on refuses that unless it is told.
OPENED = ("java.lang", "java.nio", "java.util", "jdk.internal.misc", "jdk.internal.ref", "sun.nio.ch")
# As what the releases are judged beside controller and HA master: one of them as everything.
ADAPTED = {"5.4.0": (NAME_SERVER, *PLAYED, GROUP, STATIC_TOPIC)}
# Up to 5.0.0 these end when they find no such file in the folder of configurations.
LOGGED_APART = ("controller", "namesrv", "broker")
LOGGING = Path(__file__).with_name("rmq.logback.xml")


class Apache(RocketmqSubject):
    """One release of Apache RocketMQ, fetched with Maven."""

    implementation = "apache"

    def __init__(self, release: str) -> None:
        self.release = self.speaks = release
        self.artefacts = f"{Apache.implementation}-{release}"
        self.adapted = ADAPTED.get(release, ())

    def fetch(self) -> Path:
        """The folder of its jars. See fetch_apache."""
        java()
        return fetch_apache(self.artefacts, self.release)

    def adapter(self, kind: str) -> Sequence[str]:
        """With brokers that have no controller where static topics are judged. See Subject.adapter."""
        return (*super().adapter(kind), *([UNCONTROLLED] if kind == STATIC_TOPIC else []))

    def command(self, cluster: Cluster, role: str, name: str, settings: Settings) -> Sequence[str]:
        """A controller, nameserver or broker with a small heap."""
        if role not in MAINS:
            raise LabError(f"{self.name} has no {role}")
        configuration = cluster.configure(name, settings)
        heap = f"{HEAPS[role]}m"
        sizes = (f"-Xms{heap}", f"-Xmx{heap}", f"-XX:MaxDirectMemorySize={DIRECT}m", *self.classes(role))
        return [*self.java(cluster, name, *sizes), MAINS[role], "-c", str(configuration)]

    def classes(self, role: str) -> list[str]:
        """How a JVM comes by the classes of a role more cheaply than out of their jars."""
        return archives.option(self.archive(role))

    def archive(self, role: str) -> Path:
        """Where the classes of a role are kept. Raises NotInstalledError without java."""
        return archives.archive(self.artefacts, role, java())

    def prepare(self) -> Sequence[Path]:
        """Record the classes of each role, which takes about a minute, once. Raises LabError."""
        made = [self.archive(role) for role in MAINS]
        if all(each.is_file() for each in made):
            return made
        with ExitStack() as left:
            folder = Path(left.enter_context(tempfile.TemporaryDirectory(prefix=f"{self.artefacts}-")))
            cluster = left.enter_context(Cluster(folder))
            serving.start_master(cluster, _Recorder(self.release))
            for role in (BROKER, CONTROLLER, NAMESERVER):
                archives.finish(cluster.processes[role], self.archive(role))
        return made

    def java(self, cluster: Cluster, name: str, *options: str, classes: Path | None = None) -> list[str]:
        """The start of a command that runs one of its classes, or one of ours from the folder `classes`.

        Raises NotInstalledError when java or a jar is missing.
        """
        logging = archives.packed(LOGGING)
        for program in LOGGED_APART:
            shutil.copyfile(LOGGING, cluster.part("conf") / f"logback_{program}.xml")
        path = [str(classes)] if classes is not None else []
        return [
            *(java(), "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData"),
            *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENED),
            f"-XX:ErrorFile={cluster.part('log')}/{name}.hs_err",
            f"-Djava.io.tmpdir={cluster.part('tmp')}",
            f"-Duser.home={cluster.part('home', name)}",
            f"-Drocketmq.home.dir={cluster.folder}",
            f"-Dtarget.log={cluster.part('log')}/{name}.log",
            *options,
            *("-cp", os.pathsep.join([*path, str(logging), f"{jars(self.artefacts)}/*"])),
        ]


class _Recorder(Apache):
    """The same release, whose processes write down which classes they loaded when they end in order."""

    def classes(self, role: str) -> list[str]:
        return archives.recording(self.archive(role))


class JraftApache(Apache):
    """The same release, with the other of its two ways to agree on a log: controllers alone."""

    implementation = "apache-jraft"
    kinds: Mapping[str, str] = {"controller": CONTROLLER}

    # One of the cases for a controller alone stops it for good: the others would say nothing of it.
    judged = ()

    def __init__(self, release: str) -> None:
        super().__init__(release)
        self.adapted = (GROUP,)

    def command(self, cluster: Cluster, role: str, name: str, settings: Settings) -> Sequence[str]:
        """A controller of a jRaft group, from the settings of a DLedger group; nothing else is started."""
        if role != CONTROLLER:
            raise LabError(f"{self.name} has no {role}")
        return super().command(cluster, role, name, {**settings, **_jraft(settings)})


class ClientAlone(Apache):
    """The client and the tools of one release: it plays no role."""

    implementation = "client"
    kinds: Mapping[str, str] = {}
    judged = ()

    def __init__(self, release: str) -> None:
        super().__init__(release)
        self.artefacts = f"{self.implementation}-{release}"


def _jraft(settings: Settings) -> dict[str, object]:
    """The group in the words of jRaft: beside its port for everybody each member has one for the others."""
    group = dict(each.split("-", 1) for each in str(settings["controllerDLegerPeers"]).split(";"))
    own = {name: _above(address) for name, address in group.items()}
    return {
        "controllerType": "jRaft",
        "jRaftGroupId": settings["controllerDLegerGroup"],
        "jRaftServerId": own[str(settings["controllerDLegerSelfId"])],
        "jRaftInitConf": ",".join(own.values()),
        "jRaftControllerRPCAddr": ",".join(group.values()),
    }


def _above(address: str) -> str:
    host, _, port = address.rpartition(":")
    return f"{host}:{int(port) + 1}"
