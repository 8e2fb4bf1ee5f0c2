"""One plan carried out: its questions are asked, all of one step at once, and it goes on with the replies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Final, Generic, TypeVar

from replispec.administrator.rocketmq.plans import Asking, LookingAgain, NotAsWantedError, Plan, Reply
from replispec.runtime.rocketmq.remoting.calls import Calls, Outcome, Sign
from replispec.runtime.world import Closed, Connected, Effect, Event, Outbox, Received, Started, Ticked
from replispec.wire.rocketmq import constants

T = TypeVar("T")
NO_LISTENERS: Final[Mapping[str, str]] = MappingProxyType({})


class AdministratorNode(Generic[T]):
    """See `replispec.runtime.world.Node`. It is done when its plan is; `result` tells."""

    def __init__(
        self, plan: Plan[T], *, answer_ms: int = constants.ANSWER_TIMEOUT_MS, sign: Sign | None = None
    ) -> None:
        self._plan = plan
        self._answer_ms = answer_ms
        self._outbox = Outbox()
        self._calls = Calls(self._outbox, connect_timeout_ms=answer_ms, sign=sign)
        self._asked: Sequence[Asking] = ()
        self._paused_to_ms: int | None = None
        self._replies: dict[int, Reply] = {}
        self._result: list[T] = []
        self._failure: NotAsWantedError | None = None

    @property
    def listeners(self) -> Mapping[str, str]:
        """Nobody comes to an administrator."""
        return NO_LISTENERS

    @property
    def is_done(self) -> bool:
        """Whether the plan has ended, with a result or without."""
        return bool(self._result) or self._failure is not None

    def result(self) -> T:
        """What the plan came to. Raises NotAsWantedError."""
        if self._failure is not None:
            raise self._failure
        return self._result[0]

    def receive(self, event: Event) -> Sequence[Effect]:
        """Take one event and return its effects."""
        match event:
            case Started(now_ms):
                self._go_on(None, now_ms)
            case Connected():
                self._calls.connected(event)
            case Received():
                self._calls.received(event)
            case Closed():
                self._calls.closed(event)
            case Ticked(now_ms):
                if self._paused_to_ms is not None and now_ms >= self._paused_to_ms:
                    self._paused_to_ms = None
                    self._go_on((), now_ms)
            case _:
                return self._outbox.take()
        self._calls.ticked(event.now_ms)
        return self._outbox.take()

    def deadline_ms(self) -> int | None:
        """When a question has waited for too long, or a pause is over."""
        if self.is_done:
            return None
        return self._calls.deadline_ms() if self._paused_to_ms is None else self._paused_to_ms

    def _go_on(self, replies: Sequence[Reply] | None, now_ms: int) -> None:
        try:
            asked = next(self._plan) if replies is None else self._plan.send(replies)
            while not asked:
                if isinstance(asked, LookingAgain):
                    self._paused_to_ms = now_ms + asked.pause_ms
                    return
                asked = self._plan.send(())
        except StopIteration as end:
            self._result.append(end.value)
            return
        except NotAsWantedError as failure:
            self._failure = failure
            return
        self._asked, self._replies = asked, {}
        for number, question in enumerate(asked):
            self._calls.ask(
                question.address,
                question.code,
                partial(self._replied, number),
                now_ms=now_ms,
                timeout_ms=self._answer_ms,
                ext_fields=dict(question.fields),
                body=question.body,
            )

    def _replied(self, number: int, outcome: Outcome, now_ms: int) -> None:
        self._replies[number] = Reply(self._asked[number], outcome)
        if len(self._replies) == len(self._asked):
            self._go_on([self._replies[each] for each in range(len(self._asked))], now_ms)
