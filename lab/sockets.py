"""Whom a process is connected to, by the account of the kernel."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from lab.processes import PROC, StartedProcess

# Columns of /proc/PID/net/tcp.
REMOTE, STATE, INODE = 2, 3, 9
ESTABLISHED = "01"


def connected_ports(process: StartedProcess) -> set[int]:
    """The ports at the other ends of its established TCP connections; empty when it has ended."""
    place = PROC / str(process.pid)
    with suppress(FileNotFoundError, ProcessLookupError):
        own = _sockets(place)
        rows = [line.split() for name in ("tcp", "tcp6") for line in _lines(place / "net" / name)]
        return {_port(row[REMOTE]) for row in rows if row[STATE] == ESTABLISHED and row[INODE] in own}
    return set()


def _sockets(place: Path) -> set[str]:
    found = set()
    for link in (place / "fd").iterdir():
        with suppress(FileNotFoundError):
            kind, _, inode = str(link.readlink()).partition(":")
            if kind == "socket":
                found.add(inode.strip("[]"))
    return found


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines()[1:] if path.exists() else []


def _port(address: str) -> int:
    return int(address.rpartition(":")[2], 16)
