"""Faults put into captures of a static topic, and how faults are put into captures of any."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from replispec.runtime.primitives.headers import Header
from replispec.wire.rocketmq.broker import (
    PullMessageRequest,
    PullMessageResponse,
    SendMessageResponse,
    SendMessageV2Request,
    TopicRouteData,
)
from replispec.wire.rocketmq.client import (
    GetMinOffsetRequest,
    GetMinOffsetResponse,
    GetTopicConfigRequest,
    QueryConsumerOffsetRequest,
    QueryConsumerOffsetResponse,
)
from replispec.wire.rocketmq.codes import RemotingFlag, ResponseCode
from replispec.wire.rocketmq.static_topic import (
    TopicConfigAndQueueMapping,
    TopicQueueMappingDetail,
    UpdateStaticTopicRequest,
)
from tests.replay.faults import Edit, Frame, Frames, put, with_fields
from tests.replay.queues import (
    BROKERS,
    CONSUMER,
    FIRST_EPOCH,
    GROUP,
    LATE_GROUP,
    RECORD_BYTES,
    item,
    moved,
)


@dataclass(frozen=True)
class Fault:
    """An edit, the rules that it breaks, those that it leaves unknown, and those that are known of Java."""

    edit: Edit
    breaks: frozenset[str] = frozenset()
    doubts: frozenset[str] = frozenset()
    diverges: frozenset[str] = frozenset()


def fault(edit: Edit, *breaks: str, doubts: Sequence[str] = (), diverges: Sequence[str] = ()) -> Fault:
    return Fault(edit, frozenset(breaks), frozenset(doubts), frozenset(diverges))


# ---- finding frames ------------------------------------------------------------------------------


def asked(frames: Frames, kind: type[Header], to: str | None = None, **values: Any) -> list[int]:
    """Where requests of a kind are with these fields; `to`: a broker."""
    found = []
    for at, frame in enumerate(frames):
        _, header = frame.command()
        if header.flag & RemotingFlag.RESPONSE or header.code not in kind.CODES:
            continue
        if to is not None and frame.destination != BROKERS[to]:
            continue
        typed = kind.from_ext_fields(dict(header.ext_fields or {}))
        if all(getattr(typed, name) == value for name, value in values.items()):
            found.append(at)
    return found


def answers(frames: Frames, requests: Sequence[int]) -> list[int]:
    """Where they are answered."""
    found = []
    for at in requests:
        asks, (_, header) = frames[at], frames[at].command()
        found.append(
            next(
                other
                for other in range(at + 1, len(frames))
                if frames[other].connection == asks.connection
                and frames[other].source == asks.destination
                and frames[other].command()[1].opaque == header.opaque
            )
        )
    return found


def sends(frames: Frames, broker: str) -> list[int]:
    return answers(frames, asked(frames, SendMessageV2Request, broker))


def pulls(frames: Frames, broker: str, **values: Any) -> list[int]:
    return answers(frames, asked(frames, PullMessageRequest, broker, **values))


def _sets(frames: Frames, broker: str) -> list[int]:
    return asked(frames, UpdateStaticTopicRequest, broker)


def with_body(frames: Frames, at: int, body: bytes) -> Frames:
    return put(frames, at, frames[at].with_command(frames[at].command()[1], body))


def _remapped(
    frames: Frames, at: int, change: Callable[[TopicQueueMappingDetail], TopicQueueMappingDetail]
) -> Frames:
    """Another mapping in what an administrator sets."""
    detail = TopicQueueMappingDetail.decode(frames[at].command()[0].body)
    return with_body(frames, at, change(detail).encode())


def spoken(frames: Sequence[Frame], language: str) -> Frames:
    """The same, where every command is of this language."""
    return [each.with_command(replace(each.command()[1], language=language)) for each in frames]


def by_java(edit: Edit) -> Edit:
    """The same where every command is of Java."""

    def edited(frames: Frames) -> Frames:
        return spoken(edit(frames), "JAVA")

    edited.__name__ = f"{edit.__name__}_by_java"
    return edited


# ---- static topics -------------------------------------------------------------------------------


def an_offset_is_given_twice(frames: Frames) -> Frames:
    """The second message is acknowledged at the offset of the first one."""
    at = sends(frames, "broker-a")[1]
    return put(frames, at, with_fields(frames[at], SendMessageResponse, queue_offset=0))


def another_message_at_an_offset(frames: Frames) -> Frames:
    """Whoever reads the first one is handed another one, of the same queue and offset."""
    at = pulls(frames, "broker-a", queue_offset=0, lo=None)[0]
    body = bytearray(frames[at].command()[0].body)
    place = body.index((RECORD_BYTES).to_bytes(8, "big"))
    body[place : place + 8] = (7 * RECORD_BYTES).to_bytes(8, "big")
    return with_body(frames, at, bytes(body))


def the_distance_of_another_segment(frames: Frames) -> Frames:
    """Old messages are read with the distance of the new segment."""
    at = pulls(frames, "broker-c", queue_offset=0)[0]
    return put(frames, at, with_fields(frames[at], PullMessageResponse, offset_delta=10_000))


def a_physical_position_goes_on(frames: Frames) -> Frames:
    """The leader passes on where the older broker goes on, as that says it."""
    at = pulls(frames, "broker-c", queue_offset=10_000)[0]
    return put(frames, at, with_fields(frames[at], PullMessageResponse, next_begin_offset=2))


def a_message_below_the_border(frames: Frames) -> Frames:
    """The new leader acknowledges a message at an offset of the older segment."""
    at = sends(frames, "broker-c")[-1]
    return put(frames, at, with_fields(frames[at], SendMessageResponse, queue_offset=4))


def a_hole_in_a_read(frames: Frames) -> Frames:
    """The second of three messages is not handed out."""
    at = pulls(frames, "broker-a", queue_offset=0, lo=None)[0]
    body = frames[at].command()[0].body
    third = len(body) // 3
    return with_body(frames, at, body[:third] + body[2 * third :])


def a_border_before_the_end(frames: Frames) -> Frames:
    """A group that has read nothing is led to the new segment at once."""
    at = pulls(frames, "broker-c", queue_offset=0, consumer_group=LATE_GROUP)[0]
    _, header = frames[at].command()
    told = frames[at].with_command(replace(header, code=int(ResponseCode.PULL_RETRY_IMMEDIATELY)), b"")
    return put(frames, at, with_fields(told, PullMessageResponse, next_begin_offset=10_000))


def two_leaders_of_one_epoch(frames: Frames) -> Frames:
    """The old leader is told that it leads on."""
    at = _sets(frames, "broker-a")[-1]
    return _remapped(frames, at, lambda each: _hosting(each, {0: moved(-1)[0][:1]}))


def _hosting(detail: TopicQueueMappingDetail, hosted: dict[int, list[Any]]) -> TopicQueueMappingDetail:
    known = detail.hosted_queues or {}
    kind = type(next(iter(known.values())))
    return replace(detail, hosted_queues={index: kind(own) for index, own in hosted.items()})


def an_item_that_changes(frames: Frames) -> Frames:
    """The new leader is told that the first item is in another queue."""
    at = _sets(frames, "broker-c")[-1]
    changed = [item(0, "broker-a", 5, 0), moved(10_000)[0][1]]
    return _remapped(frames, at, lambda each: _hosting(each, {0: changed}))


def a_start_that_is_decided_twice(frames: Frames) -> Frames:
    """What the new leader tells of its item is another start than the one that was set."""
    (at,) = answers(frames, asked(frames, GetTopicConfigRequest))
    said = TopicConfigAndQueueMapping.decode(frames[at].command()[0].body)
    assert said.mapping_detail is not None
    detail = _hosting(said.mapping_detail, {0: moved(20_000)[0]})
    return with_body(frames, at, replace(said, mapping_detail=detail).encode())


def a_start_that_does_not_grow(frames: Frames) -> Frames:
    """The new item begins where the older one does."""
    for at in (_sets(frames, "broker-c")[-1], _sets(frames, "broker-a")[-1]):
        frames = _remapped(frames, at, lambda each: _hosting(each, {0: moved(0)[0]}))
    (at,) = answers(frames, asked(frames, GetTopicConfigRequest))
    said = TopicConfigAndQueueMapping.decode(frames[at].command()[0].body)
    assert said.mapping_detail is not None
    detail = _hosting(said.mapping_detail, {0: moved(0)[0]})
    return with_body(frames, at, replace(said, mapping_detail=detail).encode())


def an_older_mapping_is_taken(frames: Frames) -> Frames:
    """The last mapping that a broker takes is of an older epoch than the one before."""
    at = _sets(frames, "broker-c")[-1]
    return _remapped(frames, at, lambda each: replace(each, epoch=FIRST_EPOCH + 5))


def a_mapping_of_another_broker(frames: Frames) -> Frames:
    """A broker takes a mapping that is for another one."""
    at = _sets(frames, "broker-b")[-1]
    return _remapped(frames, at, lambda each: replace(each, bname="broker-x"))


def an_end_that_changes(frames: Frames) -> Frames:
    """The end of an item is set, and later another one."""
    sets = _sets(frames, "broker-c")
    for at, end in ((sets[-2], 3), (sets[-1], 5)):
        first = replace(item(0, "broker-a", 0, 0), end_offset=end)
        items = [first, moved(-1 if end == 3 else 10_000)[0][1]]
        frames = _remapped(frames, at, partial(_hosting, hosted={0: items}))
    return frames


def _routes(frames: Frames) -> list[int]:
    return [
        at
        for at, frame in enumerate(frames)
        if frame.destination[0] == CONSUMER and b"topicQueueMappingByBroker" in frame.data
    ]


def a_route_that_nobody_registered(frames: Frames) -> Frames:
    """A name server tells that the new leader leads by another physical queue."""
    at = _routes(frames)[-1]
    said = TopicRouteData.decode(frames[at].command()[0].body)
    infos = dict(said.topic_queue_mapping_by_broker or {})
    infos["broker-c"] = replace(infos["broker-c"], curr_id_map={0: 4})
    return with_body(frames, at, replace(said, topic_queue_mapping_by_broker=infos).encode())


def a_route_of_an_epoch_that_nobody_registered(frames: Frames) -> Frames:
    """A name server tells a mapping of an epoch that the broker never had, between two that it had."""
    at = _routes(frames)[1]
    said = TopicRouteData.decode(frames[at].command()[0].body)
    infos = dict(said.topic_queue_mapping_by_broker or {})
    infos["broker-c"] = replace(infos["broker-c"], epoch=FIRST_EPOCH + 7)
    return with_body(frames, at, replace(said, topic_queue_mapping_by_broker=infos).encode())


def an_older_route(frames: Frames) -> Frames:
    """A name server tells the old leader's mapping as it was before."""
    old, _, new = _routes(frames)
    before = TopicRouteData.decode(frames[old].command()[0].body).topic_queue_mapping_by_broker or {}
    said = TopicRouteData.decode(frames[new].command()[0].body)
    infos = {**(said.topic_queue_mapping_by_broker or {}), "broker-a": before["broker-a"]}
    return with_body(frames, new, replace(said, topic_queue_mapping_by_broker=infos).encode())


