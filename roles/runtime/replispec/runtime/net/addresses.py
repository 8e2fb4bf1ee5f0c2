"""ADDRESS:PORT, as configurations and brokers write it."""

from __future__ import annotations

from typing import Any, Final

import trio

PORT_MAX: Final = 65_535


def split(address: str) -> tuple[str, int]:
    """Host and port of `host:port`, `1.2.3.4:port` or `[::1]:port`. Raises ValueError for anything else."""
    host, separator, port = address.rpartition(":")
    if not separator or not host or not port.isascii() or not port.isdigit() or int(port) > PORT_MAX:
        raise ValueError(f"{address!r} is not ADDRESS:PORT")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    return host, int(port)


def join(name: tuple[Any, ...]) -> str:
    """The ADDRESS:PORT of what a socket says of itself or of its peer."""
    host, port = name[0], name[1]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


async def resolve(address: str) -> list[tuple[Any, ...]]:
    """Family, kind, protocol and socket address of each place that ADDRESS:PORT names, best first.

    Numbers are not looked up. Raises OSError (an unknown name too) or ValueError.
    """
    host, port = split(address)
    try:
        found = await trio.socket.getaddrinfo(host, port, type=trio.socket.SOCK_STREAM)
    except UnicodeError as error:
        raise ValueError(f"{host!r} is no name of a host") from error
    return [(family, kind, protocol, place) for family, kind, protocol, _, place in found]
