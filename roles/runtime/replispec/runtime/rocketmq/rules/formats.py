"""Texts inside fields, written and read in one place, and the hash that a queue index holds.

Golden examples in spec/vectors/rocketmq/formats.yaml.
"""

from __future__ import annotations

from functools import lru_cache
from ipaddress import ip_address
from typing import Final

from replispec.runtime.primitives.orders import java_hash
from replispec.runtime.rocketmq.rules.addresses import canonical_address
from replispec.wire.rocketmq.store import OffsetMessageId, OffsetMessageIdV6

_BETWEEN: Final = ";"
_HEXADECIMAL: Final = frozenset("0123456789ABCDEFabcdef")
_OFFSET_DIGITS: Final = 16
"""Hexadecimal digits of the 64-bit number at the end of a message id."""
_BROKERS_KEPT: Final = 1_024


def check_code(address: str, created_ms: int) -> str:
    """The check code under which a broker at this address applies for an id."""
    return f"{address}{_BETWEEN}{created_ms}"


def peer(peer_id: str, address: str) -> str:
    """One controller in a list of its group, HOST:PORT after its id."""
    return f"{peer_id}:{address}{_BETWEEN}"


def peer_addresses(peers: str) -> list[str]:
    """The addresses in a list of controllers, HOST:PORT each, with ids before them or without."""
    parts = (each.rpartition(":") for each in peers.split(_BETWEEN))
    return [f"{_host(host)}:{port}" for host, _, port in parts if host]


def _host(text: str) -> str:
    """The host at the end of `ID:HOST`; one of IPv6 stands in brackets."""
    at = text.rfind("[") if text.endswith("]") else text.rfind(":") + 1
    return text[max(at, 0) :]


def message_id(address: str, physical_offset: int) -> str:
    """The id of the message that a broker at this address stores at an offset."""
    return f"{_digits_of(address)}{physical_offset:0{_OFFSET_DIGITS}X}"


def message_broker(message_id: str) -> str | None:
    """Where the broker is that stores the message; None for what is no message id."""
    if _digits(message_id[-_OFFSET_DIGITS:]) is None:
        return None
    return _address_of(message_id[:-_OFFSET_DIGITS])


def message_offset(message_id: str) -> int | None:
    """Where the message is in the log of that broker; None for what is no message id."""
    data = _digits(message_id[-_OFFSET_DIGITS:])
    if data is None or _address_of(message_id[:-_OFFSET_DIGITS]) is None:
        return None
    return int.from_bytes(data, "big", signed=True)


@lru_cache(maxsize=_BROKERS_KEPT)
def _digits_of(address: str) -> str:
    """What stands before the offset in the ids of a broker."""
    host, _, port = address.rpartition(":")
    ip = ip_address(host.strip("[]"))
    form = OffsetMessageIdV6 if ip.version == 6 else OffsetMessageId
    return form(ip.packed, int(port)).encode().hex().upper()[:-_OFFSET_DIGITS]


@lru_cache(maxsize=_BROKERS_KEPT)
def _address_of(digits: str) -> str | None:
    """The broker whose ids begin so; None when there is none."""
    data = _digits(digits)
    for form in (OffsetMessageId, OffsetMessageIdV6):
        if data is not None and len(data) == len(form().encode()) - _OFFSET_DIGITS // 2:
            place = form.decode(data + bytes(_OFFSET_DIGITS // 2))
            shown = f"[{ip}]" if (ip := ip_address(place.store_ip)).version == 6 else f"{ip}"
            return canonical_address(f"{shown}:{place.store_port}")
    return None


def _digits(text: str) -> bytes | None:
    return bytes.fromhex(text) if text and len(text) % 2 == 0 and set(text) <= _HEXADECIMAL else None


def string_hash(text: str) -> int:
    """`String.hashCode` of Java, a signed 32-bit number."""
    code = java_hash(text)
    return code - (code >> 31 << 32)
