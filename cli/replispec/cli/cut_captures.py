"""A capture that is made shorter while it is read.

Captures are mapped. What a mapped file has no longer makes the kernel send SIGBUS to the process, in the
middle of any instruction: nothing can go on from there.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from typing import Any

from replispec.cli.failures import EXIT_UNUSABLE

SAID = (
    b"replispec: a capture became shorter while it was read: copy it first, or let replispec watch follow"
    b" the folder\n"
)
_kept: list[Any] = []
"""The handler, as long as the process lives: the C library holds nothing but its address."""


def name_cut_captures() -> None:
    """Let SIGBUS end the process with one line instead of the system's words.

    Python's own handlers run when an instruction is done, which this one never is.
    """
    if not sys.platform.startswith("linux"):
        return
    handler = ctypes.CFUNCTYPE(None, ctypes.c_int)(_end)
    _kept.append(handler)
    ctypes.CDLL(None).signal(int(signal.SIGBUS), handler)


def _end(_number: int) -> None:
    os.write(2, SAID)
    os._exit(EXIT_UNUSABLE)
