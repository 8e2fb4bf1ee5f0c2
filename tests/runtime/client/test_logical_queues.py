"""A client of logical queues: it shows their offsets, asks whose segment holds them, and follows borders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pytest

from replispec.runtime.primitives.headers import Header
from replispec.runtime.rocketmq.client import ClientQueue, Failed, MessageToSend, Pulled, Stored, steps
from replispec.runtime.rocketmq.client.asking import looked_up
from replispec.runtime.rocketmq.framing import Command
from replispec.runtime.rocketmq.queues import LogicalQueue, PhysicalQueue, Segment
from replispec.runtime.rocketmq.queues.forms import message_of, message_of_queues
from replispec.wire.rocketmq.broker import (
    GetRouteInfoRequest,
    PullMessageRequest,
    PullMessageResponse,
    SendMessageResponse,
    SendMessageV2Request,
    TopicRouteData,
)
from replispec.wire.rocketmq.client import (
    GetMaxOffsetRequest,
    GetMaxOffsetResponse,
    GetMinOffsetRequest,
    GetMinOffsetResponse,
    QueryConsumerOffsetRequest,
    QueryConsumerOffsetResponse,
    SearchOffsetRequest,
    SearchOffsetResponse,
    UpdateConsumerOffsetRequest,
)
from replispec.wire.rocketmq.codes import LogicalQueueState as State
from replispec.wire.rocketmq.codes import MessageFlag, PullFlag, RequestCode, ResponseCode, RouteFlag
from replispec.wire.rocketmq.constants import LOGICAL_QUEUE_BROKER, REDIRECTS_MAX, TEMPLATE_TOPIC
from replispec.wire.rocketmq.logical_queue import LogicalQueueSegments
from tests.runtime.client.scripted import (
    NAME_SERVER,
    TOPIC,
    Said,
    Script,
    Scripted,
    answer,
    place,
    static,
    telling,
)
from tests.runtime.client.test_redirected import record

SEND, PULL = RequestCode.SEND_MESSAGE_V2, RequestCode.PULL_MESSAGE
QUEUE = ClientQueue(LOGICAL_QUEUE_BROKER, 0)


def segment(broker: str, queue: int, start: int, physical: int = 0, end: int = -1) -> Segment:
    """Of the logical queue 0: written where it has no end, read where it has one."""
    state = (State.WRITE_ONLY if start < 0 else State.NORMAL) if end < 0 else State.READ_ONLY
    return Segment(PhysicalQueue(broker, queue), state, start, physical, end, address=place(broker))


def route(*segments: Segment, brokers: str = "ab", others: Sequence[Segment] = ()) -> TopicRouteData:
    """What a name server tells of the logical queue 0, and of one behind it."""
    plain = static({each: (1, {}) for each in brokers}, 0)
    queues = [LogicalQueue.of(0, segments), *([LogicalQueue.of(1, others)] if others else ())]
    told = message_of_queues(queues, TOPIC).queues
    return TopicRouteData(plain.broker_datas, queue_datas=plain.queue_datas, logical_queues_info=told)


def redirect(code: int, *segments: Segment, header: Header | None = None) -> Command:
    """An answer that names other segments."""
    said = answer(code, header)
    body = LogicalQueueSegments([message_of(each, TOPIC, 0) for each in segments]) if segments else None
    fields = PullMessageResponse(redirect="1").to_ext_fields()
    said.header.ext_fields = {**(said.header.ext_fields or {}), **fields}
    return Command(said.header, b"" if body is None else body.encode())


@dataclass(slots=True)
class Holder:
    """A broker: by physical queue the offsets of its messages, and where groups are. `elsewhere`: whom it
    names to those who ask for what is not there."""

    ends: dict[int, tuple[int, int]] = field(default_factory=dict)
    groups: dict[int, int] = field(default_factory=dict)
    elsewhere: dict[int, Sequence[Segment]] = field(default_factory=dict)
    times: Mapping[int, int] = field(default_factory=dict)

    def __call__(self, command: Command) -> Said:
        fields = command.header.ext_fields or {}
        match command.header.code:
            case RequestCode.SEND_MESSAGE_V2:
                return self._stores(SendMessageV2Request.from_ext_fields(fields))
            case RequestCode.PULL_MESSAGE:
                return self._gives(PullMessageRequest.from_ext_fields(fields))
            case RequestCode.GET_MIN_OFFSET:
                least, _ = self.ends[GetMinOffsetRequest.from_ext_fields(fields).queue_id or 0]
                return answer(ResponseCode.SUCCESS, GetMinOffsetResponse(offset=least))
            case RequestCode.GET_MAX_OFFSET:
                return self._ends(GetMaxOffsetRequest.from_ext_fields(fields))
            case RequestCode.SEARCH_OFFSET_BY_TIMESTAMP:
                queue = SearchOffsetRequest.from_ext_fields(fields).queue_id or 0
                return answer(ResponseCode.SUCCESS, SearchOffsetResponse(offset=self.times[queue]))
            case RequestCode.UPDATE_CONSUMER_OFFSET:
                told = UpdateConsumerOffsetRequest.from_ext_fields(fields)
                self.groups[told.queue_id or 0] = told.commit_offset or 0
                return answer(ResponseCode.SUCCESS)
            case _:
                return self._place(QueryConsumerOffsetRequest.from_ext_fields(fields))

    def _stores(self, said: SendMessageV2Request) -> Said:
        queue = said.queue_id or 0
        if queue in self.elsewhere:
            return redirect(ResponseCode.NO_PERMISSION, *self.elsewhere[queue])
        least, end = self.ends.get(queue, (0, 0))
        self.ends[queue] = least, end + 1
        header = SendMessageResponse(msg_id="m", queue_id=queue, queue_offset=end)
        return answer(ResponseCode.SUCCESS, header)

    def _gives(self, said: PullMessageRequest) -> Said:
        queue, at = said.queue_id or 0, said.queue_offset or 0
        least, end = self.ends.get(queue, (0, 0))
        header = PullMessageResponse(next_begin_offset=end, min_offset=least, max_offset=end)
        if least <= at < end:
            return answer(ResponseCode.SUCCESS, header, b"".join(record(each) for each in range(at, end)))
        if queue in self.elsewhere:
            return redirect(ResponseCode.PULL_RETRY_IMMEDIATELY, *self.elsewhere[queue], header=header)
        return answer(ResponseCode.PULL_NOT_FOUND, header)

    def _ends(self, said: GetMaxOffsetRequest) -> Said:
        queue = said.queue_id or 0
        header = GetMaxOffsetResponse(offset=self.ends[queue][1])
        if said.logical_queue and queue in self.elsewhere:
            return redirect(ResponseCode.SUCCESS, *self.elsewhere[queue], header=header)
        return answer(ResponseCode.SUCCESS, header)

    def _place(self, said: QueryConsumerOffsetRequest) -> Said:
        assert said.set_zero_if_not_found is False
        found = self.groups.get(said.queue_id or 0)
        if found is None:
            return answer(ResponseCode.QUERY_NOT_FOUND)
        return answer(ResponseCode.SUCCESS, QueryConsumerOffsetResponse(offset=found))


OLD, NEW = segment("a", 0, 0, end=101), segment("b", 2, 101)
MOVED = route(OLD, NEW)
STALE = route(segment("a", 0, 0))


def among(told: TopicRouteData | Script, **brokers: Script) -> Scripted:
    """A client, a name server and these brokers."""
    names = telling(told) if isinstance(told, TopicRouteData) else told
    return Scripted({NAME_SERVER: names, **{place(name): each for name, each in brokers.items()}})


def sent(world: Scripted, turn: int = 0, queue: ClientQueue | None = None) -> Stored:
    came = world.carried_out(steps.send(MessageToSend(TOPIC, b"x", queue=queue), "p", turn, 5))
    assert isinstance(came, Stored), came
    return came


def pulled(world: Scripted, at: int) -> Pulled:
    came = world.carried_out(steps.pull(steps.Pull(TOPIC, "g", QUEUE, at, 200, 0)))
    assert isinstance(came, Pulled), came
    return came


def test_queues_are_those_of_one_broker_that_does_not_exist_and_are_asked_for_by_who_knows_them() -> None:
    world = among(route(OLD, NEW, others=[segment("b", 0, 0, end=7)]))
    found = world.carried_out(looked_up(TOPIC))
    both = [ClientQueue(LOGICAL_QUEUE_BROKER, index) for index in (0, 1)]
    assert (found.published, found.subscribed) == (both[:1], both)
    ((_, asked),) = world.questions(RequestCode.GET_ROUTEINFO_BY_TOPIC)
    said = GetRouteInfoRequest.from_ext_fields(asked.header.ext_fields or {})
    assert said.sys_flag == RouteFlag.LOGICAL_QUEUE


def test_what_is_sent_goes_to_the_segment_that_is_written_and_its_offset_is_that_of_the_logical_queue() -> (
    None
):
    world = among(MOVED, a=Holder(), b=Holder({2: (0, 7)}))
    assert sent(world) == Stored(QUEUE, 108, "SEND_OK", "m")
    ((at, asked),) = world.questions(SEND)
    said = SendMessageV2Request.from_ext_fields(asked.header.ext_fields or {})
    assert (at, said.queue_id, said.broker_name) == (place("b"), 2, "b")
    assert said.sys_flag == MessageFlag.LOGICAL_QUEUE


def test_a_plain_topic_and_a_static_one_are_asked_as_ever() -> None:
    world = among(static({"a": (10, {0: 0})}, 1), a=Holder())
    assert sent(world).queue.broker != LOGICAL_QUEUE_BROKER
    ((_, asked),) = world.questions(SEND)
    assert SendMessageV2Request.from_ext_fields(asked.header.ext_fields or {}).sys_flag == 0


def test_a_send_follows_a_queue_that_moved_and_the_next_one_knows() -> None:
    world = among(STALE, a=Holder(elsewhere={0: (OLD, NEW)}), b=Holder())
    assert [sent(world).offset for _ in range(3)] == [101, 102, 103]
    assert [at for at, _ in world.questions(SEND)] == [place("a"), *[place("b")] * 3]
    assert len(world.questions(RequestCode.GET_ROUTEINFO_BY_TOPIC)) == 1


def test_a_queue_that_moved_is_asked_for_where_it_went_and_no_other_in_its_place() -> None:
    """A broker that was drained redirects for each of its queues: to try those one after the other would end
    with a message that is not stored."""
    others = [segment("a", 1, 0)]
    world = among(route(segment("a", 0, 0), others=others), a=Holder(elsewhere={0: (OLD, NEW)}), b=Holder())
    assert sent(world).queue == QUEUE
    assert [at for at, _ in world.questions(SEND)] == [place("a"), place("b")]


def test_while_it_is_not_decided_where_a_segment_begins_it_takes_messages_and_tells_no_offset() -> None:
    world = among(route(segment("a", 0, 0), segment("b", 2, -1)), a=Holder(), b=Holder({2: (0, 3)}))
    assert sent(world).offset == -1
    ((at, _),) = world.questions(SEND)
    assert at == place("b")


@pytest.mark.parametrize("named", [(OLD, segment("b", 2, -1)), (), (OLD,)])
def test_circles_of_redirects_end(named: Sequence[Segment]) -> None:
    both = Holder(elsewhere={0: (segment("b", 2, 0),), 2: (segment("a", 0, 0),)})
    for holder in (Holder(elsewhere={0: named, 2: named}), both):
        world = among(STALE, a=holder, b=holder)
        came = world.carried_out(steps.send(MessageToSend(TOPIC, b"x"), "p", 0, 5))
        assert isinstance(came, Failed)
        assert not came.sent
        assert len(world.questions(SEND)) <= 1 + REDIRECTS_MAX


def test_who_names_nobody_has_the_name_server_asked_again() -> None:
    world = among(telling(STALE, MOVED), a=Holder(elsewhere={0: ()}), b=Holder())
    assert sent(world).offset == 101


def test_reading_goes_over_a_border_by_a_redirect_at_the_offsets_of_the_logical_queue() -> None:
    """A pull of 103 at a sealed 0-100 is redirected to physical 2 of the next; PREVIEW's client does so."""
    a, b = Holder({0: (0, 101)}, elsewhere={0: (OLD, NEW)}), Holder({2: (0, 5)})
    world = among(STALE, a=a, b=b)
    assert [each.offset for each in pulled(world, 103).messages] == [103, 104, 105]
    asked = [
        PullMessageRequest.from_ext_fields(each.header.ext_fields or {}) for _, each in world.questions(PULL)
    ]
    assert [(each.queue_id, each.queue_offset) for each in asked] == [(0, 103), (2, 2)]
    assert all((each.sys_flag or 0) & PullFlag.LOGICAL_QUEUE for each in asked)
    assert pulled(world, 103).next_offset == 106


