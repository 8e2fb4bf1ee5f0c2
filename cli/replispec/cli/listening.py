"""dumpcap, writing what an interface carries into a private ring of files."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import click

from replispec.cli.capture import DUMPCAP, INSTALL, Ring, arguments, selection
from replispec.cli.family import Listeners, ports

NAME = "watch.pcapng"
# What is read is copied at once: the ring holds what a watch that was killed has to catch up on.
FILE_MIB, FILES, BUFFER_MIB = 16, 32, 64
PRIVATE = 0o700
START_S_MAXIMUM, STOP_S_MAXIMUM = 2.0, 10.0


@dataclass(slots=True)
class Listening:
    """A running dumpcap, and the file in which it says what goes wrong. `died`: it ended before it was
    asked to."""

    process: subprocess.Popen[bytes]
    log: Path
    died: bool = False

    def is_alive(self) -> bool:
        """Whether it still captures."""
        self.died = self.died or self.process.poll() is not None
        return not self.died


def check(interface: str) -> None:
    """Whether it could be captured there, asked before anything is made for it. Raises click.ClickException
    without dumpcap, without the right, and where there is no such interface."""
    try:
        asked = subprocess.run(
            [_program(), "-i", interface, "-L"],
            capture_output=True,
            text=True,
            timeout=STOP_S_MAXIMUM,
            check=False,
        )
    except subprocess.TimeoutExpired:
        # Who is this slow to answer may capture all the same; what then fails is said then.
        return
    if asked.returncode:
        raise _refused(interface, asked.stderr)


def _program() -> str:
    program = shutil.which(DUMPCAP)
    if program is None:
        remedy = INSTALL[DUMPCAP].partition(", or")[0]
        raise click.ClickException(f"{DUMPCAP} is not on this machine: {remedy}, or watch a folder")
    return program


def _refused(interface: str, said: str) -> click.ClickException:
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    reason = next((line for line in lines if not line.startswith("Capturing on")), "it says nothing")
    return click.ClickException(f"{DUMPCAP} does not capture on {interface}: {reason}")


@contextmanager
def listening(interface: str, folder: Path, ha_ports: Sequence[int]) -> Iterator[Listening]:
    """Capture as long as the block lasts. Raises click.ClickException without dumpcap, or without the
    right."""
    program = _program()
    folder.mkdir(parents=True, exist_ok=True, mode=PRIVATE)
    known = folder.parent / f"{DUMPCAP}.pid"
    _end_orphan(known, folder)
    ring = Ring(interface, 0, BUFFER_MIB, FILE_MIB, FILES, (folder / NAME).absolute())
    chosen = selection(ports(Listeners(replication=ha_ports)), ())
    said = folder.parent / f"{DUMPCAP}.log"
    with said.open("wb") as log:
        process = subprocess.Popen(
            [program, "-q", *arguments(DUMPCAP, ring, chosen)[1:]],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=log,
            # Ctrl-C ends the watch, which ends it.
            start_new_session=True,
        )
    known.write_text(str(process.pid))
    try:
        _started(process, interface, said)
        yield Listening(process, said)
    finally:
        _ended(process)
        known.unlink(missing_ok=True)


def _end_orphan(known: Path, folder: Path) -> None:
    """End the dumpcap of a watch that was killed: it went on until now, and its files are read."""
    try:
        number = int(known.read_text())
        words = Path(f"/proc/{number}/cmdline").read_bytes().split(b"\0")
    except (OSError, ValueError):
        return
    if bytes((folder / NAME).absolute()) in words:
        os.kill(number, signal.SIGTERM)


def _started(process: subprocess.Popen[bytes], interface: str, said: Path) -> None:
    """Give it the time in which it would say that it cannot. Raises click.ClickException."""
    try:
        process.wait(START_S_MAXIMUM)
    except subprocess.TimeoutExpired:
        return
    raise _refused(interface, said.read_text(errors="replace"))


def _ended(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_S_MAXIMUM)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
