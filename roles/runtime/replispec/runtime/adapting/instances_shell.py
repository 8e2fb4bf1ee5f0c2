"""One instance of an adapter: a process of ours, what it wrote, and the ports that it was given."""

from __future__ import annotations

import os
import random
import shutil
import signal
import socket
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from replispec.runtime.adapting.ports_shell import Claim, are_free, claim

LAST_WORDS_BYTES_MAXIMUM: Final = 4096
_KILLED_S: Final = 10.0
_DIAL_S: Final = 0.2
_TRIES: Final = 100
# Below the range from which systems give ports to clients, and apart from those that a suite reserves for the
# members of its groups: nobody takes one before an instance listens, or while it is down.
_PORTS: Final = (22_000, 27_000)


class Instance:
    """A name with a folder that outlives its process, and ports that it keeps from start to start."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self.folder = folder
        self.ports: dict[int, int] = {}
        self._claims: list[Claim] = []
        self.suspended = False
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def running(self) -> bool:
        """Whether it was started and nobody was told yet that it ended."""
        return self._process is not None

    @property
    def process_id(self) -> int:
        """The id of its process. It must be running."""
        assert self._process is not None
        return self._process.pid

    @property
    def storage(self) -> Path:
        """Where it writes what survives its process."""
        return self.folder / "data"

    def choose_port(self, purpose: int, host: str, distance: int) -> None:
        """Give it a port for good, and the one at this distance if it listens there too. Raises OSError."""
        self.ports[purpose], claimed = free_port(host, distance)
        self._claims.append(claimed)

    def launch(self, command: Sequence[str]) -> None:
        """Start its process in the adapter's process group, so that who ends the group ends it too.

        What it prints goes to a file: the adapter's own output belongs to the runner. Raises OSError.
        """
        self.storage.mkdir(parents=True, exist_ok=True)
        self.suspended = False
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                list(command),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.folder,
            )

    def ended(self) -> int | None:
        """The status that its process ended with, negative for a signal; None while it lives."""
        return None if self._process is None else self._process.poll()

    def forget(self) -> None:
        """Its end was told."""
        self._process = None

    def kill(self) -> None:
        """End it without letting it do anything more."""
        if self._process is not None:
            self._process.kill()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_KILLED_S)
        self._process = None

    def stop(self, within_s: float) -> bool:
        """End it in order. False: it did not end in time and was killed."""
        assert self._process is not None
        self.resume()
        self._process.terminate()
        try:
            self._process.wait(within_s)
        except subprocess.TimeoutExpired:
            self.kill()
            return False
        self._process = None
        return True

    def suspend(self) -> None:
        """Take the processor from it."""
        os.kill(self.process_id, signal.SIGSTOP)
        self.suspended = True

    def resume(self) -> None:
        """Give the processor back."""
        os.kill(self.process_id, signal.SIGCONT)
        self.suspended = False

    def give_ports_back(self) -> None:
        """From now on others may be given them."""
        for each in self._claims:
            each.end()
        self._claims.clear()

    def reset(self) -> None:
        """Remove all that it wrote, and give its ports back. It must not be running."""
        self.give_ports_back()
        shutil.rmtree(self.folder, ignore_errors=True)

    def last_words(self) -> str:
        """The end of what it printed, cut at a whole character."""
        try:
            with self._log.open("rb") as log:
                log.seek(max(0, self._log.stat().st_size - LAST_WORDS_BYTES_MAXIMUM))
                data = log.read(LAST_WORDS_BYTES_MAXIMUM)
        except OSError:
            return ""
        text = data.decode("utf-8", "ignore")
        return "".join(letter for letter in text if letter.isprintable() or letter == "\n")

    @property
    def _log(self) -> Path:
        return self.folder / "out.log"


def free_port(host: str, distance: int = 0) -> tuple[int, Claim]:
    """A port where nobody listens, nor at the one at this distance from it; both claimed. Raises OSError."""
    for _ in range(_TRIES):
        port = random.randrange(*_PORTS)
        ports = {port, port + distance}
        claimed = claim(ports)
        if claimed is None:
            continue
        if are_free(host, ports):
            return port, claimed
        claimed.end()
    raise OSError(f"no free ports at {host}")


def takes_connections(places: Mapping[int, tuple[str, int]]) -> bool:
    """Whether all of these places take a connection now."""
    for place in places.values():
        try:
            socket.create_connection(place, timeout=_DIAL_S).close()
        except OSError:
            return False
    return True
