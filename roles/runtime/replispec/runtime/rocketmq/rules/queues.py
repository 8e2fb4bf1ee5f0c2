"""Rules about logical queues: where a segment begins and ends, which one holds an offset, who leads.

Offsets count messages, ends are exclusive, and an offset that is not decided is UNDECIDED. Source: RIP-21;
apache/rocketmq rocketmq-all-5.4.0, TopicQueueMappingUtils, LogicQueueMappingItem; golden examples in
spec/vectors/rocketmq/queues.yaml.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from replispec.wire.rocketmq.constants import (
    LOGIC_OFFSET_BLOCK,
    LOGICAL_QUEUES_MAX,
    MAPPING_EPOCH_AHEAD_MS,
    MAPPING_EPOCH_STEP_MS,
    UNDECIDED,
)
from replispec.wire.rocketmq.static_topic import LogicQueueMappingItem

_DIGITS_MAX = len(str(LOGICAL_QUEUES_MAX))
_LISTED_MAX = LOGICAL_QUEUES_MAX * (_DIGITS_MAX + len(", ")) + len("[]")


def logical_offset(physical: int, physical_start: int, logical_start: int) -> int:
    """The logical offset of a message."""
    return UNDECIDED if logical_start == UNDECIDED else physical - physical_start + logical_start


def physical_offset(logical: int, physical_start: int, logical_start: int) -> int:
    """The inverse, of a segment of which the start is decided."""
    return logical - logical_start + physical_start


def offset_delta(physical_start: int, logical_start: int) -> int:
    """What is added to a physical offset."""
    return logical_start - physical_start


def segment_end(physical_start: int, physical_end: int, logical_start: int) -> int:
    """The logical end of a segment, exclusive."""
    is_open = UNDECIDED in (physical_end, logical_start)
    return UNDECIDED if is_open else logical_offset(physical_end, physical_start, logical_start)


def next_block(end: int) -> int:
    """Where the item of a static topic begins that follows one which ends there."""
    blocks, used = divmod(end, LOGIC_OFFSET_BLOCK)
    return (blocks + (1 if used < LOGIC_OFFSET_BLOCK // 2 else 2)) * LOGIC_OFFSET_BLOCK


def next_mapping_epoch(known: int, now_ms: int) -> int:
    """The epoch of the next mapping."""
    return max(known + MAPPING_EPOCH_STEP_MS, now_ms)


def segment_at(starts: Sequence[int], offset: int) -> int | None:
    """The place of the segment that an offset belongs to; O(log n) but for undecided ones at the end."""
    decided = len(starts)
    while decided and starts[decided - 1] == UNDECIDED:
        decided -= 1
    place = bisect_right(starts, offset, 0, decided) - 1
    return place if place >= 0 else None


def leader_of(items: Sequence[LogicQueueMappingItem]) -> str | None:
    """The broker of the last item."""
    return items[-1].bname if items else None


def leads_undecided(items: Sequence[LogicQueueMappingItem]) -> bool:
    """True when it is not decided where the last item begins."""
    return bool(items) and items[-1].logic_offset == UNDECIDED


def holds_item(items: Sequence[LogicQueueMappingItem], broker_name: str) -> bool:
    """True when an item is on this broker."""
    return any(each.bname == broker_name for each in items)


def follows_items(known: Sequence[LogicQueueMappingItem], items: Sequence[LogicQueueMappingItem]) -> bool:
    """True when new items may take the place of known ones. O(n): one known item at most is undecided."""
    said = {_number(each.gen): each for each in items}
    oldest = min(said, default=None)
    return all(
        _agrees(each, said.get(_number(each.gen))) or _comes_later(each, items)
        for each in known
        if oldest is None or _number(each.gen) >= oldest
    )


def _comes_later(known: LogicQueueMappingItem, items: Sequence[LogicQueueMappingItem]) -> bool:
    """True when an item that has given no offsets yet is there again, behind others."""
    return known.logic_offset == UNDECIDED and any(
        _number(each.gen) > _number(known.gen) and _agrees(known, each) for each in items
    )


def _agrees(known: LogicQueueMappingItem, said: LogicQueueMappingItem | None) -> bool:
    return (
        said is not None
        and said.bname == known.bname
        and _number(said.queue_id) == _number(known.queue_id)
        and _number(said.start_offset) == _number(known.start_offset)
        and _is_kept(known.logic_offset, said.logic_offset)
        and _is_kept(known.end_offset, said.end_offset, UNDECIDED)
    )


def _is_kept(known: int | None, said: int | None, absent: int = 0) -> bool:
    return _number(known, absent) in (UNDECIDED, _number(said, absent))


def _number(value: int | None, absent: int = 0) -> int:
    """A number as Java has it that reads a key which is not there."""
    return absent if value is None else value


def indexes_in(listed: str | None) -> frozenset[int] | None:
    """The indexes of a text such as `[0, 3]`; None for no text, and for one that is no such list."""
    if listed is None or not (listed.startswith("[") and listed.endswith("]")) or len(listed) > _LISTED_MAX:
        return None
    numbers = [each.strip(" ") for each in listed[1:-1].split(",")] if listed != "[]" else []
    if not all(each.isascii() and each.isdecimal() and len(each) <= _DIGITS_MAX for each in numbers):
        return None
    found = frozenset(map(int, numbers))
    return found if all(each < LOGICAL_QUEUES_MAX for each in found) else None


def is_epoch_credible(epoch: int, now_ms: int) -> bool:
    """Whether a clock may have shown it."""
    return epoch <= now_ms + MAPPING_EPOCH_AHEAD_MS
