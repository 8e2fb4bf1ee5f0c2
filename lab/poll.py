"""The one loop that waits for what other processes do."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from lab.errors import LabError
from replispec.runtime.primitives.errors import RemoteProtocolError

POLL_S = 0.02
Found = TypeVar("Found")


def poll(attempt: Callable[[], Found | None], *, patience_s: float, every_s: float = POLL_S) -> Found | None:
    """Repeat the attempt, at least once, until it gives something; None when the patience is over."""
    deadline_s = time.monotonic() + patience_s
    while (found := attempt()) is None and time.monotonic() < deadline_s:
        time.sleep(every_s)
    return found


def until(
    attempt: Callable[[], Found | None],
    *,
    waiting_for: str,
    patience_s: float,
    every_s: float = POLL_S,
    check: Callable[[], None] = lambda: None,
) -> Found:
    """Repeat the attempt until it gives something; a peer that is not there yet gives nothing.

    `check` is called after every attempt that gave nothing, and raises when waiting has become hopeless.
    Raises LabError when the patience is over.
    """

    def tried() -> Found | None:
        try:
            found = attempt()
        except (OSError, RemoteProtocolError):
            found = None
        if found is None:
            check()
        return found

    found = poll(tried, patience_s=patience_s, every_s=every_s)
    if found is None:
        raise LabError(f"{waiting_for}: not within {patience_s:g} s")
    return found
