"""Rules about messages that are consumed later: delay levels, and the properties of a message that waits.

Source: apache/rocketmq rocketmq-all-5.4.0, ScheduleMessageService, HookUtils; golden examples in
spec/vectors/rocketmq/delays.yaml.
"""

from __future__ import annotations

from typing import Final

from replispec.runtime.primitives.texts import INT64, decimal_of
from replispec.wire.rocketmq.constants import (
    DEAD_TOPIC_PREFIX,
    DELAY_PROPERTY,
    FIRST_RETRY_LEVEL,
    ORIGIN_ID_PROPERTY,
    PROPERTY_NAME_END,
    PROPERTY_VALUE_END,
    REAL_QUEUE_PROPERTY,
    REAL_TOPIC_PROPERTY,
    RETRY_TOPIC_PREFIX,
    RETRY_TOPIC_PROPERTY,
    WAITED_PROPERTY,
)

_UNITS_MS: Final = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_COUNT_MAX: Final = INT64[1] // max(_UNITS_MS.values())
"""The most units of a level: more milliseconds are no number."""
_PLACES: Final = frozenset((REAL_TOPIC_PROPERTY, REAL_QUEUE_PROPERTY, WAITED_PROPERTY))


def delay_levels(text: str) -> list[int]:
    """How long a message of each level waits, in milliseconds; none when the text is none of levels."""
    parts = text.split()
    counts = [decimal_of(part[:-1], _COUNT_MAX) for part in parts]
    found = [
        count * _UNITS_MS[part[-1]]
        for count, part in zip(counts, parts, strict=True)
        if count is not None and part[-1] in _UNITS_MS
    ]
    return found if len(found) == len(parts) else []


def delay_level(properties: str, topic: str, levels: int) -> int:
    """The delay level that a message for a topic asks for; 0 for none. `levels`: how many there are."""
    if DELAY_PROPERTY not in properties or topic.startswith(DEAD_TOPIC_PREFIX):
        return 0
    asked = dict(_pairs(properties)).get(DELAY_PROPERTY, "")
    return min(decimal_of(asked) or 0, levels)


def as_waiting(properties: str, topic: str, queue_id: int) -> str:
    """The properties of a message for this queue while it waits."""
    kept = [each for each in _pairs(properties) if each[0] not in _PLACES]
    return _joined([*kept, (REAL_TOPIC_PROPERTY, topic), (REAL_QUEUE_PROPERTY, str(queue_id))])


def as_delivered(properties: str, level: int, position: int) -> str:
    """The properties of a message that has waited at this position of the queue of a level."""
    kept = [each for each in _pairs(properties) if each[0] not in (DELAY_PROPERTY, WAITED_PROPERTY)]
    return _joined([*kept, (WAITED_PROPERTY, f"{level}:{position}")])


def due_at(stored_ms: int, delay_ms: int, now_ms: int) -> int:
    """When a message is delivered that was stored at a time and waits so long."""
    due_ms = stored_ms + delay_ms
    return now_ms if due_ms > now_ms + delay_ms else due_ms


def tried_topic(topic: str, times: int, times_max: int) -> str:
    """The topic of a message that is sent after so many retries, of at most so many."""
    if times <= times_max or not topic.startswith(RETRY_TOPIC_PREFIX):
        return topic
    return DEAD_TOPIC_PREFIX + topic.removeprefix(RETRY_TOPIC_PREFIX)


def tried_queue(topic: str, queue_id: int, times: int, times_max: int) -> int:
    """The queue of a message that is sent to this one after so many retries, of at most so many."""
    return queue_id if tried_topic(topic, times, times_max) == topic else 0


def returned_topic(group: str, level: int, times: int, times_max: int) -> str:
    """The topic of a message that a group gives back after so many retries, of at most so many."""
    is_dead = level < 0 or times >= times_max
    return (DEAD_TOPIC_PREFIX if is_dead else RETRY_TOPIC_PREFIX) + group


def as_returned(properties: str, topic: str, message_id: str, level: int, times: int) -> str:
    """The properties of a message that is given back at a level, or at that of its tries."""
    kept = [each for each in _pairs(properties) if each[0] != DELAY_PROPERTY]
    known = dict(kept)
    firsts = ((RETRY_TOPIC_PROPERTY, topic), (ORIGIN_ID_PROPERTY, message_id))
    wanted = level or FIRST_RETRY_LEVEL + max(times, 0)
    return _joined([*kept, *(each for each in firsts if each[0] not in known), (DELAY_PROPERTY, str(wanted))])


def _pairs(properties: str) -> list[tuple[str, str]]:
    parts = (each.split(PROPERTY_NAME_END) for each in properties.split(PROPERTY_VALUE_END))
    return [(pair[0], pair[1]) for pair in parts if len(pair) == 2]


def _joined(pairs: list[tuple[str, str]]) -> str:
    return "".join(f"{name}{PROPERTY_NAME_END}{value}{PROPERTY_VALUE_END}" for name, value in pairs)
