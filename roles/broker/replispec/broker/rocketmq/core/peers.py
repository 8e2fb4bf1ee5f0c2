"""Questions to other brokers: few connections, so many questions at a time, and an end to each of them."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from replispec.runtime.rocketmq.client import Client, Failed
from replispec.runtime.rocketmq.client.steps import Steps
from replispec.runtime.rocketmq.remoting.calls import Sign
from replispec.runtime.world import Event, Outbox
from replispec.wire.rocketmq.constants import ANSWER_TIMEOUT_MS

ASKED_MAX: Final = 4_096
"""Questions that wait for an answer; nobody is asked further ones until some are answered."""
ASKED_OF_ONE_MAX: Final = 512
"""Likewise those that wait for one broker: one that is silent takes no room from others."""
BODY_BYTES_MAX: Final = 64 * 1024 * 1024
"""Bytes of messages that are handed on and wait for an answer."""

Then = Callable[[Any, int], None]
"""Called once: with what steps came to, or Failed, and the time."""


@dataclass(slots=True)
class _Asked:
    whom: str
    then: Then
    late_ms: int
    size: int
    is_over: bool = False


class Peers:
    """Asks them. `then` is called within ANSWER_TIMEOUT_MS, and never from inside `ask`."""

    def __init__(self, outbox: Outbox, name_servers: Sequence[str], sign: Sign | None) -> None:
        self._client = Client(outbox, name_servers, sign=sign, requests_max=ASKED_OF_ONE_MAX)
        # In the order in which they are late.
        self._asked: deque[_Asked] = deque()
        self._by_broker: Counter[str] = Counter()
        self._open = 0
        self._bytes = 0
        self._refused: deque[Then] = deque()

    def ask(self, whom: str, steps: Steps[Any], then: Then, now_ms: int, *, size: int = 0) -> None:
        """Carry steps out; most of them ask this broker, with a body of so many bytes."""
        is_full = self._open >= ASKED_MAX or self._by_broker[whom] >= ASKED_OF_ONE_MAX
        if is_full or self._bytes + size > BODY_BYTES_MAX:
            steps.close()
            self._refused.append(then)
            return
        asked = _Asked(whom, then, now_ms + ANSWER_TIMEOUT_MS, size)
        self._open += 1
        self._bytes += size
        self._by_broker[whom] += 1
        self._asked.append(asked)
        self._client.start(steps, partial(self._told, asked))

    def _told(self, asked: _Asked, result: Any, now_ms: int) -> None:
        self._open -= 1
        self._bytes -= asked.size
        self._by_broker[asked.whom] -= 1
        if not self._by_broker[asked.whom]:
            del self._by_broker[asked.whom]
        if not asked.is_over:
            asked.is_over = True
            asked.then(result, now_ms)

    def take(self, event: Event) -> None:
        """Take what came of a connection; those of others are passed over."""
        self._client.take(event)

    def ticked(self, now_ms: int) -> None:
        """To be called after every event that the node received."""
        self._client.ticked(now_ms)
        for _ in range(len(self._refused)):
            self._refused.popleft()(Failed("too many wait for other brokers"), now_ms)
        while self._asked and (self._asked[0].is_over or self._asked[0].late_ms <= now_ms):
            asked = self._asked.popleft()
            if not asked.is_over:
                # What is asked all the same is bounded by the time that each answer has.
                asked.is_over = True
                asked.then(Failed("other brokers do not answer in time", sent=True), now_ms)

    def deadline_ms(self) -> int | None:
        """When `ticked` has something to do."""
        if self._refused:
            return 0
        due = [self._client.deadline_ms(), self._asked[0].late_ms if self._asked else None]
        return min((at for at in due if at is not None), default=None)
