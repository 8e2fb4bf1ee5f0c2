"""A broker that leads a logical queue asks those that have its older items, and tells what it finds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from replispec.broker.rocketmq.core.peers import ASKED_MAX, ASKED_OF_ONE_MAX, BODY_BYTES_MAX, Peers
from replispec.runtime.rocketmq.client.asking import Pausing, Steps
from replispec.runtime.rocketmq.framing import FrameBuffer
from replispec.runtime.rocketmq.remoting.server import Request
from replispec.runtime.world import Member, Outbox
from replispec.wire.rocketmq import constants
from replispec.wire.rocketmq.client import (
    SearchOffsetRequest,
    SearchOffsetResponse,
)
from replispec.wire.rocketmq.codes import LogMagic, PullFlag, RequestCode, ResponseCode
from replispec.wire.rocketmq.store import LogRecord
from replispec.wire.rocketmq.streams import COMMIT_LOG
from tests.broker.simulated_set import NAME_SERVER, OK, BrokerSet, wanted
from tests.queues.test_static_queues import NOT_LEADER, RETRY, committed, ends, pulled, sent
from tests.queues.two_sets import Liar, Sets, with_liar

A0, B4 = ("broker-a", 0, 0), ("broker-b", 4, 10_000)
ERROR = ResponseCode.SYSTEM_ERROR
PULL = RequestCode.PULL_MESSAGE


def moved(messages: int = 3) -> tuple[Sets, str, str]:
    """A queue whose messages from 0 on are at broker-a; broker-b leads it from 10,000 on."""
    sets = Sets()
    first, second = sets.at.values()
    sets.map(5, [A0])
    for number in range(messages):
        assert sent(sets, first) == (OK, 0, number)
    sets.map(6, [A0, B4], to=["broker-b", "broker-a"])
    return sets, first, second


def bodies(sets: BrokerSet, address: str, position: int) -> list[bytes]:
    """The bodies of the messages that one pull of logical queue 0 brings."""
    asked = replace(wanted("S", 0, position), bname=constants.MOCK_BROKER_GLOBAL)
    frames = FrameBuffer(COMMIT_LOG).receive(sets.ask(address, PULL, asked).body)
    return [LogRecord.decode(each).body for each in frames]


def test_a_message_is_read_at_its_offset_before_and_after_its_queue_has_moved() -> None:
    sets, first, second = moved()
    assert sent(sets, second) == (OK, 0, 10_000)
    sets.world.run_for(100)
    assert pulled(sets, second, 0) == (OK, 3, 0, 10_001, 0)
    assert bodies(sets, second, 0) == [b"m"] * 3
    assert pulled(sets, second, 2) == (OK, 3, 0, 10_001, 0)
    assert pulled(sets, second, 3) == (RETRY, 10_000, 10_000, 10_001, 10_000)
    assert pulled(sets, second, 9_999) == (RETRY, 10_000, 10_000, 10_001, 10_000)
    assert pulled(sets, second, 10_000) == (OK, 10_001, 10_000, 10_001, 10_000)
    assert ends(sets, second) == (0, 10_001)
    assert pulled(sets, first, 0, lo=False)[:2] == (OK, 3)


def test_the_first_question_to_another_broker_is_answered_at_once() -> None:
    sets, _, second = moved()
    began = sets.world.now_us
    assert pulled(sets, second, 0)[0] == OK
    assert sets.world.now_us - began < 1_000_000


def test_an_item_between_two_others_is_read_on_both_borders() -> None:
    sets = Sets()
    first, second = sets.at.values()
    sets.map(5, [A0])
    assert sent(sets, first)[2] == 0
    sets.map(6, [A0, B4], to=["broker-b", "broker-a"])
    assert sent(sets, second)[2] == 10_000
    sets.map(7, [A0, B4, ("broker-a", 5, 20_000)])
    assert sent(sets, first)[2] == 20_000
    place, read = 0, []
    while (found := pulled(sets, first, place))[0] in (OK, RETRY):
        read.append(place if found[0] == OK else None)
        place = found[1] or 0
    assert (read, place) == ([0, None, 10_000, None, 20_000], 20_001)


def test_an_undecided_tail_is_left_out_where_the_other_item_is_elsewhere() -> None:
    sets = Sets()
    first, second = sets.at.values()
    sets.map(5, [A0])
    sent(sets, first)
    sets.map(6, [A0, ("broker-b", 4, -1)], to=["broker-b"])
    assert sent(sets, second) == (OK, 0, constants.UNDECIDED)
    assert ends(sets, second) == (0, 1)
    assert pulled(sets, second, 1) == (ResponseCode.PULL_NOT_FOUND, 1, 0, 1, 0)
    assert pulled(sets, second, 5_000)[:2] == (ResponseCode.PULL_NOT_FOUND, 1)
    sets.map(6, [A0, B4], to=["broker-b"])
    assert pulled(sets, second, 1)[:2] == (RETRY, 10_000)
    assert pulled(sets, second, 10_000)[:2] == (OK, 10_001)


def test_positions_are_kept_at_the_broker_of_the_item_and_found_in_the_newest() -> None:
    sets, first, second = moved()
    assert committed(sets, second) == (ResponseCode.QUERY_NOT_FOUND, None)
    assert committed(sets, second, 2) == (OK, 2)
    assert committed(sets, first, lo=False) == (OK, 2)
    sets.world.kill("broker2", power=True)
    sets.start("broker2")
    sets.until(lambda: sets.broker(2).serves)
    sets.world.run_for(3_000)
    assert committed(sets, second) == (OK, 2), "nothing of it is kept by who leads"
    assert committed(sets, second, 10_001) == (OK, 10_001)
    assert committed(sets, first, lo=False) == (OK, 2)
    assert committed(sets, second, 1) == (OK, 10_001), "a way back over a border is lost"


def test_of_items_at_two_other_brokers_the_newer_one_counts() -> None:
    sets = Sets("abc")
    third = sets.at["broker-c"]
    sets.map(7, [A0, B4, ("broker-c", 1, 20_000)], to=[*sets.at])
    for position in (2, 10_001, 1):
        assert committed(sets, third, position)[0] == OK
    assert committed(sets, third) == (OK, 10_001)
    assert committed(sets, sets.at["broker-a"], lo=False) == (OK, 1)


def test_a_position_of_before_the_move_is_found_through_who_leads_now() -> None:
    sets = Sets()
    first, second = sets.at.values()
    sets.map(5, [A0])
    assert committed(sets, first, 3) == (OK, 3)
    sets.map(6, [A0, B4], to=["broker-b", "broker-a"])
    assert committed(sets, second) == (OK, 3)
    assert committed(sets, first) == (OK, 3), "whoever is asked"


def test_a_position_that_a_pull_carries_goes_to_its_item() -> None:
    sets, first, second = moved()
    sent(sets, second)
    flags = PullFlag.SUBSCRIPTION | PullFlag.COMMIT_OFFSET
    assert pulled(sets, second, 10_000, sys_flag=flags, commit_offset=2)[0] == OK
    sets.world.run_for(500)
    assert committed(sets, first, lo=False) == (OK, 2)
    assert committed(sets, second) == (OK, 2)
    assert pulled(sets, second, 2, sys_flag=flags, commit_offset=10_001)[0] == OK
    assert committed(sets, second) == (OK, 10_001)
    assert committed(sets, first, lo=False) == (OK, 2)


def since(sets: BrokerSet, address: str, timestamp: int) -> int | None:
    """The first message of logical queue 0 since a time."""
    asked = SearchOffsetRequest("S", 0, timestamp, bname=constants.MOCK_BROKER_GLOBAL)
    answer = sets.ask(address, RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, asked).header
    return SearchOffsetResponse.from_ext_fields(answer.ext_fields or {}).offset


def test_a_time_is_looked_for_over_all_brokers_from_the_oldest_item_on() -> None:
    sets, first, second = moved()
    then = LogRecord.decode(sets.pull(first, 2, topic="S")[2]).store_timestamp
    sent(sets, second)
    sets.world.run_for(100)
    assert [since(sets, second, each) for each in (0, then + 1, then + 10**9)] == [0, 10_000, 10_001]


@pytest.mark.parametrize("forwards", [True, False])
def test_who_does_not_lead_hands_it_on_or_says_so(forwards: bool) -> None:
    sets = Sets(forward_to_queue_leader=forwards)
    first, second = sets.at.values()
    sets.map(5, [A0])
    sent(sets, first)
    sets.map(6, [A0, B4], to=["broker-b", "broker-a"])
    expected = (OK, 0, 10_000) if forwards else (NOT_LEADER, None, None)
    assert sent(sets, first) == expected
    assert pulled(sets, first, 0)[:2] == ((OK, 1) if forwards else (NOT_LEADER, None))
    assert ends(sets, first) == ((0, 10_001) if forwards else (None, None))
    assert ends(sets, second) == (0, 10_001 if forwards else 10_000)


def test_a_broker_that_never_had_the_queue_finds_who_leads() -> None:
    sets = Sets("abc")
    sets.map(5, [], [A0], to=["broker-a"])
    sets.map(5, [], [], to=["broker-c"])
    assert sent(sets, sets.at["broker-c"], 1) == (OK, 1, 0)
    assert sent(sets, sets.at["broker-c"], 0)[0] == NOT_LEADER


def test_who_was_told_of_one_move_alone_finds_who_leads_after_the_next() -> None:
    sets = Sets("abc")
    first = sets.at["broker-a"]
    sets.map(5, [A0], to=["broker-a"])
    sent(sets, first)
    sets.map(6, [A0, B4], to=["broker-b", "broker-a"])
    assert sent(sets, first) == (OK, 0, 10_000)
    sets.map(7, [A0, B4, ("broker-c", 1, 20_000)], to=["broker-c", "broker-b"])
    # The route that it has is older than that.
    assert sent(sets, first) == (OK, 0, 20_000)


def test_a_circle_of_brokers_that_each_say_that_another_leads_ends() -> None:
    sets = Sets()
    first, second = sets.at.values()
    sets.map(5, [A0, B4], to=["broker-a"])
    sets.map(5, [B4, ("broker-a", 0, 20_000)], to=["broker-b"])
    before = sets.world.now_us
    assert [sent(sets, each)[0] for each in (first, second)] == [NOT_LEADER, NOT_LEADER]
    assert sets.world.now_us - before < 1_000_000


def test_a_broker_that_is_dead_costs_its_own_messages_alone() -> None:
    sets, _, second = moved()
    assert pulled(sets, second, 0)[0] == OK
    sets.world.kill("broker1")
    refused = sets.asked(second, PULL, replace(wanted("S", 0, 0), bname=constants.MOCK_BROKER_GLOBAL))
    assert sent(sets, second) == (OK, 0, 10_000)
    assert pulled(sets, second, 10_000)[0] == OK
    assert committed(sets, second, 10_001) == (OK, 10_001)
    sets.until(lambda: bool(refused), at_most_ms=10_000)
    assert pulled(sets, second, 0)[0] == ERROR
    sets.start("broker1")
    sets.until(lambda: sets.broker(1).serves)
    sets.world.run_for(2_000)
    assert pulled(sets, second, 0)[:2] == (OK, 3)


def test_a_broker_that_moved_house_is_found_again() -> None:
    sets, _, second = moved()
    assert pulled(sets, second, 0)[0] == OK
    disk = sets.world.processes["broker1"].disk
    sets.world.kill("broker1")
    sets.add_broker(7, broker_name="broker-a")
    sets.world.processes["broker7"].disk = disk
    sets.start("broker7")
    sets.until(lambda: sets.broker(7).serves)
    sets.world.run_for(3_000)
    assert pulled(sets, second, 0)[:2] == (OK, 3)


# ---- brokers that lie ----------------------------------------------------------------------------

ELSEWHERE = [("broker-b", 3, 0), ("broker-a", 0, 10_000)]


def says_pull(liar: Liar, body: bytes, *places: object) -> None:
    """Have it answer pulls so: where to go on, where the queue begins, where it ends."""
    fields: dict[str, str | None] = dict(
        zip(("nextBeginOffset", "minOffset", "maxOffset"), map(str, places), strict=True)
    )
    liar.says = lambda request: request.answer(OK, ext_fields=fields, body=body)


def record(offset: int, topic: str = "S", queue: int = 3) -> bytes:
    """A message as a broker has it."""
    said = LogRecord(magic=LogMagic.MESSAGE_V1, topic=topic, queue_id=queue, queue_offset=offset, body=b"x")
    return replace(said, born_ip=bytes(4), store_ip=bytes(4)).encode()


def test_what_is_asked_of_a_holder_is_physical_and_answered_at_once() -> None:
    sets, address, liar = with_liar(ELSEWHERE)
    says_pull(liar, record(5) + record(6), 7, 2, 9)
    flags = PullFlag.SUBSCRIPTION | PullFlag.SUSPEND | PullFlag.COMMIT_OFFSET
    more = {"sys_flag": flags, "suspend_timeout_millis": 20_000, "commit_offset": 4}
    assert pulled(sets, address, 5, **more) == (OK, 7, 2, 10_000, 0), sets.notes[-2:]
    asked, *_ = liar.sees(PULL)
    assert (asked["queueId"], asked["queueOffset"], asked["lo"], asked["sysFlag"]) == ("3", "5", "false", "4")
    carried, *_ = liar.sees(RequestCode.UPDATE_CONSUMER_OFFSET)
    assert (carried["queueId"], carried["commitOffset"], carried["lo"]) == ("3", "4", "false")


LIES = {
    "a garbage body": ((b"no log", 7, 2, 9), "what is no log"),
    "half a record": ((record(5)[:-1], 6, 2, 9), "what is no log"),
    "no record": ((b"", 7, 2, 9), "what is no log"),
    "another topic": ((record(5, "Other"), 6, 2, 9), "of another queue or offset"),
    "another queue": ((record(5, queue=4), 6, 2, 9), "of another queue or offset"),
    "an offset before": ((record(4), 5, 2, 9), "of another queue or offset"),
    "an offset behind the border": ((record(10_000), 10_001, 2, 10_002), "of another queue or offset"),
    "offsets backwards": ((record(6) + record(5), 7, 2, 9), "of another queue or offset"),
    "a way back": ((record(5), 5, 2, 9), "goes on at 5 behind 6"),
    "a way far ahead": ((record(5), 2**62, 2, 9), "behind 6"),
    "an end before the beginning": ((record(5), 6, 9, 2), "tells of offsets 9 to 2"),
    "a beginning below 0": ((record(5), 6, -3, 9), "tells of offsets -3 to 9"),
    "a number that is none": ((record(5), "x", 2, 9), "cannot be read"),
}


@pytest.mark.parametrize("lie", LIES)
def test_an_answer_that_cannot_be_is_none(lie: str) -> None:
    sets, address, liar = with_liar(ELSEWHERE)
    said, why = LIES[lie]
    says_pull(liar, *said)
    assert pulled(sets, address, 5)[0] == ERROR
    reasons = [str(note.values["reason"]) for _, note in sets.notes if "another broker of" in note.what]
    assert [why in each for each in reasons] == [True]
    assert sent(sets, address) == (OK, 0, 10_000)
    says_pull(liar, record(5), 6, 2, 9)
    assert pulled(sets, address, 5) == (OK, 6, 2, 10_001, 0)


def test_offsets_that_cannot_be_are_none() -> None:
    sets, address, liar = with_liar(ELSEWHERE)
    for offset in ("-1", "x", "9223372036854775808", None):
        fields = {} if offset is None else {"offset": offset}
        liar.says = lambda request, fields=fields: request.answer(OK, ext_fields=fields)  # type: ignore[misc]
        low, end = ends(sets, address)
        assert end == 10_000
        assert low is None or low <= end
        # A position below 0 says that the group was moved to older items.
        none = ResponseCode.QUERY_NOT_FOUND if offset == "-1" else ERROR
        assert committed(sets, address)[0] == none


def test_a_holder_that_refuses_is_no_reason_to_say_that_nothing_is_there() -> None:
    sets, address, liar = with_liar(ELSEWHERE)
    liar.says = lambda request: request.answer(ERROR)
    assert pulled(sets, address, 5)[0] == ERROR
    assert committed(sets, address)[0] == ERROR
    assert since(sets, address, 0) is None


def test_a_border_is_crossed_only_where_the_end_of_the_item_is_sure() -> None:
    sets, address, liar = with_liar(ELSEWHERE)

    def unsure(request: Request) -> None:
        # Nothing is shown that is not confirmed, and what is confirmed is not known yet.
        if request.code == RequestCode.GET_MAX_OFFSET:
            request.answer(ResponseCode.SERVICE_NOT_AVAILABLE)
        else:
            fields: dict[str, str | None] = {"nextBeginOffset": "5", "minOffset": "0", "maxOffset": "0"}
            request.answer(ResponseCode.PULL_NOT_FOUND, ext_fields=fields)

    liar.says = unsure
    assert pulled(sets, address, 5)[0] == ERROR

    def sure(request: Request) -> None:
        if request.code == RequestCode.GET_MAX_OFFSET:
            request.answer(OK, ext_fields={"offset": "5"})
        else:
            unsure(request)

    liar.says = sure
    assert pulled(sets, address, 5)[:2] == (ResponseCode.PULL_RETRY_IMMEDIATELY, 10_000)


def test_a_holder_that_is_silent_or_dies_leaves_no_client_without_an_answer() -> None:
    sets, address, liar = with_liar(ELSEWHERE)
    began = sets.world.now_us
    assert pulled(sets, address, 5)[0] == ERROR
    assert sets.world.now_us - began <= (constants.ANSWER_TIMEOUT_MS + 100) * 1_000
    liar.says = lambda request: liar.server.close(request.connection)
    assert pulled(sets, address, 5)[0] == ERROR
    assert sets.broker(1)._peers._open == 0


def test_a_flood_of_questions_about_a_silent_broker_takes_no_room_from_others() -> None:
    sets, address, _ = with_liar(ELSEWHERE)
    asked = replace(wanted("S", 0, 5), bname=constants.MOCK_BROKER_GLOBAL)
    answers = [sets.asked(address, PULL, asked) for _ in range(2_000)]
    assert sent(sets, address) == (OK, 0, 10_000)
    assert pulled(sets, address, 10_000)[0] == OK
    sets.until(lambda: all(answers), at_most_ms=30_000)
    codes = {each[0].header.code for each in answers}  # type: ignore[union-attr]
    assert codes == {ERROR}
    assert sets.broker(1)._peers._open == 0
    assert not sets.broker(1)._peers._by_broker


@pytest.mark.parametrize("silent", [True, False])
def test_without_a_name_server_nobody_waits(silent: bool) -> None:
    sets, address, _ = with_liar(ELSEWHERE)
    sets.world.kill("nameserver")
    if silent:
        sets.world.add("silent", "10.0.0.2", lambda _storage: [Member("silent", Liar(NAME_SERVER))])
        sets.world.start("silent")
        sets.world.run_for(5_000)
    began = sets.world.now_us
    assert pulled(sets, address, 5)[0] == ERROR
    assert sets.world.now_us - began <= (constants.ANSWER_TIMEOUT_MS + 100) * 1_000
    assert sent(sets, address) == (OK, 0, 10_000)


# ---- many questions ------------------------------------------------------------------------------


def open_question(_whom: str) -> Steps[int]:
    """One that waits for longer than anybody may."""
    yield Pausing(10**9)
    return 0


def test_a_question_ends_in_time_whatever_it_waits_for() -> None:
    peers, told = Peers(Outbox(), [NAME_SERVER], None), list[tuple[Any, int]]()
    peers.ask("b", open_question("b"), lambda *each: told.append(each), 1_000)
    late_ms = 1_000 + constants.ANSWER_TIMEOUT_MS
    peers.ticked(late_ms - 1)
    assert (told, peers.deadline_ms()) == ([], late_ms)
    peers.ticked(late_ms)
    [(failed, at_ms)] = told
    assert (failed.sent, at_ms) == (True, late_ms)
    peers.ticked(late_ms + 1)
    assert len(told) == 1


def test_one_broker_takes_no_room_from_others_and_all_together_no_more_than_there_is() -> None:
    peers, told = Peers(Outbox(), [NAME_SERVER], None), Counter[str]()
    names = [f"b{number}" for number in range(ASKED_MAX // ASKED_OF_ONE_MAX + 1)]

    def note(name: str) -> Callable[[Any, int], None]:
        return lambda _result, _ms: told.update([name])

    for name in names:
        for _ in range(ASKED_OF_ONE_MAX + 1):
            peers.ask(name, open_question(name), note(name), 0)
    peers.ticked(0)
    assert told == {**dict.fromkeys(names[:-1], 1), names[-1]: ASKED_OF_ONE_MAX + 1}


def test_no_more_bytes_wait_than_there_is_room_for() -> None:
    peers, told = Peers(Outbox(), [NAME_SERVER], None), list[Any]()
    for size in (BODY_BYTES_MAX, 1, 0):
        peers.ask("b", open_question("b"), lambda result, _ms: told.append(result), 0, size=size)
    peers.ticked(0)
    assert [str(each) for each in told] == ["too many wait for other brokers"]
