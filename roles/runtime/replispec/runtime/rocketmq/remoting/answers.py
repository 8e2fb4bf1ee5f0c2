"""Answers and refusals of a server, before they are bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeVar

from replispec.wire.rocketmq.codes import ResponseCode

ExtFields = dict[str, str | None]
TEXT_MAX: Final = 1_024
"""Characters of a name, an address or a check code."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Answer:
    """What whoever asked is answered: a ResponseCode, header fields in Java's order, a body."""

    code: int
    ext_fields: ExtFields | None = None
    body: bytes = b""
    remark: str | None = None


class Refused(Exception):
    """The request is answered with this, whatever is recorded."""

    def __init__(self, code: int, remark: str) -> None:
        super().__init__(remark)
        self.answer = Answer(code, remark=remark)


def need(value: T | None, name: str) -> T:
    """The value. Raises Refused when the request left it out."""
    if value is None:
        raise Refused(ResponseCode.CONTROLLER_INVALID_REQUEST, f"{name} is missing")
    return value


def text(value: str | None, name: str) -> str:
    """The text. Raises Refused when the request left it out, or it is empty or too long."""
    if not value or len(value) > TEXT_MAX:
        state = f"{len(value)} characters long" if value else "missing"
        raise Refused(ResponseCode.CONTROLLER_INVALID_REQUEST, f"{name} is {state}")
    return value
