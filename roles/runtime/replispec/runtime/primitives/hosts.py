"""What a host's name or address says by itself, without asking anybody."""

from __future__ import annotations

import ipaddress
from typing import Final

from replispec.runtime.primitives.parameters import PORT_MAX
from replispec.runtime.primitives.texts import decimal_of

_OF_NO_HOST: Final = frozenset(",/")


def is_of_loopback(host: str) -> bool:
    """Whether nobody reaches this host from another machine; of a name that only `localhost` says so."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def is_place(text: str) -> bool:
    """Whether this is one HOST:PORT, and nothing behind it."""
    host, _, port = text.rpartition(":")
    return bool(host) and decimal_of(port, PORT_MAX) is not None and not _OF_NO_HOST & set(text)
