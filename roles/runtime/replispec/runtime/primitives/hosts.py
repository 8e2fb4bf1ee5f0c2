"""What a host's name or address says by itself, without asking anybody."""

from __future__ import annotations

import ipaddress


def is_of_loopback(host: str) -> bool:
    """Whether nobody reaches this host from another machine; of a name that only `localhost` says so."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"
