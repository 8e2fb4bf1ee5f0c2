"""One cluster: a folder, free ports, and the processes that were started in it, all of them ended with it."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import FrameType, TracebackType
from typing import Self, TypeVar

from replispec.runtime.primitives.errors import RemoteProtocolError
from targets.lib.ports import LOOPBACK, free_ports
from targets.lib.processes import Process, kill, spawn, terminate

CLUSTER_NAME, BROKER_NAME = "ReplispecLab", "broker-a"
POLL_S = 0.02
START_S_MAXIMUM = 120.0
# Ports of one process: of a broker the one that replicas ask, the one for everybody two above, and that of
# replication behind it.
PORTS_EACH, MAIN = 4, 2
PROCESSES_MAXIMUM = 12
# Signals that end a program; while a cluster runs, they end the cluster first.
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
Found = TypeVar("Found")


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


class LabError(Exception):
    """The cluster did not do what it was started for; the text says what was waited for."""


class Cluster:
    """Processes by name. Leaving the `with` block ends every one of them, whatever happened inside."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()
        self.processes: dict[str, Process] = {}
        # One run of ports for the whole cluster, so that its packets can be told from all others.
        self.ports = free_ports(range(PORTS_EACH * PROCESSES_MAXIMUM))
        self._names: list[str] = []

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._handlers = {each: signal.signal(each, _interrupt) for each in ENDING}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Whoever is impatient must not leave processes behind.
        for each in ENDING:
            signal.signal(each, signal.SIG_IGN)
        # In reverse: brokers say goodbye to a controller that still listens.
        terminate(reversed(list(self.processes.values())))
        for each, handler in self._handlers.items():
            signal.signal(each, handler)

    def part(self, *names: str) -> Path:
        """A folder of the cluster, made when it is missing."""
        place = self.folder.joinpath(*names)
        place.mkdir(parents=True, exist_ok=True)
        return place

    def port(self, name: str) -> int:
        """The port that belongs to this name from now on; of a broker, its main one."""
        if name not in self._names:
            assert len(self._names) < PROCESSES_MAXIMUM
            self._names.append(name)
        return self.ports[self._names.index(name) * PORTS_EACH + MAIN]

    def ha_port(self, name: str) -> int:
        """The port at which a broker's replicas copy its log: one above the main one, as Apache has it."""
        return self.port(name) + 1

    def address(self, name: str) -> str:
        """ADDRESS:PORT of a process."""
        return f"{LOOPBACK}:{self.port(name)}"

    def configure(self, name: str, settings: Mapping[str, object]) -> Path:
        """Write a properties file and return its path."""
        path = self.part("conf") / f"{name}.properties"
        path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        return path

    def launch(self, name: str, command: Sequence[str]) -> Process:
        """Start a process; what it prints goes to log/NAME.out."""
        environment = {**os.environ, "HOME": str(self.part("home", name)), "TMPDIR": str(self.part("tmp"))}
        environment.pop("NAMESRV_ADDR", None)
        log = self.part("log") / f"{name}.out"
        self.processes[name] = spawn(name, command, log=log, environment=environment)
        return self.processes[name]

    def ours(self, role: str, name: str, settings: Mapping[str, object]) -> Process:
        """Start one of our roles: controller, nameserver, broker or learner."""
        configuration = self.configure(name, settings)
        return self.launch(name, [sys.executable, "-m", "replispec.cli", role, "-c", str(configuration)])

    def kill(self, name: str) -> float:
        """End a process as kill -9 does; returns the moment of it, on `time.monotonic`."""
        process = self.processes.pop(name)
        at_s = time.monotonic()
        os.kill(process.pid, signal.SIGKILL)
        kill([process])
        return at_s

    def stop(self, name: str) -> None:
        """End a process in order."""
        terminate([self.processes.pop(name)])

    def pause(self, name: str) -> None:
        """Stop a process as SIGSTOP does."""
        os.kill(self.processes[name].pid, signal.SIGSTOP)

    def resume(self, name: str) -> None:
        """Let a paused process go on."""
        os.kill(self.processes[name].pid, signal.SIGCONT)

    def until(
        self, attempt: Callable[[], Found | None], waiting_for: str, *, patience_s: float = START_S_MAXIMUM
    ) -> Found:
        """Repeat the attempt until it gives something; a peer that is not there yet gives nothing.

        Raises LabError when the patience is over, or when a process of the cluster has ended by itself.
        """
        deadline_s = time.monotonic() + patience_s
        while time.monotonic() < deadline_s:
            try:
                found = attempt()
            except (OSError, RemoteProtocolError):
                found = None
            if found is not None:
                return found
            self._check_alive(waiting_for)
            time.sleep(POLL_S)
        raise LabError(f"{waiting_for}: not within {patience_s:g} s (logs: {self.folder / 'log'})")

    def _check_alive(self, waiting_for: str) -> None:
        for name, process in self.processes.items():
            if not process.alive:
                lines = (self.part("log") / f"{name}.out").read_text(errors="replace").strip().splitlines()
                words = lines[-1] if lines else "it said nothing"
                raise LabError(f"{waiting_for}: {name} has ended: {words}")