def test_every_message_is_read_once_and_in_order_over_two_borders_of_one_physical_queue() -> None:
    """Table 4 of RIP-21: the queue came back and took its expired message queue again."""
    back = route(
        Segment(PhysicalQueue("b", 2), State.READ_ONLY, 101, 0, 100), segment("a", 0, 201, physical=101)
    )
    world = among(back, a=Holder({0: (101, 110)}), b=Holder({2: (0, 100)}))
    offsets, at = list[int](), 0
    while at < 210:
        came = pulled(world, at)
        offsets += [each.offset for each in came.messages]
        at = came.next_offset
    assert offsets == list(range(101, 210))


def test_nothing_at_or_behind_the_end_of_a_segment_is_taken_from_it() -> None:
    """A broker that did not hear of the seal yet gives more than belongs to the segment."""
    world = among(MOVED, a=Holder({0: (0, 120)}), b=Holder({2: (0, 5)}))
    came = pulled(world, 99)
    assert [each.offset for each in came.messages] == [99, 100]
    assert came.next_offset == 101


def test_a_seal_that_is_heard_late_is_no_fault_of_a_route() -> None:
    world = among(route(segment("a", 0, 0), NEW), a=Holder({0: (0, 101)}), b=Holder({2: (0, 1)}))
    assert sent(world).offset == 102
    assert pulled(world, 100).next_offset == 101
    assert pulled(world, 101).next_offset == 103


