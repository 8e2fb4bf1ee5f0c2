"""The requests that a run makes of its adapter: one after another, each to its end.

Who asked may go away. What was not sent then is not asked any more; what was sent is answered all the same,
and what the answer changes is noted, so that requests and answers stay in step whoever is cancelled.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import trio

from replispec.adapter.v1 import adapter_pb2 as wire
from replispec.runtime.documents import official_seam
from replispec.runtime.documents.delimited import delimited

# What an adapter may take for a request beyond the time that the request itself names.
ANSWER_S = 15.0
# Who refuses what was never put to an adapter, and why: a bound of the suite, which is nobody's fault.
SUITE = "SUITE"


class AdapterFault(Exception):
    """The adapter does not do what its protocol says; the text is one line.

    `said` is the end of its standard error, set when the run ends by it.
    """

    said: bytes = b""


class AdapterRefused(Exception):
    """The adapter did not carry a request out, as the protocol allows."""

    def __init__(self, reason: str, remark: str) -> None:
        super().__init__(f"{reason}: {remark}" if remark else reason)
        self.reason = reason
        self.unsupported = reason == "UNSUPPORTED"
        self.by_suite = reason == SUITE


def _not_noted(_content: Any, _refused: AdapterRefused | None) -> None:
    pass


@dataclass(slots=True, eq=False)
class AdapterRequest:
    """One request.

    `make` gives its content, by its name, when its turn has come; `noted` has the content of the answer,
    or None and the refusal. `begins`: nothing runs yet for whoever asks.
    """

    wanted: str
    make: Callable[[], Awaitable[Mapping[str, Any]]]
    within_s: float = 0.0
    noted: Callable[[Any, AdapterRefused | None], None] = _not_noted
    begins: bool = False
    given_up: bool = False
    content: Any = None
    refused: AdapterRefused | None = None
    settled: trio.Event = field(default_factory=trio.Event)


class AdapterRequests:
    """Those that wait, and the one that the adapter has.

    `send` writes bytes to it; `half_said` tells what it wrote that is no whole message.
    """

    def __init__(
        self, send: Callable[[bytes], Awaitable[None]], half_said: Callable[[], str], patience: float
    ) -> None:
        self._send = send
        self._half_said = half_said
        self._patience = patience
        self._waiting: list[AdapterRequest] = []
        self._came = trio.Event()
        self._asked = 0
        self._answer: Any = None
        self._answered = trio.Event()

    async def ask(self, request: AdapterRequest) -> Any:
        """The content of its answer. Raises AdapterRefused."""
        self._waiting.append(request)
        self._came.set()
        try:
            await request.settled.wait()
        finally:
            request.given_up = True
        if request.refused is not None:
            raise request.refused
        return request.content

    async def put(self) -> None:
        """Put all that is asked to the adapter, as long as it lives. Raises AdapterFault."""
        while True:
            request = await self._next()
            try:
                request.content = await self._answer_to(request)
            except AdapterRefused as refused:
                request.refused = refused
            request.noted(request.content, request.refused)
            request.settled.set()

    async def _next(self) -> AdapterRequest:
        """The first of whoever has something running, which lives on meanwhile; else the first."""
        while True:
            self._waiting = [each for each in self._waiting if not each.given_up]
            if self._waiting:
                chosen = next((each for each in self._waiting if not each.begins), self._waiting[0])
                self._waiting.remove(chosen)
                return chosen
            self._came = trio.Event()
            await self._came.wait()

    async def _answer_to(self, request: AdapterRequest) -> Any:
        content = await request.make()
        what = next(iter(content))
        self._asked += 1
        self._answer, self._answered = None, trio.Event()
        message = wire.RunnerMessage(request_id=self._asked, **content)
        limit_s = request.within_s + ANSWER_S * self._patience
        with trio.move_on_after(limit_s) as scope:
            with suppress(trio.BrokenResourceError):  # it ended: the reader says so
                await self._send(delimited(official_seam.encode(message)))
            await self._answered.wait()
        if scope.cancelled_caught:
            raise AdapterFault(f"it does not answer `{what}` within {limit_s:g} s{self._half_said()}")
        return _content(self._answer, what, request.wanted)

    def take(self, message: Any) -> None:
        """An answer came. Raises AdapterFault when nobody waits for it."""
        if message.request_id != self._asked or self._answered.is_set():
            raise AdapterFault(f"it answers request {message.request_id}, which waits for no answer")
        self._answer = message
        self._answered.set()


def _content(answer: Any, what: str, wanted: str) -> Any:
    """What was asked for. Raises AdapterRefused, AdapterFault."""
    kind = answer.WhichOneof("content")
    if kind == "refusal":
        reason = word(wire.RefusalReason, answer.refusal.reason).upper()
        remark = line(answer.refusal.remark)
        if reason in ("INVALID", "UNSPECIFIED"):
            why = "a request that is as the protocol has it" if reason == "INVALID" else "it sets no reason"
            raise AdapterFault(f"it refuses `{what}` as {reason}: {why}{f': {remark}' if remark else ''}")
        raise AdapterRefused(reason, remark)
    if kind != wanted:
        raise AdapterFault(f"it answers `{what}` with {kind or 'nothing'}, not with {wanted}")
    return getattr(answer, wanted)


def word(kind: Any, number: int) -> str:
    """The name of a value without what all values of its kind begin with, in lower case."""
    prefix = kind.Name(0).removesuffix("UNSPECIFIED")
    return kind.Name(number).removeprefix(prefix).lower() if number in kind.values() else str(number)


def line(text: str, limit: int = 200) -> str:
    """One printable line of at most `limit` characters."""
    found = " ".join("".join(each if each.isprintable() else " " for each in text[: 4 * limit]).split())
    return found if len(found) <= limit else f"{found[: limit - 3]}..."
