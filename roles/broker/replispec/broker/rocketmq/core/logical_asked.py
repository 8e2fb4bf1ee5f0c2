"""What a request about logical queues names: the topic, the logical and the message queue, both segments of a
migration. What cannot be of it is said, and nothing else of it counts then.

Source: apache/rocketmq 5.0.0-PREVIEW, the bodies of AdminBrokerProcessor.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from replispec.runtime.primitives.bindings import TEXT_MAX
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.rocketmq import rules
from replispec.runtime.rocketmq.queues import LOGICAL_QUEUES, LogicalQueue, Segment, Statement, fault_of
from replispec.runtime.rocketmq.queues.forms import message_of, segment_of
from replispec.runtime.rocketmq.queues.telling import Interval, statement_of
from replispec.runtime.rocketmq.remoting.server import Request
from replispec.wire.rocketmq import constants
from replispec.wire.rocketmq.codes import Permission, RequestCode
from replispec.wire.rocketmq.logical_queue import (
    CreateLogicalQueue,
    DeleteLogicalQueueMappingRequest,
    LogicalQueueSegment,
    MigrateLogicalQueue,
    QueryLogicalQueueMappingRequest,
    ReuseLogicalQueue,
    SealLogicalQueue,
    UpdateLogicalQueueMapping,
)

_TAKING: Final = frozenset(
    (RequestCode.REUSE_TOPIC_LOGICAL_QUEUE, RequestCode.CREATE_MESSAGE_QUEUE_FOR_LOGICAL_QUEUE)
)

_PERM_MAX: Final = int(Permission.READ | Permission.WRITE | Permission.INHERIT)


@dataclass(frozen=True, slots=True)
class AskedOfQueues:
    """One request. `index` and `queue_id` are UNDECIDED where it names none; `perm`: what clients may do with
    a topic that it makes."""

    code: int
    now_ms: int
    topic: str
    index: int = constants.UNDECIDED
    queue_id: int = constants.UNDECIDED
    enabled: Statement | None = None
    source: LogicalQueueSegment | None = None
    target: LogicalQueueSegment | None = None
    source_segment: Segment | None = None
    target_segment: Segment | None = None
    fault: str | None = None
    perm: int | None = None

    @property
    def takes_queue(self) -> bool:
        """Whether a message queue is to become a segment that is written."""
        return self.code in _TAKING

    @property
    def makes_queue(self) -> bool:
        """Whether it is to be a new one."""
        return self.code == RequestCode.CREATE_MESSAGE_QUEUE_FOR_LOGICAL_QUEUE

    @property
    def maps(self) -> bool:
        """Whether a message queue is to be the first segment of a logical queue."""
        return self.code == RequestCode.UPDATE_TOPIC_LOGICAL_QUEUE_MAPPING and self.index >= 0

    @property
    def names_segment(self) -> bool:
        """Whether it is about a segment that is there."""
        is_mapping = self.code == RequestCode.UPDATE_TOPIC_LOGICAL_QUEUE_MAPPING
        return not self.takes_queue and not is_mapping and self.index >= 0

    @property
    def source_end(self) -> int:
        """The logical end of the source, as the request says; UNDECIDED where it says none."""
        return constants.UNDECIDED if self.source_segment is None else self.source_segment.logical_end

    @property
    def passed_over(self) -> Interval | None:
        """Of a source that is gone, which logical offsets nobody can vouch for; None of another."""
        source, start = self.source_segment, rules.segment_start(self.target)
        is_commit = self.code == RequestCode.MIGRATE_TOPIC_LOGICAL_QUEUE_COMMIT
        if not is_commit or source is None or not source.is_decided:
            return None
        begin = source.logical_end if source.is_sealed else source.logical_start
        return (begin, start) if begin < start else None


def segments_max(file_bytes: int, topic: str, broker_name: str) -> int:
    """How many segments of a topic fit into a record when all of them have ended, so that each can end. One
    share is the topic's."""
    share = constants.SEGMENT_RECORD_BYTES + 2 * len((topic + broker_name).encode())
    return file_bytes // share - 1


def asked_of(request: Request, broker_name: str) -> AskedOfQueues:
    """Read it, at a broker of this name. Raises RemoteProtocolError."""
    read = _READERS[request.code]
    return read(request, broker_name)


def _update(request: Request, _broker_name: str) -> AskedOfQueues:
    said = UpdateLogicalQueueMapping.decode(request.command.body)
    if said.enabled is not None:
        try:
            statement = statement_of(said.enabled)
        except RemoteProtocolError as error:
            return AskedOfQueues(request.code, request.now_ms, said.topic or "", fault=str(error))
        return AskedOfQueues(request.code, request.now_ms, said.topic or "", enabled=statement)
    return _of_queue(request, said.topic, said.logical_queue_idx, said.queue_id)


def _seal(request: Request, _broker_name: str) -> AskedOfQueues:
    said = SealLogicalQueue.decode(request.command.body)
    return _of_queue(request, said.topic, said.logical_queue_index, said.queue_id)


def _reuse(request: Request, _broker_name: str) -> AskedOfQueues:
    said = ReuseLogicalQueue.decode(request.command.body)
    return _of_queue(request, said.topic, said.logical_queue_index, said.queue_id)


def _create(request: Request, _broker_name: str) -> AskedOfQueues:
    said = CreateLogicalQueue.decode(request.command.body)
    asked = _of_queue(request, said.topic, said.logical_queue_index, 0)
    if said.perm is not None and not 0 <= said.perm <= _PERM_MAX:
        return replace(asked, fault=f"no permission is {said.perm}")
    return replace(asked, perm=said.perm)


