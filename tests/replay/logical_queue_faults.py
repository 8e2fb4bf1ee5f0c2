"""Faults put into captures of logical queues of RIP-21."""

from __future__ import annotations

from dataclasses import replace

from replispec.wire.rocketmq.broker import (
    PullMessageRequest,
    PullMessageResponse,
    RegisterBrokerBody,
    RegisterBrokerRequest,
    SendMessageResponse,
    TopicConfigTable,
    TopicRouteData,
)
from replispec.wire.rocketmq.client import QueryConsumerOffsetRequest, QueryConsumerOffsetResponse
from replispec.wire.rocketmq.codes import ResponseCode
from replispec.wire.rocketmq.logical_queue import (
    LogicalQueues,
    LogicalQueueSegment,
    LogicalQueueSegments,
    MigrateLogicalQueue,
    PrepareMigrationRequest,
)
from tests.replay import logical_queues as lq
from tests.replay.faults import Frames, put, with_fields
from tests.replay.queue_faults import answers, asked, fault, pulls, sends, with_body
from tests.replay.queues import LATE_GROUP, TOPIC


def _registrations(frames: Frames, broker: str) -> list[int]:
    return asked(frames, RegisterBrokerRequest, broker_name=broker)


def _with_segments(frames: Frames, at: int, *segments: LogicalQueueSegment) -> Frames:
    """A broker registers these instead."""
    said = RegisterBrokerBody.decode(frames[at].command()[0].body)
    queues: dict[int, list[LogicalQueueSegment]] = {}
    for each in segments:
        queues.setdefault(each.logical_queue_index or 0, []).append(each)
    told = LogicalQueues({index: LogicalQueueSegments(own) for index, own in queues.items()})
    wrapper = TopicConfigTable(logical_queues_info_map={TOPIC: told})
    return with_body(frames, at, replace(said, topic_config_serialize_wrapper=wrapper).encode())


def two_normal_segments(frames: Frames) -> Frames:
    """The target has a segment that is written in two of its queues."""
    at = _registrations(frames, "broker-b")[2]
    other = lq.segment(0, lq.B, 2, 7)
    return _with_segments(frames, at, lq.OTHER, lq.SECOND, other)


def an_end_that_moves(frames: Frames) -> Frames:
    """The source registers another end than it decided."""
    at = _registrations(frames, "broker-a")[1]
    return _with_segments(frames, at, replace(lq.SEALED, offset_max=4))


def a_segment_that_moves(frames: Frames) -> Frames:
    """The target registers another start than was decided."""
    at = _registrations(frames, "broker-b")[2]
    return _with_segments(frames, at, lq.OTHER, replace(lq.SECOND, logical_queue_delta=2))


def a_start_off_by_one(frames: Frames) -> Frames:
    """The source decides a start one before its end, and everybody is told so."""
    second = replace(lq.SECOND, logical_queue_delta=2)
    (first, *_) = answers(frames, asked(frames, PrepareMigrationRequest))
    frames = with_body(frames, first, MigrateLogicalQueue(lq.SEALED, second).encode())
    frames = _with_segments(frames, _registrations(frames, "broker-b")[2], lq.OTHER, second)
    sealed = replace(lq.SECOND_SEALED, logical_queue_delta=2)
    frames = _with_segments(frames, _registrations(frames, "broker-b")[3], lq.OTHER, sealed)
    second_run = answers(frames, asked(frames, PrepareMigrationRequest))[1]
    third = replace(lq.THIRD, logical_queue_delta=4)
    frames = with_body(frames, second_run, MigrateLogicalQueue(sealed, third).encode())
    frames = _with_segments(frames, _registrations(frames, "broker-a")[-1], third)
    routes = [at for at, frame in enumerate(frames) if b'"logicalQueuesInfo"' in frame.data]
    for at, told in zip(routes[1:], ((lq.SEALED, second), (sealed, third)), strict=True):
        data = TopicRouteData.decode(frames[at].command()[0].body)
        queues = {0: LogicalQueueSegments([*told]), 1: LogicalQueueSegments([lq.OTHER])}
        frames = with_body(frames, at, replace(data, logical_queues_info=queues).encode())
    return frames


