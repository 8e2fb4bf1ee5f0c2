"""One remoting frame as those see it who look for what it says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from replispec.replay.events.observation import Place
from replispec.runtime.primitives.headers import Header
from replispec.wire.rocketmq.codes import RemotingFlag

H = TypeVar("H", bound=Header)


@dataclass(frozen=True, slots=True)
class Command:
    """One frame with its typed parts at hand; `request`: what it answers, `duration_ns` later."""

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
    request: Command | None = None
    duration_ns: int | None = None

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

    def header(self, kind: type[H]) -> H:
        """The typed header. Raises RemoteProtocolError when a value does not fit."""
        return kind.from_ext_fields(self.ext_fields)
