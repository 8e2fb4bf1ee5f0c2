"""Sends, pulls and ends of segments: who knows logical queues is redirected, who does not loses nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from replispec.runtime.rocketmq.framing import Command
from replispec.wire.rocketmq.broker import PullMessageResponse, SendMessageResponse
from replispec.wire.rocketmq.client import (
    GetMaxOffsetRequest,
    GetMaxOffsetResponse,
    QueryConsumerOffsetRequest,
    QueryConsumerOffsetResponse,
    UpdateConsumerOffsetRequest,
)
from replispec.wire.rocketmq.codes import MessageFlag, PullFlag, RequestCode, ResponseCode
from replispec.wire.rocketmq.logical_queue import LogicalQueueSegment, LogicalQueueSegments
from replispec.wire.rocketmq.store import LogRecord
from tests.broker.simulated_set import OK, message, wanted
from tests.queues.logical_sets import LogicalSet, LogicalSets, both, elsewhere, own, short

AWARE = int(MessageFlag.LOGICAL_QUEUE)


def sent(brokers: LogicalSet, address: str, queue: int = 0, flags: int = AWARE) -> tuple[Command, Any]:
    """A send, and what its answer says."""
    header = message("L", queue, sys_flag=flags)
    answer = brokers.ask(address, RequestCode.SEND_MESSAGE_V2, header, b"m")
    return answer, SendMessageResponse.from_ext_fields(answer.header.ext_fields or {})


def pulled(
    brokers: LogicalSet, address: str, position: int, queue: int = 0, flags: int = PullFlag.LOGICAL_QUEUE
) -> tuple[Command, PullMessageResponse]:
    """A pull of who knows logical queues, and what its answer says."""
    header = wanted("L", queue, position, flags=flags)
    answer = brokers.ask(address, RequestCode.PULL_MESSAGE, header)
    return answer, PullMessageResponse.from_ext_fields(answer.header.ext_fields or {})


def redirected(answer: Command) -> list[tuple[Any, ...]]:
    """The segments of a redirect: broker, and what `short` tells."""
    found = LogicalQueueSegments.decode(answer.body).segments or ()
    return [((each.message_queue and each.message_queue.broker_name), *short(each)) for each in found]


def moved(queues: int = 1, messages: int = 3) -> tuple[LogicalSet, str]:
    """A broker whose queue 0 went to broker-b with so many messages."""
    brokers = LogicalSet()
    address = brokers.alone()
    brokers.mapped(address, queues)
    for _ in range(messages):
        brokers.send(address, b"m", topic="L")
    assert brokers.prepare(address, own(), elsewhere())[0][0] == OK
    return brokers, address


def test_the_bit_of_who_knows_logical_queues_is_not_stored() -> None:
    """5.x reads the stored bit as another one."""
    brokers = LogicalSet()
    address = brokers.alone()
    header = message("T", 0, sys_flag=AWARE | 1)
    assert brokers.ask(address, RequestCode.SEND_MESSAGE_V2, header, b"m").header.code == OK
    _, _, records = brokers.pull(address, 0)
    assert LogRecord.decode(records).sys_flag == 1


def test_who_knows_logical_queues_and_sends_to_a_sealed_segment_is_told_where_it_went() -> None:
    brokers, address = moved()
    answer, said = sent(brokers, address)
    assert (answer.header.code, said.redirect) == (ResponseCode.NO_PERMISSION, "1")
    assert redirected(answer) == [
        ("broker-a", 0, "ReadOnly", 0, 0, 3),
        ("broker-b", 0, "Normal", 3, 0, -1),
    ]


def test_a_sealed_segment_that_nobody_follows_sends_who_knows_to_the_name_server() -> None:
    brokers = LogicalSet()
    address = brokers.alone()
    brokers.mapped(address, 1)
    brokers.send(address, b"m", topic="L")
    brokers.seal(address, 0, 0)
    answer, said = sent(brokers, address)
    assert (answer.header.code, said.redirect, answer.body) == (ResponseCode.NO_PERMISSION, "1", b"")
    answer, said = sent(brokers, address, flags=0)
    assert (answer.header.code, said.redirect) == (ResponseCode.NO_PERMISSION, None)
    # Its tail is waited for as that of any queue.
    answer, told = pulled(brokers, address, 1)
    assert (answer.header.code, told.next_begin_offset, told.redirect) == (
        ResponseCode.PULL_NOT_FOUND,
        1,
        None,
    )


def test_a_batch_ends_where_the_segment_ends_and_the_next_pull_is_redirected() -> None:
    brokers, address = moved()
    answer, said = pulled(brokers, address, 1)
    assert (answer.header.code, said.next_begin_offset) == (OK, 3)
    answer, said = pulled(brokers, address, 3)
    assert (answer.header.code, said.redirect, said.next_begin_offset) == (
        ResponseCode.PULL_RETRY_IMMEDIATELY,
        "1",
        3,
    )
    assert redirected(answer)[1] == ("broker-b", 0, "Normal", 3, 0, -1)
    # Behind it, too: nextBeginOffset never passes the end.
    assert pulled(brokers, address, 50)[1].next_begin_offset == 3


def test_a_pull_of_what_is_not_decided_yet_is_told_to_stay_where_it_is() -> None:
    """PREVIEW answers with offsetMax, which is -1."""
    brokers = LogicalSet()
    address = brokers.alone()
    brokers.create(address, 0)
    sent(brokers, address)
    answer, said = pulled(brokers, address, 0)
    assert (answer.header.code, said.next_begin_offset) == (ResponseCode.PULL_NOT_FOUND, 0)
    # A client of before reads its queue as ever.
    assert pulled(brokers, address, 0, flags=0)[0].header.code == OK


def test_a_pull_of_no_segment_is_sent_to_the_name_server() -> None:
    brokers = LogicalSet()
    address = brokers.alone()
    brokers.made(address, 2)
    brokers.map(address, 0, 0)
    answer, said = pulled(brokers, address, 7, queue=1)
    assert (answer.header.code, said.redirect, answer.body, said.next_begin_offset) == (
        ResponseCode.PULL_RETRY_IMMEDIATELY,
        "1",
        b"",
        7,
    )


def test_who_does_not_know_logical_queues_reads_message_queues_as_ever() -> None:
    brokers, address = moved()
    header = wanted("L", 0, 3, flags=0)
    answer = brokers.ask(address, RequestCode.PULL_MESSAGE, header)
    assert answer.header.code == ResponseCode.PULL_NOT_FOUND
    assert "REDIRECT" not in (answer.header.ext_fields or {})


def test_a_pull_that_waits_when_its_segment_is_sealed_is_redirected_at_once() -> None:
    brokers = LogicalSet()
    address = brokers.alone()
    brokers.mapped(address, 1)
    brokers.send(address, b"m", topic="L")
    flags = int(PullFlag.SUSPEND)
    knows = brokers.asked(
        address, RequestCode.PULL_MESSAGE, wanted("L", 0, 1, 20_000, flags | PullFlag.LOGICAL_QUEUE)
    )
    plain = brokers.asked(address, RequestCode.PULL_MESSAGE, wanted("L", 0, 1, 20_000, flags))
    brokers.world.run_for(500)
    assert not knows
    assert not plain
    assert brokers.prepare(address, own(), elsewhere())[0][0] == OK
    brokers.world.run_for(100)
    assert not plain
    (answer,) = knows
    assert isinstance(answer, Command)
    assert answer.header.code == ResponseCode.PULL_RETRY_IMMEDIATELY
    assert redirected(answer)[1][0] == "broker-b"


def test_the_end_of_a_segment_that_is_not_the_last_redirects_who_asks_for_the_logical_queue() -> None:
    brokers, address = moved()
    for logical in (True, False):
        header = replace(GetMaxOffsetRequest("L", 0), logical_queue=logical)
        answer = brokers.ask(address, RequestCode.GET_MAX_OFFSET, header)
        said = GetMaxOffsetResponse.from_ext_fields(answer.header.ext_fields or {})
        assert (answer.header.code, said.offset) == (OK, 3)
        assert said.redirect == ("1" if logical else None)
        assert bool(answer.body) == logical


# ---- two brokers ---------------------------------------------------------------------------------


def migrated() -> tuple[LogicalSets, LogicalQueueSegment, LogicalQueueSegment]:
    """Logical queue 0 moved from broker-a to broker-b, with three messages."""
    sets = LogicalSets("ab")
    one, two = sets.at["broker-a"], sets.at["broker-b"]
    sets.mapped(one, 1)
    for _ in range(3):
        sets.send(one, b"m", topic="L")
    source, target = sets.migrate(one, two, own())
    sets.world.run_for(3_000)
    return sets, source, target


def test_a_position_behind_the_end_of_a_segment_is_kept_where_the_queue_went() -> None:
    """Who does not know yet that it moved says it here; a position up to the end is one of this segment."""
    brokers, address = moved(messages=3)

    def say(position: int) -> int:
        header = UpdateConsumerOffsetRequest(
            consumer_group="g", topic="L", queue_id=0, commit_offset=position
        )
        return brokers.ask(address, RequestCode.UPDATE_CONSUMER_OFFSET, header).header.code

    def told() -> int | None:
        header = QueryConsumerOffsetRequest(
            consumer_group="g", topic="L", queue_id=0, set_zero_if_not_found=False
        )
        answer = brokers.ask(address, RequestCode.QUERY_CONSUMER_OFFSET, header)
        return QueryConsumerOffsetResponse.from_ext_fields(answer.header.ext_fields or {}).offset

    assert (say(4), told()) == (ResponseCode.SERVICE_NOT_AVAILABLE, None)
    assert (say(3), told()) == (OK, 3)
    assert (say(5), told()) == (ResponseCode.SERVICE_NOT_AVAILABLE, 3)
    other = UpdateConsumerOffsetRequest(consumer_group="g", topic="Other", queue_id=0, commit_offset=9)
    assert brokers.ask(address, RequestCode.UPDATE_CONSUMER_OFFSET, other).header.code == OK


def test_what_an_older_client_sends_to_a_sealed_segment_is_stored_where_the_queue_is_written() -> None:
    """PREVIEW answers with the queue that took it; the client knows another one."""
    sets, _, target = migrated()
    one, two = sets.at["broker-a"], sets.at["broker-b"]
    sets.send(two, b"other", topic="L")
    answer, said = sent(sets, one, flags=0)
    assert (answer.header.code, said.queue_id, said.queue_offset) == (OK, 0, 1)
    assert said.forward_queue_id == str(target.message_queue and target.message_queue.queue_id)
    assert LogRecord.decode(sets.pull(two, 1, topic="L")[2]).sys_flag & AWARE == 0
    assert sets.pull(one, 3, topic="L")[0] == ResponseCode.PULL_NOT_FOUND


def test_a_send_is_handed_on_over_several_migrations_whatever_the_hint() -> None:
    sets, _, target = migrated()
    one, two = sets.at["broker-a"], sets.at["broker-b"]
    # Back again: broker-a has a newer queue of its own, which it was not told of by 419.
    sets.send(two, b"m", topic="L")
    back = sets.migrate(two, one, target, notifies=False)[1]
    assert short(back)[:3] == (1, "Normal", 4)
    answer, said = sent(sets, one, flags=0)
    assert (answer.header.code, said.queue_id, said.queue_offset) == (OK, 0, 0)
    assert said.forward_queue_id == "1"


def went_on(names: str) -> tuple[LogicalSets, LogicalQueueSegment, LogicalQueueSegment]:
    """Logical queue 0 moved from broker to broker, with a message at each; the first one was told of no more
    than its own successor: the last migration."""
    sets = LogicalSets(names)
    first, *others = sets.at.values()
    sets.mapped(first, 1)
    source, target, at = own(), own(), first
    for each in others:
        sets.send(at, b"m", topic="L")
        source, target = sets.migrate(at, each, target, notifies=False)
        at = each
    sets.world.run_for(3_000)
    return sets, source, target


def test_a_hint_that_its_broker_confirms_tells_who_sends_where_the_queue_went_and_moves_no_reader() -> None:
    sets, source, target = went_on("abc")
    one = sets.at["broker-a"]
    assert redirected(sent(sets, one)[0])[1][0] == "broker-b"
    assert sets.notify(one, source, target) == (OK, "")
    sets.world.run_for(1_000)
    assert redirected(sent(sets, one)[0])[1] == ("broker-c", 0, "Normal", 2, 0, -1)
    assert redirected(pulled(sets, one, 1)[0])[1][:2] == ("broker-b", 0)
    # One that lies before the end is none.
    assert sets.notify(one, own(), elsewhere(logical_queue_delta=0, state="Normal")) == (OK, "")
    sets.world.run_for(1_000)
    assert redirected(sent(sets, one)[0])[1][0] == "broker-c"


def test_a_hint_that_nobody_confirms_leads_nobody() -> None:
    """Anybody may say where a logical queue went, as far ahead as he likes, and name another one's queue."""
    sets, source, target = went_on("abc")
    one, two, three = sets.at.values()
    assert short(sets.create(two, 1, "Normal")[1])[:2] == (1, "Normal")
    far: dict[str, Any] = {"logical_queue_delta": 1 << 62, "state": "Normal"}
    for broker, queue in (("broker-b", 1), ("broker-b", 0), ("broker-c", 0), ("broker-x", 5)):
        assert sets.notify(one, own(), elsewhere(broker, queue, **far)) == (OK, "")
        sets.world.run_for(1_000)
        assert redirected(sent(sets, one)[0])[1][0] == "broker-b"
    answer, said = sent(sets, one, flags=0)
    assert (answer.header.code, said.forward_queue_id) == (OK, "0")
    assert sets.pull(two, 0, queue=1, topic="L")[0] == ResponseCode.PULL_NOT_FOUND
    assert sets.pull(three, 0, topic="L")[0] == OK
    # What is true counts all the same.
    assert sets.notify(one, source, target) == (OK, "")
    sets.world.run_for(1_000)
    assert redirected(sent(sets, one)[0])[1][0] == "broker-c"


