"""TCP sockets as the loop wants them: they never wait, and end when their peer is gone."""

from __future__ import annotations

import ipaddress
import os
import socket
from collections.abc import Iterable
from contextlib import suppress
from types import MappingProxyType
from typing import Any, Final

import trio

from replispec.runtime.net.addresses import resolve, split

SILENCE_OPTIONS: Final = MappingProxyType(
    {
        "TCP_KEEPIDLE": 10,
        "TCP_KEEPINTVL": 5,
        "TCP_KEEPCNT": 4,
        "TCP_USER_TIMEOUT": 30_000,
    }
)
"""A machine that acknowledges nothing for 30 s is gone: seconds, seconds, probes, milliseconds."""

# IP_BIND_ADDRESS_NO_PORT of Linux; the module has no name for it before Python 3.14.
_BIND_ADDRESS_NO_PORT: Final = 24


async def connect(address: str, own: str = "") -> socket.socket:
    """An open socket to the first place of ADDRESS:PORT that answers, from the address `own` where that leads
    there. Raises OSError, ValueError."""
    failed: OSError | None = None
    for family, kind, protocol, place in await resolve(address):
        sock = socket.socket(family, kind, protocol)
        try:
            prepare(sock)
            if leads(own, place[0]):
                _bind(sock, own)
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


def own_host(addresses: Iterable[str]) -> str:
    """From which address a process dials whose listeners are at these ADDRESS:PORT: from theirs, if it is
    one, so that peers see it where it is on record. Empty where the system is to choose: for listeners on
    all addresses, and on several."""
    hosts = {split(each)[0] for each in addresses}
    own = hosts.pop() if len(hosts) == 1 else ""
    try:
        known = ipaddress.ip_address(own)
    except ValueError:
        return ""
    return "" if known.is_unspecified or known.is_link_local else own


def leads(own: str, host: str) -> bool:
    """Whether one may dial from this address to that one: both of one kind, and both of this machine alone or
    neither."""
    if not own:
        return False
    try:
        here, there = ipaddress.ip_address(own), ipaddress.ip_address(host)
    except ValueError:
        return False
    return here.version == there.version and here.is_loopback == there.is_loopback


def _bind(sock: socket.socket, own: str) -> None:
    """Dial from this address; the port is chosen when the peer is known, as without it. Raises OSError."""
    with suppress(OSError):
        # Source: ip(7). Without it each port of the machine would serve one connection that is dialled.
        sock.setsockopt(socket.IPPROTO_IP, _BIND_ADDRESS_NO_PORT, 1)
    sock.bind((own, 0))


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
