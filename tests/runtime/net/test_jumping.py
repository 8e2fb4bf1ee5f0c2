"""The clock of tests jumps over waits, and never while a thread works."""

from __future__ import annotations

import threading

import trio

from tests.jumping import jumping_clock


def test_a_wait_of_an_hour_is_jumped_over() -> None:
    async def run() -> float:
        await trio.sleep(3_600)
        return trio.current_time()

    assert trio.run(run, clock=jumping_clock()) >= 3_600


def test_no_time_passes_while_a_thread_works() -> None:
    async def run() -> float:
        began = trio.current_time()
        with trio.move_on_after(3_600):
            # Many times longer than the clock looks before it jumps.
            await trio.to_thread.run_sync(threading.Event().wait, 0.05)
        return trio.current_time() - began

    assert trio.run(run, clock=jumping_clock()) == 0
