"""Message queues that logical queues left, and when, as far as this master knows.

Who sends names a message queue, and no logical one: a client with the route of before means the logical queue
that has left. So no other one takes the queue while such a route may be used.
"""

from __future__ import annotations

from typing import Final

from replispec.wire.rocketmq import constants

LEFT_MAX: Final = 100_000
"""Message queues of which it is known; when there are more all rest anew."""


class LeftQueues:
    """They rest for QUEUE_REST_MS; what was left before this broker became master, from then on."""

    def __init__(self) -> None:
        # By topic and message queue, which logical queue left it, and when.
        self._left: dict[tuple[str, int], tuple[int, int]] = {}
        self._since_ms: int | None = None

    def serves(self, now_ms: int) -> None:
        """This broker is master."""
        if self._since_ms is None:
            self._since_ms = now_ms

    def step_down(self) -> None:
        """Another one is."""
        self._left.clear()
        self._since_ms = None

    def left(self, topic: str, queue_id: int, index: int, now_ms: int) -> None:
        """A logical queue is not written in a message queue any more."""
        if len(self._left) >= LEFT_MAX:
            after = now_ms - constants.QUEUE_REST_MS
            self._left = {key: each for key, each in self._left.items() if each[1] > after}
        if len(self._left) >= LEFT_MAX:
            self._left.clear()
            self._since_ms = now_ms
        self._left[topic, queue_id] = index, now_ms

    def rests(self, topic: str, queue_id: int, index: int, held_by: int | None, now_ms: int) -> bool:
        """Whether a logical queue may not take a message queue yet, which another one left.

        `held_by`: the logical queue whose segment it is, None where it is none.
        """
        known = self._left.get((topic, queue_id))
        if known is None and held_by is None:
            return False
        left_by, left_ms = (held_by, self._since_ms) if known is None else known
        if left_by == index:
            return False
        return left_ms is None or now_ms < left_ms + constants.QUEUE_REST_MS
