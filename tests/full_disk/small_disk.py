"""A real file system of a few megabytes for processes of ours: full, and with room again, as a test wants.

It is a tmpfs in a mount namespace of its own, which lives as long as a process that does nothing; root makes
it as it is, anybody else in a user namespace.
"""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from lab.poll import until
from tests.cli.command import command

PATIENCE_S = 60.0
CHUNK = bytes(64 * 1024)


@dataclass
class SmallDisk:
    """The file system at `place` as its processes see it; `outside` is the same for everybody else."""

    place: Path
    outside: Path
    holder: int
    processes: list[Running] = field(default_factory=list)

    def fill(self) -> None:
        """Take all the room that is left, to the last byte."""
        with (self.outside / "ballast").open("ab", buffering=0) as file:
            for size in (len(CHUNK), 4096, 1):
                try:
                    while True:
                        file.write(CHUNK[:size])
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise

    def free(self) -> None:
        """Give that room back."""
        (self.outside / "ballast").unlink()

    def start(self, role: str, **settings: object) -> Running:
        """A role that keeps everything here, its log included; it listens when this returns."""
        log = self.place / f"{role}.log"
        values = {"logLevel": "INFO", "listenPort": 0, **settings}
        arguments = [part for name, value in values.items() for part in ("--set", f"{name}={value}")]
        inside = command(role, *arguments)
        process = subprocess.Popen(
            [*_enter(self.holder), "sh", "-c", 'exec "$@" 2>>"$0"', str(log), *inside],
            stdout=subprocess.PIPE,
            text=True,
        )
        running = Running(process, self.outside / log.name)
        self.processes.append(running)
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, running.log.read_text()
        running.addresses = json.loads(line)["roles"]
        return running


@dataclass
class Running:
    """One process of ours."""

    process: subprocess.Popen[str]
    log: Path
    addresses: dict[str, dict[str, str]] = field(default_factory=dict)

    def port(self, role: str, listener: str) -> int:
        """Where it listens."""
        return int(self.addresses[role][listener].rpartition(":")[2])

    def noted(self, what: str) -> bool:
        """Whether its log has this line; as long as it fits."""
        return what in self.log.read_text()

    def kill(self) -> None:
        """End it at once."""
        self.process.kill()
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()


@contextmanager
def small_disk(place: Path, megabytes: int) -> Iterator[SmallDisk]:
    """A file system of this size; its processes end with the block, and it with them."""
    mount = f'mount -t tmpfs -o size={megabytes}m none "$0" && echo ready && exec sleep infinity'
    holder = subprocess.Popen(
        [*_namespaces(), "sh", "-c", mount, str(place)], stdout=subprocess.PIPE, text=True
    )
    disk = SmallDisk(place, Path(f"/proc/{holder.pid}/root{place}"), holder.pid)
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "ready\n", "no file system could be mounted"
        yield disk
    finally:
        for running in disk.processes:
            running.kill()
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        if holder.stdout is not None:
            holder.stdout.close()


def eventually(condition: object, what: str) -> None:
    """Wait until something holds."""
    assert callable(condition)
    until(lambda: condition() or None, waiting_for=what, patience_s=PATIENCE_S)


def _namespaces() -> list[str]:
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    return ["unshare", *user, "--mount", "--propagation", "private"]


def _enter(holder: int) -> list[str]:
    user = [] if os.geteuid() == 0 else ["--user", "--preserve-credentials"]
    return ["nsenter", "--target", str(holder), *user, "--mount"]
