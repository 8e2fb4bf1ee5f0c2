"""From options to a running process."""

from __future__ import annotations

import gc
import os
import resource
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final, Protocol, TextIO

from replispec.runtime.net.host_shell import EXIT_FAILED, Process, run
from replispec.runtime.net.log_shell import Log, LogError, LogFile
from replispec.runtime.net.node_shell import Bounds
from replispec.runtime.net.sealing import Sealing, TlsOptions
from replispec.runtime.net.tap_shell import FileTap, TapError
from replispec.runtime.seeing.listening import check_listening
from replispec.runtime.storage import Storage, StorageFailed
from replispec.runtime.storage.disk_shell import DiskStorage
from replispec.runtime.world import Level, Member

REUSED_BYTES_MAX: Final = 4 * 1024 * 1024
"""Memory of a message up to this is used again for the next one: as much as a message may have by default."""


class ProcessOptions(Protocol):
    """How a process logs, records and ends; a family generates what has these."""

    @property
    def log_level(self) -> str:
        """The name of a `Level`."""
        ...

    @property
    def log_format(self) -> str:
        """JSON or TEXT."""
        ...

    @property
    def log_file(self) -> str:
        """Where the log is written; empty: to standard error."""
        ...

    @property
    def log_file_bytes_max(self) -> int:
        """The size of one part of it."""
        ...

    @property
    def log_files_max(self) -> int:
        """How many parts are kept beside the one that is being written."""
        ...

    @property
    def metrics_listen_address(self) -> Sequence[str]:
        """Where metrics and health are served; nowhere if there is none."""
        ...

    @property
    def metrics_to_anybody(self) -> bool:
        """Whether that may be beyond loopback, though it has neither TLS nor users."""
        ...

    @property
    def tap_file(self) -> str:
        """Where all traffic is recorded; empty: nowhere."""
        ...

    @property
    def tap_side(self) -> str:
        """ALL connections, or those that were ACCEPTED."""
        ...

    @property
    def tap_bytes_max(self) -> int:
        """The size at which a recording ends."""
        ...

    @property
    def stop_timeout_ms(self) -> int:
        """What leaving may take."""
        ...

    @property
    def stall_timeout_ms(self) -> int:
        """How long a peer may take nothing of what it is sent."""
        ...


class MakeMembers(Protocol):
    """A role's factory: its nodes, made of what is stored and of all its randomness."""

    def __call__(self, storage: Storage, seed: int) -> Sequence[Member]:
        """Raises ConfigurationError for options that do not go together, StorageFailed for a disk."""
        ...


def launch(
    role: str,
    options: ProcessOptions,
    make: MakeMembers,
    *,
    tls: TlsOptions | None = None,
    notes: Iterable[str] = (),
    out: TextIO,
    errors: TextIO,
) -> int:
    """Run a role until a signal and return the exit code. Raises ConfigurationError and SealingError."""
    check_listening(options.metrics_listen_address, to_anybody=options.metrics_to_anybody)
    process = _process(role, options, tls)
    _take_descriptors()
    _keep_memory()
    errors.writelines(f"replispec: {note}\n" for note in notes)
    seed = int.from_bytes(os.urandom(8), "big")
    try:
        members = make(DiskStorage(), seed)
    except StorageFailed as error:
        errors.write(f"replispec: {error}\n")
        return EXIT_FAILED
    # What was made so far stays: to look through it for garbage again and again takes 30 ms each time.
    gc.freeze()
    return run(members, process, out=out, errors=errors)


def _take_descriptors() -> None:
    """As many as the system allows, as a JVM does: what a shell gives by default are few for many peers."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _keep_memory() -> None:
    """Have the C library keep what was freed, up to twice this: by default it gives each large buffer back,
    and the system fills its pages with zeros for the next message, which takes longer than all else with it.

    Source: mallopt(3), M_MMAP_THRESHOLD: it grows to the largest buffer that was ever freed. No page of this
    one is touched. Other C libraries have their own ways, and lose nothing.
    """
    bytes(REUSED_BYTES_MAX)


def _process(role: str, options: ProcessOptions, tls: TlsOptions | None) -> Process:
    return Process(
        level=Level[options.log_level],
        stop_s=options.stop_timeout_ms / 1_000,
        bounds=Bounds(stall_s=options.stall_timeout_ms / 1_000),
        make_tap=partial(_tap, role, options) if options.tap_file else None,
        log_form=options.log_format,
        open_log=partial(_log_file, options) if options.log_file else None,
        seen_at=options.metrics_listen_address,
        sealing=None if tls is None else Sealing(tls),
    )


def _log_file(options: ProcessOptions) -> LogFile:
    """The file of the log. Raises LogError."""
    try:
        path = Path(options.log_file).expanduser()
        return LogFile(path, bytes_max=options.log_file_bytes_max, files_max=options.log_files_max)
    except (OSError, RuntimeError) as error:
        raise LogError(f"{options.log_file}: {getattr(error, 'strerror', None) or error}") from error


def _tap(role: str, options: ProcessOptions, now_us: Callable[[], int], log: Log) -> FileTap:
    def failed(reason: str) -> None:
        log.write(Level.ERROR, role, "recording ended", {"reason": reason})

    try:
        path = Path(options.tap_file).expanduser()
    except RuntimeError as error:
        raise TapError(f"{options.tap_file}: {error}") from error
    return FileTap(
        path,
        now_us,
        accepted_only=options.tap_side == "ACCEPTED",
        bytes_max=options.tap_bytes_max,
        failed=failed,
    )
