"""Answers and refusals of a server before they are bytes, and how a peer reads one."""

from __future__ import annotations

from replispec.runtime.primitives.bindings import Answer, Refused, asked_text
from replispec.runtime.rocketmq.framing import Command
from replispec.wire.rocketmq.codes import ResponseCode

ExtFields = dict[str, str | None]

__all__ = ["Answer", "ExtFields", "Refused", "is_granted", "text"]


def text(value: str | None, name: str) -> str:
    """The text. Raises Refused when the request left it out, or it is empty or too long."""
    return asked_text(value, name, ResponseCode.CONTROLLER_INVALID_REQUEST)


def is_granted(answer: Command) -> bool:
    """Whether a peer did what it was asked; else its code and remark say why not."""
    return answer.header.code == ResponseCode.SUCCESS
