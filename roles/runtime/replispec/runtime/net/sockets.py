"""TCP sockets as the loop wants them: they never wait, and end when their peer is gone."""

from __future__ import annotations

import os
import socket
from types import MappingProxyType
from typing import Any, Final

import trio

from replispec.runtime.net.addresses import resolve

SILENCE_OPTIONS: Final = MappingProxyType(
    {
        "TCP_KEEPIDLE": 10,
        "TCP_KEEPINTVL": 5,
        "TCP_KEEPCNT": 4,
        "TCP_USER_TIMEOUT": 30_000,
    }
)
"""A machine that acknowledges nothing for 30 s is gone: seconds, seconds, probes, milliseconds."""


async def connect(address: str) -> socket.socket:
    """An open socket to the first place of ADDRESS:PORT that answers. Raises OSError, ValueError."""
    failed: OSError | None = None
    for family, kind, protocol, place in await resolve(address):
        sock = socket.socket(family, kind, protocol)
        try:
            prepare(sock)
            await open_socket(sock, place)
        except OSError as error:
            sock.close()
            failed = error
        except BaseException:
            sock.close()
            raise
        else:
            return sock
    raise failed or OSError(f"{address} names no place")


async def open_socket(sock: socket.socket, place: tuple[Any, ...]) -> None:
    """Connect a socket that never waits. Raises OSError."""
    try:
        sock.connect(place)
    except BlockingIOError:
        await trio.lowlevel.wait_writable(sock)
        code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            raise OSError(code, os.strerror(code)) from None
    except OverflowError as error:
        raise OSError(str(error)) from error
    # A dial to a free port of this machine can be given that very port and find itself.
    if sock.getsockname() == sock.getpeername():
        raise OSError("nobody listens there")


def prepare(sock: socket.socket) -> None:
    """Make a TCP socket ready for the loop: never waits, sends small writes at once, and ends when its peer's
    machine is silent, whether there is something to be sent (USER_TIMEOUT) or not (KEEPALIVE)."""
    sock.setblocking(False)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in SILENCE_OPTIONS.items():
        # What a system does not have keeps its defaults.
        option = getattr(socket, name, None)
        if option is not None:
            sock.setsockopt(socket.IPPROTO_TCP, option, value)


def reason_of(error: Exception) -> str:
    """What to tell of an error, without the numbers of this system."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
