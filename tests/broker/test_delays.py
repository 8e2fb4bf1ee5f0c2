"""Messages with a delay level come to their topic when their time has come, once, whoever is master then."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from replispec.runtime.primitives.parameters import ConfigurationError
from replispec.runtime.rocketmq import rules as sends_rules
from replispec.runtime.rocketmq.derived_options import check_members
from replispec.runtime.rocketmq.log.properties import properties_of
from replispec.runtime.rocketmq.rules import as_waiting, message_offset
from replispec.wire.rocketmq import constants
from replispec.wire.rocketmq.client import (
    ConsumerSendMsgBackRequest,
    CreateTopicRequest,
    DelayOffsetTable,
)
from replispec.wire.rocketmq.codes import Permission, RequestCode, ResponseCode
from replispec.wire.rocketmq.options import BrokerOptions
from replispec.wire.rocketmq.store import LogRecord
from tests.broker.simulated_set import LOG_FILE_BYTES, OK, BrokerSet

LEVELS = "1s 3s 10s"
MS = (1_000, 3_000, 10_000)


def level(number: int, more: str = "") -> str:
    return f"{more}DELAY\x01{number}\x02"


def records(data: bytes) -> Iterator[LogRecord]:
    while data:
        size = int.from_bytes(data[:4], "big")
        yield LogRecord.decode(data[:size])
        data = data[size:]


def delivered(brokers: BrokerSet, address: str, queue: int = 0, topic: str = "T") -> list[LogRecord]:
    """All messages of the topic that consumers see."""
    found: list[LogRecord] = []
    while True:
        code, _, data = brokers.pull(address, len(found), queue=queue, topic=topic)
        if code != OK or not data:
            return found
        found += records(data)


def said_ms(brokers: BrokerSet, address: str) -> int:
    """When the message was stored that was sent first."""
    return delivered(brokers, address)[0].store_timestamp


def bodies(brokers: BrokerSet, address: str) -> list[bytes]:
    return [each.body for each in delivered(brokers, address)]


def test_a_message_comes_to_its_queue_once_its_time_has_passed_and_not_before() -> None:
    brokers = BrokerSet()
    address, _ = brokers.pair(message_delay_level=LEVELS)
    brokers.send(address, b"now")
    sent_us = brokers.world.now_us
    code, said = brokers.send(address, b"later", queue=2, properties=level(2, "TAGS\x01a\x02"))
    assert (code, said.queue_id, said.queue_offset) == (OK, 2, 0)
    brokers.until(lambda: bool(delivered(brokers, address, 2)))
    (record,) = delivered(brokers, address, 2)
    # A world begins a clock at the same moment for all, and theirs go alike.
    assert brokers.world.now_us - sent_us < (MS[1] + 1_000) * 1_000
    assert record.store_timestamp >= said_ms(brokers, address) + MS[1]
    assert (record.topic, record.queue_id, record.body, record.born_timestamp) == ("T", 2, b"later", 7)
    found = properties_of(record.properties)
    assert (found["TAGS"], found["REAL_TOPIC"], found["REAL_QID"]) == ("a", "T", "2")
    assert constants.DELAY_PROPERTY not in found


def test_levels_do_not_wait_for_each_other_and_the_last_one_is_the_longest() -> None:
    brokers = BrokerSet()
    address, _ = brokers.pair(message_delay_level=LEVELS)
    for number in (9, 3, 2, 1):
        brokers.send(address, b"%d" % number, properties=level(number))
    brokers.until(lambda: len(delivered(brokers, address)) == 4)
    assert bodies(brokers, address) == [b"1", b"2", b"9", b"3"]


def test_more_than_a_turn_takes_are_delivered_in_order() -> None:
    brokers = BrokerSet()
    address, _ = brokers.pair(message_delay_level=LEVELS)
    wanted = [b"%d" % number for number in range(3 * constants.DELIVERED_AT_ONCE)]
    for body in wanted:
        brokers.send(address, body, properties=level(1))
    brokers.until(lambda: len(delivered(brokers, address)) >= len(wanted))
    brokers.world.run_for(2_000)
    assert bodies(brokers, address) == wanted


@pytest.mark.parametrize("seed", range(8))
def test_none_is_lost_or_delivered_twice_when_masters_die_at_any_moment(seed: int) -> None:
    """Two brokers of a set of three are killed in turns while messages wait; each is delivered once."""
    chance = random.Random(seed)
    brokers = BrokerSet(seed)
    addresses = [
        brokers.add_broker(number, message_delay_level=LEVELS, slave_timeout_ms=3_000) for number in (1, 2, 3)
    ]
    brokers.start("broker1", "broker2", "broker3")
    brokers.until(lambda: brokers.members(1) == {1, 2, 3})
    sent: list[bytes] = []
    for round_ in range(3):
        master = next(
            n for n in (1, 2, 3) if brokers.world.processes[f"broker{n}"].nodes and serves(brokers, n)
        )
        for number in range(chance.randrange(5, 40)):
            body = b"%d.%d" % (round_, number)
            if brokers.send(addresses[master - 1], body, properties=level(chance.randrange(1, 3)))[0] == OK:
                sent.append(body)
        brokers.world.run_for(chance.randrange(4_000))
        brokers.world.kill(f"broker{master}")
        brokers.until(lambda: any(serves(brokers, n) for n in (1, 2, 3)))
        brokers.start(f"broker{master}")
        brokers.until(lambda: any(brokers.members(n) == {1, 2, 3} for n in (1, 2, 3) if serves(brokers, n)))
    brokers.world.run_for(MS[1] + 1_000)
    master = next(n for n in (1, 2, 3) if serves(brokers, n))
    assert sorted(bodies(brokers, addresses[master - 1])) == sorted(sent)


def serves(brokers: BrokerSet, number: int) -> bool:
    process = brokers.world.processes[f"broker{number}"]
    return bool(process.nodes) and brokers.broker(number).serves


def test_a_replica_delivers_nothing() -> None:
    brokers = BrokerSet()
    first, second = brokers.pair(message_delay_level=LEVELS)
    brokers.send(first, b"later", properties=level(1))
    brokers.until(lambda: bool(delivered(brokers, first)))
    brokers.until(lambda: brokers.epochs(first).max_offset == brokers.epochs(second).max_offset)
    brokers.world.run_for(5_000)
    assert bodies(brokers, first) == [b"later"]
    assert brokers.epochs(first).max_offset == brokers.epochs(second).max_offset


def test_who_names_a_place_in_a_message_keeps_nobody_from_his() -> None:
    """A producer who writes what a delivered message says of itself: the waiting one comes all the same."""
    brokers = BrokerSet()
    first, second = brokers.pair(message_delay_level=LEVELS)
    brokers.send(first, b"one", properties=level(1))
    brokers.until(lambda: bool(delivered(brokers, first)))
    brokers.send(first, b"two", properties=level(1))
    brokers.send(first, b"forged", properties=f"{constants.WAITED_PROPERTY}\x011:1\x02")
    brokers.world.kill("broker1")
    brokers.until(lambda: serves(brokers, 2))
    brokers.until(lambda: b"two" in bodies(brokers, second))
    assert sorted(bodies(brokers, second)) == [b"forged", b"one", b"two"]


def test_a_level_or_a_place_of_endless_digits_ends_no_master() -> None:
    """Python makes no number of more than 4,300 digits; properties have room for 32,767."""
    brokers = BrokerSet()
    first, second = brokers.pair(message_delay_level=LEVELS)
    endless = "9" * 5_000
    assert brokers.send(first, b"now", properties=f"DELAY\x01{endless}\x02")[0] == OK
    brokers.send(first, b"one", properties=level(1))
    brokers.until(lambda: len(delivered(brokers, first)) == 2)
    # Right behind the record of a turn whoever takes office looks for what that turn delivered.
    forged = [f"{endless}:1", f"1:{endless}"]
    for place in forged:
        assert brokers.send(first, b"m", properties=f"{constants.WAITED_PROPERTY}\x01{place}\x02")[0] == OK
    brokers.world.kill("broker1")
    brokers.until(lambda: serves(brokers, 2))
    assert bodies(brokers, second) == [b"now", b"one", b"m", b"m"]


def test_replicas_and_brokers_of_apaches_are_told_how_far() -> None:
    brokers = BrokerSet()
    address, second = brokers.pair(message_delay_level=LEVELS, flush_delay_offset_interval_ms=500)
    for _ in range(3):
        brokers.send(address, b"m", properties=level(2))
    brokers.until(lambda: len(delivered(brokers, address)) == 3)
    brokers.world.run_for(2_000)
    for each in (address, second):
        brokers.until(
            lambda each=each: brokers.ask(each, RequestCode.GET_ALL_DELAY_OFFSET).header.code == OK  # type: ignore[misc]
        )
        answer = brokers.ask(each, RequestCode.GET_ALL_DELAY_OFFSET)
        assert (DelayOffsetTable.decode(answer.body).offset_table or {})[2] == 3


def test_nobody_sends_to_the_topic_of_those_that_wait() -> None:
    brokers = BrokerSet()
    address = brokers.alone()
    code, _ = brokers.send(address, b"m", topic=constants.SCHEDULE_TOPIC)
    assert code == ResponseCode.MESSAGE_ILLEGAL


def test_what_would_not_fit_its_topic_is_refused_and_what_does_is_delivered() -> None:
    brokers = BrokerSet()
    address = brokers.alone(message_delay_level=LEVELS, mapped_file_size_commit_log=1 << 20)
    plain = f"a\x01{'x' * (constants.PROPERTIES_BYTES_MAX - 80)}\x02"
    for more, taken in ((0, OK), (40, ResponseCode.MESSAGE_ILLEGAL)):
        properties = plain.replace("a\x01", f"a\x01{'y' * more}") + level(1)
        assert len(properties) <= constants.PROPERTIES_BYTES_MAX
        assert brokers.send(address, b"m", properties=properties)[0] == taken
    brokers.until(lambda: bool(delivered(brokers, address)))
    assert bodies(brokers, address) == [b"m"]


def test_what_a_broker_of_apaches_stored_with_properties_of_any_length_ends_no_master(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Such a broker does not keep room for the place where a message waited."""
    brokers = BrokerSet()
    address = brokers.alone(message_delay_level=LEVELS, mapped_file_size_commit_log=1 << 20)
    whole = as_waiting(level(2), "T", 0)
    properties = f"a\x01{'x' * (constants.PROPERTIES_BYTES_MAX - len(whole) - 3)}\x02{level(2)}"
    with monkeypatch.context() as patched:
        patched.setattr(sends_rules, "as_delivered", lambda properties, _level, _position: properties)
        assert brokers.send(address, b"long", properties=properties)[0] == OK
    with monkeypatch.context() as patched:
        patched.setattr(sends_rules, "as_waiting", lambda *_: f"REAL_TOPIC\x01{'t' * 300}\x02")
        assert brokers.send(address, b"for no topic", properties=level(2))[0] == OK
    brokers.send(address, b"m", properties=level(2))
    brokers.until(lambda: len(delivered(brokers, address)) == 2)
    assert bodies(brokers, address) == [b"long", b"m"]


