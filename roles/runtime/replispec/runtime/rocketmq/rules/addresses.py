"""Addresses as texts, in all the forms that programs write them. Decided by golden examples.

Source: spec/vectors/rocketmq/addresses.yaml.
"""

from __future__ import annotations

from functools import lru_cache
from ipaddress import IPv6Address, ip_address
from typing import Final

_LENGTH_MAX: Final = 300
"""A longer text is no address: host names have at most 253 characters."""
_PORT_MAX: Final = 65_535
_PORT_DIGITS_MAX: Final = 5
_KEPT: Final = 1_024


def canonical_address(address: str) -> str:
    """The one form of HOST:PORT in which addresses are compared."""
    return address if len(address) > _LENGTH_MAX else _canonical(address)


@lru_cache(maxsize=_KEPT)
def _canonical(address: str) -> str:
    host, _, port = address.rpartition(":")
    if not host or not (port.isascii() and port.isdigit()) or len(port) > _PORT_DIGITS_MAX:
        return address
    if int(port) > _PORT_MAX:
        return address
    try:
        found = ip_address(host.removeprefix("[").removesuffix("]").partition("%")[0])
    except ValueError:
        # What has colons is neither a name nor an address.
        return address if ":" in host else f"{host.lower().removesuffix('.')}:{int(port)}"
    if isinstance(found, IPv6Address):
        mapped = found.ipv4_mapped
        return f"[{found}]:{int(port)}" if mapped is None else f"{mapped}:{int(port)}"
    return f"{found}:{int(port)}"
