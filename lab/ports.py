"""Free ports for the servers of one cluster, several clusters side by side."""

from __future__ import annotations

import atexit
import random
from collections.abc import Sequence
from contextlib import ExitStack

from lab.errors import LabError
from replispec.runtime.adapting.ports_shell import Claim, are_free, claim

LOOPBACK = "127.0.0.1"
# Below the range from which Linux gives ports to clients, so that no client takes one meanwhile; and below
# those that a suite and its adapters choose, so that a process that starts again finds its port free.
FIRST, LAST = 12_000, 21_900
TRIES_MAXIMUM = 200
_kept = ExitStack()
atexit.register(_kept.close)


def free_ports(shape: Sequence[int]) -> list[int]:
    """Such ports as `claimed_ports`, for as long as this process lives. Raises LabError."""
    ports, claimed = claimed_ports(shape)
    _kept.callback(claimed.end)
    return ports


def claimed_ports(shape: Sequence[int]) -> tuple[list[int], Claim]:
    """Ports `base + offset` for the offsets of the shape, all of them free at the same moment, and given to
    nobody else who asks here, in whatever process, until the claim ends.

    A server needs its ports in a shape: a broker's other listeners are at fixed distances from its main
    one, and it binds them some time after they were chosen. Raises LabError.
    """
    for _ in range(TRIES_MAXIMUM):
        base = random.randrange(FIRST, LAST)
        ports = [base + offset for offset in shape]
        claimed = claim(ports)
        if claimed is None:
            continue
        # All addresses: some of the servers bind more than they are told to.
        if are_free("", ports):
            return ports, claimed
        claimed.end()
    raise LabError(f"no free ports between {FIRST} and {LAST}")
