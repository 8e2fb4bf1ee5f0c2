"""What a broker answers those who write, read and administer."""

from dataclasses import replace
from typing import Any

import pytest

from replispec.broker.rocketmq.core import clients, offsets
from replispec.broker.rocketmq.core.clients import Clients, ClientSaid
from replispec.runtime.rocketmq.framing import Command
from replispec.runtime.rocketmq.log import MessageStore
from replispec.runtime.sim import SimulatedStorage
from replispec.wire.rocketmq import constants
from replispec.wire.rocketmq.broker import (
    PullMessageResponse,
    SendMessageRequest,
    SendMessageResponse,
    TopicConfigTable,
)
from replispec.wire.rocketmq.client import (
    BatchMessage,
    ConsumerData,
    ConsumerList,
    ConsumerOffsetTable,
    CreateTopicRequest,
    GetConsumerListRequest,
    GetMaxOffsetRequest,
    GetMinOffsetRequest,
    GetTopicConfigRequest,
    HaRuntimeInfo,
    HeartbeatData,
    QueryConsumerOffsetRequest,
    RuntimeInfo,
    SearchOffsetRequest,
    SearchOffsetResponse,
    UnregisterClientRequest,
    UpdateConsumerOffsetRequest,
)
from replispec.wire.rocketmq.codes import RequestCode, ResponseCode
from replispec.wire.rocketmq.store import LogRecord
from tests.broker.simulated_set import LOG_FILE_BYTES, OK, BrokerSet, message, wanted

NOT_FOUND = ResponseCode.PULL_NOT_FOUND
PUT_RATE = "putTps"


@pytest.mark.parametrize(
    ("code", "topic", "queue", "more"),
    [
        (ResponseCode.MESSAGE_ILLEGAL, "with blank", 0, {}),
        (ResponseCode.MESSAGE_ILLEGAL, "", 0, {}),
        (ResponseCode.MESSAGE_ILLEGAL, "x" * 128, 0, {}),
        (ResponseCode.MESSAGE_ILLEGAL, "T", 0, {"properties": "x" * 40_000}),
        (ResponseCode.MESSAGE_ILLEGAL, "T", 0, {"properties": "k\x01v\x00"}),
        (ResponseCode.SYSTEM_ERROR, "T", 4, {}),
        (ResponseCode.NO_PERMISSION, "T", 0, {"sys_flag": 4}),
    ],
)
def test_a_message_that_cannot_be_is_refused(code: int, topic: str, queue: int, more: dict[str, Any]) -> None:
    brokers = BrokerSet()
    address = brokers.alone()
    assert brokers.send(address, b"m", topic=topic, queue=queue, **more)[0] == code
    assert brokers.epochs(address).max_offset == 0


def test_a_message_that_is_too_long_is_refused() -> None:
    brokers = BrokerSet()
    address = brokers.alone(max_message_size=1_024)
    assert brokers.send(address, bytes(1_025))[0] == ResponseCode.MESSAGE_ILLEGAL
    assert brokers.send(address, bytes(1_024))[0] == OK


def test_a_message_longer_than_a_file_is_refused() -> None:
    brokers = BrokerSet()
    address = brokers.alone()
    assert brokers.send(address, bytes(LOG_FILE_BYTES))[0] == ResponseCode.MESSAGE_ILLEGAL


def test_an_unknown_topic_is_made_or_refused_as_configured() -> None:
    brokers = BrokerSet()
    address = brokers.alone(auto_create_topic_enable=False)
    assert brokers.send(address, b"m")[0] == ResponseCode.TOPIC_NOT_EXIST
    assert brokers.send(address, b"m", topic="%RETRY%g")[0] == OK