def test_where_a_queue_begins_and_ends_and_was_at_a_time_is_asked_of_the_segments_in_order() -> None:
    a, b = Holder({0: (7, 101)}, times={0: 50}), Holder({2: (0, 9)}, times={2: 4})
    world = among(MOVED, a=a, b=b)
    ask = world.carried_out
    assert (ask(steps.min_offset(TOPIC, QUEUE)), ask(steps.max_offset(TOPIC, QUEUE))) == (7, 110)
    assert ask(steps.offset_at(TOPIC, QUEUE, 1)) == 50
    a.times, a.ends = {0: 101}, {0: (101, 101)}
    assert ask(steps.min_offset(TOPIC, QUEUE)) == 101
    assert ask(steps.offset_at(TOPIC, QUEUE, 9)) == 105


def test_the_end_is_asked_of_whoever_follows_and_is_known_where_nobody_does_yet() -> None:
    a = Holder({0: (0, 101)}, elsewhere={0: (OLD, NEW)})
    world = among(STALE, a=a, b=Holder({2: (0, 9)}))
    assert world.carried_out(steps.max_offset(TOPIC, QUEUE)) == 110
    a.elsewhere = {0: (OLD, segment("b", 2, -1))}
    assert among(STALE, a=a).carried_out(steps.max_offset(TOPIC, QUEUE)) == 101


