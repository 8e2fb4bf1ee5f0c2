"""Answers and refusals of a server, before they are bytes."""

from __future__ import annotations

from typing import TypeVar

from replispec.runtime.primitives.bindings import Answer, Refused, asked_for, asked_text
from replispec.wire.rocketmq.codes import ResponseCode

ExtFields = dict[str, str | None]
T = TypeVar("T")

__all__ = ["Answer", "ExtFields", "Refused", "need", "text"]


def need(value: T | None, name: str) -> T:
    """The value. Raises Refused when the request left it out."""
    return asked_for(value, name, ResponseCode.CONTROLLER_INVALID_REQUEST)


def text(value: str | None, name: str) -> str:
    """The text. Raises Refused when the request left it out, or it is empty or too long."""
    return asked_text(value, name, ResponseCode.CONTROLLER_INVALID_REQUEST)
