"""Apache RocketMQ on loopback: a controller alone, or a master with its controller and its name server."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from targets.lib.errors import NotInstalledError, TargetError
from targets.lib.fetch import fetch_apache, jars
from targets.lib.ports import LOOPBACK
from targets.lib.running import Running

CONTROLLER, NAMESERVER, BROKER = "controller", "nameserver", "broker"
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
# A machine under load needs minutes; that a process has ended is seen at once.
START_S_MAXIMUM = 300.0
RESTARTS_MAXIMUM = 8
# What the master's log holds when it is ready: enough to need several transfers in each epoch.
EPOCHS = 3
MESSAGES_PER_EPOCH = 150


class Apache:
    """One release of Apache RocketMQ, fetched with Maven."""

    implementation = "apache"
    subjects: Mapping[str, str] = {"controller": CONTROLLER, "ha-master": BROKER}

    def __init__(self, release: str) -> None:
        self.release = self.speaks = release
        self.name = f"{self.implementation}-{release}"

    def fetch(self) -> Path:
        """See fetch_apache."""
        _java()
        return fetch_apache(self.name, self.release)

    def start(self, running: Running) -> dict[str, object]:
        """Start what does not run yet, wait until it serves, and give what the ready line says besides.

        Raises TargetError and OSError.
        """
        if running.state.kind == "controller":
            running.take_ports(controller=0)
            self._start_controller(running)
            return {"target": _address(running, "controller")}
        # A broker's ports at their default distances: releases up to 5.1.0 know no others.
        running.take_ports(controller=0, nameserver=1, fast=2, broker=4, ha=5)
        self._launch(running, NAMESERVER)
        self._start_controller(running)
        self._start_broker(running)
        self._write_history(running)
        return _describe_master(running)

    def _start_controller(self, running: Running) -> None:
        from targets.lib.questions import controller_serves
        from targets.lib.remoting import until

        self._launch(running, CONTROLLER)
        until(
            partial(controller_serves, running.state.ports["controller"]),
            patience_s=START_S_MAXIMUM,
            waiting_for="a controller that leads",
            check=partial(running.check_alive, CONTROLLER),
        )

    def _start_broker(self, running: Running) -> None:
        from targets.lib.questions import master_serves
        from targets.lib.remoting import until

        self._launch(running, BROKER)
        ports = {name: running.state.ports[name] for name in ("nameserver", "broker", "ha")}
        until(
            partial(master_serves, **ports),
            patience_s=START_S_MAXIMUM,
            waiting_for="a master that the name server knows",
            check=partial(running.check_alive, BROKER),
        )

    def _write_history(self, running: Running) -> None:
        """Fill the log until it has EPOCHS epochs; a log that has them already stays as it is.

        A master that comes back is elected again, in a new epoch. Not always: when the controller takes a
        late heartbeat of the dead one for life, the master goes on in its old epoch, and forgets where that
        began. So the epochs are counted, not the restarts.
        """
        for _ in range(RESTARTS_MAXIMUM):
            if _epoch_count(running) >= EPOCHS:
                return
            _send_messages(running)
            running.end(BROKER)
            self._start_broker(running)
            if _epoch_count(running) == EPOCHS:
                _send_messages(running)
        raise TargetError(f"the master has not had {EPOCHS} epochs after {RESTARTS_MAXIMUM} restarts")

    def _launch(self, running: Running, name: str) -> None:
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


def _address(running: Running, port: str) -> str:
    return f"{LOOPBACK}:{running.state.ports[port]}"


def _describe_master(running: Running) -> dict[str, object]:
    """Its addresses, and what it says of itself: names, epochs, end of the log."""
    from targets.lib.questions import epochs

    return {
        "target": _address(running, "ha"),
        "controller": _address(running, "controller"),
        "broker": _address(running, "broker"),
        "nameserver": _address(running, "nameserver"),
        **epochs(running.state.ports["broker"]).to_json(),
    }


def _epoch_count(running: Running) -> int:
    from targets.lib.questions import epochs

    return len(epochs(running.state.ports["broker"]).epoch_list or ())


def _send_messages(running: Running) -> None:
    """Send one epoch's messages."""
    from targets.lib.questions import send_messages

    send_messages(
        running.state.ports["broker"],
        MESSAGES_PER_EPOCH,
        patience_s=START_S_MAXIMUM,
        check=partial(running.check_alive, BROKER),
    )