def test_a_message_as_long_as_a_file_of_the_log_is_delivered_or_refused() -> None:
    brokers = BrokerSet()
    address = brokers.alone(message_delay_level=LEVELS)
    topic, taken = "T" * 127, 0
    for size in range(LOG_FILE_BYTES - 600, LOG_FILE_BYTES - 100, 10):
        code, _ = brokers.send(address, bytes(size), topic=topic, properties=level(1))
        assert code in (OK, ResponseCode.MESSAGE_ILLEGAL)
        taken += code == OK
    brokers.send(address, b"m", properties=level(1))
    brokers.until(lambda: bool(delivered(brokers, address)))
    assert 0 < taken == len(delivered(brokers, address, topic=topic))


def test_levels_that_are_none_are_refused_at_the_start() -> None:
    with pytest.raises(ConfigurationError, match="messageDelayLevel"):
        check_members(BrokerOptions(broker_name="b", message_delay_level="1s soon"))


def give_back(brokers: BrokerSet, address: str, record: LogRecord, **more: Any) -> int:
    header = ConsumerSendMsgBackRequest(offset=record.physical_offset, group="g", delay_level=0)
    asked = replace(header, **more)
    return brokers.ask(address, RequestCode.CONSUMER_SEND_MSG_BACK, asked).header.code


