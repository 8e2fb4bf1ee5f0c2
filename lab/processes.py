"""Processes of a cluster: started apart from their starter, told apart from all others, ended for certain.

A pid alone may have been given to somebody else meanwhile, so the moment of its start is kept with it
(where /proc tells it), and only that process is ever signalled.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from lab import families
from lab.poll import poll

PROC = Path("/proc")
# Fields of /proc/PID/stat after the name of the program, which ends with the last parenthesis.
STATE, PARENT, FIRST_TIME, LAST_TIME, STARTED = 0, 1, 11, 15, 19
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
ORDERLY_END_S = 30.0
KILLED_END_S = 10.0


@dataclass(frozen=True, slots=True)
class StartedProcess:
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
        _, fields = _stat(self.pid)
        if not fields or fields[STATE] in "ZX":
            return False
        # A child that nobody waited for keeps its pid, so it is this very process.
        return fields[STARTED] == self.started if self.started else int(fields[PARENT]) == os.getpid()


@dataclass(frozen=True, slots=True)
class Usage:
    """What one living process has used. CPU seconds include those of children that ended; memory is the
    peak, in MB."""

    pid: int
    parent: int
    name: str
    cpu_s: float
    peak_mb: float


def environment(**more: str) -> dict[str, str]:
    """The variables that a process of a cluster is given: this process's own without what a user has set for
    clusters of another kind."""
    foreign = {each for name in families.names() for each in families.in_the_lab(name).foreign_variables}
    kept = {name: value for name, value in os.environ.items() if name not in foreign}
    return kept | more


def spawn(name: str, command: Sequence[str], *, log: Path, variables: Mapping[str, str]) -> StartedProcess:
    """Start a process in a session of its own; what it prints is appended to `log`. Raises OSError."""
    with log.open("ab") as output:
        popen = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=log.parent,
            env=variables,
            start_new_session=True,
        )
    _, fields = _stat(popen.pid)
    # Its starter may go away first: nobody will wait for it then, and Python need not say so.
    popen.returncode = 0
    return StartedProcess(name, popen.pid, fields[STARTED] if fields else "")


def kill(processes: Iterable[StartedProcess]) -> None:
    """End the processes at once, as a crash does, and wait until they are gone."""
    _end(list(processes), signal.SIGKILL, KILLED_END_S)


def terminate(processes: Iterable[StartedProcess]) -> None:
    """End the processes in order; those that do not go are killed."""
    left = _end(list(processes), signal.SIGTERM, ORDERLY_END_S)
    kill(left)


def usage(pid: int) -> list[Usage]:
    """What the process and its living descendants have used, each."""
    living = {each.pid: each for each in map(_usage, _numbers()) if each is not None}
    found = {pid}
    while more := {each.pid for each in living.values() if each.parent in found} - found:
        found |= more
    return [living[each] for each in sorted(found) if each in living]


def cpu_seconds(pid: int) -> float:
    """CPU seconds of a process and its descendants so far; falls when a descendant ends whose parent does
    not wait for it."""
    return sum(each.cpu_s for each in usage(pid))


def _end(
    processes: Sequence[StartedProcess], number: signal.Signals, patience_s: float
) -> list[StartedProcess]:
    """Signal the living and give those that still live when the patience is over."""
    for process in processes:
        if process.alive:
            with suppress(ProcessLookupError):
                os.kill(process.pid, number)
                # A process that was stopped meets the first signal only when it goes on.
                os.kill(process.pid, signal.SIGCONT)

    def gone() -> bool | None:
        _reap(processes)
        return None if any(process.alive for process in processes) else True

    poll(gone, patience_s=patience_s)
    return [process for process in processes if process.alive]


def _reap(processes: Iterable[StartedProcess]) -> None:
    for process in processes:
        with suppress(ChildProcessError):
            os.waitpid(process.pid, os.WNOHANG)


def _numbers() -> list[int]:
    return [int(entry.name) for entry in PROC.iterdir() if entry.name.isdigit()]


def _usage(pid: int) -> Usage | None:
    """None when it has ended meanwhile."""
    name, fields = _stat(pid)
    try:
        status = (PROC / str(pid) / "status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    if not fields:
        return None
    ticks = sum(map(int, fields[FIRST_TIME:LAST_TIME]))
    peaks = [line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:")]
    peak_mb = sum(map(int, peaks)) * 1024 / 10**6
    return Usage(pid, int(fields[PARENT]), name, ticks / TICKS_PER_SECOND, peak_mb)


def _stat(pid: int) -> tuple[str, list[str]]:
    """The name of the program and the fields after it; empty when there is no such process."""
    try:
        text = (PROC / str(pid) / "stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return "", []
    end = text.rindex(")")
    return text[text.index("(") + 1 : end], text[end + 2 :].split()
