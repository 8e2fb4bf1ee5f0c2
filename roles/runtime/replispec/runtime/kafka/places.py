"""Where brokers and stores are, as parameters name it: HOST:PORT."""

from __future__ import annotations

from typing import Final

from replispec.runtime.primitives.parameters import PORT_MAX
from replispec.runtime.primitives.texts import decimal_of

_NO_HOST: Final = frozenset(",/")


def is_place(text: str) -> bool:
    """Whether this is one HOST:PORT; a store's has no folder behind it."""
    host, _, port = text.rpartition(":")
    return bool(host) and decimal_of(port, PORT_MAX) is not None and not _NO_HOST & set(text)
