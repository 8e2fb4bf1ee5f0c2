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


def read_quietly(outcome: Outcome, read: Read[T]) -> tuple[T, str]:
    """What `read` makes of the outcome of a request, and why an answer cannot be read, empty if it can; one
    that cannot be read is none."""
    if isinstance(outcome, Failure):
        return read(None, {}, b"", None), ""
    try:
        said = outcome.header.code, outcome.header.ext_fields or {}, outcome.body
        return read(*said, outcome.release), ""
    except RemoteProtocolError as error:
        return read(None, {}, b"", None), str(error)


class Complaints:
    """Lines about questions to controllers that come to nothing: one for each change, none for each try.

    A question is known by its code. What is complained of is forgotten with the next answer that is of use.
    """

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self._told: dict[int, dict[str, object]] = {}

    def read(self, asked: int, outcome: Outcome, read: Read[T]) -> T:
        """What `read` makes of the outcome of a request; of an answer that it cannot read, as of none."""
        found, error = read_quietly(outcome, read)
        if error:
            self.tell(asked, Level.WARNING, "an answer of a controller cannot be read", None, reason=error)
        return found

    def failed(self, asked: int, outcome: Outcome, level: Level, what: str) -> None:
        """A request came to nothing: for want of an answer, or by the code of the one that came."""
        if isinstance(outcome, Failure):
            self.tell(asked, level, what, None, reason=outcome.reason)
        else:
            code, remark = outcome.header.code, outcome.header.remark or ""
            self.tell(asked, level, what, code, code=code, reason=remark)

    def tell(self, asked: int, level: Level, what: str, which: object, **values: str | int) -> None:
        """Say `what`, unless it was said and was the same case: `which` tells cases apart."""
        told = self._told.setdefault(asked, {})
        if what not in told or told[what] != which:
            told[what] = which
            self._outbox.note(level, what, **values)

    def over(self, asked: int) -> None:
        """The question was answered as it should be; said where it was said that it was not."""
        if told := self._told.pop(asked, None):
            self._outbox.note(Level.INFO, "controllers answer as they should again", after=list(told))
