"""What a scripted broker of logical queues has written, and the words in which it says it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.conformance.subjects.static_topic_shell import Disk, Fields, Refused

UNKNOWN = -1
SEGMENT_KEYS = ("messageQueue", "logicalQueueIndex", "logicalQueueDelta", "offsetDelta", "state")


@dataclass
class Held:
    """A segment of the broker's own: logical and physical start, physical end, and what follows."""

    topic: str
    queue: int
    index: int
    start: int = 0
    place: int = 0
    end: int = UNKNOWN
    state: str = "Normal"
    successor: Fields | None = None

    @property
    def is_written(self) -> bool:
        """Whether it takes messages."""
        return self.state in ("Normal", "WriteOnly")


@dataclass
class LogicalDisk(Disk):
    """What is left when the process ends."""

    held: dict[tuple[str, int], Held] = field(default_factory=dict)
    kept_from: dict[tuple[str, int], int] = field(default_factory=dict)
    enabled: dict[str, Fields] = field(default_factory=dict)

    def first(self, topic: str, queue: int) -> int:
        """The oldest message of a queue that is not deleted."""
        return self.kept_from.get((topic, queue), 0)

    def of_topic(self, topic: str) -> list[Held]:
        """The segments of a topic, in order."""
        found = [each for (name, _), each in self.held.items() if name == topic]
        return sorted(found, key=lambda each: (each.start < 0, each.start, each.queue))

    def of_index(self, topic: str, index: int) -> list[Held]:
        """Those of one logical queue."""
        return [each for each in self.of_topic(topic) if each.index == index]


def number(asked: Mapping[str, Any], name: str, least: int = 0, most: int = 65_535) -> int:
    """A whole number of a body. Raises Refused where it is none, or none that can be."""
    found = asked.get(name)
    if type(found) is not int or not least <= found <= most:
        raise Refused("INVALID_PARAMETER")
    return found


def place_of(segment: object, topic: str | None = None) -> tuple[str, str, int, int]:
    """Topic, broker, queue and index of a segment that is said. Raises Refused where it says none."""
    if not isinstance(segment, dict) or any(name not in segment for name in SEGMENT_KEYS):
        raise Refused("INVALID_PARAMETER")
    queue = segment["messageQueue"]
    if not isinstance(queue, dict) or not queue.get("brokerName"):
        raise Refused("INVALID_PARAMETER")
    found = str(queue.get("topic", ""))
    if topic is not None and found != topic:
        raise Refused("INVALID_PARAMETER")
    return found, queue["brokerName"], number(queue, "queueId"), number(segment, "logicalQueueIndex")
