"""Small files of Java's properties as messages: a line for each name, comments, escapes.

Source: java.util.Properties.load and store.
"""

from __future__ import annotations

from collections.abc import Mapping

from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.primitives.parameters import ConfigurationError
from replispec.runtime.primitives.properties import read_properties, write_properties
from replispec.runtime.primitives.texts import text_of


def read_named(data: bytes, what: str) -> dict[str, str]:
    """The value of each name; of one that comes twice the last.

    Raises RemoteProtocolError for what is not UTF-8, or has an escape that is none.
    """
    try:
        found, _ = read_properties(text_of(data))
    except ConfigurationError as fault:
        raise RemoteProtocolError(f"{what}: {fault}") from None
    return found


def take_named(values: dict[str, str], name: str, what: str) -> str:
    """The value of a name, which is taken out. Raises RemoteProtocolError when there is none."""
    if name not in values:
        raise RemoteProtocolError(f"{what}: nothing says {name}")
    return values.pop(name)


def write_named(values: Mapping[str, str | int | None], unknown: Mapping[str, str]) -> bytes:
    """The lines of what is not None, and after them what is not known."""
    said = {name: str(value) for name, value in values.items() if value is not None}
    return write_properties({**said, **unknown}).encode()