def test_of_the_successor_that_it_recorded_a_broker_asks_nobody() -> None:
    sets, _, _ = migrated()
    assert not sets.broker(1)._mapped._logical.hints.is_told("L", 0)


def test_a_send_reaches_a_queue_that_moved_more_often_than_it_is_sent_on() -> None:
    sets, source, target = went_on("abcde")
    one = sets.at["broker-a"]
    assert sent(sets, one, flags=0)[0].header.code == ResponseCode.NO_PERMISSION
    assert sets.notify(one, source, target) == (OK, "")
    sets.world.run_for(1_000)
    assert sent(sets, one, flags=0)[0].header.code == OK


def test_a_send_that_reaches_nobody_is_refused() -> None:
    sets, _, _ = migrated()
    sets.world.kill("broker2")
    answer, _ = sent(sets, sets.at["broker-a"], flags=0)
    assert answer.header.code == ResponseCode.NO_PERMISSION


def test_logical_offsets_go_on_where_the_segment_before_ended() -> None:
    _, source, target = migrated()
    assert short(source) == (0, "ReadOnly", 0, 0, 3)
    assert short(target) == (0, "Normal", 3, 0, -1)


def test_who_reads_up_to_a_border_goes_on_before_the_target_was_told_where_it_begins() -> None:
    """PREVIEW's client reads nothing that is WriteOnly: it asks the source three times, and fails."""
    sets = LogicalSets("ab")
    one, two = sets.at["broker-a"], sets.at["broker-b"]
    sets.mapped(one, 1)
    for _ in range(3):
        sets.send(one, b"m", topic="L")
    _, target = sets.create(two, 0)
    assert target is not None
    _, prepared = sets.prepare(one, own(), target)
    assert prepared is not None
    source, target = both(prepared)
    assert short(target) == (0, "WriteOnly", 3, 0, -1)
    assert redirected(pulled(sets, one, 3)[0])[1] == ("broker-b", 0, "Normal", 3, 0, -1)
    # There is nothing to be read yet, and no other place to ask.
    sent(sets, two)
    answer, said = pulled(sets, two, 0)
    assert (answer.header.code, said.next_begin_offset, said.redirect) == (
        ResponseCode.PULL_NOT_FOUND,
        0,
        None,
    )
    assert sets.start_at(two, source, target)[0][0] == OK
    assert pulled(sets, two, 0)[0].header.code == OK