def a_position_that_falls(frames: Frames) -> Frames:
    """A group is told less than it committed on the same connection."""
    (at,) = answers(frames, asked(frames, QueryConsumerOffsetRequest, "broker-c"))
    return put(frames, at, with_fields(frames[at], QueryConsumerOffsetResponse, offset=2))


def a_position_that_falls_elsewhere(frames: Frames) -> Frames:
    """The same of a group that commits on other connections, too."""
    at = answers(frames, asked(frames, QueryConsumerOffsetRequest, "broker-a", lo=None))[0]
    return put(frames, at, with_fields(frames[at], QueryConsumerOffsetResponse, offset=2))


def what_is_gone_is_read(frames: Frames) -> Frames:
    """A broker says that the first message is gone, and hands it out afterwards."""
    (at,) = answers(frames, asked(frames, GetMinOffsetRequest, "broker-b"))
    return put(frames, at, with_fields(frames[at], GetMinOffsetResponse, offset=1))


def an_end_that_is_not_translated(frames: Frames) -> Frames:
    """The leader tells with messages how far its physical queue goes."""
    at = pulls(frames, "broker-c", queue_offset=10_000)[0]
    return put(frames, at, with_fields(frames[at], PullMessageResponse, max_offset=2))


def an_end_beyond_all_messages(frames: Frames) -> Frames:
    """The leader tells with messages that there are more than there are."""
    at = pulls(frames, "broker-c", queue_offset=10_000)[0]
    return put(frames, at, with_fields(frames[at], PullMessageResponse, max_offset=10_005))