def of_topic(brokers: BrokerSet, address: str, topic: str) -> list[LogRecord]:
    code, _, data = brokers.pull(address, 0, topic=topic)
    return list(records(data)) if code == OK else []


def test_a_message_that_is_given_back_comes_again_later_each_time_and_then_no_more() -> None:
    brokers = BrokerSet()
    address, _ = brokers.pair(message_delay_level="1s 1s 2s 4s")
    brokers.send(address, b"bad", properties="TAGS\x01a\x02")
    (record,) = delivered(brokers, address)
    first_id = record.physical_offset
    for times in range(2):
        assert give_back(brokers, address, record, max_reconsume_times=2) == OK
        brokers.world.run_for(1_500)
        assert len(of_topic(brokers, address, "%RETRY%g")) == times
        brokers.until(lambda times=times: len(of_topic(brokers, address, "%RETRY%g")) > times)  # type: ignore[misc]
        record = of_topic(brokers, address, "%RETRY%g")[-1]
        found = properties_of(record.properties)
        assert (record.body, record.reconsume_times, found["TAGS"]) == (b"bad", times + 1, "a")
        assert (found["RETRY_TOPIC"], message_offset(found["ORIGIN_MESSAGE_ID"])) == ("T", first_id)
    assert give_back(brokers, address, record, max_reconsume_times=2) == OK
    (dead,) = of_topic(brokers, address, "%DLQ%g")
    assert (dead.body, dead.reconsume_times) == (b"bad", 3)
    brokers.world.run_for(10_000)
    assert len(of_topic(brokers, address, "%RETRY%g")) == 2


