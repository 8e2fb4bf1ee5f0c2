"""What a broker tells administrators of its queues and groups, and how a group is moved."""

import pytest

from replispec.broker.rocketmq.core import statistics
from replispec.broker.rocketmq.core.clients import Clients, ClientSaid
from replispec.runtime.primitives.bindings import TEXT_MAX
from replispec.wire.rocketmq.broker import TopicList
from replispec.wire.rocketmq.client import (
    ClientConnection,
    CloneGroupOffsetRequest,
    ConsumerConnection,
    ConsumerData,
    ConsumeStats,
    GetConsumerConnectionsRequest,
    GetConsumeStatsRequest,
    GetProducerConnectionsRequest,
    GetReadersRequest,
    GetReadTopicsRequest,
    GetTopicStatsRequest,
    GroupList,
    HeartbeatData,
    OffsetWrapper,
    ProducerConnection,
    ProducerData,
    ProducerTable,
    QueryConsumerOffsetRequest,
    QueryConsumerOffsetResponse,
    QueueOffsets,
    ResetOffsetBody,
    ResetOffsetRequest,
    TopicStatsTable,
    UnregisterClientRequest,
    UpdateConsumerOffsetRequest,
)
from replispec.wire.rocketmq.codes import RequestCode, ResponseCode
from replispec.wire.rocketmq.constants import CLIENT_EXPIRY_MS
from replispec.wire.rocketmq.message_queue import MessageQueue
from tests.broker.simulated_set import NAME_SERVER, OK, BrokerSet, Header

MOVED = ResponseCode.PULL_OFFSET_MOVED


def _key(queue: int, topic: str = "T") -> str:
    return MessageQueue("broker-a", queue, topic).encode().decode()


def _commit(brokers: BrokerSet, address: str, position: int, queue: int = 0) -> None:
    said = UpdateConsumerOffsetRequest(consumer_group="g", topic="T", queue_id=queue, commit_offset=position)
    assert brokers.ask(address, RequestCode.UPDATE_CONSUMER_OFFSET, said).header.code == OK


def _position(brokers: BrokerSet, address: str, queue: int = 0) -> int | None:
    asked = QueryConsumerOffsetRequest(consumer_group="g", topic="T", queue_id=queue)
    answer = brokers.ask(address, RequestCode.QUERY_CONSUMER_OFFSET, asked)
    return QueryConsumerOffsetResponse.from_ext_fields(answer.header.ext_fields or {}).offset


def _read(brokers: BrokerSet, address: str, topic: str | None = None) -> dict[str, OffsetWrapper]:
    asked = GetConsumeStatsRequest("g", topic)
    answer = brokers.ask(address, RequestCode.GET_CONSUME_STATS, asked)
    assert answer.header.code == OK
    return dict(ConsumeStats.decode(answer.body).offset_table or {})


def _move(
    brokers: BrokerSet, address: str, *, queue: int = -1, offset: int = -1, at_ms: int = 0, force: bool = True
) -> tuple[int, dict[str, int]]:
    header = ResetOffsetRequest(
        topic="T", group="g", queue_id=queue, offset=offset, timestamp=at_ms, is_force=force
    )
    answer = brokers.ask(address, RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, header)
    moved = ResetOffsetBody.decode(answer.body).offset_table if answer.body else None
    return answer.header.code, dict(moved or {})


def _with_messages() -> tuple[BrokerSet, str]:
    brokers = BrokerSet()
    address = brokers.alone()
    for body in (b"1", b"2", b"3"):
        assert brokers.send(address, body)[0] == OK
    assert brokers.send(address, b"4", queue=1)[0] == OK
    return brokers, address


