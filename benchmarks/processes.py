"""What processes cost: CPU time and peak memory of a process and its descendants, as Linux tells it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
# Fields of /proc/PID/stat behind the name of the program, which ends with the last parenthesis.
PARENT, FIRST_TIME, LAST_TIME = 1, 11, 15


@dataclass(frozen=True, slots=True)
class Process:
    """One living process. CPU seconds include those of children that ended; memory is the peak, in MB."""

    pid: int
    parent: int
    name: str
    cpu_s: float
    peak_mb: float


def family(pid: int) -> list[Process]:
    """The process and its living descendants."""
    living = {process.pid: process for process in map(_process, _numbers()) if process is not None}
    found = {pid}
    while more := {each.pid for each in living.values() if each.parent in found} - found:
        found |= more
    return [living[each] for each in sorted(found) if each in living]


def cpu_seconds(pid: int) -> float:
    """CPU seconds of a family so far; falls when a descendant ends whose parent does not wait for it."""
    return sum(process.cpu_s for process in family(pid))


def _numbers() -> list[int]:
    return [int(entry.name) for entry in PROC.iterdir() if entry.name.isdigit()]


def _process(pid: int) -> Process | None:
    """None when it has ended meanwhile."""
    try:
        stat = (PROC / str(pid) / "stat").read_text()
        status = (PROC / str(pid) / "status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    name, fields = stat[stat.index("(") + 1 : stat.rindex(")")], stat[stat.rindex(")") + 2 :].split()
    ticks = sum(map(int, fields[FIRST_TIME:LAST_TIME]))
    peaks = [line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:")]
    return Process(
        pid, int(fields[PARENT]), name, ticks / TICKS_PER_SECOND, sum(map(int, peaks)) * 1024 / 10**6
    )
