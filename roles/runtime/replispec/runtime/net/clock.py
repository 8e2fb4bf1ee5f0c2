"""The time of events: the wall clock at the start, carried on by a clock that never goes back."""

from __future__ import annotations

import time

import trio


def now_s() -> float:
    """Seconds on a clock that never goes back, for who measures how long something takes."""
    return time.perf_counter()


class Clock:
    """Made inside trio's loop; a test's mock clock is followed."""

    def __init__(self) -> None:
        self._start_s = time.time() - trio.current_time()

    def now_ms(self) -> int:
        """Milliseconds since 1970-01-01T00:00:00Z."""
        return int((self._start_s + trio.current_time()) * 1_000)

    def now_us(self) -> int:
        """Microseconds since 1970-01-01T00:00:00Z."""
        return int((self._start_s + trio.current_time()) * 1_000_000)

    def deadline_s(self, at_ms: int) -> float:
        """The moment on trio's clock at which `now_ms` surely is `at_ms`."""
        return (at_ms + 0.5) / 1_000 - self._start_s


def wall_ms() -> int:
    """Milliseconds since 1970-01-01T00:00:00Z by the wall clock, for who compares it with what others say."""
    return time.time_ns() // 1_000_000
