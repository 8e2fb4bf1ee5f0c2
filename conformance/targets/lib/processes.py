"""Processes of a target: started apart from their starter, told apart from strangers, ended for certain.

A pid alone may have been given to somebody else meanwhile, so the moment of its start is kept with it
(where /proc tells it), and only that process is ever signalled.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
# Fields of /proc/PID/stat behind the name of the program, which ends with the last parenthesis.
STATE, STARTED = 0, 19
POLL_S = 0.05
ORDERLY_END_S = 30.0
KILLED_END_S = 10.0


@dataclass(frozen=True, slots=True)
class Process:
    """One process that was started here; `started` is in clock ticks since boot, empty when unknown."""

    name: str
    pid: int
    started: str

    @property
    def alive(self) -> bool:
        """Whether this very process still runs; a process that only waits to be reaped has ended."""
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        if not PROC.is_dir():
            return True
        fields = _stat(self.pid)
        return bool(fields) and fields[STATE] not in "ZX" and fields[STARTED] == self.started


def spawn(name: str, command: Sequence[str], *, log: Path, environment: Mapping[str, str]) -> Process:
    """Start a process in a session of its own; what it prints is appended to `log`. Raises OSError."""
    with log.open("ab") as output:
        popen = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=log.parent,
            env=environment,
            start_new_session=True,
        )
    fields = _stat(popen.pid)
    # Its starter goes away first: nobody will wait for it, and Python need not say so.
    popen.returncode = 0
    return Process(name, popen.pid, fields[STARTED] if fields else "")


def kill(processes: Iterable[Process]) -> None:
    """End the processes at once, as a crash does, and wait until they are gone."""
    _end(list(processes), signal.SIGKILL, KILLED_END_S)


def terminate(processes: Iterable[Process]) -> None:
    """End the processes in order; those that do not go are killed."""
    left = _end(list(processes), signal.SIGTERM, ORDERLY_END_S)
    kill(left)


def _end(processes: Sequence[Process], number: signal.Signals, patience_s: float) -> list[Process]:
    """Signal the living and give those that still live when the patience is over."""
    for process in processes:
        if process.alive:
            with suppress(ProcessLookupError):
                os.kill(process.pid, number)
                # A process that was stopped meets the first signal only when it goes on.
                os.kill(process.pid, signal.SIGCONT)
    deadline_s = time.monotonic() + patience_s
    while any(process.alive for process in processes) and time.monotonic() < deadline_s:
        _reap(processes)
        time.sleep(POLL_S)
    return [process for process in processes if process.alive]


def _reap(processes: Iterable[Process]) -> None:
    for process in processes:
        with suppress(ChildProcessError):
            os.waitpid(process.pid, os.WNOHANG)


def _stat(pid: int) -> list[str]:
    try:
        text = (PROC / str(pid) / "stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return []
    return text[text.rindex(")") + 2 :].split()
