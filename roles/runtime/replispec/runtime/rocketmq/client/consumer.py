"""A node that reads the queues of a topic, all at once, and says how far a group has read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from types import MappingProxyType
from typing import Final

from replispec.runtime.rocketmq.client.asking import Failed, Pausing, Steps, looked_up
from replispec.runtime.rocketmq.client.client import Client
from replispec.runtime.rocketmq.client.messages import ReadMessage
from replispec.runtime.rocketmq.client.routes import ClientQueue, Route
from replispec.runtime.rocketmq.client.steps import (
    Pull,
    Pulled,
    commit,
    max_offset,
    min_offset,
    offset_at,
    position,
    pull,
)
from replispec.runtime.rocketmq.remoting.calls import Sign
from replispec.runtime.world import Effect, Event, Outbox, Started
from replispec.wire.rocketmq.constants import (
    CLIENT_AGAIN_MS,
    CLIENT_COMMIT_MS,
    CLIENT_HOLD_MS,
    CLIENT_PULL_MESSAGES,
    ROUTE_REFRESH_MS,
)

NO_LISTENERS: Final[Mapping[str, str]] = MappingProxyType({})


class Begin(Enum):
    """Where a queue is begun of which the group has read nothing."""

    EARLIEST = "earliest"
    LATEST = "latest"


@dataclass(frozen=True, slots=True)
class Reading:
    """What is read: `count` messages, or all until nothing came for `idle_ms`; for ever without either.
    `group` says how far it has read, and goes on there; without one nothing is remembered."""

    topic: str
    begin: Begin | int = Begin.EARLIEST
    group: str | None = None
    count: int | None = None
    idle_ms: int | None = None
    hold_ms: int = CLIENT_HOLD_MS


Heard = Callable[[ReadMessage, int], None]
Troubled = Callable[[ClientQueue, Failed], None]


@dataclass(slots=True)
class _Queue:
    """A queue that is read: what comes next, and what the group last said."""

    next_offset: int | None = None
    told: int | None = None


class ConsumerNode:
    """See `replispec.runtime.world.Node`. It is done when it has read what is wanted and its group's
    positions are stored. A queue of which nothing can be read, or of which a position cannot be stored, is
    tried again and again, which `troubled` is told; `failure` is a fault that no further try mends."""

    def __init__(
        self,
        name_servers: Sequence[str],
        reading: Reading,
        heard: Heard,
        troubled: Troubled,
        *,
        name: str,
        sign: Sign | None = None,
    ) -> None:
        self._outbox = Outbox()
        self._client = Client(self._outbox, name_servers, sign=sign)
        self._reading = reading
        self._heard = heard
        self._troubled = troubled
        self._name = reading.group or name
        self._queues: dict[ClientQueue, _Queue] = {}
        self._left = reading.count
        self._looks_at_ms = 0
        self._heard_ms = 0
        self._commit_ms = 0
        self._committing = 0
        self._is_over = False
        self.failure: Failed | None = None

    @property
    def listeners(self) -> Mapping[str, str]:
        """Nobody comes to a consumer."""
        return NO_LISTENERS

    @property
    def is_done(self) -> bool:
        """Whether it has read all that is wanted, and said so."""
        return self._is_over and not self._committing

    def stop(self) -> None:
        """Read no more, and say how far the group has read; with the next event."""
        self._looks_at_ms = 0
        self._left = 0

    def receive(self, event: Event) -> Sequence[Effect]:
        """Take one event and return its effects."""
        now_ms = event.now_ms
        if isinstance(event, Started):
            self._heard_ms = self._commit_ms = now_ms
        self._client.take(event)
        self._client.ticked(now_ms)
        if not self._is_over:
            self._read_on(now_ms)
        self._client.ticked(now_ms)
        return self._outbox.take()

    def deadline_ms(self) -> int | None:
        """When there is something to do without an event."""
        if self.is_done:
            return None
        due = [self._client.deadline_ms()]
        if not self._is_over:
            due += [self._looks_at_ms, self._commit_ms + CLIENT_COMMIT_MS]
            idle_ms = self._reading.idle_ms
            due.append(None if idle_ms is None else self._heard_ms + idle_ms)
        return min((each for each in due if each is not None), default=None)

    # ---- what is read ----------------------------------------------------------------------------

    def _read_on(self, now_ms: int) -> None:
        idle_ms = self._reading.idle_ms
        is_idle = idle_ms is not None and now_ms - self._heard_ms >= idle_ms
        if self._left == 0 or is_idle or self.failure is not None:
            self._is_over = True
            self._commit(now_ms)
            return
        if now_ms >= self._looks_at_ms:
            self._looks_at_ms = now_ms + ROUTE_REFRESH_MS
            self._client.start(looked_up(self._reading.topic), self._routed)
        if now_ms - self._commit_ms >= CLIENT_COMMIT_MS:
            self._commit(now_ms)

    def _routed(self, came: Route | Failed, _now_ms: int) -> None:
        if isinstance(came, Failed):
            self._failed(came)
            return
        plain = self._left_behind(came)
        for queue in came.subscribed:
            if queue in self._queues or came.broker_of(queue) is None:
                continue
            known = self._queues[queue] = _Queue()
            begin = came.begin_behind(queue, plain)
            if begin is None:
                self._client.start(self._first(queue), partial(self._begun, queue, known))
            else:
                known.next_offset = begin
                self._pull(queue, known)

    def _left_behind(self, route: Route) -> Mapping[ClientQueue, int]:
        """Message queues that were read as those of a plain topic, which has logical queues now: they are
        read no more, and what was read of them is not read again."""
        if not route.is_logical:
            return {}
        left = [each for each in self._queues if not route.has_form_of(each)]
        gone = {each: self._queues.pop(each).next_offset for each in left}
        return {each: offset for each, offset in gone.items() if offset is not None}

    def _first(self, queue: ClientQueue, after_ms: int = 0) -> Steps[int]:
        """Where a queue is begun."""
        reading = self._reading
        if after_ms:
            yield Pausing(after_ms)
        if reading.group is not None:
            known = yield from position(reading.topic, queue, reading.group)
            if known is not None:
                return known
        if reading.begin is Begin.EARLIEST:
            return (yield from min_offset(reading.topic, queue))
        if isinstance(reading.begin, int):
            return (yield from offset_at(reading.topic, queue, reading.begin))
        return (yield from max_offset(reading.topic, queue))

    def _begun(self, queue: ClientQueue, known: _Queue, came: int | Failed, now_ms: int) -> None:
        if not self._is_read(queue, known):
            return
        if isinstance(came, Failed):
            self._is_in_trouble(queue, came, now_ms)
            steps = self._first(queue, CLIENT_AGAIN_MS)
            self._client.start(steps, partial(self._begun, queue, known))
            return
        known.next_offset = came
        # A group that has not read anything yet says nothing.
        known.told = came
        self._pull(queue, known)

    def _pull(self, queue: ClientQueue, known: _Queue, after_ms: int = 0) -> None:
        reading, offset = self._reading, known.next_offset or 0
        wanted = Pull(reading.topic, self._name, queue, offset, CLIENT_PULL_MESSAGES, reading.hold_ms)
        self._client.start(pull(wanted, after_ms=after_ms), partial(self._pulled, queue, known))

    def _pulled(self, queue: ClientQueue, known: _Queue, came: Pulled | Failed, now_ms: int) -> None:
        if not self._is_read(queue, known):
            return
        if isinstance(came, Failed):
            self._is_in_trouble(queue, came, now_ms)
            self._pull(queue, known, CLIENT_AGAIN_MS)
            return
        for message in came.messages:
            if self._left == 0:
                return
            self._left = None if self._left is None else self._left - 1
            known.next_offset = message.offset + 1
            self._heard_ms = now_ms
            self._heard(message, now_ms)
        if self._left != 0:
            known.next_offset = max(came.next_offset, 0)
            self._pull(queue, known)

    def _is_read(self, queue: ClientQueue, known: _Queue) -> bool:
        """Whether what is told of a queue still counts."""
        return not self._is_over and self._queues.get(queue) is known

    def _is_in_trouble(self, queue: ClientQueue, why: Failed, now_ms: int) -> None:
        """Perhaps the topic has other queues by now."""
        self._troubled(queue, why)
        self._looks_at_ms = now_ms

    def _failed(self, failure: Failed) -> None:
        self.failure = self.failure or failure

    # ---- what a group says -----------------------------------------------------------------------

    def _commit(self, now_ms: int) -> None:
        self._commit_ms = now_ms
        reading = self._reading
        if reading.group is None:
            return
        for queue, known in self._queues.items():
            offset = known.next_offset
            if offset is not None and offset != known.told:
                self._committing += 1
                known.told = offset
                steps = commit(reading.topic, queue, reading.group, offset)
                self._client.start(steps, partial(self._committed, queue, known))

    def _committed(self, queue: ClientQueue, known: _Queue, came: int | Failed, now_ms: int) -> None:
        self._committing -= 1
        if not isinstance(came, Failed):
            return
        if self._is_over:
            self._failed(came)
        elif self._is_read(queue, known):
            known.told = None
            self._is_in_trouble(queue, came, now_ms)
