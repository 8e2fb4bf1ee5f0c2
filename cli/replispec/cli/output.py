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
        # What is still buffered would raise again when the interpreter closes its output.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise ReaderGone from None
