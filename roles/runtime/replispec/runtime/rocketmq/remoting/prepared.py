"""Answers that are given again and again: encoded once, and only the opaque of each request put in.

Where the opaque stands is seen by encoding two of them, so that nothing here knows the form of a header.
"""

from __future__ import annotations

from typing import Final

from replispec.runtime.primitives.errors import LocalProtocolError
from replispec.runtime.rocketmq.framing import Command
from replispec.wire.rocketmq.codes import LanguageCode, RemotingFlag
from replispec.wire.rocketmq.remoting import RemotingHeader

_LANGUAGE: Final = LanguageCode.PYTHON.name
_ANSWER: Final = int(RemotingFlag.RESPONSE)


class Prepared:
    """An answer with a JSON header, for any opaque that is not negative; see `Request.answer_prepared`."""

    def __init__(
        self,
        code: int,
        *,
        ext_fields: dict[str, str | None] | None = None,
        body: bytes = b"",
        version: int = 0,
    ) -> None:
        self.code = int(code)
        self.ext_fields = ext_fields
        self.body = body
        self._version = version
        self._around: dict[int, tuple[bytes, bytes]] = {}

    def frame(self, opaque: int) -> bytes:
        """The whole frame that answers the request with this opaque."""
        digits = b"%d" % opaque
        around = self._around.get(len(digits))
        if around is None:
            around = self._around[len(digits)] = self._split(len(digits))
        return around[0] + digits + around[1]

    def _split(self, length: int) -> tuple[bytes, bytes]:
        """The bytes before and after an opaque of so many digits."""
        ones, twos = (self._encoded(int(digit * length)) for digit in "12")
        start = next(place for place, pair in enumerate(zip(ones, twos, strict=True)) if pair[0] != pair[1])
        before, after = ones[:start], ones[start + length :]
        if before + b"2" * length + after != twos:
            raise LocalProtocolError("the opaque is not the only thing that differs between two answers")
        return before, after

    def _encoded(self, opaque: int) -> bytes:
        header = RemotingHeader(
            code=self.code,
            language=_LANGUAGE,
            version=self._version,
            opaque=opaque,
            flag=_ANSWER,
            ext_fields=self.ext_fields or None,
        )
        return Command(header, self.body).encode()
