"""Texts inside fields, written and read in one place, and the hash that a queue index holds.

Golden examples in spec/vectors/rocketmq/formats.yaml.
"""

from __future__ import annotations

from typing import Final

from replispec.runtime.primitives.orders import java_hash

_BETWEEN: Final = ";"


def check_code(address: str, created_ms: int) -> str:
    """The check code under which a broker at this address applies for an id."""
    return f"{address}{_BETWEEN}{created_ms}"


def peer(peer_id: str, address: str) -> str:
    """One controller in a list of its group, HOST:PORT after its id."""
    return f"{peer_id}:{address}{_BETWEEN}"


def peer_addresses(peers: str) -> list[str]:
    """The addresses in a list of controllers, HOST:PORT each, with ids before them or without."""
    parts = (each.split(":") for each in peers.split(_BETWEEN))
    return [":".join(each[-2:]) for each in parts if len(each) >= 2]


def string_hash(text: str) -> int:
    """`String.hashCode` of Java, a signed 32-bit number."""
    code = java_hash(text)
    return code - (code >> 31 << 32)
