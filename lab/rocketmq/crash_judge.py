"""What must be true of a topic once a move is finished, whoever died: what brokers and name server hold, and
what clients were told. It asks by messages alone, and so judges simulated and real processes alike."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from lab.rocketmq.crash_rows import Aim, Move
from replispec.runtime.primitives.headers import Header
from replispec.runtime.rocketmq.framing import Command
from replispec.wire.rocketmq.broker import GetRouteInfoRequest, TopicRouteData
from replispec.wire.rocketmq.client import GetMinOffsetRequest, GetMinOffsetResponse, GetTopicConfigRequest
from replispec.wire.rocketmq.codes import RequestCode, ResponseCode, RouteFlag
from replispec.wire.rocketmq.constants import LOGIC_OFFSET_BLOCK, UNDECIDED
from replispec.wire.rocketmq.logical_queue import (
    LogicalQueues,
    LogicalQueueSegment,
    QueryLogicalQueueMappingRequest,
)
from replispec.wire.rocketmq.static_topic import (
    LogicQueueMappingItem,
    TopicConfigAndQueueMapping,
    TopicQueueMappingDetail,
)

Ask = Callable[[str, RequestCode, Header], Command]
"""Of an address."""
Place = tuple[int, int]
"""A logical queue, and an offset in it."""
EXPIRED, WRITTEN = "Expired", {"Normal", "WriteOnly"}
SHOWN_MAX = 4


@dataclass(slots=True)
class Clients:
    """What clients were told: where each message is that was acknowledged, and what was read, in order."""

    acknowledged: dict[int, Place] = field(default_factory=dict)
    read: list[tuple[Place, int]] = field(default_factory=list)
    starts: set[int] = field(default_factory=set)
    """Where a queue went on of which a source was lost: nobody gave the offsets before it."""
    kept: Mapping[int, Sequence[range]] = field(default_factory=dict)
    """Which offsets of each queue brokers held when all was read; others are deleted. Asked where old
    messages expire."""

    def faults(self, move: Move) -> Iterator[str]:
        """What is wrong with it, all having been read from the beginning to the end."""
        places = {number: place for place, number in self.read}
        yield from _more_than_once("messages are read", (number for _, number in self.read))
        yield from _more_than_once("offsets are given", (place for place, _ in self.read))
        given = (each for each in self.acknowledged.values() if each[1] != UNDECIDED)
        yield from _more_than_once("offsets are acknowledged", given)
        lost = [each for each in self.acknowledged if each not in places and not self._is_deleted(each, move)]
        if lost:
            yield f"{len(lost)} acknowledged messages are lost: {lost[:SHOWN_MAX]}"
        for number, (queue, offset) in self.acknowledged.items():
            place = places.get(number, (queue, offset))
            if place[0] != queue or offset not in {UNDECIDED, place[1]}:
                yield f"message {number} was acknowledged at {queue, offset}, and lies at {place}"
        yield from self._holes(move)

    def _is_deleted(self, number: int, move: Move) -> bool:
        """Whether a message came before all that are left of its queue, where old ones are deleted."""
        queue, offset = self.acknowledged[number]
        if not move.expires:
            return False
        if offset != UNDECIDED:
            return not self._is_kept(queue, offset)
        left = (each for (of, _), each in self.read if of == queue)
        return number < next(left, number)

    def _is_kept(self, queue: int, offset: int) -> bool:
        return any(offset in each for each in self.kept.get(queue, ()))

    def _holes(self, move: Move) -> Iterator[str]:
        queues: dict[int, list[int]] = {}
        for (queue, offset), _ in self.read:
            queues.setdefault(queue, []).append(offset)
        for queue, offsets in sorted(queues.items()):
            for one, two in pairwise(offsets):
                is_border = not move.is_contiguous and two > one and two % LOGIC_OFFSET_BLOCK == 0
                is_border = is_border or (two > one and two in self.starts)
                between = range(one + 1, two) if move.expires else ()
                is_border |= bool(between) and not any(self._is_kept(queue, each) for each in between)
                if two != one + 1 and not is_border:
                    yield f"queue {queue}: {two} is read after {one}"


def _more_than_once(what: str, values: Iterator[object]) -> Iterator[str]:
    twice = [each for each, count in Counter(values).items() if count > 1]
    if twice:
        yield f"{len(twice)} {what} more than once: {twice[:SHOWN_MAX]}"


def faults_of_mapping(
    move: Move, ask: Ask, brokers: Mapping[str, str], name_server: str, target: str, source: str = ""
) -> Iterator[str]:
    """What is wrong with what brokers and name server hold; `brokers`: their addresses."""
    header = GetRouteInfoRequest(topic=move.topic, sys_flag=RouteFlag.LOGICAL_QUEUE)
    answer = ask(name_server, RequestCode.GET_ROUTEINFO_BY_TOPIC, header)
    if move.aim is Aim.DELETED:
        yield from _of_nothing(move, ask, {**brokers, "the name server": name_server}, name_server)
        return
    if answer.header.code != ResponseCode.SUCCESS:
        yield f"the name server answers {answer.header.code}: {answer.header.remark}"
        return
    told = TopicRouteData.decode(answer.body)
    if move.is_contiguous:
        yield from _of_segments(move, _segments(move, ask, brokers), told, (target, source))
    else:
        yield from _of_items(move, _details(move, ask, brokers), told, target)


def _of_nothing(move: Move, ask: Ask, places: Mapping[str, str], name_server: str) -> Iterator[str]:
    """A topic that is deleted is known to nobody."""
    for name, address in places.items():
        if address == name_server:
            answer = ask(address, RequestCode.GET_ROUTEINFO_BY_TOPIC, GetRouteInfoRequest(topic=move.topic))
        else:
            answer = ask(address, RequestCode.GET_TOPIC_CONFIG, GetTopicConfigRequest(topic=move.topic))
        if answer.header.code != ResponseCode.TOPIC_NOT_EXIST:
            yield f"{name} still knows the topic: {answer.header.code}"


# ---- LQ ------------------------------------------------------------------------------------------


def kept_offsets(move: Move, ask: Ask, brokers: Mapping[str, str]) -> Mapping[int, list[range]]:
    """Which offsets of each logical queue brokers still have messages of; `brokers`: their addresses."""
    found: dict[int, list[range]] = {}
    for address in brokers.values():
        for index, segments in _segments(move, ask, {"": address}).items():
            kept = (_kept(each, ask, address) for each in segments)
            found.setdefault(index, []).extend(each for each in kept if each)
    return found


def _kept(segment: LogicalQueueSegment, ask: Ask, address: str) -> range:
    begin, queue = segment.logical_queue_delta, segment.message_queue
    if segment.state == EXPIRED or begin is None or begin == UNDECIDED or queue is None:
        return range(0)
    header = GetMinOffsetRequest(topic=queue.topic, queue_id=queue.queue_id)
    fields = ask(address, RequestCode.GET_MIN_OFFSET, header).header.ext_fields or {}
    first = segment.offset_delta or 0
    oldest = max(first, GetMinOffsetResponse.from_ext_fields(fields).offset or 0)
    end = sys.maxsize if segment.offset_max == UNDECIDED else begin + (segment.offset_max or 0) - first
    return range(begin + oldest - first, end)


def where_it_begins_is_told(move: Move, ask: Ask, name_server: str, broker: str) -> bool:
    """Whether a name server tells where logical queue 0 begins at the broker that writes it."""
    header = GetRouteInfoRequest(topic=move.topic, sys_flag=RouteFlag.LOGICAL_QUEUE)
    answer = ask(name_server, RequestCode.GET_ROUTEINFO_BY_TOPIC, header)
    told = TopicRouteData.decode(answer.body).logical_queues_info or {}
    queue = told.get(0)
    return queue is not None and any(
        each.state == "Normal" and each.message_queue is not None and each.message_queue.broker_name == broker
        for each in queue.segments or ()
    )


def states(ask: Ask, address: str, move: Move) -> set[str | None]:
    """How the segments of logical queue 0 are that a broker holds."""
    return {each.state for each in _segments(move, ask, {"": address}).get(0, ())}


def _segments(move: Move, ask: Ask, brokers: Mapping[str, str]) -> Mapping[int, list[LogicalQueueSegment]]:
    found: dict[int, list[LogicalQueueSegment]] = {}
    header = QueryLogicalQueueMappingRequest(topic=move.topic)
    for address in brokers.values():
        body = ask(address, RequestCode.QUERY_TOPIC_LOGICAL_QUEUE_MAPPING, header).body
        held = LogicalQueues() if body in {b"", b"null"} else LogicalQueues.decode(body)
        for index, each in (held.queues or {}).items():
            found.setdefault(index, []).extend(each.segments or [])
    return found


def _shown(segment: LogicalQueueSegment) -> tuple[object, ...]:
    queue = segment.message_queue
    assert queue is not None, "a segment has a queue"
    at = queue.broker_name, queue.queue_id, segment.offset_delta
    return *at, segment.logical_queue_delta, segment.offset_max, segment.state


def _of_segments(
    move: Move,
    held: Mapping[int, list[LogicalQueueSegment]],
    told: TopicRouteData,
    ends: tuple[str, str],
) -> Iterator[str]:
    target, source = ends
    if len(held) < move.queues:
        yield f"brokers hold logical queues {sorted(held)} of {move.queues}"
    info = told.logical_queues_info or {}
    if info.keys() != held.keys():
        yield f"the name server tells of queues {sorted(info)}, brokers hold {sorted(held)}"
    for index, segments in sorted(held.items()):
        own = sorted(map(_shown, segments), key=str)
        routed = info[index].segments or [] if index in info else []
        if sorted(map(_shown, routed), key=str) != own:
            yield f"queue {index}: the name server tells {[*map(_shown, routed)]}, brokers {own}"
        written = [each for each in segments if each.state in WRITTEN]
        if move.queues and index >= move.queues:
            if written:
                yield f"queue {index} is written, of {move.queues}: {own}"
        elif len(written) != 1 or written[0].logical_queue_delta == UNDECIDED:
            yield f"queue {index} has not one decided segment that is written: {own}"
        elif index == 0 and move.aim is Aim.MOVED and _shown(written[0])[0] != target:
            yield f"queue {index} is not written at {target}: {own}"
        elif move.aim is Aim.LEFT and _shown(written[0])[0] == source:
            yield f"queue {index} is still written at {source}: {own}"


# ---- ST ------------------------------------------------------------------------------------------


def _details(move: Move, ask: Ask, brokers: Mapping[str, str]) -> Mapping[str, TopicQueueMappingDetail]:
    header = GetTopicConfigRequest(topic=move.topic, lo=True)
    found: dict[str, TopicQueueMappingDetail] = {}
    for name, address in brokers.items():
        said = TopicConfigAndQueueMapping.decode(ask(address, RequestCode.GET_TOPIC_CONFIG, header).body)
        found[name] = said.mapping_detail or TopicQueueMappingDetail()
    return found


def _items(detail: TopicQueueMappingDetail, index: int) -> Sequence[LogicQueueMappingItem]:
    held = (detail.hosted_queues or {}).get(index)
    return (held.items or []) if held is not None else []


def _of_items(
    move: Move, details: Mapping[str, TopicQueueMappingDetail], told: TopicRouteData, target: str
) -> Iterator[str]:
    if move.queues and {each.total_queues for each in details.values()} != {move.queues}:
        yield f"brokers hold {[each.total_queues for each in details.values()]} queues of {move.queues}"
    if len({(each.epoch, each.total_queues) for each in details.values()}) != 1:
        yield f"brokers hold {[(name, each.epoch, each.total_queues) for name, each in details.items()]}"
    led: dict[str, dict[int, int]] = {name: {} for name in details}
    for index in range(max(each.total_queues or 0 for each in details.values())):
        known: dict[int, set[tuple[object, ...]]] = {}
        for item in (item for each in details.values() for item in _items(each, index)):
            known.setdefault(item.gen or 0, set()).add((item.bname, item.queue_id, item.logic_offset))
        for generation, said in known.items():
            # Who led before is not told where the next one begins.
            decided = {each for each in said if each[-1] != UNDECIDED}
            if len({each[:-1] for each in said}) > 1 or len(decided) != 1:
                yield f"queue {index}: of generation {generation} brokers hold {said}"
        leaders = [name for name, each in details.items() if _leads(name, _items(each, index))]
        if len(leaders) != 1:
            yield f"queue {index} is led by {leaders}"
            continue
        last = _items(details[leaders[0]], index)[-1]
        led[leaders[0]][index] = last.queue_id or 0
        if last.logic_offset == UNDECIDED or last.gen != max(known):
            yield f"queue {index} is led by {leaders[0]} with {last}, known are {known}"
    if move.aim is Aim.MOVED and not led[target]:
        yield f"{target} leads nothing"
    for name, detail in details.items():
        info = (told.topic_queue_mapping_by_broker or {}).get(name)
        routed = None if info is None else (info.epoch, info.total_queues, dict(info.curr_id_map or {}))
        if routed != (detail.epoch, detail.total_queues, led[name]):
            yield f"{name}: the name server tells {routed}, it holds {detail.epoch} and leads {led[name]}"


def _leads(name: str, items: Sequence[LogicQueueMappingItem]) -> bool:
    return bool(items) and items[-1].bname == name
