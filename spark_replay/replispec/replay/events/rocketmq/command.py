"""One remoting frame as those see it who look for what it says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, Self, TypeVar

from replispec.replay.events.observation import Place
from replispec.replay.frames.digests import digest
from replispec.runtime.primitives.headers import Header
from replispec.wire.rocketmq.codes import RemotingFlag, RequestCode
from replispec.wire.rocketmq.commands import REQUEST_BODIES, RESPONSE_BODIES

# Of a registration with a name server only the header is needed; what a heartbeat says no other rule needs.
_BODIES = REQUEST_BODIES.keys() - {RequestCode.REGISTER_BROKER, RequestCode.HEART_BEAT}

_NULL: Final = digest(b"null")
T = TypeVar("T")
H = TypeVar("H", bound=Header)


class _Body(Protocol):
    """A generated message that a body holds."""

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """The message. Raises RemoteProtocolError."""
        ...


B = TypeVar("B", bound=_Body)


@dataclass(slots=True, eq=False)
class Command:
    """One frame with its typed parts at hand; `request`: what it answers, `duration_ns` later.

    What it says is read once, however many ask; a command has one object, also as somebody's request.
    """

    row: int
    code: int
    flag: int
    source: str
    destination: str
    ext_fields: dict[str, str | None]
    json_body: bytes | None
    place: Place
    opaque: int
    version: int | None
    from_start: bool
    body_digest: int | None = None
    body_size: int = 0
    language: str | None = None
    pulled: list[dict[str, Any]] | None = None
    request: Command | None = None
    duration_ns: int | None = None
    _read: dict[Any, Any] = field(default_factory=dict, repr=False)

    @property
    def is_answer(self) -> bool:
        """True for an answer; its code is a ResponseCode."""
        return bool(self.flag & RemotingFlag.RESPONSE)

    @property
    def asked(self) -> int | None:
        """The request code that this frame carries or answers; None when the request was not seen."""
        if not self.is_answer:
            return self.code
        return None if self.request is None else self.request.code

    @property
    def lacks_body(self) -> bool:
        """Whether a body that tells something was captured whole and is not read: no JSON, or too long.
        JSON's `null` tells that there is nothing."""
        if self.json_body is not None or self.body_digest in (None, _NULL) or not self.body_size:
            return False
        return self.asked in RESPONSE_BODIES if self.is_answer else self.code in _BODIES

    def header(self, kind: type[H]) -> H:
        """The typed header. Raises RemoteProtocolError when a value does not fit."""
        if kind not in self._read:
            self._read[kind] = kind.from_ext_fields(self.ext_fields)
        found: H = self._read[kind]
        return found

    def body(self, kind: type[B]) -> B | None:
        """The typed body; None without one. Raises RemoteProtocolError when it is none of this kind."""
        if self.json_body is None:
            return None
        if kind not in self._read:
            self._read[kind] = kind.decode(self.json_body)
        found: B = self._read[kind]
        return found

    def once(self, read: Callable[[Command], T]) -> T:
        """What a function makes of this command, asked once. Raises what it raises."""
        if read not in self._read:
            self._read[read] = read(self)
        found: T = self._read[read]
        return found
