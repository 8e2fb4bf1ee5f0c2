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
    async def run() -> bool:
        begun, ended = threading.Event(), threading.Event()

        def work() -> None:
            begun.set()
            # Ends by itself, many times later than the clock would have jumped.
            ended.wait(0.05)

        with trio.move_on_after(3_600) as waiting:
            await trio.to_thread.run_sync(work)
        return begun.is_set() and not waiting.cancelled_caught

    assert trio.run(run, clock=jumping_clock())
