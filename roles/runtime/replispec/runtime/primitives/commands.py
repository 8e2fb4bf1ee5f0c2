"""What the messages of a command can do, for tables of them by code, or by code and version."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, NamedTuple, Protocol, Self

from replispec.runtime.primitives.binary import Buffer
from replispec.runtime.primitives.headers import Header
from replispec.runtime.primitives.releases import Releases


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


class VersionedMessage(Protocol):
    """A binary message whose fields depend on the version that the header of its request says."""

    CODES: ClassVar[tuple[int, ...]]

    @classmethod
    def decode(cls, buffer: Buffer, at: int = 0, end: int | None = None, *, version: int) -> Self:
        """The message that fills `buffer[at:end]`. Raises RemoteProtocolError."""
        ...

    def encode(self, *, version: int) -> bytes:
        """Its bytes in this version. Raises LocalProtocolError when a value does not fit."""
        ...


class VersionedForm(NamedTuple):
    """The message that a code means in the versions first..last, in these releases (None: in all)."""

    code: int
    first: int
    last: int
    releases: Releases | None
    message: type[VersionedMessage]


def form_of(
    table: Iterable[VersionedForm], code: int, version: int, implementation: str
) -> type[VersionedMessage] | None:
    """The message that a code means in a version of an implementation; None when it is not specified."""
    for form in table:
        fits = form.releases is None or form.releases.implementation == implementation
        if fits and form.code == code and form.first <= version <= form.last:
            return form.message
    return None
