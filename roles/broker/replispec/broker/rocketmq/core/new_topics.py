"""Topics that a first message, or an administrator, would make: a name server is asked before, for a topic
that is not here may have mapped queues at other brokers, and whoever sends to it would be told offsets of a
plain one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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


class NewTopics:
    """Asks once for each topic, whoever sends to it meanwhile. Without name servers nothing is asked."""

    def __init__(self, peers: Peers, name_servers: Sequence[str]) -> None:
        self._peers = peers
        self._name_servers = [*name_servers]
        self._waiting: dict[str, list[tuple[Request, Then]]] = {}
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
        waiting = self._waiting.setdefault(topic, [])
        waiting.append((request, then))
        if len(waiting) == 1:
            first = self._name_servers[0]
            self._peers.ask(first, is_mapped(topic, self._name_servers), partial(self._told, topic), now_ms)

    def _told(self, topic: str, result: bool | Failed, now_ms: int) -> None:
        if isinstance(result, Failed):
            # One that is silent is asked last the next time.
            self._name_servers.append(self._name_servers.pop(0))
        told: Final = None if isinstance(result, Failed) else result
        for request, then in self._taken(topic):
            then(request, told, now_ms)

    def _taken(self, topic: str) -> Sequence[tuple[Request, Then]]:
        taken = self._waiting.pop(topic, [])
        self.count -= len(taken)
        return taken

    def take_all(self) -> Sequence[Request]:
        """Nobody waits any more: who did."""
        return [request for topic in [*self._waiting] for request, _ in self._taken(topic)]
