"""What a plan is: a generator that yields questions, all asked at once, and is sent their replies, in order.

def ends(addresses: Sequence[str]) -> Plan[list[int]]:
    replies = yield [Asking(each, RequestCode.GET_BROKER_EPOCH_CACHE) for each in addresses]
    return [EpochEntryCache.decode(granted(each).body).max_offset or 0 for each in replies]
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.primitives.headers import Header
from replispec.runtime.primitives.json_messages import JsonMessage
from replispec.runtime.rocketmq.framing import Command
from replispec.runtime.rocketmq.remoting.answers import is_granted
from replispec.runtime.rocketmq.remoting.calls import Outcome
from replispec.wire.rocketmq.codes import RESPONSE_CODE_NAMES, RequestCode

T = TypeVar("T")
HeaderT = TypeVar("HeaderT", bound=Header)
BodyT = TypeVar("BodyT", bound=JsonMessage)
EventT = TypeVar("EventT")
Outcomes = Callable[[int, int | None, Mapping[str, str | None], bytes], EventT | None]
"""Reads the event of an answer, as machines have it: by the code of the request and that of the answer."""


@dataclass(frozen=True, slots=True)
class Asking:
    """One request to ADDRESS:PORT."""

    address: str
    code: RequestCode
    header: Header | None = None
    body: bytes = b""

    @property
    def fields(self) -> Mapping[str, str | None]:
        """The fields of its header."""
        return self.header.to_ext_fields() if self.header is not None else {}


@dataclass(frozen=True, slots=True)
class LookingAgain(Sequence[Asking]):
    """No question: the plan goes on, without a reply, when so much time has passed."""

    pause_ms: int

    def __len__(self) -> int:
        return 0

    def __getitem__(self, index: Any) -> Any:
        raise IndexError(index)


@dataclass(frozen=True, slots=True)
class Reply:
    """What came of a question: an answer, or why there is none."""

    question: Asking
    outcome: Outcome


Plan = Generator[Sequence[Asking], Sequence[Reply], T]


class NotAsWantedError(Exception):
    """What was wanted cannot be had; says why in one line. `reason`: the same without who says so."""

    def __init__(self, reason: str, before: str = "") -> None:
        super().__init__(before + reason)
        self.reason = reason


class SilentError(NotAsWantedError):
    """A process does not answer, or what it answers cannot be read."""


class NotGrantedError(NotAsWantedError):
    """A process refuses what it is asked, with a `code`."""

    def __init__(self, reply: Reply, answer: Command) -> None:
        self.code = answer.header.code
        remark = " ".join((answer.header.remark or "").split())
        reason = f"refuses: {code_name(self.code)}: {remark}".rstrip(": ")
        super().__init__(reason, f"{reply.question.address} ")


def code_name(code: int) -> str:
    """The name and number of an answer's code, as the last releases have it."""
    names = [each.name for each in RESPONSE_CODE_NAMES if each.number == code]
    return f"{names[-1]} ({code})" if names else f"code {code}"


def answered(reply: Reply) -> Command:
    """The answer, granted or not. Raises SilentError."""
    if isinstance(reply.outcome, Command):
        return reply.outcome
    raise SilentError(reply.outcome.reason, f"{reply.question.address}: ")


def granted(reply: Reply) -> Command:
    """The answer. Raises SilentError, NotGrantedError."""
    answer = answered(reply)
    if is_granted(answer):
        return answer
    raise NotGrantedError(reply, answer)


def event_of(reply: Reply, read: Outcomes[EventT]) -> EventT | None:
    """What an answer, or none, is to a machine. Raises SilentError for what cannot be read."""
    answer = reply.outcome if isinstance(reply.outcome, Command) else None
    code = None if answer is None else answer.header.code
    fields, data = (answer.header.ext_fields or {}, answer.body) if answer else ({}, b"")
    try:
        return read(reply.question.code, code, fields, data)
    except RemoteProtocolError as error:
        raise unreadable(reply, error) from error


def header_of(reply: Reply, message: type[HeaderT]) -> HeaderT:
    """The typed header of a granted answer. Raises SilentError, NotGrantedError."""
    answer = granted(reply)
    try:
        return message.from_ext_fields(answer.header.ext_fields or {})
    except RemoteProtocolError as error:
        raise unreadable(reply, error) from error


def body_of(reply: Reply, message: type[BodyT]) -> BodyT:
    """The body of a granted answer. Raises SilentError, NotGrantedError."""
    answer = granted(reply)
    try:
        return message.decode(answer.body)
    except RemoteProtocolError as error:
        raise unreadable(reply, error) from error


def unreadable(reply: Reply, error: RemoteProtocolError) -> SilentError:
    """What is said of an answer that cannot be."""
    return SilentError(f"answers what cannot be read: {error}", f"{reply.question.address} ")
