"""The same seed gives the same trace in any process, whatever the order in which Python keeps sets."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.house.tree import ROOT

PROGRAM = "from tests.sim.test_registrations import run; print(run(21)[1])"


def digest(hash_seed: str) -> str:
    """The digest of a run in a process of its own."""
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_the_order_of_sets_does_not_matter() -> None:
    digests = {digest(hash_seed) for hash_seed in ("1", "2", "3")}
    assert len(digests) == 1
    assert len(digests.pop()) == 64