def _migrate(request: Request, broker_name: str) -> AskedOfQueues:
    said = MigrateLogicalQueue.decode(request.command.body)
    source, target = said.from_queue_route_data, said.to_queue_route_data
    is_prepared = request.code == RequestCode.MIGRATE_TOPIC_LOGICAL_QUEUE_PREPARE
    own = source if is_prepared else target
    queue = None if own is None else own.message_queue
    topic = "" if queue is None else queue.topic or ""
    index = 0 if own is None else own.logical_queue_index or 0
    try:
        one, two = _one(source, topic, index), _one(target, topic, index)
    except RemoteProtocolError as error:
        return AskedOfQueues(request.code, request.now_ms, topic, fault=str(error))
    # What nobody here reads is not kept, nor told.
    source, target = message_of(one, topic, index), message_of(two, topic, index)
    request.command.body = MigrateLogicalQueue(source, target).encode()
    fault, owned = None, one if is_prepared else two
    is_notice = request.code == RequestCode.MIGRATE_TOPIC_LOGICAL_QUEUE_NOTIFY
    if owned.queue.broker_name != broker_name and not is_notice:
        fault = f"the segment is one of {owned.queue.broker_name[:40]}"
    elif one.key == two.key:
        fault = "a segment does not follow itself"
    queue_id = constants.UNDECIDED if is_notice else owned.queue.queue_id
    return AskedOfQueues(
        request.code,
        request.now_ms,
        topic,
        index,
        queue_id,
        source=source,
        target=target,
        source_segment=one,
        target_segment=two,
        fault=fault,
    )


def _one(said: LogicalQueueSegment | None, topic: str, index: int) -> Segment:
    """A segment that can be. Raises RemoteProtocolError."""
    found = segment_of(said or LogicalQueueSegment(), topic, index)
    checked = LogicalQueue(index, (found,))
    if max(map(len, (topic, found.queue.broker_name, found.address or ""))) > TEXT_MAX:
        raise RemoteProtocolError("a name or an address that is none")
    if found.queue.queue_id >= constants.QUEUES_MAX:
        raise RemoteProtocolError("no physical queue")
    # Where a target begins may be said before its state is.
    fault = fault_of(checked, LOGICAL_QUEUES) if found.is_sealed else _fault_of_open(found, index)
    if fault is not None:
        raise RemoteProtocolError(fault)
    return found


def _fault_of_open(segment: Segment, index: int) -> str | None:
    if not 0 <= index < constants.LOGICAL_QUEUES_MAX:
        return f"no index is {index}"
    if not segment.queue.broker_name or not 0 <= segment.queue.queue_id <= constants.QUEUE_ID_MAX:
        return "no physical queue"
    starts = segment.logical_start, segment.physical_start
    # Messages come behind both.
    if starts[0] > constants.SEGMENT_START_MAX:
        return f"no segment begins behind {constants.SEGMENT_START_MAX}"
    is_bad = starts[0] < constants.UNDECIDED or starts[1] < 0 or starts[1] >= constants.OFFSET_MAX
    return "an offset that cannot be" if is_bad else None


def _delete(request: Request, _broker_name: str) -> AskedOfQueues:
    fields = request.command.header.ext_fields or {}
    topic = DeleteLogicalQueueMappingRequest.from_ext_fields(fields).topic
    return AskedOfQueues(request.code, request.now_ms, topic or "")


def _query(request: Request, _broker_name: str) -> AskedOfQueues:
    fields = request.command.header.ext_fields or {}
    topic = QueryLogicalQueueMappingRequest.from_ext_fields(fields).topic
    return AskedOfQueues(request.code, request.now_ms, topic or "")


def _of_queue(request: Request, topic: str | None, index: int | None, queue_id: int | None) -> AskedOfQueues:
    number, queue = index or 0, queue_id or 0
    is_unmapped = request.code == RequestCode.UPDATE_TOPIC_LOGICAL_QUEUE_MAPPING and number < 0
    fault = None
    if not is_unmapped and not 0 <= number < constants.LOGICAL_QUEUES_MAX:
        fault = f"no index is {number}"
    elif not 0 <= queue <= constants.QUEUE_ID_MAX:
        fault = "found no queue"
    return AskedOfQueues(request.code, request.now_ms, topic or "", number, queue, fault=fault)


_READERS: Final[dict[int, Callable[[Request, str], AskedOfQueues]]] = {
    RequestCode.UPDATE_TOPIC_LOGICAL_QUEUE_MAPPING: _update,
    RequestCode.SEAL_TOPIC_LOGICAL_QUEUE: _seal,
    RequestCode.REUSE_TOPIC_LOGICAL_QUEUE: _reuse,
    RequestCode.CREATE_MESSAGE_QUEUE_FOR_LOGICAL_QUEUE: _create,
    RequestCode.MIGRATE_TOPIC_LOGICAL_QUEUE_PREPARE: _migrate,
    RequestCode.MIGRATE_TOPIC_LOGICAL_QUEUE_COMMIT: _migrate,
    RequestCode.MIGRATE_TOPIC_LOGICAL_QUEUE_NOTIFY: _migrate,
    RequestCode.DELETE_TOPIC_LOGICAL_QUEUE_MAPPING: _delete,
    RequestCode.QUERY_TOPIC_LOGICAL_QUEUE_MAPPING: _query,
}
"""Those that a role must know the instance of before its machine reads them."""
