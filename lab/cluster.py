"""One cluster: a folder, free ports, and the processes that were started in it, all of them ended with it.

cluster.json   first port, names, processes with their start, and whose cluster it is: so that a later command
               finds a cluster that was left running
conf/ data/ home/ log/ tmp/
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import FrameType, TracebackType
from typing import Protocol, Self, TypeVar

from lab import poll
from lab.errors import LabError
from lab.ports import LOOPBACK, claimed_ports
from lab.processes import StartedProcess, environment, kill, spawn, terminate
from replispec.runtime.adapting.ports_shell import Claim, claim

CLUSTER_NAME, BROKER_NAME = "ReplispecLab", "broker-a"
START_S_MAXIMUM = 120.0
# Ports of one process: of a broker the one that replicas ask, the one for everybody two above, and that of
# replication after it.
PORTS_EACH, MAIN = 4, 2
PROCESSES_MAXIMUM = 12
STATE_FILE, LOCK_FILE = "cluster.json", ".lock"
PARTS = ("conf", "data", "home", "log", "tmp")
# Signals that end a program; while a cluster runs, they end the cluster first.
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
Settings = Mapping[str, object]
Found = TypeVar("Found")


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def end_in_order() -> None:
    """From now on, whatever signal ends this program ends it as Ctrl-C does: what it made is removed."""
    for each in ENDING:
        signal.signal(each, _interrupt)


class Program(Protocol):
    """What can be started in a cluster: see lab.subjects."""

    def command(self, cluster: Cluster, role: str, name: str, settings: Settings) -> Sequence[str]:
        """The command that starts it in one of its roles, its configuration written. Raises LabError."""
        ...


@dataclass(slots=True)
class ClusterState:
    """What a later command must know of a cluster that was left running."""

    first_port: int = 0
    names: list[str] = field(default_factory=list)
    processes: list[StartedProcess] = field(default_factory=list)
    about: dict[str, str] = field(default_factory=dict)


class Cluster:
    """Controllers, name servers, brokers, learners of any subject, by name.

    Leaving the `with` block ends every one of them, whatever happened inside, unless it was told to leave
    them running. While the block lasts no other command works in the folder.
    """

    def __init__(self, folder: Path) -> None:
        """A cluster in a folder of its own; the block goes on with what an earlier command left there."""
        self.folder = folder.absolute()
        self.ports: list[int] = []
        self.processes: dict[str, StartedProcess] = {}
        # How long is waited between two questions: longer where every question is part of a capture.
        self.poll_s = poll.POLL_S
        self._state = ClusterState()
        self._is_left = False
        self._held = ExitStack()

    @property
    def about(self) -> dict[str, str]:
        """What its starter wrote down of it, kept with `save`; empty in a new folder."""
        return self._state.about

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._held.enter_context(lock := (self.folder / LOCK_FILE).open("w"))
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._held.close()
            raise LabError(f"another command is at work in {self.folder}") from None
        with ExitStack() as failing:
            failing.callback(self._held.close)
            self._open()
            failing.pop_all()
        self._handlers = {each: signal.signal(each, _interrupt) for each in ENDING}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Whoever is impatient must not leave processes behind, and is heard when they have ended.
        impatient: list[int] = []
        for each in ENDING:
            signal.signal(each, lambda number, _: impatient.append(number))
        if not self._is_left:
            # In reverse: brokers say goodbye to a controller that still listens.
            terminate(reversed(list(self.processes.values())))
        self._held.close()
        for each, handler in self._handlers.items():
            signal.signal(each, handler)
        if impatient and kind is None:
            raise KeyboardInterrupt

    def _open(self) -> None:
        """Take up what was left in the folder, or take ports: one run of them for the whole cluster, so that
        its packets can be told from all others. Raises LabError."""
        offsets = range(PORTS_EACH * PROCESSES_MAXIMUM)
        claimed: Claim | None
        left = _load(self.folder / STATE_FILE)
        if left is None:
            self.ports, claimed = claimed_ports(offsets)
            self._state = ClusterState(self.ports[0])
        else:
            self.ports, self._state = [left.first_port + offset for offset in offsets], left
            claimed = claim(self.ports)
        if claimed is not None:
            self._held.callback(claimed.end)
        self.processes = {each.name: each for each in self._state.processes if each.alive}

    def leave_running(self) -> None:
        """From now on, let the processes go on after the block, for a later command."""
        self._is_left = True

    def end_with_block(self) -> None:
        """From now on, end the processes with the block again."""
        self._is_left = False

    @staticmethod
    def is_in(folder: Path) -> bool:
        """Whether a cluster was ever started in this folder."""
        return (folder / STATE_FILE).exists()

    @classmethod
    def remove_earlier(cls, folder: Path) -> None:
        """End and remove the cluster that an earlier run left in a folder, with all that lies beside it.

        Whatever else a folder holds is somebody's. Raises LabError for it, and touches nothing.
        """
        if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
            return
        if not (folder / LOCK_FILE).is_file():
            raise LabError(f"{folder} holds what no earlier run left there: name another place")
        with cls(folder):
            pass
        shutil.rmtree(folder)

    def save(self) -> None:
        """Write down what a later command must know, in one step."""
        written = self.folder / f"{STATE_FILE}.new"
        written.write_text(json.dumps(asdict(self._state), indent=1) + "\n")
        written.replace(self.folder / STATE_FILE)

    def wipe(self) -> None:
        """Forget data, logs and configuration; the ports stay."""
        for name in PARTS:
            shutil.rmtree(self.folder / name, ignore_errors=True)

    def part(self, *names: str) -> Path:
        """A folder of the cluster, made when it is missing."""
        place = self.folder.joinpath(*names)
        place.mkdir(parents=True, exist_ok=True)
        return place

    def port(self, name: str) -> int:
        """The port that belongs to this name from now on; of a broker, its main one."""
        names = self._state.names
        if name not in names:
            assert len(names) < PROCESSES_MAXIMUM
            names.append(name)
        return self.ports[names.index(name) * PORTS_EACH + MAIN]

    def ha_port(self, name: str) -> int:
        """The port at which a broker's replicas copy its log: one above the main one."""
        return self.port(name) + 1

    def host(self, _name: str) -> str:
        """The address at which all others reach a process."""
        return LOOPBACK

    def address(self, name: str) -> str:
        """ADDRESS:PORT of a process."""
        return f"{self.host(name)}:{self.port(name)}"

    def configure(self, name: str, settings: Settings) -> Path:
        """Write a properties file and return its path."""
        path = self.part("conf") / f"{name}.properties"
        path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        return path

    def start(self, program: Program, role: str, name: str, settings: Settings) -> StartedProcess:
        """Start a process in its role (a broker, say), under this name."""
        return self.launch(name, program.command(self, role, name, settings))

    def launch(self, name: str, command: Sequence[str]) -> StartedProcess:
        """Start a process, and write down that it was started; what it prints goes to log/NAME.out."""
        variables = environment(HOME=str(self.part("home", name)), TMPDIR=str(self.part("tmp")))
        log = self.part("log") / f"{name}.out"
        process = self.processes[name] = spawn(name, command, log=log, variables=variables)
        self._state.processes = list(self.processes.values())
        self.save()
        return process

    def kill(self, name: str) -> float:
        """End a process as kill -9 does; returns the moment of it, on `time.monotonic`."""
        process = self.processes.pop(name)
        at_s = time.monotonic()
        kill([process])
        return at_s

    def stop(self, name: str) -> None:
        """End a process in order."""
        terminate([self.processes.pop(name)])

    def stop_all(self) -> None:
        """End all processes in order, the last one first."""
        terminate(reversed(list(self.processes.values())))
        self.processes.clear()

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
        try:
            return poll.until(
                attempt,
                waiting_for=waiting_for,
                patience_s=patience_s,
                every_s=self.poll_s,
                check=lambda: self._check_alive(waiting_for),
            )
        except LabError as error:
            raise LabError(f"{error} (logs: {self.folder / 'log'})") from None

    def _check_alive(self, waiting_for: str) -> None:
        for name, process in self.processes.items():
            if not process.alive:
                raise LabError(f"{waiting_for}: {name} has ended: {self._last_words(name)}")

    def _last_words(self, name: str) -> str:
        """The last line that a process printed."""
        lines = (self.part("log") / f"{name}.out").read_text(errors="replace").strip().splitlines()
        return lines[-1].strip() if lines else "it said nothing"


def _load(path: Path) -> ClusterState | None:
    """The state of a cluster that was left there, None when there is none. Raises LabError."""
    try:
        fields = json.loads(path.read_text())
        fields["processes"] = [StartedProcess(**each) for each in fields["processes"]]
        return ClusterState(**fields)
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, KeyError, OSError) as error:
        raise LabError(f"{path} cannot be read: {error}") from error
