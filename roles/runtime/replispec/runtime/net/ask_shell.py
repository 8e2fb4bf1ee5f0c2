"""One question to one server, on a connection of its own, for commands that wait for the answer."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from typing import Final, TypeVar

from replispec.runtime.net.sealing import Sealing

T = TypeVar("T")
_CHUNK_BYTES: Final = 65_536


def ask(
    address: str,
    request: bytes,
    read: Callable[[bytes], T | None],
    *,
    timeout_s: float,
    sealing: Sealing | None = None,
) -> T:
    """Send a request to ADDRESS:PORT and hand what comes to `read`, until it returns something.

    Raises OSError when nobody is reached, or says nothing for so long, and whatever `read` raises.
    """
    host, _, port = address.rpartition(":")
    opened = socket.create_connection((host.strip("[]"), int(port)), timeout=timeout_s)
    with opened, opened if sealing is None else sealing.around(opened, address) as connection:
        connection.sendall(request)
        while True:
            data = connection.recv(_CHUNK_BYTES)
            if not data:
                raise ConnectionResetError(f"{address} closed the connection")
            found = read(data)
            if found is not None:
                return found


def until(look: Callable[[], T | None], *, wait_s: float, pause_s: float) -> T | None:
    """What `look` returns as soon as it is something, asked again after each pause; None when it is nothing
    for so long."""
    end = time.monotonic() + wait_s
    while (found := look()) is None and time.monotonic() < end:
        time.sleep(min(pause_s, wait_s))
    return found


def clock_s() -> float:
    """Seconds since some moment, to tell how long something lasts."""
    return time.monotonic()
