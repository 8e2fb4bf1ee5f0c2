"""What commands say of mappings: which broker has which segments of the logical queues of a topic.

An answer tells what holds at who answers, a registration what its broker says of itself. A mapping that an
administrator sets is told by the answer that takes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from enum import StrEnum
from typing import Any, Final

from replispec.replay.events.observation import Observation
from replispec.replay.events.queue_observations import Mapped
from replispec.replay.events.rocketmq.command import Command
from replispec.wire.rocketmq import broker, logical_queue, static_topic
from replispec.wire.rocketmq.client import GetTopicConfigRequest
from replispec.wire.rocketmq.codes import RequestCode, ResponseCode
from replispec.wire.rocketmq.constants import UNDECIDED

STATIC, LOGICAL = "ST", "LQ"


class SaidBy(StrEnum):
    """How a mapping is said: an administrator sends it (SENT) and is answered (SET), who has it told it (to
    one who copies it: COPIED), its broker wants it registered (ASKED) and is answered (REGISTERED), a name
    server told it, or that it knows no such topic (UNTOLD); it was deleted at a broker, or at a name server
    (FORGOTTEN)."""

    SET = "set"
    TOLD = "told"
    COPIED = "copied"
    REGISTERED = "registered"
    ROUTE = "route"
    DELETED = "deleted"
    FORGOTTEN = "forgotten"
    ASKED = "asked"
    UNTOLD = "untold"
    SENT = "sent"


REPEATED: Final = (SaidBy.REGISTERED, SaidBy.ASKED)
"""What is said again and again, and is news where it changes."""
NO_MAPPING: Final = (SaidBy.DELETED, SaidBy.FORGOTTEN, SaidBy.ASKED, SaidBy.UNTOLD, SaidBy.SENT)
"""What tells no mapping that holds."""


def mappings_of(command: Command) -> Iterator[Observation]:
    """The mappings in one command. Raises RemoteProtocolError."""
    request = command.request
    if request is None:
        if not command.is_answer and command.code in _REQUESTS:
            yield from _REQUESTS[command.code](command)
    elif request.code == RequestCode.GET_ROUTEINFO_BY_TOPIC:
        yield from _route(command, request)
    elif request.code in _ANSWERS and not command.code:
        yield from _ANSWERS[request.code](command, request)


def told_of(row: Mapped) -> tuple[tuple[object, ...], tuple[object, ...]]:
    """What a row is about, on which side of a connection, and what it says of that."""
    about = (row.kind, row.connection, row.direction, row.said_by, row.form, row.topic, row.name)
    listed = [tuple(each.values()) for told in (row.leads, row.segments) for each in told or ()]
    says = (row.own_name, row.address, row.mapping_epoch, row.total, row.forced, tuple(listed))
    return about, says


def _said(command: Command, by: SaidBy, form: str, topic: str | None, /, **told: Any) -> Mapped:
    request = command if command.request is None else command.request
    return Mapped(
        *command.place,
        duration_ns=command.duration_ns,
        topic=topic,
        said_by=by.value,
        form=form,
        **{"address": command.source, **told},
        language=command.language,
        request_order=request.place.order,
    )


# ---- static topics -------------------------------------------------------------------------------


def _set(answer: Command, request: Command) -> Iterator[Mapped]:
    header = request.header(static_topic.UpdateStaticTopicRequest)
    body = request.body(static_topic.TopicQueueMappingDetail)
    if body is not None:
        yield _detail(answer, SaidBy.SET, header.topic, body, forced=bool(header.force))


def _sent(request: Command) -> Iterator[Mapped]:
    """A mapping that an administrator sends, be it answered or not."""
    header = request.header(static_topic.UpdateStaticTopicRequest)
    body = request.body(static_topic.TopicQueueMappingDetail)
    if body is not None:
        yield replace(_detail(request, SaidBy.SENT, header.topic, body), address=request.destination)


def _config(answer: Command, request: Command) -> Iterator[Mapped]:
    header = request.header(GetTopicConfigRequest)
    body = answer.body(static_topic.TopicConfigAndQueueMapping)
    if body is not None and body.mapping_detail is not None:
        yield _detail(answer, SaidBy.TOLD, header.topic, body.mapping_detail)


def _copied(answer: Command, _: Command) -> Iterator[Mapped]:
    body = answer.body(broker.TopicConfigTable)
    for topic, detail in ((body and body.topic_queue_mapping_detail_map) or {}).items():
        yield _detail(answer, SaidBy.COPIED, topic, detail)


def _detail(
    command: Command,
    by: SaidBy,
    topic: str | None,
    detail: static_topic.TopicQueueMappingDetail,
    *,
    forced: bool | None = None,
) -> Mapped:
    segments = [
        {
            "index": index,
            "generation": each.gen,
            "broker": each.bname,
            "queue_id": each.queue_id,
            "logical_start": each.logic_offset,
            "physical_start": each.start_offset,
            "physical_end": each.end_offset,
            "state": None,
        }
        for index, own in sorted((detail.hosted_queues or {}).items())
        for each in own.items or ()
    ]
    told = {"name": detail.bname, "mapping_epoch": detail.epoch, "total": detail.total_queues}
    return _said(command, by, STATIC, topic, **told, segments=segments, forced=forced)


def _info(command: Command, by: SaidBy, topic: str, info: static_topic.TopicQueueMappingInfo) -> Mapped:
    leads = [{"index": index, "queue_id": queue} for index, queue in sorted((info.curr_id_map or {}).items())]
    told = {"name": info.bname, "mapping_epoch": info.epoch, "total": info.total_queues, "leads": leads}
    return _said(command, by, STATIC, topic, **told)


# ---- logical queues ------------------------------------------------------------------------------


def _segments(index: int, own: Iterable[logical_queue.LogicalQueueSegment]) -> Iterator[dict[str, Any]]:
    for each in own:
        queue = each.message_queue
        yield {
            "index": index,
            "generation": None,
            "broker": queue and queue.broker_name,
            "queue_id": queue and queue.queue_id,
            "logical_start": each.logical_queue_delta,
            "physical_start": each.offset_delta,
            "physical_end": each.offset_max,
            "state": each.state,
        }


def _queues(queues: Mapping[int, logical_queue.LogicalQueueSegments]) -> list[dict[str, Any]]:
    return [found for index, own in sorted(queues.items()) for found in _segments(index, own.segments or ())]


def _one(answer: Command, _: Command) -> Iterator[Mapped]:
    body = answer.body(logical_queue.LogicalQueueSegment)
    if body is not None and body.message_queue is not None and body.logical_queue_index is not None:
        found = [*_segments(body.logical_queue_index, [body])]
        yield _said(answer, SaidBy.SET, LOGICAL, body.message_queue.topic, segments=found)


def _both(answer: Command, request: Command) -> Iterator[Mapped]:
    """Without an end of the first one its broker is gone for good, and an administrator chose the start."""
    body = answer.body(logical_queue.MigrateLogicalQueue)
    every = [] if body is None else [body.from_queue_route_data, body.to_queue_route_data]
    found: list[dict[str, Any]] = []
    topic = None
    for each in filter(None, every):
        if each.message_queue is not None and each.logical_queue_index is not None:
            found += _segments(each.logical_queue_index, [each])
            topic = each.message_queue.topic
    if found:
        source = found[0]["physical_end"]
        committed = request.code == RequestCode.MIGRATE_TOPIC_LOGICAL_QUEUE_COMMIT
        forced = committed and source in (None, UNDECIDED)
        yield _said(answer, SaidBy.SET, LOGICAL, topic, segments=found, forced=forced)


def _held(answer: Command, request: Command) -> Iterator[Mapped]:
    header = request.header(logical_queue.QueryLogicalQueueMappingRequest)
    body = answer.body(logical_queue.LogicalQueues)
    if body is not None:
        yield _said(answer, SaidBy.TOLD, LOGICAL, header.topic, segments=_queues(body.queues or {}))


# ---- name servers --------------------------------------------------------------------------------


def _registered(answer: Command, request: Command) -> Iterator[Mapped]:
    yield from _mappings(answer, request, SaidBy.REGISTERED)


def _mappings(command: Command, request: Command, by: SaidBy) -> Iterator[Mapped]:
    """The mappings in a registration; `command`: who says them, this or its answer."""
    header = request.header(broker.RegisterBrokerRequest)
    body = request.body(broker.RegisterBrokerBody)
    told = None if body is None else body.topic_config_serialize_wrapper
    if told is None:
        return
    name, address = header.broker_name, header.broker_addr
    for topic, info in sorted((told.topic_queue_mapping_info_map or {}).items()):
        yield replace(_info(command, by, topic, info), own_name=name, address=address)
    for topic, queues in sorted((told.logical_queues_info_map or {}).items()):
        own = {"own_name": name, "address": address, "name": name}
        yield _said(command, by, LOGICAL, topic, **own, segments=_queues(queues.queues or {}))


def _asked(request: Command) -> Iterator[Mapped]:
    """What a broker wants registered, be it answered or not; without a topic where its body was not read."""
    if request.json_body is None and request.body_size:
        header = request.header(broker.RegisterBrokerRequest)
        own = {"own_name": header.broker_name, "address": header.broker_addr}
        yield _said(request, SaidBy.ASKED, STATIC, None, **own)
        return
    yield from _mappings(request, request, SaidBy.ASKED)


def _route(answer: Command, request: Command) -> Iterator[Mapped]:
    topic = request.header(broker.GetRouteInfoRequest).topic
    body = None if answer.code else answer.body(broker.TopicRouteData)
    if topic is None or (body is None and answer.code != ResponseCode.TOPIC_NOT_EXIST):
        return
    if body is None:
        yield _said(answer, SaidBy.UNTOLD, STATIC, topic)
        return
    hosts = [
        {"broker": each.broker_name, "address": address}
        for each in body.broker_datas or ()
        for _, address in sorted((each.broker_addrs or {}).items())
    ]
    for _, info in sorted((body.topic_queue_mapping_by_broker or {}).items()):
        yield replace(_info(answer, SaidBy.ROUTE, topic, info), hosts=hosts)
    if body.logical_queues_info is not None:
        found = _queues(body.logical_queues_info)
        yield _said(answer, SaidBy.ROUTE, LOGICAL, topic, segments=found, hosts=hosts)


def _deleted(answer: Command, request: Command) -> Iterator[Mapped]:
    header = request.header(static_topic.DeleteTopicRequest)
    yield _said(answer, SaidBy.DELETED, STATIC, header.topic)


def _forgotten(answer: Command, request: Command) -> Iterator[Mapped]:
    header = request.header(static_topic.DeleteTopicRouteRequest)
    yield _said(answer, SaidBy.FORGOTTEN, STATIC, header.topic)


_REQUESTS: Final[Mapping[int, Callable[[Command], Iterator[Mapped]]]] = {
    RequestCode.REGISTER_BROKER: _asked,
    RequestCode.UPDATE_AND_CREATE_STATIC_TOPIC: _sent,
}
_ANSWERS: Final[Mapping[int, Callable[[Command, Command], Iterator[Mapped]]]] = {
    RequestCode.REGISTER_BROKER: _registered,
    RequestCode.UPDATE_AND_CREATE_STATIC_TOPIC: _set,
    RequestCode.GET_TOPIC_CONFIG: _config,
    RequestCode.GET_ALL_TOPIC_CONFIG: _copied,
    RequestCode.DELETE_TOPIC_IN_BROKER: _deleted,
    RequestCode.DELETE_TOPIC_IN_NAMESRV: _forgotten,
    RequestCode.QUERY_TOPIC_LOGICAL_QUEUE_MAPPING: _held,
    RequestCode.SEAL_TOPIC_LOGICAL_QUEUE: _one,
    RequestCode.REUSE_TOPIC_LOGICAL_QUEUE: _one,
    RequestCode.CREATE_MESSAGE_QUEUE_FOR_LOGICAL_QUEUE: _one,
    RequestCode.MIGRATE_TOPIC_LOGICAL_QUEUE_PREPARE: _both,
    RequestCode.MIGRATE_TOPIC_LOGICAL_QUEUE_COMMIT: _both,
}
ANSWERS: Final = frozenset((*_ANSWERS, RequestCode.GET_ROUTEINFO_BY_TOPIC))
"""The requests whose answers say something of mappings."""
REQUESTS: Final = frozenset(_REQUESTS)
"""Those that say something themselves."""
