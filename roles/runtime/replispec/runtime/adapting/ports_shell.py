"""Ports that nobody else who asks here is given, on one machine, until they are given back.

A server binds its ports some time after they were chosen for it: a look at who listens finds nobody until
then. Whoever chooses ports claims them first, with those beside that the server takes unasked. A claim is a
name of the kernel, in the same network namespace as the ports, and ends with its process at the latest.
"""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterable
from contextlib import ExitStack
from typing import Final

# Ports are claimed so many together: who takes one is seldom given the next one alone.
CELL: Final = 4
_NAME: Final = "\0replispec-ports-{}"
_CAN_NAME: Final = sys.platform == "linux"


class Claim:
    """Some ports, until `end`."""

    def __init__(self, held: ExitStack) -> None:
        self._held = held

    def end(self) -> None:
        """Give them back."""
        self._held.close()


def claim(ports: Iterable[int]) -> Claim | None:
    """All of these ports; None when somebody has one of them, as nobody has where there are no such names."""
    with ExitStack() as claimed:
        for cell in sorted({port // CELL for port in ports}) if _CAN_NAME else ():
            name = claimed.enter_context(socket.socket(socket.AF_UNIX))
            try:
                name.bind(_NAME.format(cell))
            except OSError:
                return None
        return Claim(claimed.pop_all())


def are_free(host: str, ports: Iterable[int]) -> bool:
    """Whether nobody listens at any of these ports now; every host where it is empty."""
    with ExitStack() as held:
        for port in ports:
            listener = held.enter_context(socket.socket())
            try:
                listener.bind((host, port))
            except OSError:
                return False
        return True
