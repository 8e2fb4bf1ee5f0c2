"""The time of one case, which stands still while its adapter is asked for something.

However long others wait for the same adapter, and however long it may take: that is nobody's time. An adapter
has its own allowance, which its questions keep.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

import trio


class CaseClock:
    """Seconds of a case, and its limit."""

    def __init__(self) -> None:
        self._stood_s = 0.0
        self._scope = trio.CancelScope()

    def now_s(self) -> float:
        """The time, without what the adapter took so far."""
        return trio.current_time() - self._stood_s

    @contextmanager
    def limit(self, seconds: float) -> Iterator[None]:
        """Raises trio.TooSlowError when what is done inside takes longer, by this clock."""
        self._scope = trio.CancelScope(deadline=trio.current_time() + seconds)
        with self._scope:
            yield
        if self._scope.cancelled_caught:
            raise trio.TooSlowError

    @contextmanager
    def stands_still(self) -> Iterator[None]:
        """What is done inside takes none of the case's time."""
        began_s, deadline_s = trio.current_time(), self._scope.deadline
        self._scope.deadline = math.inf
        try:
            yield
        finally:
            took_s = trio.current_time() - began_s
            self._stood_s += took_s
            self._scope.deadline = deadline_s + took_s