def a_read_at_the_wrong_broker(frames: Frames) -> Frames:
    """The new leader answers for its own offsets with messages of the older broker's queue."""
    old = pulls(frames, "broker-a", queue_offset=0, lo=None)[0]
    at = pulls(frames, "broker-c", queue_offset=10_000)[0]
    body = frames[old].command()[0].body
    return with_body(frames, at, body[: 2 * (len(body) // 3)])


def a_start_behind_what_was_asked(frames: Frames) -> Frames:
    """The first of three messages is not handed out, and nobody says that it is gone."""
    at = pulls(frames, "broker-a", queue_offset=0, lo=None)[0]
    body = frames[at].command()[0].body
    return with_body(frames, at, body[len(body) // 3 :])


def a_start_behind_what_is_there(frames: Frames) -> Frames:
    """The same at a broker that says afterwards that it has it."""
    at = pulls(frames, "broker-b", queue_offset=0, consumer_group=GROUP)[0]
    body = frames[at].command()[0].body
    return with_body(frames, at, body[len(body) // 2 :])


def a_beginning_that_nobody_said(frames: Frames) -> Frames:
    """The leader answers with a beginning that is not that of the older broker."""
    (at,) = answers(frames, asked(frames, GetMinOffsetRequest, "broker-c"))
    return put(frames, at, with_fields(frames[at], GetMinOffsetResponse, offset=2))


# Where mappings contradict each other, none tells which segment has an offset.
_WHICH = ("message-lies-in-its-segment", "offsets-are-translated")
STATIC_FAULTS = (
    fault(an_offset_is_given_twice, "logical-offset-is-one-message", "message-has-one-logical-offset"),
    fault(another_message_at_an_offset, "logical-offset-is-one-message"),
    fault(
        the_distance_of_another_segment,
        *("offsets-are-translated", "logical-offset-is-one-message", "message-has-one-logical-offset"),
        *("reads-are-contiguous", "acknowledged-is-read"),
        *("message-lies-in-its-segment", "ends-hold-what-is-read"),
    ),
    fault(a_physical_position_goes_on, "reads-are-contiguous"),
    fault(
        a_message_below_the_border,
        *("message-lies-in-its-segment", "message-has-one-logical-offset", "acknowledged-is-read"),
    ),
    fault(a_hole_in_a_read, "reads-are-contiguous", "acknowledged-is-read"),
    fault(a_border_before_the_end, "acknowledged-is-read"),
    fault(two_leaders_of_one_epoch, "one-writable-segment"),
    fault(an_item_that_changes, "decided-segments-stay", doubts=_WHICH),
    fault(a_start_that_is_decided_twice, "decided-segments-stay", doubts=_WHICH),
    fault(a_start_that_does_not_grow, "segments-follow", doubts=_WHICH),
    fault(an_older_mapping_is_taken, "mapping-epochs-grow"),
    fault(a_mapping_of_another_broker, "mappings-are-for-their-broker"),
    fault(an_end_that_changes, "segment-ends-stay"),
    fault(a_route_that_nobody_registered, "routes-are-registered", "one-writable-segment"),
    fault(
        a_route_of_an_epoch_that_nobody_registered,
        "routes-tell-what-is-registered",
        doubts=["routes-are-the-newest"],
    ),
    fault(what_is_gone_is_read, "removed-is-not-read"),
    fault(an_end_that_is_not_translated, "ends-hold-what-is-read"),
    fault(an_end_beyond_all_messages, "ends-never-fall"),
    fault(
        a_read_at_the_wrong_broker,
        *("message-lies-in-its-segment", "message-has-one-logical-offset", "logical-offset-is-one-message"),
    ),
    fault(a_start_behind_what_was_asked, doubts=["reads-are-contiguous", "acknowledged-is-read"]),
    fault(a_start_behind_what_is_there, "reads-are-contiguous", "acknowledged-is-read"),
    fault(an_older_route, "mapping-epochs-grow", doubts=["routes-are-the-newest"]),
    fault(a_position_that_falls, "positions-never-fall", "answers-are-translated"),
    fault(a_position_that_falls_elsewhere, doubts=["positions-never-fall"]),
    fault(a_beginning_that_nobody_said, "answers-are-translated"),
    fault(by_java(an_item_that_changes), diverges=["decided-segments-stay"], doubts=_WHICH),
    fault(by_java(a_start_that_does_not_grow), diverges=["segments-follow"], doubts=_WHICH),
    fault(by_java(a_mapping_of_another_broker), diverges=["mappings-are-for-their-broker"]),
    fault(by_java(an_older_route), diverges=["mapping-epochs-grow", "routes-are-the-newest"]),
)