def test_a_record_holds_what_was_sent_and_who_stored_it() -> None:
    brokers = BrokerSet()
    address = brokers.alone()
    code, received = brokers.send(address, b"body", flag=3, reconsume_times=2, properties="KEYS\x01k\x02")
    _, _, data = brokers.pull(address, 0)
    record = LogRecord.decode(data)
    assert code == OK
    assert (record.topic, record.body, record.flag, record.reconsume_times) == ("T", b"body", 3, 2)
    assert record.properties == b"KEYS\x01k\x02"
    assert (record.born_timestamp, record.physical_offset, record.queue_offset) == (7, 0, 0)
    assert (record.born_ip, record.store_ip, record.store_port) == (
        bytes([10, 0, 0, 3]),
        bytes([10, 0, 1, 1]),
        10911,
    )
    assert received.msg_id == "0A00010100002A9F0000000000000000"
    assert record.body_crc_holds


def test_the_older_form_of_a_request_stores_the_same() -> None:
    brokers = BrokerSet()
    address = brokers.alone()
    header = SendMessageRequest(
        producer_group="p",
        topic="T",
        default_topic="TBW102",
        default_topic_queue_nums=4,
        queue_id=1,
        sys_flag=0,
    )
    assert brokers.ask(address, RequestCode.SEND_MESSAGE, header, b"m").header.code == OK
    assert brokers.pull(address, 0, queue=1)[0] == OK


def test_a_batch_is_stored_message_by_message() -> None:
    brokers = BrokerSet()
    address = brokers.alone()
    body = b"".join(BatchMessage(body=b"part%d" % number).encode() for number in range(3))
    answer = brokers.ask(address, RequestCode.SEND_BATCH_MESSAGE, message("T", 0), body)
    received = SendMessageResponse.from_ext_fields(answer.header.ext_fields or {})
    assert len((received.msg_id or "").split(",")) == 3
    _, pulled, data = brokers.pull(address, 0)
    assert pulled.next_begin_offset == 3
    assert b"part2" in data


