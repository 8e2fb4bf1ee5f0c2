"""Answers and refusals of a server, before they are bytes."""

from __future__ import annotations

from replispec.runtime.primitives.bindings import Answer, Refused, asked_text
from replispec.wire.rocketmq.codes import ResponseCode

ExtFields = dict[str, str | None]

__all__ = ["Answer", "ExtFields", "Refused", "text"]


def text(value: str | None, name: str) -> str:
    """The text. Raises Refused when the request left it out, or it is empty or too long."""
    return asked_text(value, name, ResponseCode.CONTROLLER_INVALID_REQUEST)
