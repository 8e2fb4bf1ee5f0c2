"""A node that asks one question after the other, each until it is answered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from replispec.runtime.rocketmq.framing import Command
from replispec.runtime.rocketmq.remoting import Calls, Outcome
from replispec.runtime.rocketmq.remoting.calls import Failure
from replispec.runtime.world import Effect, Event, Outbox
from tests.playbook import deliver

AGAIN_MS = 50


@dataclass
class Question:
    """A request."""

    code: int
    ext_fields: Mapping[str, str | None]
    body: bytes = b""


@dataclass
class Asker:
    """Asks `questions` at an address; `answers` has one for each. Before one is asked again, the
    `preamble` is, whose answers are not kept."""

    address: str
    questions: Sequence[Question]
    preamble: Sequence[Question] = ()
    timeout_ms: int = 1_000
    answers: list[Command] = field(default_factory=list)
    repeated: list[int] = field(default_factory=list)
    _introducing: list[Question] = field(default_factory=list)
    _outbox: Outbox = field(default_factory=Outbox)
    _next_ms: int = 0
    _waits: bool = False

    def __post_init__(self) -> None:
        self._calls = Calls(self._outbox)

    @property
    def listeners(self) -> Mapping[str, str]:
        """None."""
        return {}

    @property
    def is_done(self) -> bool:
        """Whether every question has its answer."""
        return len(self.answers) == len(self.questions)

    def deadline_ms(self) -> int | None:
        """When the next question is due."""
        calls = self._calls.deadline_ms()
        if self.is_done or self._waits:
            return calls
        return self._next_ms if calls is None else min(calls, self._next_ms)

    def receive(self, event: Event) -> Sequence[Effect]:
        """Take one event."""
        deliver(self._calls, event)
        self._calls.ticked(event.now_ms)
        if not self._waits and not self.is_done and event.now_ms >= self._next_ms:
            self._ask(event.now_ms)
        return self._outbox.take()

    def _ask(self, now_ms: int) -> None:
        question = self._introducing[0] if self._introducing else self.questions[len(self.answers)]
        self._waits = True
        self._calls.ask(
            self.address,
            question.code,
            self._answered,
            now_ms=now_ms,
            timeout_ms=self.timeout_ms,
            ext_fields=dict(question.ext_fields),
            body=question.body,
        )

    def _answered(self, outcome: Outcome, now_ms: int) -> None:
        self._waits = False
        self._next_ms = now_ms
        if isinstance(outcome, Failure):
            self.repeated.append(len(self.answers))
            self._introducing = list(self.preamble)
            self._next_ms = now_ms + AGAIN_MS
        elif self._introducing:
            del self._introducing[0]
        else:
            self.answers.append(outcome)