def test_a_batch_is_read_once_however_many_files_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    brokers = BrokerSet()
    address = brokers.alone()
    read: list[int] = []
    decode = BatchMessage.decode_at

    def counted(data: bytes, at: int, end: int) -> tuple[BatchMessage, int]:
        read.append(at)
        return decode(data, at, end)

    monkeypatch.setattr(BatchMessage, "decode_at", counted)
    parts = [bytes(LOG_FILE_BYTES // 3)] * 20
    body = b"".join(BatchMessage(body=part).encode() for part in parts)
    answer = brokers.ask(address, RequestCode.SEND_BATCH_MESSAGE, message("T", 0), body)
    assert answer.header.code == OK
    assert len(read) == len(parts)
    assert (brokers.epochs(address).max_offset or 0) // LOG_FILE_BYTES >= 9


def test_who_sends_while_a_file_is_made_waits_in_order() -> None:
    brokers = BrokerSet()
    address = brokers.alone()
    bodies = [bytes([number]) * (LOG_FILE_BYTES // 3) for number in range(20)]
    asked = [brokers.asked(address, RequestCode.SEND_MESSAGE_V2, message("T", 0), body) for body in bodies]
    brokers.until(lambda: all(asked))
    answers = [each for outcomes in asked for each in outcomes if isinstance(each, Command)]
    assert [each.header.code for each in answers] == [OK] * len(bodies)
    told = [SendMessageResponse.from_ext_fields(each.header.ext_fields or {}) for each in answers]
    assert [each.queue_offset for each in told] == list(range(len(bodies)))


@pytest.mark.parametrize(("more", "code"), [(0, OK), (1, ResponseCode.MESSAGE_ILLEGAL)])
def test_a_batch_has_so_many_messages_at_most(monkeypatch: pytest.MonkeyPatch, more: int, code: int) -> None:
    monkeypatch.setattr(constants, "BATCH_MESSAGES_MAX", 4)
    brokers = BrokerSet()
    address = brokers.alone()
    body = BatchMessage(body=b"x").encode() * (4 + more)
    answer = brokers.ask(address, RequestCode.SEND_BATCH_MESSAGE, message("T", 0), body)
    assert answer.header.code == code
    assert bool(brokers.epochs(address).max_offset) == (code == OK)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"garbage",
        BatchMessage(body=b"x").encode()[:-1],
        BatchMessage(body=b"x").encode() + BatchMessage(body=b"y", properties=b"k\x01v\x00").encode(),
    ],
)
def test_a_batch_that_is_none_is_refused_whole(body: bytes) -> None:
    brokers = BrokerSet()
    address = brokers.alone()
    answer = brokers.ask(address, RequestCode.SEND_BATCH_MESSAGE, message("T", 0), body)
    assert answer.header.code == ResponseCode.MESSAGE_ILLEGAL
    assert brokers.epochs(address).max_offset == 0


def test_a_full_disk_refuses_and_acknowledges_nothing() -> None:
    brokers = BrokerSet()
    address = brokers.alone()
    brokers.send(address, b"m")
    disk = brokers.world.processes["broker1"].disk
    disk.room_bytes = disk.used_bytes()
    codes = [brokers.send(address, bytes(20_000))[0] for _ in range(5)]
    assert codes[-1] == ResponseCode.SERVICE_NOT_AVAILABLE
    assert brokers.pull(address, 0)[1].max_offset == 1 + codes.count(OK)


def test_a_pull_waits_for_a_message_and_gets_it() -> None:
    brokers = BrokerSet()
    address = brokers.alone()
    brokers.send(address, b"first")
    waiting = brokers.asked(address, RequestCode.PULL_MESSAGE, wanted("T", 0, 1, wait_ms=20_000))
    brokers.world.run_for(2_000)
    assert waiting == []
    brokers.send(address, b"second")
    brokers.until(lambda: bool(waiting), at_most_ms=1_000)


def test_a_pull_that_waited_long_enough_is_told_that_there_is_nothing() -> None:
    brokers = BrokerSet()
    address = brokers.alone()
    brokers.send(address, b"first")
    began_us = brokers.world.now_us
    code, received, _ = brokers.pull(address, 1, wait_ms=10_000)
    assert (code, received.next_begin_offset) == (NOT_FOUND, 1)
    assert brokers.world.now_us - began_us >= 10_000_000


def test_a_pull_elsewhere_is_told_where_messages_are() -> None:
    brokers = BrokerSet()
    address = brokers.alone()
    brokers.send(address, b"first")
    code, received, _ = brokers.pull(address, 9)
    assert (code, received.next_begin_offset) == (ResponseCode.PULL_OFFSET_MOVED, 1)
    assert brokers.pull(address, 0, topic="None")[0] == ResponseCode.TOPIC_NOT_EXIST
    assert brokers.pull(address, 0, queue=99)[0] == ResponseCode.SYSTEM_ERROR
    assert brokers.pull(address, 0, queue=1)[0] == NOT_FOUND


def test_a_pull_takes_no_more_than_it_asks_for() -> None:
    brokers = BrokerSet()
    address = brokers.alone()
    for _ in range(5):
        brokers.send(address, b"m")
    header = replace(wanted("T", 0, 1), max_msg_nums=2)
    answer = brokers.ask(address, RequestCode.PULL_MESSAGE, header)
    assert PullMessageResponse.from_ext_fields(answer.header.ext_fields or {}).next_begin_offset == 3


def test_a_pull_gives_the_records_of_its_queue_alone_wherever_they_lie() -> None:
    brokers = BrokerSet()
    address = brokers.alone()
    for queue, body in ((0, b"a"), (0, b"b"), (1, b"x"), (0, b"c"), (1, b"y"), (1, b"z")):
        brokers.ask(address, RequestCode.SEND_MESSAGE_V2, message("T", queue), body)
    found = [brokers.pull(address, 0, queue=queue)[2] for queue in (0, 1)]
    bodies = []
    for data in found:
        at = 0
        while at < len(data):
            record, at = LogRecord.decode_at(data, at, len(data))
            bodies.append((record.queue_id, record.queue_offset, record.body))
    assert bodies == [(0, 0, b"a"), (0, 1, b"b"), (0, 2, b"c"), (1, 0, b"x"), (1, 1, b"y"), (1, 2, b"z")]


def test_queues_say_where_they_begin_and_end() -> None:
    brokers = BrokerSet()
    address = brokers.alone()
    for _ in range(3):
        brokers.send(address, b"m")
        brokers.world.run_for(1_000)
    ends = brokers.ask(address, RequestCode.GET_MAX_OFFSET, GetMaxOffsetRequest("T", 0))
    begins = brokers.ask(address, RequestCode.GET_MIN_OFFSET, GetMinOffsetRequest("T", 0))
    assert (ends.header.ext_fields, begins.header.ext_fields) == ({"offset": "3"}, {"offset": "0"})
    _, _, data = brokers.pull(address, 0)
    first = LogRecord.decode_at(data, 0, len(data))[0].store_timestamp

    def search(timestamp: int) -> int | None:
        request = SearchOffsetRequest("T", 0, timestamp)
        answer = brokers.ask(address, RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, request)
        return SearchOffsetResponse.from_ext_fields(answer.header.ext_fields or {}).offset

    assert [search(first), search(first + 1), search(first + 60_000)] == [0, 1, 3]


def test_consumer_offsets_are_kept_over_a_restart() -> None:
    brokers = BrokerSet()
    address = brokers.alone()
    query = QueryConsumerOffsetRequest("g", "T", 0, set_zero_if_not_found=False)
    code = RequestCode.QUERY_CONSUMER_OFFSET
    assert brokers.ask(address, code, query).header.code == ResponseCode.QUERY_NOT_FOUND
    update = UpdateConsumerOffsetRequest(consumer_group="g", topic="T", queue_id=0, commit_offset=17)
    brokers.ask(address, RequestCode.UPDATE_CONSUMER_OFFSET, update)
    brokers.world.run_for(6_000)
    brokers.world.kill("broker1", power=True)
    brokers.start("broker1")
    assert brokers.ask(address, code, query).header.ext_fields == {"offset": "17"}
    table = ConsumerOffsetTable.decode(brokers.ask(address, RequestCode.GET_ALL_CONSUMER_OFFSET).body)
    assert {key: queues.offsets for key, queues in (table.offset_table or {}).items()} == {"T@g": {0: 17}}


def test_a_topic_is_made_changed_and_kept() -> None:
    brokers = BrokerSet()
    address = brokers.alone()
    create = CreateTopicRequest("Orders", "TBW102", 3, 3, 6, "SINGLE_TAG", 0, False)
    assert brokers.ask(address, RequestCode.UPDATE_AND_CREATE_TOPIC, create).header.code == OK
    brokers.world.kill("broker1", power=True)
    brokers.start("broker1")
    table = TopicConfigTable.decode(brokers.ask(address, RequestCode.GET_ALL_TOPIC_CONFIG).body)
    assert (table.topic_config_table or {})["Orders"].write_queue_nums == 3
    one = brokers.ask(address, RequestCode.GET_TOPIC_CONFIG, GetTopicConfigRequest("Orders"))
    none = brokers.ask(address, RequestCode.GET_TOPIC_CONFIG, GetTopicConfigRequest("None"))
    assert (one.header.code, none.header.code) == (OK, ResponseCode.TOPIC_NOT_EXIST)
    bad = replace(create, read_queue_nums=0)
    answer = brokers.ask(address, RequestCode.UPDATE_AND_CREATE_TOPIC, bad)
    assert answer.header.code == ResponseCode.INVALID_PARAMETER


def test_a_topic_that_may_not_be_written_is_not() -> None:
    brokers = BrokerSet()
    address = brokers.alone()
    create = CreateTopicRequest("Old", "TBW102", 3, 3, 4, "SINGLE_TAG", 0, False)
    brokers.ask(address, RequestCode.UPDATE_AND_CREATE_TOPIC, create)
    assert brokers.send(address, b"m", topic="Old")[0] == ResponseCode.NO_PERMISSION


def test_clients_of_a_group_are_told_and_leave() -> None:
    brokers = BrokerSet()
    address = brokers.alone()
    data = HeartbeatData("c1", [ConsumerData(group_name="g")], None, [])
    brokers.ask(address, RequestCode.HEART_BEAT, body=data.encode())
    code = RequestCode.GET_CONSUMER_LIST_BY_GROUP
    found = brokers.ask(address, code, GetConsumerListRequest("g"))
    assert ConsumerList.decode(found.body).consumer_id_list == ["c1"]
    leave = UnregisterClientRequest("c1", consumer_group="g")
    brokers.ask(address, RequestCode.UNREGISTER_CLIENT, leave)
    assert brokers.ask(address, code, GetConsumerListRequest("g")).header.code == ResponseCode.SYSTEM_ERROR


@pytest.mark.parametrize(
    "body", [b"", b"{}", HeartbeatData(None, [ConsumerData(group_name="g")], None, []).encode()]
)
def test_a_heartbeat_of_nobody_is_refused_and_makes_nobody_a_member(body: bytes) -> None:
    brokers = BrokerSet()
    address = brokers.alone()
    answer = brokers.ask(address, RequestCode.HEART_BEAT, body=body)
    assert (answer.header.code, answer.header.remark) == (ResponseCode.SYSTEM_ERROR, "clientID is missing")
    members = brokers.ask(address, RequestCode.GET_CONSUMER_LIST_BY_GROUP, GetConsumerListRequest("g"))
    assert members.header.code == ResponseCode.SYSTEM_ERROR


def _joins(client: str, *groups: str) -> HeartbeatData:
    return HeartbeatData(client, [ConsumerData(group_name=group) for group in groups], None, [])


def _said(client: str, *groups: str) -> tuple[ClientSaid, list[ConsumerData]]:
    data = _joins(client, *groups)
    return ClientSaid("one:1", client, "JAVA", 0), data.consumer_data_set or []


def test_a_client_belongs_to_so_many_groups_and_no_more_however_often_it_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(clients, "GROUPS_MAX", 3)
    monkeypatch.setattr(clients, "MEMBERS_MAX", 5)
    table = Clients()
    for number in range(10):
        table.heartbeat_received(1, *_said("c1", f"g{number}", "x" * 2_000), now_ms=0)
    table.heartbeat_received(2, *_said("c2", "a", "b", "c"), now_ms=0)
    table.heartbeat_received(3, *_said("x" * 2_000, "g0"), now_ms=0)
    everybody = [f"g{number}" for number in range(10)] + ["a", "b", "c", "x" * 2_000]
    assert [group for group in everybody if table.members(group)] == ["g0", "g1", "g2", "a", "b"]
    table.closed(1)
    table.left(2, "a")
    table.left(2, "g0")
    table.heartbeat_received(2, *_said("c2", "g0", "c", "d"), now_ms=0)
    assert [group for group in [*everybody, "d"] if table.members(group)] == ["g0", "b", "c"]


def test_positions_are_kept_of_queues_that_can_be_and_of_so_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offsets, "POSITIONS_MAX", 3)
    brokers = BrokerSet()
    address = brokers.alone()

    def kept() -> dict[str, dict[int, int] | None]:
        table = ConsumerOffsetTable.decode(brokers.ask(address, RequestCode.GET_ALL_CONSUMER_OFFSET).body)
        return {key: queues.offsets for key, queues in (table.offset_table or {}).items()}

    for group, queue in [("g", -1), ("g", 1_024), ("x" * 3_000, 0), *(("g", number) for number in range(9))]:
        update = UpdateConsumerOffsetRequest(consumer_group=group, topic="T", queue_id=queue, commit_offset=7)
        assert brokers.ask(address, RequestCode.UPDATE_CONSUMER_OFFSET, update).header.code == OK
    update = UpdateConsumerOffsetRequest(consumer_group="g", topic="T", queue_id=0, commit_offset=8)
    brokers.ask(address, RequestCode.UPDATE_CONSUMER_OFFSET, update)
    assert kept() == {"T@g": {0: 8, 1: 7, 2: 7}}


def test_administrators_see_roles_replicas_and_figures() -> None:
    brokers = BrokerSet()
    first, second = brokers.pair()
    brokers.send(first, b"m")
    master = HaRuntimeInfo.decode(brokers.ask(first, RequestCode.GET_BROKER_HA_STATUS).body)
    replica = HaRuntimeInfo.decode(brokers.ask(second, RequestCode.GET_BROKER_HA_STATUS).body)
    assert (master.master, replica.master) == (True, False)
    feeds = master.ha_connection_info or []
    assert [(feed.in_sync, feed.diff) for feed in feeds] == [(True, 0)]
    figures = RuntimeInfo.decode(brokers.ask(first, RequestCode.GET_BROKER_RUNTIME_INFO).body).table or {}
    assert figures[PUT_RATE].count(" ") == 2
    assert (brokers.epochs(first).broker_id, brokers.epochs(second).broker_id) == (0, 2)


@pytest.mark.parametrize(
    "code",
    [
        RequestCode.GET_ALL_DELAY_OFFSET,
        RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG,
        RequestCode.GET_ALL_MESSAGE_REQUEST_MODE,
    ],
)
def test_what_is_not_kept_is_refused_and_no_empty_table(code: RequestCode) -> None:
    """A replica of Apache's deletes of its own what its master's table does not have."""
    brokers = BrokerSet()
    answer = brokers.ask(brokers.alone(), code)
    assert answer.header.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED
    assert not answer.body


@pytest.mark.parametrize("code", [RequestCode.GET_TIMER_CHECK_POINT, RequestCode.GET_TIMER_METRICS])
def test_what_a_replica_of_apaches_copies_is_there(code: RequestCode) -> None:
    brokers = BrokerSet()
    answer = brokers.ask(brokers.alone(), code)
    assert answer.header.code == OK
    assert answer.body


def test_administrators_see_the_configuration() -> None:
    brokers = BrokerSet()
    address = brokers.alone(in_sync_replicas=2, without_effect=(("brokerPermission", "04"),))
    shown = brokers.ask(address, RequestCode.GET_BROKER_CONFIG).body.splitlines()
    assert {b"inSyncReplicas=2", b"brokerName=broker-a", b"brokerPermission=04"} <= set(shown)


def test_what_is_not_known_is_refused() -> None:
    brokers = BrokerSet()
    answer = brokers.ask(brokers.alone(), 12_345)
    assert answer.header.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED


def test_a_request_with_a_number_that_is_none_is_refused_and_the_connection_stays() -> None:
    brokers = BrokerSet()
    address = brokers.alone()
    header = GetMaxOffsetRequest("T", 0).to_ext_fields()
    key = next(key for key, value in header.items() if value == "0")
    found = brokers.client.ask(address, RequestCode.GET_MAX_OFFSET, {**header, key: "zero"}, b"")
    brokers.until(lambda: bool(found))
    outcome = found[0]
    assert isinstance(outcome, Command)
    assert outcome.header.code == ResponseCode.SYSTEM_ERROR
    assert brokers.ask(address, RequestCode.GET_MAX_OFFSET, GetMaxOffsetRequest("T", 0)).header.code == OK


def test_stored_messages_are_there_for_whoever_opens_the_log() -> None:
    brokers = BrokerSet()
    address = brokers.alone()
    brokers.send(address, b"m")
    brokers.world.kill("broker1")
    storage = SimulatedStorage(brokers.world.processes["broker1"].disk)
    store = MessageStore(storage.files("store"), file_bytes=LOG_FILE_BYTES)
    assert [placed.record.body for placed in store.log.records(0, store.log.end)] == [b"m"]
