"""A clock that jumps to the next deadline once every task waits and no thread works.

Bytes on loopback are there as soon as they were sent, so a look that finds none is enough: nothing that a
process waits for comes from elsewhere. For what comes from another process a test waits longer (`idle_s`).
A thread is seen by what it holds of trio's limit: while one writes no time passes, however busy the machine.
"""

from __future__ import annotations

import trio
import trio.testing

IDLE_S = 0.001
"""Real seconds without work before the clock jumps."""


def jumping_clock(idle_s: float = IDLE_S) -> trio.testing.MockClock:
    """The clock of one `trio.run`."""
    clock = trio.testing.MockClock(autojump_threshold=idle_s)
    jump = clock._autojump

    def unless_a_thread_works() -> None:
        if not trio.to_thread.current_default_thread_limiter().borrowed_tokens:
            jump()

    vars(clock)["_autojump"] = unless_a_thread_works
    return clock
