"""Identities as texts: check codes, lists of ids. Each function is decided by golden examples.

Source: apache/rocketmq rocketmq-all-5.4.0, ReplicasManager, ControllerRequestProcessor, ReplicasInfoManager.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.primitives.texts import INT64, parse_integer

_DIGITS_MAX: Final = len(str(INT64[1])) - 1
"""Digits of a number that is a 64-bit integer whichever they are."""
_STRANGER: Final = -1
"""No broker's id: those are granted from 1 on."""


def address_of(check_code: str) -> str:
    """The address in a check code such as `127.0.0.1:30911;1700000000000`."""
    # `in` asks, so that a check code that was not seen is found out.
    return check_code.partition(";")[0] if ";" in check_code else check_code


def lists_ids(listed: str | None) -> bool:
    """Whether a text is a list of ids such as `1;2`, or says nothing."""
    return _is_blank(listed) or _parsed(listed) is not None


def listed_ids(listed: str | None) -> frozenset[int] | None:
    """The ids of a list such as `1;2`; None for a text that says nothing or is no such list."""
    return None if _is_blank(listed) else _parsed(listed)


def ids_in(texts: Sequence[str] | None) -> frozenset[int] | None:
    """The numbers that are written as texts; None when there are none to read or one is no 64-bit number."""
    try:
        return None if texts is None else frozenset(parse_integer(each, INT64, "an id") for each in texts)
    except RemoteProtocolError:
        return None


def id_at(addresses: Mapping[int, str], by_address: frozenset[int], address: str | None) -> int | None:
    """The broker at an address: who is known by it alone, else the smallest of the ids recorded there."""
    found = [each for each, known in addresses.items() if known == address]
    return min(found, key=lambda each: (each not in by_address, each), default=None)


def ids_at(
    addresses: Mapping[int, str], by_address: frozenset[int], listed: Sequence[str] | None
) -> frozenset[int] | None:
    """The brokers at several addresses, a stranger among them as one that has no identity."""
    if listed is None:
        return None
    found = (id_at(addresses, by_address, each) for each in listed)
    return frozenset(_STRANGER if each is None else each for each in found)


def listed_at(
    addresses: Mapping[int, str], by_address: frozenset[int], listed: str | None
) -> frozenset[int] | None:
    """The brokers at the addresses of a list; None for a text that says nothing."""
    if _is_blank(listed):
        return None
    return ids_at(addresses, by_address, [each.strip() for each in (listed or "").split(";")])


def addresses_of(addresses: Mapping[int, str], members: frozenset[int]) -> Sequence[str]:
    """The addresses of these brokers, ascending by id."""
    return [addresses[each] for each in sorted(members) if each in addresses]


def _is_blank(listed: str | None) -> bool:
    return not (listed or "").strip()


def _parsed(listed: str | None) -> frozenset[int] | None:
    parts = [part.strip() for part in (listed or "").split(";")]
    if not all(part.isascii() and part.isdigit() and len(part) <= _DIGITS_MAX for part in parts):
        return None
    return frozenset(map(int, parts))
