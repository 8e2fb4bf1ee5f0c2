"""Being asked to stop by a signal, while this process works or waits."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

# What a shell adds to the number of a signal that ended a command.
SIGNALLED = 128


class AskedToStop:
    """Whether somebody has asked.

    A signal may come at any moment of the thread that waits here, also while it begins or ends to wait. So
    nothing here takes a lock, as an Event does: that thread may have it.
    """

    def __init__(self) -> None:
        self.asked = False
        self._heard, self._say = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)

    def ask(self) -> None:
        """Ask, from anywhere."""
        if not self.asked:
            self.asked = True
            os.write(self._say, b".")

    def wait(self, seconds: float) -> bool:
        """Wait so long, or until it is asked; whether it was."""
        if not self.asked:
            select.select([self._heard], [], [], seconds)
        return self.asked

    def close(self) -> None:
        """Give back what the system lent."""
        os.close(self._heard)
        os.close(self._say)


@contextmanager
def stopped_by_signals() -> Iterator[AskedToStop]:
    """What Ctrl-C, SIGTERM and a closed terminal ask to stop; a second Ctrl-C ends at once.

    Where a closed terminal is ignored (nohup), it stays so.
    """
    stop = AskedToStop()

    def ask(number: int, _frame: object) -> None:
        if stop.asked and number == signal.SIGINT:
            raise KeyboardInterrupt
        stop.ask()

    heard = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        heard.append(signal.SIGHUP)
    before = {number: signal.signal(number, ask) for number in heard}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        stop.close()


@contextmanager
def interrupted_by_signals() -> Iterator[list[int]]:
    """SIGTERM and a closed terminal interrupt the block as Ctrl-C does, for which whoever runs in it is made.

    Yields the numbers of those that came. What is ignored stays so; where that is Ctrl-C (the background of a
    shell without job control), the others interrupt all the same.
    """
    came: list[int] = []

    def interrupt(number: int, frame: FrameType | None) -> None:
        came.append(number)
        interrupted = signal.getsignal(signal.SIGINT)
        if callable(interrupted):
            interrupted(signal.SIGINT, frame)

    heard = [each for each in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(each) is not signal.SIG_IGN]
    with _interruptible():
        before = {number: signal.signal(number, interrupt) for number in heard}
        try:
            yield came
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


@contextmanager
def _interruptible() -> Iterator[None]:
    """Within it somebody answers an interrupt, also where Ctrl-C is ignored, which is held back meanwhile."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        yield
        return
    held = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_SETMASK, held)