def test_an_administrator_is_told_where_the_queues_of_a_topic_begin_and_end() -> None:
    brokers, address = _with_messages()
    answer = brokers.ask(address, RequestCode.GET_TOPIC_STATS_INFO, GetTopicStatsRequest("T"))
    told = TopicStatsTable.decode(answer.body).offset_table or {}
    assert [(each, told[each].min_offset, told[each].max_offset) for each in told] == [
        (_key(0), 0, 3),
        (_key(1), 0, 1),
        (_key(2), 0, 0),
        (_key(3), 0, 0),
    ]
    times = [told[_key(number)].last_update_timestamp or 0 for number in range(4)]
    assert 0 < times[0] < times[1]
    assert times[2:] == [0, 0]
    unknown = brokers.ask(address, RequestCode.GET_TOPIC_STATS_INFO, GetTopicStatsRequest("U"))
    assert unknown.header.code == ResponseCode.TOPIC_NOT_EXIST


def test_an_administrator_is_told_how_far_a_group_has_read_each_queue() -> None:
    brokers, address = _with_messages()
    assert _read(brokers, address) == {}
    _commit(brokers, address, 2)
    found = _read(brokers, address)
    behind = {key: (each.broker_offset, each.consumer_offset) for key, each in found.items()}
    assert behind == {_key(0): (3, 2), _key(1): (1, 0), _key(2): (0, 0), _key(3): (0, 0)}
    assert [(each.last_timestamp or 0) > 0 for each in found.values()] == [True, False, False, False]
    assert _read(brokers, address, "T") == found
    assert _read(brokers, address, "U") == {}


def test_an_administrator_is_told_who_the_clients_of_a_group_are() -> None:
    brokers = BrokerSet()
    address = brokers.alone()
    asked = GetConsumerConnectionsRequest("g")
    nobody = brokers.ask(address, RequestCode.GET_CONSUMER_CONNECTION_LIST, asked)
    assert nobody.header.code == ResponseCode.CONSUMER_NOT_ONLINE
    group = ConsumerData("CONSUME_FROM_LAST_OFFSET", "CONSUME_PASSIVELY", "g", "CLUSTERING")
    beats = HeartbeatData("c", [group], None, [])
    assert brokers.ask(address, RequestCode.HEART_BEAT, body=beats.encode()).header.code == OK
    told = ConsumerConnection.decode(
        brokers.ask(address, RequestCode.GET_CONSUMER_CONNECTION_LIST, asked).body
    )
    (client,) = told.connection_set or [ClientConnection()]
    assert (client.client_id, client.language, client.version) == ("c", "PYTHON", 0)
    assert (client.client_addr or "").startswith("10.0.0.3:")
    assert (told.consume_type, told.message_model) == ("CONSUME_PASSIVELY", "CLUSTERING")


def test_of_what_a_client_says_of_itself_no_more_is_kept_than_anybody_needs() -> None:
    table, long = Clients(), "x" * 5_000
    group = ConsumerData(long, long, "g", long)
    table.heartbeat_received(1, ClientSaid("one:1", "c", long, 0), [group], 0)
    (kept,) = table.described("g")
    how = kept.consumer
    words = (kept.heard.language, how.consume_from_where, how.consume_type, how.message_model)
    assert words == ("x" * TEXT_MAX,) * 4


def test_a_consumer_of_a_group_that_was_moved_reads_on_there() -> None:
    brokers, address = _with_messages()
    _commit(brokers, address, 3)
    assert _move(brokers, address) == (OK, {_key(number): 0 for number in range(4)})
    # What it says before it has heard of it counts for nothing, after that it counts.
    _commit(brokers, address, 3)
    assert _position(brokers, address) == 0
    code, said, _ = brokers.pull(address, 3)
    assert (code, said.next_begin_offset) == (MOVED, 0)
    assert brokers.pull(address, 0)[0] == OK
    _commit(brokers, address, 3)
    assert _position(brokers, address) == 3


def test_a_consumer_that_comes_late_is_not_sent_behind_what_its_group_has_read_elsewhere() -> None:
    """The broker was a replica for a while before anybody heard of the move, and copied positions."""
    brokers, address = _with_messages()
    _commit(brokers, address, 1)
    assert _move(brokers, address)[0] == OK
    kept = brokers.broker(1)._offsets
    kept.adopt({"T@g": QueueOffsets({0: 2})}, 0)
    code, said, _ = brokers.pull(address, 3)
    assert (code, said.next_begin_offset) == (MOVED, 2)


