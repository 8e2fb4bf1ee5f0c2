"""Requests about logical queues of static topics: served for the physical queue that they mean here, asked of
the broker of an older item, or handed to the broker that leads, on the machine `static_topic_queue`.

Source: apache/rocketmq rocketmq-all-5.4.0, TopicQueueMappingManager, SendMessageProcessor,
PullMessageProcessor, ConsumerManageProcessor, AdminBrokerProcessor.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from replispec.broker.rocketmq.core.mappings import Mapped, Mappings
from replispec.broker.rocketmq.core.offsets import ConsumerOffsets
from replispec.broker.rocketmq.core.peers import Peers
from replispec.broker.rocketmq.core.pulls import Pulls
from replispec.broker.rocketmq.core.recorder import Handler
from replispec.broker.rocketmq.core.sends import SENDING
from replispec.broker.rocketmq.core.served import ServedViews, named_in
from replispec.broker.rocketmq.core.static_aging import StaticTopicAging
from replispec.broker.rocketmq.core.static_topics import Instance, StaticTopics
from replispec.broker.rocketmq.core.views import LogicalView
from replispec.runtime.primitives.machines import edge_of
from replispec.runtime.rocketmq import rules
from replispec.runtime.rocketmq.client import Failed, holders
from replispec.runtime.rocketmq.client.holders import HandedOn, HeldItem
from replispec.runtime.rocketmq.client.steps import Steps
from replispec.runtime.rocketmq.queues import LogicalQueue, Segment
from replispec.runtime.rocketmq.remoting import host_of
from replispec.runtime.rocketmq.remoting.answering import hand_back
from replispec.runtime.rocketmq.remoting.server import Request
from replispec.runtime.world import Level, Outbox
from replispec.wire.rocketmq import constants
from replispec.wire.rocketmq.broker import PullMessageRequest, SendMessageV2Request
from replispec.wire.rocketmq.client import (
    GetMaxOffsetRequest,
    GetMinOffsetRequest,
    QueryConsumerOffsetRequest,
    SearchOffsetRequest,
    UpdateConsumerOffsetRequest,
)
from replispec.wire.rocketmq.codes import PullFlag, RequestCode
from replispec.wire.rocketmq.machines import static_topic_queue as machine
from replispec.wire.rocketmq.options import BrokerOptions

CARRIED_MAX: Final = 10_000
"""Positions that pulls carried for items elsewhere and that are not said a second time."""

_ROUTED: Final = SENDING | frozenset(
    (
        RequestCode.PULL_MESSAGE,
        RequestCode.LITE_PULL_MESSAGE,
        RequestCode.GET_MAX_OFFSET,
        RequestCode.GET_MIN_OFFSET,
        RequestCode.SEARCH_OFFSET_BY_TIMESTAMP,
        RequestCode.QUERY_CONSUMER_OFFSET,
        RequestCode.UPDATE_CONSUMER_OFFSET,
    )
)
"""Requests that may be about logical queues."""


@dataclass(slots=True)
class _Asking:
    """A request, and what it means here. `asked_id`: the queue that a sender of before named; its answer
    names it again."""

    request: Request
    handler: Handler
    header: Any
    mapped: Mapped
    instance: Instance
    index: int
    queue: LogicalQueue | None
    view: LogicalView | None
    asked_id: int | None = None

    def as_asked(self, view: LogicalView) -> LogicalView:
        """Who counts physically is told where it lies so."""
        if self.asked_id is None:
            return view
        plain = replace(view.segment, logical_start=view.segment.physical_start)
        return replace(view, index=self.asked_id, segment=plain)


class LogicalRequests:
    """Serves them, or has them served."""

    def __init__(
        self,
        outbox: Outbox,
        static: StaticTopics,
        mappings: Mappings,
        offsets: ConsumerOffsets,
        pulls: Pulls,
        peers: Peers,
        aging: StaticTopicAging,
        options: BrokerOptions,
        hand_on: Callable[[Request, Handler], None],
    ) -> None:
        self._outbox = outbox
        self._static = static
        self._mappings = mappings
        self._offsets = offsets
        self._pulls = pulls
        self._peers = peers
        self._aging = aging
        self._broker_name = options.broker_name
        self._forwards = options.forward_to_queue_leader
        self._hand_on = hand_on
        # Positions that pulls carried, as the brokers of their items were told.
        self._carried: dict[tuple[str, str, str, int], int] = {}
        self._told_silent: set[str] = set()
        self._served = ServedViews()

    def through(self, table: Mapping[int, Handler]) -> dict[int, Handler]:
        """Has requests about logical queues handled as what they mean here."""
        return {
            code: partial(self._routed, each) if code in _ROUTED else each for code, each in table.items()
        }

    def _routed(self, handler: Handler, request: Request) -> None:
        header: Any = request.header
        topic = header.topic or ""
        is_send = request.code in SENDING
        newest = self._mappings.newest(topic)
        if newest is None:
            handler(request)
            return
        # A mapping of which nobody knows yet whether it is kept makes no plain topic of this one.
        mapped = newest if is_send else self._mappings.kept(topic) or newest.without_queues
        view = self._served.find(mapped, header, request.command.header.version or 0, is_send=is_send)
        if view is None:
            self._decide(request, handler, header, mapped, is_send=is_send)
        else:
            self._serve(request, handler, header, view)

    def _decide(
        self, request: Request, handler: Handler, header: Any, mapped: Mapped, *, is_send: bool
    ) -> None:
        version = request.command.header.version or 0
        is_physical = rules.means_physical(lo=header.lo, version=version, broker_name=named_in(header))
        # Who sends and knows nothing of logical queues sends to one all the same: only there it is read.
        is_of_before = is_send and is_physical and header.lo is not False
        index, asked_id = header.queue_id or 0, None
        if is_of_before:
            index, is_physical = self._written_for(mapped, index)
            asked_id = None if is_physical else header.queue_id or 0
        queue = mapped.queues.get(index)
        view = self._view(queue, header, is_send=is_send)
        instance = self._static.instance(mapped, index)
        asking = _Asking(request, handler, header, mapped, instance, index, queue, view, asked_id)
        is_sure = is_send or self._mappings.kept(header.topic or "") is not None
        may_forward = is_of_before or (is_sure and self._forwards and not rules.is_handed_on(lo=header.lo))
        is_elsewhere = view is not None and not view.is_here(view.segment)
        self._take(asking, machine.Asked(is_physical, is_send, is_elsewhere, may_forward))

    def _take(self, asking: _Asking, event: machine.Asked | machine.Unreached) -> None:
        """Do what the edge of the logical queue says."""
        state, known = asking.instance
        for effect in edge_of(machine.MACHINE, state, known, event, rules).do:
            if self._static.says(effect, asking.instance, event, asking.request):
                continue
            if effect == "serve_physical":
                asking.handler(asking.request)
            elif effect == "forward":
                self._forward(asking)
            elif asking.view is None:
                self._take(asking, machine.Unreached(may_be_done=False))
            elif effect == "ask_holder":
                self._ask_holder(asking, asking.view)
            else:
                if asking.asked_id is None:
                    is_send = asking.request.code in SENDING
                    self._served.keep(asking.mapped, asking.header, asking.view, is_send=is_send)
                view = asking.as_asked(asking.view)
                self._serve(asking.request, asking.handler, asking.header, view)

    def _written_for(self, mapped: Mapped, queue_id: int) -> tuple[int, bool]:
        """The logical queue to which somebody sends who names a physical one, and whether that is written:
        the one that it belongs to, else one that this broker leads, else any."""
        own = self._broker_name
        of_queue = led = -1
        for index, each in sorted(mapped.queues.items()):
            last = each.segments[-1].queue
            if last == (own, queue_id):
                return index, True
            if any(segment.queue == (own, queue_id) for segment in each.segments):
                of_queue = index
            if last.broker_name == own and (led < 0 or index <= queue_id):
                led = index
        if of_queue >= 0:
            return of_queue, False
        return (led if led >= 0 else queue_id % max(1, mapped.detail.total_queues or 0)), False

    # The segment that a request is about

    def _view(self, queue: LogicalQueue | None, header: Any, *, is_send: bool) -> LogicalView | None:
        """None where there is none."""
        if queue is None or queue.writable is None:
            return None
        readable = [each for each in queue.segments if each.is_decided]
        if not readable and not is_send:
            return None
        readable = readable or [queue.writable]
        oldest, newest = readable[0], readable[-1]
        segment = queue.writable if is_send else newest
        if isinstance(header, PullMessageRequest):
            segment = queue.locate(header.queue_offset or 0) or oldest
        elif isinstance(header, UpdateConsumerOffsetRequest):
            segment = self._aging.place_of(header.topic or "", queue, header.commit_offset or 0)
        elif isinstance(header, QueryConsumerOffsetRequest):
            segment = self._read_last(header, readable)
        elif isinstance(header, SearchOffsetRequest):
            segment = self._first_since(header, readable)
        elif isinstance(header, GetMinOffsetRequest):
            segment = oldest
        following = queue.next_of(segment)
        return LogicalView(
            header.topic,
            queue.index,
            segment,
            oldest,
            newest,
            queue.border_of(segment),
            self._broker_name,
            following if following is not None and following.is_decided else None,
            queue=queue,
        )

    def _is_here(self, segment: Segment) -> bool:
        return segment.queue.broker_name == self._broker_name

    def _read_last(self, header: QueryConsumerOffsetRequest, segments: Sequence[Segment]) -> Segment:
        """The newest segment of which a group said how far it has read it, or of which another broker has to
        be asked; the newest of all where there is none."""
        of = header.consumer_group or "", header.topic or ""
        for each in reversed(segments):
            if not self._is_here(each) or self._offsets.place(*of, each.queue.queue_id) is not None:
                return each
        return segments[-1]

    def _first_since(self, header: SearchOffsetRequest, segments: Sequence[Segment]) -> Segment:
        """The oldest segment that has a message of a time or later, or of which another broker has to be
        asked; the newest of all where there is none."""
        of = header.topic or "", header.timestamp or 0
        for each in segments:
            if not self._is_here(each) or self._pulls.has_since(each.queue.queue_id, *of):
                return each
        return segments[-1]

    # What lies here

    def _serve(self, request: Request, handler: Handler, header: Any, view: LogicalView) -> None:
        """Have it handled for the physical queue."""
        segment = view.segment
        if header.__class__ is PullMessageRequest:
            self._keep_carried(request, header, view.queue)
            position = segment.physical_of(header.queue_offset or 0)
            header.queue_offset = position
            header.sys_flag = (header.sys_flag or 0) & ~PullFlag.COMMIT_OFFSET
            if segment is not view.newest:
                # What was sent to the physical queue later belongs to no logical offset.
                left = view.border - segment.logical_of(position)
                header.max_msg_nums = min(header.max_msg_nums or 0, left)
        elif isinstance(header, UpdateConsumerOffsetRequest):
            header.commit_offset = max(0, segment.physical_of(header.commit_offset or 0))
        elif isinstance(header, QueryConsumerOffsetRequest):
            # Who never read it does not begin at 0, which may be in another segment.
            header.set_zero_if_not_found = False
        header.queue_id = segment.queue.queue_id
        request.view = view
        handler(request)

    def _keep_carried(self, request: Request, header: PullMessageRequest, queue: LogicalQueue | None) -> None:
        """A pull may say how far its group has read, which may be another item than the one it is about."""
        offset = header.commit_offset or 0
        if not rules.has_bit(header.sys_flag or 0, PullFlag.COMMIT_OFFSET) or offset <= 0 or queue is None:
            return
        segment = self._aging.place_of(header.topic or "", queue, offset)
        position = max(0, segment.physical_of(offset))
        group, topic = header.consumer_group or "", header.topic or ""
        broker, queue_id = segment.queue
        if self._is_here(segment):
            of = group, topic, queue_id
            self._offsets.put(of, position, host_of(request.peer), request.now_ms)
            return
        of_item = group, topic, broker, queue_id
        if self._carried.get(of_item) == position:
            return
        if len(self._carried) >= CARRIED_MAX:
            self._carried.clear()
        self._carried[of_item] = position
        said = UpdateConsumerOffsetRequest(consumer_group=group, topic=topic)
        steps = holders.commit_in_item(HeldItem(topic, broker, queue_id), said, position)
        self._peers.ask(broker, steps, partial(self._carried_told, of_item), request.now_ms)

    def _carried_told(self, of_item: tuple[str, str, str, int], result: Any, _now_ms: int) -> None:
        if isinstance(result, Failed):
            # The next pull says it again.
            self._carried.pop(of_item, None)

    # What lies elsewhere

    def _ask_holder(self, asking: _Asking, view: LogicalView) -> None:
        request, header = asking.request, asking.header
        item = self._item(view.topic, view.segment, view.border)
        told = partial(self._offset_told, asking, view)
        if isinstance(header, PullMessageRequest):
            # What would be refused here is asked of nobody.
            self._pulls.check(request, replace(header, queue_id=self._own_queue(asking)))
            self._keep_carried(request, header, asking.queue)
            position = view.segment.physical_of(header.queue_offset or 0)
            steps: Steps[Any] = holders.pull_to_border(item, header, position)
            told = partial(self._pull_told, asking, view, position)
        elif isinstance(header, GetMinOffsetRequest):
            steps = _logical(view.segment, holders.min_of_item(item, header), view.border)
        elif isinstance(header, GetMaxOffsetRequest):
            steps = _logical(view.segment, holders.max_of_item(item, header), view.border)
        elif isinstance(header, SearchOffsetRequest):
            steps = self._search(asking, header)
        elif isinstance(header, QueryConsumerOffsetRequest):
            steps = self._position(asking, header)
        else:
            position = max(0, view.segment.physical_of(header.commit_offset or 0))
            steps = holders.commit_in_item(item, header, position)
        request.is_held = True
        self._peers.ask(item.broker, steps, told, request.now_ms)

    def _own_queue(self, asking: _Asking) -> int:
        own = [each for each in (asking.queue or LogicalQueue(0)).segments if self._is_here(each)]
        return own[-1].queue.queue_id if own else 0

    def _item(self, topic: str, segment: Segment, border: int) -> HeldItem:
        end = constants.OFFSET_MAX if border == constants.UNDECIDED else segment.physical_of(border)
        return HeldItem(topic, *segment.queue, end)

    def _pull_told(
        self, asking: _Asking, view: LogicalView, position: int, result: Any, _now_ms: int
    ) -> None:
        if isinstance(result, Failed):
            self._unreached(asking, result)
        else:
            asking.request.view = view
            self._pulls.tell_elsewhere(asking.request, view, position, result)

    def _offset_told(self, asking: _Asking, view: LogicalView, result: Any, _now_ms: int) -> None:
        if isinstance(result, Failed):
            self._unreached(asking, result)
            return
        header, request = asking.header, asking.request
        if isinstance(header, QueryConsumerOffsetRequest):
            header = replace(header, set_zero_if_not_found=False)
        request.view = replace(view, told=result)
        request.command.header.ext_fields = header.to_ext_fields()
        self._hand_on(request, asking.handler)

    def _search(self, asking: _Asking, header: SearchOffsetRequest) -> Steps[int]:
        """The first message that was stored at a time or later, of the oldest item that has one; the end of
        the queue where none has. Raises Failed."""
        topic, timestamp = header.topic or "", header.timestamp or 0
        items = self._decided(asking, topic)
        for segment, item in items:
            if self._is_here(segment):
                found = self._pulls.since(topic, item.queue_id, timestamp)
            else:
                found = yield from holders.offset_in_item(item, header)
            if found is not None and found < item.end:
                return segment.logical_of(found)
        return (yield from self._end_of(*items[-1]))

    def _decided(self, asking: _Asking, topic: str) -> list[tuple[Segment, HeldItem]]:
        queue = asking.queue
        assert queue is not None, "what lies elsewhere belongs to a queue"
        decided = [each for each in queue.segments if each.is_decided]
        return [(each, self._item(topic, each, queue.border_of(each))) for each in decided]

    def _end_of(self, segment: Segment, item: HeldItem) -> Steps[int]:
        if self._is_here(segment):
            return segment.logical_of(self._pulls.end_of(item.topic, item.queue_id))
        end = yield from holders.max_of_item(item)
        return segment.logical_of(min(end, item.end))

    def _position(self, asking: _Asking, header: QueryConsumerOffsetRequest) -> Steps[int]:
        """What a group reads next, by the newest item of which it said so; UNDECIDED where there is none.
        Raises Failed."""
        topic, group = header.topic or "", header.consumer_group or ""
        for segment, item in reversed(self._decided(asking, topic)):
            if self._is_here(segment):
                found = self._offsets.place(group, topic, item.queue_id)
            else:
                found = yield from holders.position_in_item(item, header)
            if found is not None:
                return segment.logical_of(found)
        return constants.UNDECIDED

    # What another broker leads

    def _forward(self, asking: _Asking) -> None:
        request, own = asking.request, self._broker_name
        known = rules.leader_of(asking.instance[1].items)
        fields: dict[str, Any] = {"queue_id": asking.index, "lo": True, "unknown": {}}
        if isinstance(asking.header, PullMessageRequest):
            held_ms = min(asking.header.suspend_timeout_millis or 0, constants.ANSWER_TIMEOUT_MS // 2)
            fields["suspend_timeout_millis"] = held_ms
        name = "broker_name" if isinstance(asking.header, SendMessageV2Request) else "bname"
        header = replace(asking.header, **fields)
        asked = HandedOn(
            asking.header.topic or "",
            asking.index,
            known,
            own,
            request.code,
            request.command.body,
            asking.asked_id,
        )
        steps = holders.at_leader(asked, lambda broker: replace(header, **{name: broker}))
        request.is_held = True
        then = partial(self._leader_told, asking)
        self._peers.ask(known or own, steps, then, request.now_ms, size=len(asked.body))

    def _leader_told(self, asking: _Asking, result: Any, _now_ms: int) -> None:
        if isinstance(result, Failed):
            self._unreached(asking, result)
        elif result is None:
            self._take(asking, machine.Unreached(may_be_done=False))
        else:
            hand_back(asking.request, result)

    def _unreached(self, asking: _Asking, failed: Failed) -> None:
        topic = (asking.header.topic or "")[:40]
        if topic not in self._told_silent and len(self._told_silent) < CARRIED_MAX:
            # One line for each topic and process.
            self._told_silent.add(topic)
            self._outbox.note(
                Level.WARNING,
                "another broker of a static topic is of no use",
                topic=topic,
                reason=str(failed),
            )
        self._take(asking, machine.Unreached(may_be_done=failed.sent))


def _logical(segment: Segment, steps: Steps[int], border: int) -> Steps[int]:
    """A physical offset as one of the logical queue, not behind its segment."""
    found = segment.logical_of((yield from steps))
    return found if border == constants.UNDECIDED else min(found, border)
