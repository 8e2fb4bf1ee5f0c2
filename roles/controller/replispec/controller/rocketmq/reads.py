"""Requests that are answered from what is agreed on, once it is known that this member still leads.

What is asked while a question to the group is under way waits for the next one, which is for all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from replispec.runtime.rocketmq.remoting import Request

Answer = Callable[[Request], None]
"""Answers a request from what is on record."""


class Reads:
    """Who waits to be answered, and for which question to the group."""

    def __init__(self) -> None:
        self._waiting: list[tuple[Request, Answer]] = []
        self._asked: dict[int, list[tuple[Request, Answer]]] = {}

    def put(self, request: Request, answer: Answer) -> None:
        """Have a request answered when that is allowed."""
        self._waiting.append((request, answer))

    @property
    def are_due(self) -> bool:
        """Whether the group is to be asked."""
        return bool(self._waiting) and not self._asked

    def asked(self, ticket: int) -> None:
        """The group was asked for all that wait."""
        self._asked[ticket], self._waiting = self._waiting, []

    def allowed(self, tickets: Iterable[int]) -> list[tuple[Request, Answer]]:
        """What may be answered now; of questions that were given up there is nothing."""
        return [each for ticket in tickets for each in self._asked.pop(ticket, ())]

    def given_up(self) -> list[tuple[Request, Answer]]:
        """All that waits: nobody will allow it."""
        found = [*self._waiting, *(each for asked in self._asked.values() for each in asked)]
        self._waiting, self._asked = [], {}
        return found