def test_a_group_is_where_it_said_last_whichever_segment_that_was_in() -> None:
    a, b = Holder({0: (0, 101)}), Holder({2: (0, 9)})
    world = among(MOVED, a=a, b=b)
    ask = world.carried_out
    assert ask(steps.position(TOPIC, QUEUE, "g")) is None
    for offset, kept in ((60, ({0: 60}, {})), (101, ({0: 60}, {2: 0})), (108, ({0: 60}, {2: 7}))):
        assert ask(steps.commit(TOPIC, QUEUE, "g", offset)) == offset
        assert (a.groups, b.groups) == kept
        assert ask(steps.position(TOPIC, QUEUE, "g")) == offset


def test_what_was_said_of_an_earlier_life_of_a_message_queue_is_no_position() -> None:
    back = route(
        Segment(PhysicalQueue("b", 2), State.EXPIRED, 101, 0, 100), segment("a", 0, 201, physical=101)
    )
    a, b = Holder({0: (101, 110)}, groups={0: 60}), Holder({2: (100, 100)})
    world = among(back, a=a, b=b)
    assert world.carried_out(steps.position(TOPIC, QUEUE, "g")) is None
    a.groups = {0: 101}
    assert world.carried_out(steps.position(TOPIC, QUEUE, "g")) == 201


def test_who_had_read_all_of_an_earlier_life_of_a_message_queue_skips_nothing_of_what_lies_between() -> None:
    """Queue 0 of a had 101 messages, and holds offsets from 201 on now: both are 101 there."""
    between = segment("b", 2, 101, end=100)
    back = route(between, segment("a", 0, 201, physical=101))
    a, b = Holder({0: (101, 110)}, groups={0: 101}), Holder({2: (0, 100)})
    world = among(back, a=a, b=b)
    assert world.carried_out(steps.position(TOPIC, QUEUE, "g")) is None
    b.groups = {2: 30}
    assert world.carried_out(steps.position(TOPIC, QUEUE, "g")) == 131
    assert world.carried_out(steps.commit(TOPIC, QUEUE, "g", 201)) == 201
    assert (a.groups, b.groups) == ({0: 101}, {2: 100})
    assert world.carried_out(steps.position(TOPIC, QUEUE, "g")) == 201
    assert world.carried_out(steps.commit(TOPIC, QUEUE, "g", 202)) == 202
    assert world.carried_out(steps.position(TOPIC, QUEUE, "g")) == 202


