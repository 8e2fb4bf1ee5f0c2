"""What is told of the partitions of a request, put together by topics in their order."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

Told = Callable[[str, list[Any]], Any]
"""Makes what is told of a topic of what is told of its partitions."""


def by_topics(told: Iterable[tuple[str, Any]], topic_told: Told) -> list[Any]:
    """What is told of each topic; partitions of a topic that stand one after the other go together."""
    topics: list[tuple[str, list[Any]]] = []
    for topic, each in told:
        if not topics or topics[-1][0] != topic:
            topics.append((topic, []))
        topics[-1][1].append(each)
    return [topic_told(topic, partitions) for topic, partitions in topics]
