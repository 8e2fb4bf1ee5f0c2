"""Standard output and standard error whose reader may go away."""

import errno
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

# A pipe that nobody reads, and a terminal that is not there any more.
GONE = frozenset((errno.EPIPE, errno.EIO))


class ReaderGone(Exception):
    """Whoever read standard output closed it, as `head` does after ten lines; nothing is wrong."""


@contextmanager
def standard_output() -> Iterator[BinaryIO]:
    """Standard output as bytes, flushed at the end. Raises ReaderGone when nobody reads it any more.

    Only what is written here is covered: a pipe to anything else that breaks is an error.
    """
    try:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
    except OSError as error:
        if error.errno not in GONE:
            raise
        drop_output()
        raise ReaderGone from None


def drop_output() -> None:
    """Let nothing more be written: what is still buffered would fail again when the interpreter ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def supply_outputs() -> None:
    """Give a process that was started without standard output, or standard error, one that keeps nothing."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115


class _Unheard(io.RawIOBase):
    """Standard error: what is written when nobody is there any more is left out."""

    def __init__(self, number: int) -> None:
        self._number = number

    def writable(self) -> bool:
        """See io.RawIOBase."""
        return True

    def fileno(self) -> int:
        """See io.RawIOBase."""
        return self._number

    def isatty(self) -> bool:
        """See io.RawIOBase."""
        return os.isatty(self._number)

    def write(self, content: Any) -> int:
        """Write it, or drop it; how many bytes it was."""
        view = memoryview(content)
        try:
            return os.write(self._number, view)
        except OSError as error:
            if error.errno not in GONE:
                raise
            return view.nbytes


def hear_no_complaints() -> None:
    """Let a reader of standard error go away: that changes nothing of what a command does."""
    before = sys.stderr
    raw = io.BufferedWriter(_Unheard(before.fileno()))
    sys.stderr = io.TextIOWrapper(raw, before.encoding, "backslashreplace", line_buffering=True)