def test_what_nobody_wants_again_is_dead_at_once() -> None:
    brokers = BrokerSet()
    address = brokers.alone()
    brokers.send(address, b"bad")
    assert give_back(brokers, address, delivered(brokers, address)[0], delay_level=-1) == OK
    assert [each.body for each in of_topic(brokers, address, "%DLQ%g")] == [b"bad"]


def test_a_client_that_sends_its_retries_itself_is_told_the_same_end() -> None:
    brokers = BrokerSet()
    address = brokers.alone()
    for times in (3, 4):
        more: dict[str, Any] = {"reconsume_times": times, "max_reconsume_times": 3}
        assert brokers.send(address, b"%d" % times, topic="%RETRY%g", **more)[0] == OK
    assert [each.body for each in of_topic(brokers, address, "%RETRY%g")] == [b"3"]
    assert [each.body for each in of_topic(brokers, address, "%DLQ%g")] == [b"4"]


def configure(brokers: BrokerSet, address: str, topic: str, queues: int, perm: int) -> None:
    header = CreateTopicRequest(
        topic=topic,
        default_topic=constants.TEMPLATE_TOPIC,
        read_queue_nums=queues,
        write_queue_nums=queues,
        perm=perm,
        topic_filter_type=constants.SINGLE_TAG,
        topic_sys_flag=0,
        order=False,
    )
    assert brokers.ask(address, RequestCode.UPDATE_AND_CREATE_TOPIC, header).header.code == OK


def test_what_is_dead_lies_where_it_is_read_whatever_queue_of_retries_it_was_sent_to() -> None:
    brokers = BrokerSet()
    address = brokers.alone()
    configure(brokers, address, "%RETRY%g", 4, Permission.READ | Permission.WRITE)
    more: dict[str, Any] = {"reconsume_times": 4, "max_reconsume_times": 3}
    code, said = brokers.send(address, b"bad", topic="%RETRY%g", queue=3, **more)
    assert (code, said.queue_id) == (OK, 0)
    assert [each.body for each in of_topic(brokers, address, "%DLQ%g")] == [b"bad"]


@pytest.mark.parametrize("times", [2**31 - 1, -1, -(2**31)])
def test_tries_that_a_producer_made_up_end_no_master_and_no_pause(times: int) -> None:
    brokers = BrokerSet()
    address = brokers.alone(message_delay_level="1s 1s 1s 10s")
    assert brokers.send(address, b"bad", reconsume_times=times)[0] == OK
    (record,) = delivered(brokers, address)
    assert give_back(brokers, address, record) == OK
    dead, again = (of_topic(brokers, address, f"{prefix}g") for prefix in ("%DLQ%", "%RETRY%"))
    assert (len(dead), again) == (times > 0, [])
    brokers.world.run_for(2_000)
    assert [each.reconsume_times for each in dead + of_topic(brokers, address, "%RETRY%g")] == [
        2**31 - 1 if times > 0 else 1
    ]


@pytest.mark.parametrize("group", ["", "a b", "a/b", "a\nb", "x" * 123, "x" * 2_000])
def test_nothing_is_given_back_for_what_can_be_no_group(group: str) -> None:
    brokers = BrokerSet()
    address = brokers.alone()
    brokers.send(address, b"m")
    (record,) = delivered(brokers, address)
    for asked in (0, -1):
        said = give_back(brokers, address, record, group=group, delay_level=asked)
        assert said == ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST


def test_nothing_is_given_back_to_a_topic_that_is_not_written() -> None:
    brokers = BrokerSet()
    address = brokers.alone()
    brokers.send(address, b"m")
    (record,) = delivered(brokers, address)
    configure(brokers, address, "%RETRY%g", 1, Permission.READ)
    assert give_back(brokers, address, record) == ResponseCode.NO_PERMISSION
    assert give_back(brokers, address, record, delay_level=-1) == OK


def test_only_messages_are_given_back() -> None:
    """Offsets within records, of what waits, before and behind the log; and a record within a body."""
    brokers = BrokerSet()
    address = brokers.alone(message_delay_level=LEVELS)
    brokers.send(address, b"one")
    (one,) = delivered(brokers, address)
    inner = replace(one, physical_offset=0)
    brokers.send(address, inner.encode(), queue=1)
    (outer,) = delivered(brokers, address, 1)
    brokers.send(address, b"waits", properties=level(3))
    behind = brokers.epochs(address).max_offset or 0
    body_at = outer.physical_offset + outer.encode().index(outer.body)
    for offset in (-1, 1, body_at, behind, behind + 1, 2**62, outer.physical_offset + len(outer.encode())):
        assert give_back(brokers, address, replace(one, physical_offset=offset)) == ResponseCode.SYSTEM_ERROR
    assert give_back(brokers, address, one) == OK