def a_message_behind_the_seal(frames: Frames) -> Frames:
    """The last message of a segment is acknowledged behind the end that was decided."""
    at = sends(frames, "broker-b")[-1]
    return put(frames, at, with_fields(frames[at], SendMessageResponse, queue_offset=4))


def a_position_that_is_lost(frames: Frames) -> Frames:
    """A broker that is asked how far a group has read says less than it took."""
    at = answers(frames, asked(frames, QueryConsumerOffsetRequest, "broker-a"))[0]
    return put(frames, at, with_fields(frames[at], QueryConsumerOffsetResponse, offset=0))


def a_hole_in_a_segment(frames: Frames) -> Frames:
    """The second of three messages of a segment is not handed out."""
    at = pulls(frames, "broker-a", queue_offset=0)[0]
    body = frames[at].command()[0].body
    third = len(body) // 3
    return with_body(frames, at, body[:third] + body[2 * third :])


def a_redirect_too_early(frames: Frames) -> Frames:
    """A group is sent to the next segment, where it reads on, with a message of this one unread."""
    first, last = (pulls(frames, "broker-b", queue_offset=offset)[0] for offset in (0, 2))
    body = frames[first].command()[0].body
    for at in (first, last):
        frames = put(frames, at, with_fields(frames[at], PullMessageResponse, next_begin_offset=1))
    frames = with_body(frames, first, body[: len(body) // 2])
    at = asked(frames, PullMessageRequest, "broker-b", queue_offset=2)[0]
    return put(frames, at, with_fields(frames[at], PullMessageRequest, queue_offset=1))


def _late_pulls(frames: Frames) -> list[int]:
    return pulls(frames, "broker-a", queue_offset=0, consumer_group=LATE_GROUP)


def _handed_out(frames: Frames, at: int) -> Frames:
    """The messages of the first segment in an answer that sends elsewhere."""
    body = frames[pulls(frames, "broker-a", queue_offset=0)[0]].command()[0].body
    _, header = frames[at].command()
    told = frames[at].with_command(replace(header, code=int(ResponseCode.SUCCESS)), body)
    return put(
        frames, at, with_fields(told, PullMessageResponse, next_begin_offset=3, max_offset=3, redirect=None)
    )


def an_expired_segment_is_read(frames: Frames) -> Frames:
    """A broker sends readers of a segment on, as it is gone, and then hands out its messages."""
    return _handed_out(frames, _late_pulls(frames)[-1])


def a_segment_is_read_that_was_registered_as_expired(frames: Frames) -> Frames:
    """Its broker hands out messages of a segment that it had registered as expired elsewhere."""
    first, last = _late_pulls(frames)
    return _handed_out(_handed_out(frames, first), last)


def a_route_with_a_segment_that_nobody_registered(frames: Frames) -> Frames:
    """A name server tells one more segment of a logical queue."""
    at = [at for at, frame in enumerate(frames) if b'"logicalQueuesInfo"' in frame.data][-1]
    data = TopicRouteData.decode(frames[at].command()[0].body)
    queues = dict(data.logical_queues_info or {})
    queues[1] = LogicalQueueSegments([*(queues[1].segments or ()), lq.segment(1, lq.A, 7, 9)])
    return with_body(frames, at, replace(data, logical_queues_info=queues).encode())


LOGICAL_FAULTS = (
    fault(an_expired_segment_is_read, "removed-is-not-read"),
    fault(a_segment_is_read_that_was_registered_as_expired, doubts=["removed-is-not-read"]),
    fault(a_route_with_a_segment_that_nobody_registered, "routes-tell-what-is-registered"),
    fault(two_normal_segments, "one-writable-segment"),
    fault(an_end_that_moves, "segment-ends-stay"),
    fault(
        a_segment_that_moves,
        "decided-segments-stay",
        doubts=["message-lies-in-its-segment", "acknowledged-is-read"],
    ),
    fault(
        a_start_off_by_one,
        *("segments-follow", "logical-offset-is-one-message", "message-lies-in-its-segment"),
    ),
    fault(a_message_behind_the_seal, "message-lies-in-its-segment", "message-has-one-logical-offset"),
    fault(a_position_that_is_lost, "positions-never-fall"),
    fault(a_redirect_too_early, "acknowledged-is-read"),
    fault(a_hole_in_a_segment, "reads-are-contiguous", "acknowledged-is-read"),
)
