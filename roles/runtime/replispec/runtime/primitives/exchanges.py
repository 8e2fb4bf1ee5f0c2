"""Answers that are read by their requests: what an answer's frame says of its body only its request tells.

Codecs keep nothing; what was asked, and was not answered yet, is kept by `OpenRequests`, of which each side
of a connection that reads answers has one. Answers come in the order of their requests. Requests whose frames
always have the same number, as pings, are answered whenever it suits; other such numbers stand in what is
told without being asked for.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from replispec.runtime.primitives.binary import BinaryMessage, VersionedBinary
from replispec.runtime.primitives.errors import LocalProtocolError, RemoteProtocolError

Message = BinaryMessage | VersionedBinary
Frame = Any
"""A message that is the frame of a request or an answer; which attributes tell what, its Exchange says."""


class ExchangeForm(NamedTuple):
    """What a code means in the versions first..last: the request and its answer (None: there is none)."""

    code: int
    first: int
    last: int
    request: type[Message]
    answer: type[Message] | None


class OpenRequest(NamedTuple):
    """What is known of a request while its answer is read. The version is 0 where there are none."""

    number: int
    code: int
    version: int = 0


class PairedAnswer(NamedTuple):
    """An answer, or what was told without a request (then `asked` is None). `message` is None where the
    request failed, and where its code has no answer that is specified."""

    asked: OpenRequest | None
    message: Message | None


@dataclass(frozen=True, slots=True)
class Exchange:
    """How the frames of requests and answers of one transport fit together.

    `number`, `code`, `version`, `failed` and `body` name attributes of the frames; an empty one is none of
    them. `numbers` are codes whose requests always have the same number, `unasked` what comes under a number
    that nobody asked with.
    """

    request: type[BinaryMessage]
    answer: type[BinaryMessage]
    number: str
    code: str
    version: str
    failed: str
    forms: tuple[ExchangeForm, ...]
    numbers: Mapping[int, int] = field(default_factory=dict)
    unasked: Mapping[int, type[BinaryMessage]] = field(default_factory=dict)
    body: str = "body"

    def asked(self, frame: Frame) -> OpenRequest:
        """What a request's frame says of the answer to it."""
        version = getattr(frame, self.version) if self.version else 0
        return OpenRequest(self.number_of(frame), getattr(frame, self.code), version)

    def form_of(self, code: int, version: int = 0) -> ExchangeForm | None:
        """The form of a request and its answer; None when the code is not specified in this version."""
        for form in self.forms:
            if form.code == code and form.first <= version <= form.last:
                return form
        return None

    def read_request(self, frame: Frame) -> Message | None:
        """The request in the frame; None when what it asks for is not specified.

        Raises RemoteProtocolError.
        """
        asked = self.asked(frame)
        form = self.form_of(asked.code, asked.version)
        return None if form is None else self._read(form.request, frame, asked)

    def read_answer(self, frame: Frame, asked: OpenRequest) -> Message | None:
        """The answer in the frame to what was asked; None when it says that the request failed, or when the
        answer is not specified. Raises RemoteProtocolError."""
        if self.failed and getattr(frame, self.failed) != 0:
            if getattr(frame, self.body):
                raise RemoteProtocolError(f"{self.answer.__name__}: a request that failed has a body")
            return None
        form = self.form_of(asked.code, asked.version)
        return None if form is None or form.answer is None else self._read(form.answer, frame, asked)

    def read_unasked(self, frame: Frame) -> BinaryMessage | None:
        """What the frame tells without a request; None when it is an answer. Raises RemoteProtocolError."""
        message = self.unasked.get(self.number_of(frame)) if self.number else None
        return None if message is None else message.decode(getattr(frame, self.body))

    def number_of(self, frame: Frame) -> int:
        """The number in the frame of a request or an answer; 0 where order alone pairs them."""
        return int(getattr(frame, self.number)) if self.number else 0

    def _read(self, kind: type[Message], frame: Frame, asked: OpenRequest) -> Message:
        data = getattr(frame, self.body)
        if issubclass(kind, VersionedBinary):
            return kind.decode(data, version=asked.version)
        return kind.decode(data)


class OpenRequests:
    """The requests of one connection that wait for their answers, at most `most` of them."""

    def __init__(self, exchange: Exchange, *, most: int) -> None:
        self._exchange = exchange
        self._most = most
        self._waiting: deque[OpenRequest] = deque()
        # Requests whose number is always the same wait apart: theirs may be answered before others.
        self._apart: Counter[int] = Counter()

    def __len__(self) -> int:
        return len(self._waiting) + self._apart.total()

    def ask(self, frame: Frame) -> OpenRequest:
        """Remember a request that is sent, or was seen. Raises LocalProtocolError when too many wait, or when
        its number is that of another code."""
        asked = self._exchange.asked(frame)
        if len(self) >= self._most:
            raise LocalProtocolError(f"{len(self)} requests wait for their answers")
        if asked.number in self._exchange.unasked:
            raise LocalProtocolError(f"the number {asked.number} is that of what nobody asked for")
        code = self._exchange.numbers.get(asked.number, asked.code)
        if code != asked.code:
            raise LocalProtocolError(f"the number {asked.number} is that of requests with code {code}")
        if asked.number in self._exchange.numbers:
            self._apart[asked.number] += 1
        else:
            self._waiting.append(asked)
        return asked

    def answered(self, frame: Frame) -> PairedAnswer:
        """The answer in a frame, with what was asked. Raises RemoteProtocolError when nobody asked, when
        another request is older, and when the body is not what its request demands."""
        told = self._exchange.read_unasked(frame)
        if told is not None:
            return PairedAnswer(None, told)
        asked = self._take(self._exchange.number_of(frame))
        return PairedAnswer(asked, self._exchange.read_answer(frame, asked))

    def _take(self, number: int) -> OpenRequest:
        code = self._exchange.numbers.get(number)
        if code is not None:
            if not self._apart[number]:
                raise RemoteProtocolError(f"nobody waits for an answer with the number {number}")
            self._apart[number] -= 1
            return OpenRequest(number, code)
        if not self._waiting:
            raise RemoteProtocolError(f"nobody waits for an answer with the number {number}")
        oldest = self._waiting[0]
        if self._exchange.number and oldest.number != number:
            raise RemoteProtocolError(f"the answer {number} comes before that to {oldest.number}")
        return self._waiting.popleft()
