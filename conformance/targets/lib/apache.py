"""Apache RocketMQ on loopback."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from targets.lib.cluster import BROKER, CONTROLLER, NAMESERVER, Cluster
from targets.lib.errors import NotInstalledError
from targets.lib.fetch import fetch_apache, jars
from targets.lib.running import Running

MAINS = {
    CONTROLLER: "org.apache.rocketmq.controller.ControllerStartup",
    NAMESERVER: "org.apache.rocketmq.namesrv.NamesrvStartup",
    BROKER: "org.apache.rocketmq.broker.BrokerStartup",
}
# Heaps in MiB, as small as all of the releases work with.
HEAPS = {CONTROLLER: 96, NAMESERVER: 64, BROKER: 192}
# Direct memory in MiB: what the sockets' buffers need.
DIRECT = 128
# Packages that the releases open by reflection; a JDK from 17 on refuses that unless it is told.
OPENED = ("java.lang", "java.nio", "java.util", "jdk.internal.misc", "jdk.internal.ref", "sun.nio.ch")


class Apache(Cluster):
    """One release of Apache RocketMQ, fetched with Maven."""

    implementation = "apache"

    def __init__(self, release: str) -> None:
        self.release = self.speaks = release
        self.name = f"{self.implementation}-{release}"

    def fetch(self) -> Path:
        """See fetch_apache."""
        _java()
        return fetch_apache(self.name, self.release)

    def launch(self, running: Running, name: str) -> None:
        """Start one of its programs with a small heap."""
        if running.state.living(name):
            return
        folder = running.folder
        configuration = running.fill(f"{name}.properties")
        running.copy("rmq.logback.xml")
        command = [
            _java(),
            *(f"-Xms{HEAPS[name]}m", f"-Xmx{HEAPS[name]}m", f"-XX:MaxDirectMemorySize={DIRECT}m"),
            *("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData"),
            *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENED),
            f"-XX:ErrorFile={folder.part('log')}/{name}.hs_err",
            f"-Djava.io.tmpdir={folder.part('tmp')}",
            f"-Duser.home={folder.part('home')}",
            f"-Drocketmq.home.dir={folder.path}",
            f"-Dtarget.log={folder.part('log')}/{name}.log",
            *("-cp", f"{configuration.parent}{os.pathsep}{jars(self.name)}/*"),
            *(MAINS[name], "-c", str(configuration)),
        ]
        running.launch(name, command)


def _java() -> str:
    """The java to use: that of JAVA_HOME, else the one on PATH. Raises NotInstalledError."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which(f"{home}/bin/java" if home else "java")
    if java is None:
        where = f"JAVA_HOME is {home}, which holds no bin/java" if home else "java is missing"
        raise NotInstalledError(f"{where}: install a JDK 17 (apt-get install openjdk-17-jre-headless)")
    return java
