"""Free ports for the servers of one cluster, several clusters side by side."""

from __future__ import annotations

import random
import socket
from collections.abc import Sequence
from contextlib import ExitStack

from lab.errors import LabError

LOOPBACK = "127.0.0.1"
# Below the range from which Linux gives ports to clients, so that no client takes one meanwhile; and below
# those that a suite and its adapters choose, so that a process that starts again finds its port free.
FIRST, LAST = 12_000, 21_900
TRIES_MAXIMUM = 200


def free_ports(shape: Sequence[int]) -> list[int]:
    """Ports `base + offset` for the offsets of the shape, all of them free at the same moment.

    A server needs its ports in a shape: a broker's other listeners are at fixed distances from its main
    one. Chosen at random, so that clusters started at the same time do not meet. Raises LabError.
    """
    for _ in range(TRIES_MAXIMUM):
        base = random.randrange(FIRST, LAST)
        if _all_free([base + offset for offset in shape]):
            return [base + offset for offset in shape]
    raise LabError(f"no free ports between {FIRST} and {LAST}")


def _all_free(ports: Sequence[int]) -> bool:
    with ExitStack() as held:
        for port in ports:
            listener = held.enter_context(socket.socket())
            try:
                # All addresses: some of the servers bind more than they are told to.
                listener.bind(("", port))
            except OSError:
                return False
        return True
