"""Answers of controllers as events of machines, by the bindings that the specification generates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.primitives.releases import Release
from replispec.runtime.rocketmq.remoting.calls import Failure, Outcome
from replispec.runtime.world import Level, Outbox

T = TypeVar("T")
Read = Callable[[int | None, Mapping[str, str | None], bytes, Release | None], T]
"""Takes code, fields and body of an answer, and the release of who gave it (None when it is not known); the
code is None when there is no answer."""


def read_answer(outbox: Outbox, outcome: Outcome, read: Read[T]) -> T:
    """What `read` makes of the outcome of a request; an answer that it cannot read is noted, and none."""
    found, error = read_quietly(outcome, read)
    if error:
        outbox.note(Level.WARNING, "an answer of a controller cannot be read", reason=error)
    return found


def read_quietly(outcome: Outcome, read: Read[T]) -> tuple[T, str]:
    """Like `read_answer`, with what would be noted of an answer that cannot be read; empty if it can."""
    if isinstance(outcome, Failure):
        return read(None, {}, b"", None), ""
    try:
        said = outcome.header.code, outcome.header.ext_fields or {}, outcome.body
        return read(*said, outcome.release), ""
    except RemoteProtocolError as error:
        return read(None, {}, b"", None), str(error)


def note_failure(outbox: Outbox, outcome: Outcome, level: Level, what: str) -> None:
    """Note that a request came to nothing, with the code of its answer and the reason, if there is one."""
    if isinstance(outcome, Failure):
        outbox.note(level, what, reason=outcome.reason)
    else:
        outbox.note(level, what, code=outcome.header.code, reason=outcome.header.remark or "")