def test_a_group_is_moved_to_its_end_to_a_time_or_to_a_place() -> None:
    brokers, address = _with_messages()
    _commit(brokers, address, 1)
    ends = {_key(0): 3, _key(1): 1, _key(2): 0, _key(3): 0}
    assert _move(brokers, address, at_ms=-1) == (OK, ends)
    told = TopicStatsTable.decode(
        brokers.ask(address, RequestCode.GET_TOPIC_STATS_INFO, GetTopicStatsRequest("T")).body
    )
    last_ms = (told.offset_table or {})[_key(0)].last_update_timestamp or 0
    assert _move(brokers, address, at_ms=last_ms)[1][_key(0)] == 2
    assert _move(brokers, address, queue=0, offset=1) == (OK, {_key(0): 1})
    assert _position(brokers, address) == 1


def test_a_group_is_moved_forward_only_where_that_is_forced() -> None:
    brokers, address = _with_messages()
    _commit(brokers, address, 1)
    stays = {_key(0): 1, _key(1): 0, _key(2): 0, _key(3): 0}
    assert _move(brokers, address, at_ms=-1, force=False) == (OK, stays)
    assert _position(brokers, address) == 1
    assert _move(brokers, address, at_ms=0, force=False)[1][_key(0)] == 0


@pytest.mark.parametrize(("queue", "offset"), [(0, 4), (4, -1), (2**31 - 1, 0)])
def test_a_group_is_not_moved_where_there_is_no_message(queue: int, offset: int) -> None:
    brokers, address = _with_messages()
    _commit(brokers, address, 1)
    assert _move(brokers, address, queue=queue, offset=offset) == (ResponseCode.SYSTEM_ERROR, {})
    assert _position(brokers, address) == 1


def test_groups_and_topics_that_nobody_knows_are_not_moved() -> None:
    brokers, address = _with_messages()
    assert _move(brokers, address) == (ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, {})
    header: Header = ResetOffsetRequest(topic="U", group="g", timestamp=0, is_force=True)
    answer = brokers.ask(address, RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, header)
    assert answer.header.code == ResponseCode.TOPIC_NOT_EXIST


def test_of_one_answer_no_more_is_read_than_it_may_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statistics, "READ_BYTES_MAX", 1)
    brokers, address = _with_messages()
    answer = brokers.ask(address, RequestCode.GET_TOPIC_STATS_INFO, GetTopicStatsRequest("T"))
    told = TopicStatsTable.decode(answer.body).offset_table or {}
    assert (told[_key(0)].last_update_timestamp or 0) > 0
    assert (told[_key(1)].max_offset, told[_key(1)].last_update_timestamp) == (1, 0)


def test_a_name_server_tells_all_topics() -> None:
    brokers, _address = _with_messages()

    def told() -> list[str]:
        answer = brokers.ask(NAME_SERVER, RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER)
        return list(TopicList.decode(answer.body).topic_list or ())

    brokers.until(lambda: "T" in told())
    assert told() == sorted(told())


def _clone(brokers: BrokerSet, address: str, to: str, topic: str | None = "T") -> int:
    header = CloneGroupOffsetRequest("g", to, topic, True)
    return brokers.ask(address, RequestCode.CLONE_GROUP_OFFSET, header).header.code


def _positions(brokers: BrokerSet, address: str, group: str) -> dict[str, int]:
    answer = brokers.ask(address, RequestCode.GET_CONSUME_STATS, GetConsumeStatsRequest(group))
    told = ConsumeStats.decode(answer.body).offset_table or {}
    return {key: each.consumer_offset or 0 for key, each in told.items()}


