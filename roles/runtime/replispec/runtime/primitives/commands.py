"""What every typed header and body of a remoting command can do, for tables of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Protocol, Self


class Header(Protocol):
    """A typed view on the ext fields of a remoting header."""

    CODES: ClassVar[tuple[int, ...]]
    unknown: dict[str, str | None]

    @classmethod
    def from_ext_fields(cls, ext_fields: Mapping[str, str | None]) -> Self:
        """The view. Raises RemoteProtocolError when a value does not fit its field."""
        ...

    def to_ext_fields(self, *, binary: bool = False) -> dict[str, str | None]:
        """The ext fields in the order in which Java writes them, in a JSON or a binary header."""
        ...


class Body(Protocol):
    """A typed body, of JSON or text."""

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """The body that the bytes are. Raises RemoteProtocolError."""
        ...

    def encode(self) -> bytes:
        """The bytes of the body."""
        ...


HeaderType = type[Header]
BodyType = type[Body]
