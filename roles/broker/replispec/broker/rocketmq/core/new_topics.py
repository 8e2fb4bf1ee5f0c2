"""Topics that a first message, or an administrator, would make: a name server is asked before, for a topic
that is not here may have mapped queues at other brokers, and whoever sends to it would be told offsets of a
plain one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from replispec.broker.rocketmq.core.peers import Peers
from replispec.broker.rocketmq.core.topics import is_of_group
from replispec.runtime.rocketmq.client import Failed
from replispec.runtime.rocketmq.client.mapped import is_mapped
from replispec.runtime.rocketmq.remoting.server import Request

WAITING_MAX: Final = 1_000
"""Requests that wait before administrators are refused; messages have a bound of their own."""

Then = Callable[[Request, bool | None, int], None]
"""Called once: whether the topic of a request has mapped queues, None where nobody tells, and the time."""


@dataclass(slots=True)
class _Question:
    """Of one topic: who waits, how many name servers did not answer yet, and what the others came to."""

    waiting: list[tuple[Request, Then]]
    left: int
    is_denied: bool = False
    is_doubtful: bool = False

    def take(self, result: bool | Failed) -> None:
        """One of them answered, or is silent."""
        self.left -= 1
        self.is_denied |= result is False
        # One that is silent says nothing, one that refuses may know of something.
        self.is_doubtful |= isinstance(result, Failed) and result.code is not None


class NewTopics:
    """Asks once for each topic, whoever sends to it meanwhile. Without name servers nothing is asked.

    All name servers are asked at once: one that began a moment ago knows no topic yet. That a topic is mapped
    is believed of any of them; that it is not, where one says so and none has a doubt.
    """

    def __init__(self, peers: Peers, name_servers: Sequence[str]) -> None:
        self._peers = peers
        self._name_servers = tuple(name_servers)
        self._asked: dict[str, _Question] = {}
        self.count = 0
        """How many requests wait."""

    @property
    def is_full(self) -> bool:
        """Whether no administrator's request is to wait behind those that do."""
        return self.count >= WAITING_MAX

    def asks(self, topic: str) -> bool:
        """Whether somebody is asked about such a topic; one of a group's retries is never mapped."""
        return bool(self._name_servers) and not is_of_group(topic)

    def ask(self, topic: str, request: Request, then: Then, now_ms: int) -> None:
        """Ask about the topic of a request; `then` is called later."""
        self.count += 1
        question = self._asked.get(topic)
        if question is not None:
            question.waiting.append((request, then))
            return
        question = self._asked[topic] = _Question([(request, then)], len(self._name_servers))
        for each in self._name_servers:
            self._peers.ask(each, is_mapped(topic, each), partial(self._told, topic, question), now_ms)

    def _told(self, topic: str, question: _Question, result: bool | Failed, now_ms: int) -> None:
        question.take(result)
        if self._asked.get(topic) is not question or (result is not True and question.left):
            return
        is_sure = question.is_denied and not question.is_doubtful
        told: Final = True if result is True else (False if is_sure else None)
        for request, then in self._taken(topic):
            then(request, told, now_ms)

    def _taken(self, topic: str) -> Sequence[tuple[Request, Then]]:
        taken = self._asked.pop(topic).waiting
        self.count -= len(taken)
        return taken

    def take_all(self) -> Sequence[Request]:
        """Nobody waits any more: who did."""
        return [request for topic in [*self._asked] for request, _ in self._taken(topic)]
