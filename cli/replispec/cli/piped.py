"""Standard input read to its end, where Ctrl-C is an end as well.

A terminal sends Ctrl-C to both sides of a pipe: `tcpdump -w - | replispec replay -` is ended so, and what was
captured until then is wanted.
"""

from __future__ import annotations

import errno
import os
import select
import shutil
import signal
import stat
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import BinaryIO, Final, NamedTuple

import click

BLOCK_BYTES: Final = 1 << 20
# What a writer that is asked to end may still hand over, and how long it may take for the next of it.
HANDED_OVER_BYTES: Final = 64 << 20
SILENT_S: Final = 5.0


class FirstBytes(NamedTuple):
    """`begins` is given the first `size` bytes, and raises where nothing that begins so is wanted."""

    size: int
    begins: Callable[[bytes], None]


def copy_input(file: BinaryIO, check: FirstBytes) -> None:
    """Write what comes on standard input to a file, when `check` has seen how it begins.

    From a pipe the first Ctrl-C is the end: what the writer still hands over is read, HANDED_OVER_BYTES at
    most, and no longer than SILENT_S without any. The second one interrupts, and so does the first where
    nothing came. Raises KeyboardInterrupt, OSError, and what `check` does.
    """
    if sys.stdin is None:
        raise OSError(errno.EBADF, "it is closed", "standard input")
    checked = _Checked(file, check)
    if not _is_piped():
        shutil.copyfileobj(sys.stdin.buffer, checked)
        return
    source, came, end = sys.stdin.fileno(), 0, None
    with _interrupted() as (asked, heard):
        while end is None or came < end:
            ready, _, _ = select.select(
                [source] if end else [source, asked], [], [], None if end is None else SILENT_S
            )
            if asked in ready:
                end = came + HANDED_OVER_BYTES
                continue
            block = os.read(source, BLOCK_BYTES) if ready else b""
            if not block:
                break
            came += checked.write(block)
            file.flush()
    if heard:
        if not came:
            raise KeyboardInterrupt
        said = f"standard input was ended by Ctrl-C: going on with the {came} bytes that came"
        click.echo(f"replispec: {said}", err=True)


class _Checked:
    """A file that takes nothing more once its first bytes were refused."""

    def __init__(self, file: BinaryIO, check: FirstBytes) -> None:
        self._file = file
        self._check = check
        self._head = b""

    def write(self, block: bytes) -> int:
        """How many bytes were written. Raises what the check does."""
        if len(self._head) < self._check.size:
            self._head += block[: self._check.size - len(self._head)]
            if len(self._head) == self._check.size:
                self._check.begins(self._head)
        return self._file.write(block)


def _is_piped() -> bool:
    """Whether standard input comes from another process, and signals can be heard."""
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
    except (OSError, ValueError):
        return False
    heard = threading.current_thread() is threading.main_thread()
    return heard and (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode))


@contextmanager
def _interrupted() -> Iterator[tuple[int, list[int]]]:
    """A descriptor that can be read from the first Ctrl-C on, and what was heard; the second is raised."""
    asked, asking = os.pipe()
    heard: list[int] = []

    def hear(number: int, _frame: object) -> None:
        if heard:
            raise KeyboardInterrupt
        heard.append(number)
        os.write(asking, b"!")

    ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    before = signal.SIG_IGN if ignored else signal.signal(signal.SIGINT, hear)
    try:
        yield asked, heard
    finally:
        signal.signal(signal.SIGINT, before)
        os.close(asked)
        os.close(asking)
