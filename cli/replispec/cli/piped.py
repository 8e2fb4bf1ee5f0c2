"""Standard input read to its end, where Ctrl-C is an end as well.

A terminal sends Ctrl-C to both sides of a pipe: `tcpdump -w - | replispec replay -` is ended so, and what was
captured until then is wanted.
"""

from __future__ import annotations

import os
import select
import shutil
import signal
import stat
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO, Final

import click

BLOCK_BYTES: Final = 1 << 20
# What a writer that is asked to end may still hand over, and how long it may take for the next of it.
HANDED_OVER_BYTES: Final = 64 << 20
SILENT_S: Final = 5.0


def copy_input(file: BinaryIO) -> None:
    """Write what comes on standard input to a file.

    From a pipe the first Ctrl-C is the end: what the writer still hands over is read, HANDED_OVER_BYTES at
    most, and no longer than SILENT_S without any. The second one interrupts, and so does the first where
    nothing came. Raises KeyboardInterrupt, OSError.
    """
    if not _is_piped():
        shutil.copyfileobj(sys.stdin.buffer, file)
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
            came += file.write(block)
            file.flush()
    if heard:
        if not came:
            raise KeyboardInterrupt
        said = f"standard input was ended by Ctrl-C: going on with the {came} bytes that came"
        click.echo(f"replispec: {said}", err=True)


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
