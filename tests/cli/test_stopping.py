"""Whoever is asked to stop by a signal stops, at whatever moment it comes."""

from __future__ import annotations

import subprocess
import sys

# A clock of the process sends a signal every few microseconds, wherever its only thread is then.
STORM = """
import signal
from replispec.cli.stopping import AskedToStop
told = 0
for _ in range(400):
    stop = AskedToStop()
    signal.signal(signal.SIGALRM, lambda number, frame: stop.ask())
    signal.setitimer(signal.ITIMER_REAL, 2e-5, 2e-5)
    while not stop.wait(0.0):
        pass
    for _ in range(50):
        assert stop.wait(10.0)
    signal.setitimer(signal.ITIMER_REAL, 0)
    stop.close()
    told += 1
print(told)
"""
# Far beyond what it needs: who hangs would do so for ever.
S_MAXIMUM = 120


def test_a_signal_that_comes_while_it_begins_to_wait_is_heard() -> None:
    done = subprocess.run(
        [sys.executable, "-c", STORM], capture_output=True, text=True, timeout=S_MAXIMUM, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "400\n", "")
