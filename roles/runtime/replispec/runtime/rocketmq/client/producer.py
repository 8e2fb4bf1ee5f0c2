"""A node that sends messages, so many at once, and is done when all are answered."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import count
from types import MappingProxyType
from typing import Final

from replispec.runtime.rocketmq.client.asking import Failed
from replispec.runtime.rocketmq.client.client import Client
from replispec.runtime.rocketmq.client.messages import MessageToSend
from replispec.runtime.rocketmq.client.steps import Stored, send
from replispec.runtime.rocketmq.remoting.calls import Sign
from replispec.runtime.world import Effect, Event, Outbox

NO_LISTENERS: Final[Mapping[str, str]] = MappingProxyType({})
Heard = Callable[[int, Stored | Failed, int], None]
"""Called with the place of a message among all, what came of it, and the time."""


class ProducerNode:
    """See `replispec.runtime.world.Node`. `messages` are taken one by one, as there is room among those that
    wait for an answer, `pause_ms` after one another."""

    def __init__(
        self,
        name_servers: Sequence[str],
        messages: Iterator[MessageToSend],
        heard: Heard,
        *,
        group: str,
        at_once: int = 1,
        pause_ms: int = 0,
        sign: Sign | None = None,
    ) -> None:
        self._outbox = Outbox()
        self._client = Client(self._outbox, name_servers, sign=sign)
        self._messages = messages
        self._heard = heard
        self._group = group
        self._at_once = at_once
        self._pause_ms = pause_ms
        self._next_ms = 0
        self._waiting = 0
        self._numbers = count()
        self._has_all = False

    @property
    def listeners(self) -> Mapping[str, str]:
        """Nobody comes to a producer."""
        return NO_LISTENERS

    @property
    def is_done(self) -> bool:
        """Whether all is sent and answered."""
        return self._has_all and not self._waiting

    def receive(self, event: Event) -> Sequence[Effect]:
        """Take one event and return its effects."""
        self._client.take(event)
        self._client.ticked(event.now_ms)
        self._send_on(event.now_ms)
        return self._outbox.take()

    def deadline_ms(self) -> int | None:
        """When something has waited for too long."""
        if self.is_done:
            return None
        has_room = self._waiting < self._at_once and not self._has_all
        due = [self._client.deadline_ms(), self._next_ms if has_room else None]
        return min((each for each in due if each is not None), default=None)

    def _send_on(self, now_ms: int) -> None:
        while self._waiting < self._at_once and not self._has_all and now_ms >= self._next_ms:
            self._next_ms = now_ms + self._pause_ms
            message = next(self._messages, None)
            if message is None:
                self._has_all = True
                break
            number = next(self._numbers)
            self._waiting += 1
            self._client.start(send(message, self._group, number, now_ms), partial(self._answered, number))
        self._client.ticked(now_ms)

    def _answered(self, number: int, came: Stored | Failed, now_ms: int) -> None:
        self._waiting -= 1
        self._heard(number, came, now_ms)
