"""Standard output whose reader may go away."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO


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
    except BrokenPipeError:
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
