"""How large a value may be: no bound of states ends what grows within a single one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from replispec.explorer.errors import ExplorationError

SIZE_MAX: Final = 65_536
"""Bytes of a text, elements of a list: a system has a log of a few messages."""
BITS_MAX: Final = 64
"""Of a number: no type of the specification has more."""


def check_sizes(of: str, values: Any, names: Iterable[str]) -> None:
    """Raises ExplorationError when one of these fields has grown beyond a bound."""
    for name in names:
        check_size(f"{of}.{name}", getattr(values, name))


def check_size(what: str, value: Any) -> None:
    """Raises ExplorationError when a value has grown beyond a bound."""
    if isinstance(value, int):
        if value.bit_length() > BITS_MAX:
            raise ExplorationError(f"{what} grows beyond {BITS_MAX} bits: say under within how far it counts")
    elif isinstance(value, bytes | str | tuple | list | frozenset | Mapping) and len(value) > SIZE_MAX:
        raise ExplorationError(
            f"{what} grows beyond {SIZE_MAX:,} bytes or elements: say under within how long it is"
        )
