"""Golden bytes: messages as bytes and as values, each group of bytes with its reason.

They are derived by hand from the documents that a message follows, never written by our own codec, and
decide what any implementation must read and write.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from replispec.compiler.model.message import Place


@dataclass(frozen=True, slots=True)
class Example:
    """One message: its bytes in groups (bytes, reason), and its fields as plain values.

    A message among the values is a mapping of its fields, a byte string is bytes, what is absent or null is
    None. `given` holds the numbers that the message must be given.
    """

    name: str
    message: str
    given: Mapping[str, int]
    groups: tuple[tuple[bytes, str], ...]
    values: Mapping[str, object]
    clauses: tuple[str, ...]
    place: Place

    @property
    def data(self) -> bytes:
        """All bytes of the message."""
        return b"".join(data for data, _ in self.groups)
