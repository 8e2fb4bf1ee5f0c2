"""What an adapter leaves behind although its process group was ended: processes with a session of their own.

They are known by a mark that an adapter's environment holds and whatever it starts inherits. A process
that was begun with another environment is not found, and where there is no /proc none is.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

_NAME = "REPLISPEC_ADAPTER"
_PROCESSES = Path("/proc")
# Processes that are started while others are ended are found by looking again.
_LOOKS_MAXIMUM = 20


def marked_environment() -> tuple[dict[str, str], bytes]:
    """The environment for one adapter, and the mark in it by which what it leaves is found."""
    value = uuid4().hex
    return {**os.environ, _NAME: value}, f"{_NAME}={value}".encode()


def end_marked(mark: bytes) -> int:
    """End every process with this mark; how many there were."""
    ended = 0
    for _ in range(_LOOKS_MAXIMUM):
        found = sum(_ended(pid, mark) for pid in _processes())
        ended += found
        if not found:
            break
    return ended


def _processes() -> Iterator[int]:
    if _PROCESSES.is_dir():
        yield from (int(each.name) for each in _PROCESSES.iterdir() if each.name.isdecimal())


def _ended(pid: int, mark: bytes) -> bool:
    """Whether it had the mark and was ended, by its descriptor: its number may be another's meanwhile."""
    # Somebody else's, or gone.
    with suppress(OSError):
        descriptor = os.pidfd_open(pid)
        try:
            if mark in (_PROCESSES / str(pid) / "environ").read_bytes().split(b"\0"):
                signal.pidfd_send_signal(descriptor, signal.SIGKILL)
                return True
        finally:
            os.close(descriptor)
    return False