def test_a_group_goes_on_where_another_one_is() -> None:
    brokers, address = _with_messages()
    _commit(brokers, address, 2)
    _commit(brokers, address, 1, queue=1)
    assert _clone(brokers, address, "clone") == OK
    assert _clone(brokers, address, "all", topic=None) == OK
    for group in ("clone", "all"):
        assert _positions(brokers, address, group) == _positions(brokers, address, "g")
    assert _clone(brokers, address, "another", topic="never read") == OK
    assert _positions(brokers, address, "another") == {}
    assert _clone(brokers, address, "no group/name") == ResponseCode.INVALID_PARAMETER


def test_a_replica_clones_no_group() -> None:
    brokers = BrokerSet()
    _, replica = brokers.pair()
    assert _clone(brokers, replica, "clone") == ResponseCode.SYSTEM_ERROR


def test_an_administrator_is_told_who_reads_what() -> None:
    brokers, address = _with_messages()
    _commit(brokers, address, 2)
    assert _clone(brokers, address, "another") == OK
    answer = brokers.ask(address, RequestCode.QUERY_TOPIC_CONSUME_BY_WHO, GetReadersRequest("T"))
    assert GroupList.decode(answer.body).group_list == ["another", "g"]
    answer = brokers.ask(address, RequestCode.QUERY_TOPIC_CONSUME_BY_WHO, GetReadersRequest("unread"))
    assert GroupList.decode(answer.body).group_list == []
    answer = brokers.ask(address, RequestCode.QUERY_TOPICS_BY_CONSUMER, GetReadTopicsRequest("g"))
    assert TopicList.decode(answer.body).topic_list == ["T"]


def _producing(client: str, *groups: str) -> bytes:
    return HeartbeatData(client, [], None, [ProducerData(each) for each in groups]).encode()


def _all_producers(brokers: BrokerSet, address: str) -> dict[str, list[str | None]]:
    answer = brokers.ask(address, RequestCode.GET_ALL_PRODUCER_INFO)
    told = ProducerTable.decode(answer.body).data or {}
    return {group: [each.client_id for each in infos.producers or ()] for group, infos in told.items()}


def test_an_administrator_is_told_who_the_producers_are() -> None:
    brokers, address = _with_messages()
    assert _all_producers(brokers, address) == {}
    brokers.ask(address, RequestCode.HEART_BEAT, body=_producing("c", "p", "q"))
    asked = GetProducerConnectionsRequest("p")
    answer = brokers.ask(address, RequestCode.GET_PRODUCER_CONNECTION_LIST, asked)
    told, *others = ProducerConnection.decode(answer.body).connection_set or []
    assert not others
    assert (told.client_id, (told.client_addr or "").split(":")[0]) == ("c", "10.0.0.3")
    assert _all_producers(brokers, address) == {"p": ["c"], "q": ["c"]}
    brokers.ask(address, RequestCode.UNREGISTER_CLIENT, UnregisterClientRequest("c", "p", None))
    answer = brokers.ask(address, RequestCode.GET_PRODUCER_CONNECTION_LIST, asked)
    assert answer.header.code == ResponseCode.SYSTEM_ERROR
    assert answer.header.remark == "the producer group[p] not exist"
    brokers.world.run_for(2 * CLIENT_EXPIRY_MS)
    assert _all_producers(brokers, address) == {}


def test_a_producer_is_no_member_of_a_group_of_consumers_of_the_same_name() -> None:
    brokers, address = _with_messages()
    brokers.ask(address, RequestCode.HEART_BEAT, body=_producing("c", "g"))
    answer = brokers.ask(
        address, RequestCode.GET_CONSUMER_CONNECTION_LIST, GetConsumerConnectionsRequest("g")
    )
    assert answer.header.code == ResponseCode.CONSUMER_NOT_ONLINE


def test_producers_of_one_answer_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statistics, "NAMES_TOLD_MAX", 2)
    brokers, address = _with_messages()
    brokers.ask(address, RequestCode.HEART_BEAT, body=_producing("c", "p", "q", "r"))
    assert _all_producers(brokers, address) == {"p": ["c"], "q": ["c"]}
