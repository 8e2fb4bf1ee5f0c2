"""From settings to a running process."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol, TextIO

from replispec.runtime.configuration import Settings
from replispec.runtime.net.host_shell import EXIT_FAILED, Process, run
from replispec.runtime.net.log_shell import Log
from replispec.runtime.net.node_shell import Bounds
from replispec.runtime.net.tap_shell import FileTap
from replispec.runtime.rocketmq import parameters as p
from replispec.runtime.storage import Storage, StorageFailed
from replispec.runtime.storage.disk_shell import DiskStorage
from replispec.runtime.world import Level, Member


class MakeMembers(Protocol):
    """A role's factory: its nodes, made of what was configured, what is stored, and all its chance."""

    def __call__(self, settings: Settings, storage: Storage, seed: int) -> Sequence[Member]:
        """Raises ConfigurationError for settings that do not go together, StorageFailed for a disk."""
        ...


def launch(settings: Settings, make: MakeMembers, *, out: TextIO, errors: TextIO) -> int:
    """Run a role until a signal and return the exit code. Raises ConfigurationError."""
    process = _process(settings)
    errors.writelines(f"replispec: {note}\n" for note in settings.notes)
    seed = int.from_bytes(os.urandom(8), "big")
    try:
        members = make(settings, DiskStorage(), seed)
    except StorageFailed as error:
        errors.write(f"replispec: {error}\n")
        return EXIT_FAILED
    return run(members, process, out=out, errors=errors)


def _process(settings: Settings) -> Process:
    return Process(
        level=Level[settings[p.LOG_LEVEL]],
        stop_s=settings[p.STOP_TIMEOUT_MILLIS] / 1_000,
        bounds=Bounds(stall_s=settings[p.STALL_TIMEOUT_MILLIS] / 1_000),
        make_tap=partial(_tap, settings) if settings[p.TAP_FILE] else None,
    )


def _tap(settings: Settings, now_us: Callable[[], int], log: Log) -> FileTap:
    def failed(reason: str) -> None:
        log.write(Level.ERROR, settings.role, "recording ended", {"reason": reason})

    return FileTap(
        Path(settings[p.TAP_FILE]).expanduser(),
        now_us,
        accepted_only=settings[p.TAP_SIDE] == "ACCEPTED",
        bytes_max=settings[p.TAP_BYTES_MAX],
        failed=failed,
    )