def test_a_silent_broker_of_messages_that_are_read_leaves_no_group_at_the_beginning() -> None:
    world = among(MOVED, b=Holder({2: (0, 9)}))
    assert isinstance(world.carried_out(steps.position(TOPIC, QUEUE, "g")), Failed)
    gone = Segment(PhysicalQueue("a", 0), State.EXPIRED, 0, 0, 101)
    world = among(route(gone, NEW), b=Holder({2: (0, 9)}))
    assert world.carried_out(steps.position(TOPIC, QUEUE, "g")) is None


def refuses(_command: Command) -> Said:
    return answer(ResponseCode.SERVICE_NOT_AVAILABLE)


@pytest.mark.parametrize("later", ["refused", "plain"])
def test_who_has_a_route_of_logical_queues_keeps_it_where_he_is_refused_or_told_a_plain_one(
    later: str,
) -> None:
    plain = TopicRouteData(MOVED.broker_datas, queue_datas=MOVED.queue_datas)
    told, then = iter((MOVED,)), refuses if later == "refused" else telling(plain)

    def names(command: Command) -> Said:
        return telling(MOVED)(command) if next(told, None) else then(command)

    world = among(names, a=Holder(), b=Holder())
    assert sent(world).offset == 101
    world.now_ms += 3_600_000
    assert (sent(world).offset, sent(world).queue) == (102, QUEUE)
    assert len(world.questions(RequestCode.GET_ROUTEINFO_BY_TOPIC)) == 2


def test_who_has_a_route_makes_no_topic_where_a_name_server_that_began_empty_knows_none() -> None:
    """Another broker may make it by a first message; it would be a plain one."""
    told = iter((MOVED,))
    template = TopicRouteData(MOVED.broker_datas, queue_datas=MOVED.queue_datas)

    def names(command: Command) -> Said:
        if next(told, None):
            return telling(MOVED)(command)
        asked = GetRouteInfoRequest.from_ext_fields(command.header.ext_fields or {}).topic
        return telling(template)(command) if asked == TEMPLATE_TOPIC else answer(ResponseCode.TOPIC_NOT_EXIST)

    world = among(names, a=Holder(), b=Holder())
    assert sent(world).offset == 101
    world.now_ms += 3_600_000
    assert (sent(world).offset, sent(world).queue) == (102, QUEUE)
    # Who has none yet, and asks for a topic that nobody has, is sent where topics are made.
    fresh = among(names, a=Holder(), b=Holder())
    assert sent(fresh).queue.broker in {"a", "b"}


def test_who_has_none_yet_and_is_refused_sends_nothing() -> None:
    world = among(refuses, a=Holder())
    assert isinstance(world.carried_out(steps.send(MessageToSend(TOPIC, b"x"), "p", 0, 5)), Failed)
    assert world.questions(SEND) == []


def test_messages_that_are_deleted_are_passed_over_and_no_others() -> None:
    first = Segment(PhysicalQueue("a", 0), State.EXPIRED, 0, 0, 101)
    world = among(route(first, NEW), b=Holder({2: (0, 9)}))
    assert pulled(world, 5).next_offset == 101
    silent = world.carried_out(steps.pull(steps.Pull(TOPIC, "g", QUEUE, 101, 32, 0)))
    assert isinstance(silent, Pulled)
    world = among(MOVED, b=Holder({2: (0, 9)}))
    assert isinstance(world.carried_out(steps.pull(steps.Pull(TOPIC, "g", QUEUE, 5, 32, 0))), Failed)


def test_what_a_name_server_does_not_list_is_gone_and_what_a_redirect_leaves_out_is_not() -> None:
    last = segment("b", 2, 500)
    b = Holder({2: (0, 9)})
    world = among(route(OLD, last), a=Holder({0: (0, 101)}), b=b)
    assert pulled(world, 101).next_offset == 500
    middle = segment("a", 1, 101, end=399)
    a = Holder({0: (0, 101), 1: (0, 399)}, elsewhere={0: (OLD, last)})
    world = among(STALE, a=a, b=b)
    assert sent(world).offset == 509
    a.elsewhere = {0: (OLD, middle)}
    assert [each.offset for each in pulled(world, 101).messages][:2] == [101, 102]
