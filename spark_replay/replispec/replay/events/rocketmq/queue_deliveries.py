"""Acknowledged messages that consumer groups went past, and whether they had to get them."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from replispec.replay.events.queue_observations import Pulled
from replispec.replay.events.rocketmq.mappings import LOGICAL
from replispec.replay.events.rocketmq.queue_kept import Kept
from replispec.replay.events.rocketmq.queue_places import acknowledged_at
from replispec.replay.events.rocketmq.queue_reads import held_of, is_removed
from replispec.replay.events.rocketmq.queue_seen import SeenTopic, Where
from replispec.replay.events.rocketmq.queue_wishes import Wish, why_not, wish_of
from replispec.replay.events.stream_event import StreamEvent
from replispec.runtime.primitives.unknown import UNKNOWN
from replispec.wire.rocketmq.codes import ResponseCode
from replispec.wire.rocketmq.constants import OFFSET_MAX

_LEADING_ON: Final = (ResponseCode.SUCCESS, ResponseCode.PULL_RETRY_IMMEDIATELY)
_REMOVED: Final = "retention may have removed it"
_NOT_LED: Final = "it may have meant to leave it out, or what led it there was not seen"
_NO_END: Final = "it was sent to another segment, and nobody told where this one ends"
_NOWHERE: Final = -1
"""Instead of the index of a logical queue, that nobody told which one it is."""
_NOT_PLACED: Final = "nobody told which logical queue it read there"
_NOT_ALL: Final = "not all was seen that brokers answered"


@dataclass(slots=True)
class _Acknowledged:
    """What is acknowledged of one logical queue: the hashes of tags by offsets, and these, ascending."""

    tags: dict[int, int | None] = field(default_factory=dict)
    offsets: list[int] = field(default_factory=list)

    def between(self, first: int, behind: int) -> Sequence[int]:
        """The offsets of an interval."""
        return self.offsets[bisect_left(self.offsets, first) : bisect_left(self.offsets, behind)]


@dataclass(slots=True)
class _Went:
    """What one group read of one logical queue. `passed`: acknowledged offsets that it went past, each with
    the answer that led it, and why it is not sure that it had to get it, empty where it is; `redirected`:
    those from before which it was sent to another segment; `unplaced`: answers with messages of which nobody
    told the logical queue, by broker and message queue. `first`: the least offset that it asked for;
    `last`: the greatest that it read, with the answer and what was wanted."""

    read: set[int] = field(default_factory=set)
    passed: dict[int, tuple[Pulled, str]] = field(default_factory=dict)
    redirected: set[int] = field(default_factory=set)
    unread: bool = False
    first: int | None = None
    last: tuple[int, Pulled, Wish] | None = None
    unplaced: dict[tuple[str | None, int], Pulled] = field(default_factory=dict)

    def takes(self, row: Pulled, asked: int, read: Sequence[int], wish: Wish) -> None:
        """What it asked for in an answer, and read."""
        self.read.update(read)
        self.first = asked if self.first is None else min(self.first, asked)
        if read and (self.last is None or read[-1] > self.last[0]):
            self.last = read[-1], row, wish

    def passes(self, offset: int, row: Pulled, why: str) -> None:
        """It goes past an offset: once it is sure, it stays so."""
        if self.passed.get(offset, (row, why))[1] or offset not in self.passed:
            self.passed[offset] = row, why

    def leaves_out(self, acknowledged: _Acknowledged) -> None:
        """What it neither read nor was led past, between the first offset that it asked for and the last that
        it read: whoever skips messages may mean to."""
        if self.first is None or self.last is None:
            return
        behind, row, wish = self.last
        for offset in acknowledged.between(self.first, behind):
            tag = acknowledged.tags[offset]
            if offset not in self.read and wish.has(tag) is not False:
                self.passed.setdefault(offset, (row, why_not(wish, tag) or _NOT_LED))

    def was_led_past(self, offset: int) -> bool:
        """Whether it was sent elsewhere from before an offset, and read on behind it."""
        return offset in self.redirected and max(self.read, default=offset) > offset


def delivery_events(seen: SeenTopic) -> Iterator[StreamEvent]:
    """Every acknowledged message that a group went past, and that it does not surely leave out."""
    acknowledged: dict[int, _Acknowledged] = defaultdict(_Acknowledged)
    for sent in seen.sent:
        if (place := acknowledged_at(seen, sent)) is not None:
            acknowledged[place[0]].tags[place[1]] = sent.tag_code
    for each in acknowledged.values():
        each.offsets = sorted(each.tags)
    went: dict[tuple[str, int], _Went] = defaultdict(_Went)
    kept = Kept(seen)
    for row in seen.pulled:
        if row.queue_id is not None:
            _go(seen, went, row, acknowledged, kept)
    yield from _unplaced_events(seen, went)
    all_seen = not seen.unseen & {address for address, name in seen.brokers.items() if name}
    for (reader, index), own in sorted(went.items()):
        all_placed = not went[reader, _NOWHERE].unplaced
        own.leaves_out(acknowledged[index])
        for offset, (row, why) in sorted(own.passed.items()):
            unsure = "" if own.was_led_past(offset) else why
            yield seen.event(
                "deliveries",
                "passed",
                row,
                index=index,
                offset=offset,
                reader=reader,
                read=offset in own.read,
                why=unsure or ("" if all_seen and all_placed and not own.unread else _NOT_ALL),
                in_doubt=seen.in_doubt,
                within=offset,
            )


def _unplaced_events(seen: SeenTopic, went: Mapping[tuple[str, int], _Went]) -> Iterator[StreamEvent]:
    """Every message queue that a group read, and of which nobody told the logical queue: what it went past
    there is not known."""
    for (reader, _), own in sorted(went.items()):
        for row in own.unplaced.values():
            yield seen.event(
                "deliveries",
                "passed",
                row,
                index=UNKNOWN,
                offset=UNKNOWN,
                reader=reader,
                read=UNKNOWN,
                why=_NOT_PLACED,
                in_doubt=seen.in_doubt,
            )


def _go(
    seen: SeenTopic,
    went: dict[tuple[str, int], _Went],
    row: Pulled,
    acknowledged: Mapping[int, _Acknowledged],
    kept: Kept,
) -> None:
    """Take one answer. What a broker asks another one for a group, the answer to the group tells."""
    is_logical = seen.is_logical(row)
    if row.code not in _LEADING_ON or row.asked is None or row.next_begin is None:
        return
    if not is_logical and seen.mapping.form != LOGICAL:
        return
    where = seen.where(row) or (Where(row.queue_id or 0, 0) if is_logical and not row.pulled else None)
    if where is None and not is_logical and row.pulled:
        broker = seen.brokers.get(row.address or "")
        went[row.consumer_group or "", _NOWHERE].unplaced.setdefault((broker, row.queue_id or 0), row)
        return
    own = went[row.consumer_group or "", row.queue_id or 0 if where is None else where.index]
    if where is None or row.pulled is None:
        own.unread = True
        return
    shift = 0 if is_logical else where.delta
    wish, asked = wish_of(seen, row), row.asked + shift
    read = [each["queue_offset"] + where.delta for each in row.pulled]
    own.takes(row, asked, read, wish)
    if where.index not in acknowledged:
        return
    sent = acknowledged[where.index]
    if row.redirected and _has_no_end(seen, row):
        for offset in sent.between(asked, OFFSET_MAX):
            if wish.has(sent.tags[offset]) is not False:
                own.passes(offset, row, _NO_END)
        return
    next_begin = _redirected_to(seen, row) if row.redirected else row.next_begin + shift
    gone = _gone_below(seen, row, where, kept, read)
    is_led = bool(row.pulled) or (is_logical and _is_border(seen, row))
    for offset in sent.between(asked, next_begin):
        tag = sent.tags[offset]
        if wish.has(tag) is False:
            continue
        why = why_not(wish, tag) or (_REMOVED if offset < gone and offset not in own.read else "")
        own.passes(offset, row, why or ("" if is_led else _NOT_LED))
        if row.redirected and not why:
            own.redirected.add(offset)


def _gone_below(seen: SeenTopic, row: Pulled, where: Where, kept: Kept, read: Sequence[int]) -> int:
    """Below what messages may have been removed while an answer was made."""
    asked = (row.asked or 0) + (0 if seen.is_logical(row) else where.delta)
    first = read[0] if read else asked
    gone = kept.gone_below(row, where, held_of(seen, row, where, first))
    if first <= max(gone, asked):
        return gone
    return gone if is_removed(seen, kept, row, where, first) is False else first


def _has_no_end(seen: SeenTopic, row: Pulled) -> bool:
    """Whether nobody told where the segment ends that a redirect leaves: what it passes over, if anything,
    and what lies in the next one, cannot be told apart."""
    held = seen.held(row, row.asked)
    return held is None or held.segment.logical_end is None


def _redirected_to(seen: SeenTopic, row: Pulled) -> int:
    """Where a group goes on that is sent to another segment: at the end of this one; before all, where its
    messages are gone."""
    held = seen.held(row, row.asked)
    end = None if held is None else held.segment.logical_end
    return -1 if held is None or end is None or seen.mapping.is_expired(held) else end


def _is_border(seen: SeenTopic, row: Pulled) -> bool:
    """Whether an answer leads on to the start of the next segment."""
    segment = seen.mapping.holding(row.queue_id or 0, row.asked or 0)
    return segment is not None and seen.mapping.border(row.queue_id or 0, segment) == row.next_begin
