"""Machines for a page: each a folder, with ports of its own on loopback or in a network namespace."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from itertools import takewhile
from pathlib import Path
from typing import IO, Final

from lab.namespaces import OUTER, Namespaces
from lab.poll import poll
from lab.ports import LOOPBACK, free_ports
from tests.house.tree import ROOT
from tests.operate.page import Page, Step, fits, page

WAIT_S: Final = 90.0
LOOK_EVERY_S: Final = 1.0
MACHINES: Final = ("m1", "m2", "m3", "m4")
CLIENT: Final = "client"
FIRST: Final = 11
ADDRESS: Final = re.compile(re.escape(OUTER.format("")) + r"(\d+)(?::(\d+))?\b")
LISTENS: Final = re.compile(r"^listenPort=(\d+)$", re.MULTILINE)
# A broker's other listeners are beside its own: each is where it is from there.
PORTS: Final = (10909, 10910, 10911, 10912, 9876, 9878)
# As installed; a machine's folder stands before them.
PLACES: Final = ("/etc/replispec", "/var/lib/replispec")
PROGRAM: Final = "/opt/replispec/bin/replispec"
UNITS: Final = ROOT / "deploy/systemd"
# Smaller files of the log than an operator wants.
LOG_FILES: Final = ("mappedFileSizeCommitLog=1073741824", "mappedFileSizeCommitLog=4194304")
# Commands that only look: repeated until they say what the page says, as an operator does.
LOOKS: Final = (
    "replispec status",
    "replispec admin health",
    "replispec admin getSyncStateSet",
    "replispec admin members list",
)


class Machines:
    """Four machines and what runs on them. Leaving the block ends all of it."""

    def __init__(self, folder: Path, network: Namespaces | None = None) -> None:
        self.folder = folder
        self._network = network
        places = [(machine, port) for machine in MACHINES for port in PORTS]
        self._ports = dict(zip(places, free_ports(range(len(places))), strict=True))
        self._exports = dict.fromkeys(MACHINES, "")
        self._running: dict[tuple[str, str], subprocess.Popen[str]] = {}
        self._program = folder / "bin" / "replispec"
        self._program.parent.mkdir(parents=True)
        self._program.write_text(f'#!/bin/sh\nexec {sys.executable} -P -m replispec.cli "$@"\n')
        self._program.chmod(0o755)
        for machine in MACHINES:
            for place in PLACES:
                self.path(machine, place).mkdir(parents=True)

    def path(self, machine: str, place: str) -> Path:
        """Where something of a machine lies here."""
        return self.folder / machine / place.lstrip("/")

    def address(self, machine: str, port: int) -> tuple[str, int]:
        """How a client reaches it."""
        if self._network is not None:
            return OUTER.format(FIRST + MACHINES.index(machine)), port
        return LOOPBACK, self._ports[machine, port]

    def here(self, machine: str, text: str) -> str:
        """The page's text with the addresses and folders of this run."""
        if self._network is None:
            text = ADDRESS.sub(self._place, text)
            text = LISTENS.sub(lambda found: f"listenPort={self._ports[machine, int(found[1])]}", text)
        for place in PLACES:
            text = text.replace(place, str(self.path(machine, place)))
        return text.replace(*LOG_FILES).replace(PROGRAM, str(self._program))

    def _place(self, found: re.Match[str]) -> str:
        if found[2] is None:
            return LOOPBACK
        return f"{LOOPBACK}:{self._ports[MACHINES[int(found[1]) - FIRST], int(found[2])]}"

    def as_client(self) -> AbstractContextManager[None]:
        """What this thread opens is a client's while the block lasts."""
        return self._network.inside(CLIENT) if self._network is not None else nullcontext()

    def write(self, followed: Page) -> None:
        """The page's files, each on its machines."""
        for machines, name, text in followed.files:
            for machine in machines:
                self.path(machine, f"{PLACES[0]}/{name}.properties").write_text(self.here(machine, text))

    def follow(self, steps: Sequence[Step]) -> None:
        """Each command in order; what it prints is what the page shows."""
        for step in steps:
            patience_s = WAIT_S if step.line.startswith(LOOKS) else 0
            said = ""
            expected = [self.here(step.machine, line) for line in step.prints]

            def tried(step: Step = step, expected: Sequence[str] = expected) -> bool | None:
                nonlocal said
                said = self.run(step.machine, step.line)
                return fits(expected, said) or None

            found = poll(tried, patience_s=patience_s, every_s=LOOK_EVERY_S)
            assert found, f"{step.machine}: {step.line}\n{said}\nnot as the page:\n" + "\n".join(expected)

    def run(self, machine: str, line: str) -> str:
        """What a command prints, with its exit code where it is not 0."""
        words = shlex.split(line)
        if words[0] == "systemctl":
            return self._systemctl(machine, [each for each in words[1:] if not each.startswith("-")])
        if words[0] == "export":
            self._exports[machine] += f"{self.here(machine, line)}\n"
            return ""
        done = subprocess.run(
            self._on(machine, ["bash", "-c", self._exports[machine] + self.here(machine, line)]),
            cwd=self.path(machine, PLACES[1]),
            env={**os.environ, "PATH": f"{self._program.parent}:{os.environ['PATH']}"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return done.stdout + (f"[{done.returncode}]\n" if done.returncode else "")

    def logged(self, machine: str, unit: str) -> str:
        """What a unit wrote to its journal."""
        return self._journal(machine, unit).read_text()

    def kill(self, machine: str) -> None:
        """All that runs there ends at once, as if without power."""
        for where, unit in [each for each in self._running if each[0] == machine]:
            self._end(where, unit, signal.SIGKILL)

    def end(self) -> None:
        """All of it."""
        for machine, unit in tuple(self._running):
            self._end(machine, unit, signal.SIGKILL)

    def _systemctl(self, machine: str, words: Sequence[str]) -> str:
        verb, *units = words
        if verb == "poweroff":
            self.kill(machine)
        for unit in units:
            if verb in ("stop", "restart", "disable"):
                code = self._end(machine, unit, signal.SIGTERM)
                # One that is not to be started again may have ended by itself.
                assert code == 0 or verb == "disable", (machine, unit, code, self.logged(machine, unit))
            if verb == "kill":
                self._end(machine, unit, signal.SIGKILL)
            if verb in ("start", "restart", "enable"):
                self._begin(machine, unit)
        return ""

    def _begin(self, machine: str, unit: str) -> None:
        """What the unit says is started; it has said that it listens, or has ended."""
        text = (UNITS / f"{unit}.service").read_text()
        (line,) = re.findall(r"^ExecStart=(.*)$", text, re.MULTILINE)
        (folder,) = re.findall(r"^WorkingDirectory=(.*)$", text, re.MULTILINE)
        with self._journal(machine, unit).open("a") as journal:
            process = subprocess.Popen(
                self._on(machine, shlex.split(self.here(machine, line))),
                cwd=self.here(machine, folder),
                stdout=subprocess.PIPE,
                stderr=journal,
                text=True,
            )
        self._running[machine, unit] = process
        assert process.stdout is not None
        listens = str(process.pid) in process.stdout.readline()
        assert listens, (machine, unit, self.logged(machine, unit))

    def _end(self, machine: str, unit: str, how: signal.Signals) -> int:
        process = self._running.pop((machine, unit))
        process.send_signal(how)
        code = process.wait(60)
        _closed(process.stdout)
        return code

    def _journal(self, machine: str, unit: str) -> Path:
        return self.folder / machine / f"{unit}.log"

    def _on(self, machine: str, command: list[str]) -> list[str]:
        return command if self._network is None else self._network.command(machine, command)


def _closed(stream: IO[str] | None) -> None:
    if stream is not None:
        stream.close()


@contextmanager
def machines(folder: Path, network: Namespaces | None = None) -> Iterator[Machines]:
    """Machines that end with the block."""
    found = Machines(folder, network)
    try:
        yield found
    finally:
        found.end()


@contextmanager
def cluster(folder: Path) -> Iterator[Machines]:
    """The cluster of the first page, before a machine of it is lost."""
    first = page("several-machines")
    with machines(folder) as found:
        found.write(first)
        found.follow(list(takewhile(lambda step: "poweroff" not in step.line, first.steps)))
        yield found
