"""Where logical queues went, as somebody told (419): a hint, which may be lost.

Anybody may send one. So nobody is sent there before the broker that it names, asked, says that it holds that
very segment; until then a hint keeps this broker from beginning a segment where another one may be.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from replispec.broker.rocketmq.core.peers import Peers
from replispec.broker.rocketmq.core.topic_mapping import HeldSegment
from replispec.runtime.rocketmq.client import Failed
from replispec.runtime.rocketmq.client.segments import holds_segment
from replispec.runtime.rocketmq.queues import Segment

HINTS_MAX: Final = 100_000
"""Logical queues of which it is noted where they went; of further ones clients ask the name server."""

Key = tuple[str, int]
"""A topic, and the index of a logical queue."""


class Hints:
    """By topic and index. `told`: by whomever; `confirmed`: by the broker that it names, too."""

    def __init__(self, peers: Peers) -> None:
        self._peers = peers
        self._told: dict[Key, Segment] = {}
        self._confirmed: dict[Key, Segment] = {}

    def is_told(self, topic: str, index: int) -> bool:
        """Whether somebody told of a logical queue."""
        return (topic, index) in self._told

    def is_followed(self, topic: str, held: HeldSegment) -> bool:
        """Whether somebody told that a logical queue went on behind a segment of this broker."""
        return _behind(self._told.get((topic, held.index)), held) is not None

    def behind(self, topic: str, held: HeldSegment) -> Segment | None:
        """Where it went from there on; None where nobody confirmed it."""
        return _behind(self._confirmed.get((topic, held.index)), held)

    def note(self, topic: str, index: int, hint: Segment, now_ms: int) -> None:
        """Somebody tells of a segment at another broker, of which the start is known."""
        key = topic, index
        if key not in self._told and len(self._told) >= HINTS_MAX:
            return
        known = self._told.get(key)
        if known is None or hint.logical_start >= known.logical_start:
            self._told[key] = hint
        if self._is_newer(key, hint):
            steps = holds_segment(topic, index, hint)
            self._peers.ask(hint.queue.broker_name, steps, partial(self._asked, key, hint), now_ms)

    def _asked(self, key: Key, hint: Segment, result: Any, _now_ms: int) -> None:
        if not isinstance(result, Failed) and result and key in self._told and self._is_newer(key, hint):
            self._confirmed[key] = hint

    def _is_newer(self, key: Key, hint: Segment) -> bool:
        known = self._confirmed.get(key)
        return known is None or hint.logical_start >= known.logical_start

    def forget(self, topic: str) -> None:
        """A topic was deleted."""
        for table in (self._told, self._confirmed):
            for key in [each for each in table if each[0] == topic]:
                del table[key]

    def clear(self) -> None:
        """Another broker is master, and may know better."""
        self._told.clear()
        self._confirmed.clear()


def _behind(hint: Segment | None, held: HeldSegment) -> Segment | None:
    end = max(held.segment.logical_end, held.segment.logical_start)
    return None if hint is None or hint.logical_start < end else hint
