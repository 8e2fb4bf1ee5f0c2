"""Routes: as brokers registered them last, as long as they are heard."""

from __future__ import annotations

import random
import zlib

import pytest

from replispec.nameserver.rocketmq import Limits, NameServerNode
from replispec.nameserver.rocketmq.registered import RouteRegistration
from replispec.nameserver.rocketmq.routes import Routes
from replispec.runtime.rocketmq.framing import Command
from replispec.wire.rocketmq.broker import (
    ClusterInfo,
    DataVersion,
    GetRouteInfoRequest,
    QueryDataVersionRequest,
    QueryDataVersionResponse,
    RegisterBrokerBody,
    RegisterBrokerRequest,
    RegisterBrokerResponse,
    TopicConfig,
    TopicConfigTable,
    TopicRouteData,
    UnregisterBrokerRequest,
)
from replispec.wire.rocketmq.codes import RequestCode, ResponseCode
from replispec.wire.rocketmq.controller import BrokerHeartbeatRequest
from replispec.wire.rocketmq.options import NameServerOptions
from tests.controller import conversation


def started(limits: Limits | None = None) -> conversation.Talk:
    """A name server that has started."""
    host, _, port = conversation.ADDRESS.rpartition(":")
    options = NameServerOptions(bind_address=host, listen_port=int(port))
    return conversation.Talk(NameServerNode(options, limits), "nameserver").start()


def topic(name: str, queues: int = 4) -> TopicConfig:
    """A topic as a broker holds it."""
    return TopicConfig(
        {},
        order=False,
        perm=6,
        read_queue_nums=4,
        topic_filter_type="SINGLE_TAG",
        topic_name=name,
        topic_sys_flag=0,
        write_queue_nums=queues,
    )


def body(*topics: str, state: int = 1, counter: int = 1, queues: int = 4) -> bytes:
    """What a broker holds."""
    table = {name: topic(name, queues) for name in topics}
    wrapper = TopicConfigTable(DataVersion(counter, state, 1_700_000_000_000), topic_config_table=table)
    return RegisterBrokerBody([], wrapper).encode()


def register(
    talk: conversation.Talk,
    connection: int,
    route_id: int,
    data: bytes,
    *,
    broker: int | None = None,
    name: str = conversation.SET,
    crc: int | None = None,
    timeout_ms: int | None = None,
) -> Command:
    """103: a broker (its persistent id is `broker`) shows itself with a route id."""
    at = conversation.address(broker or route_id)
    header = RegisterBrokerRequest(
        name,
        at,
        conversation.CLUSTER,
        at + "1",
        route_id,
        timeout_ms,
        None,
        False,
        zlib.crc32(data) & 0x7FFFFFFF if crc is None else crc,
    )
    return talk.ask(connection, RequestCode.REGISTER_BROKER, header, data)


def route(talk: conversation.Talk, topic: str) -> TopicRouteData | None:
    """105 as a client asks it."""
    connection = talk.connect()
    answer = talk.ask(connection, RequestCode.GET_ROUTEINFO_BY_TOPIC, GetRouteInfoRequest(topic))
    if answer.header.code == ResponseCode.TOPIC_NOT_EXIST:
        return None
    assert answer.header.code == ResponseCode.SUCCESS
    return TopicRouteData.decode(answer.body)


def addresses(talk: conversation.Talk, topic: str) -> dict[int, str] | None:
    """Where the only broker set that holds a topic is reached, by route id."""
    found = route(talk, topic)
    if found is None:
        return None
    assert found.broker_datas is not None
    assert len(found.broker_datas) == 1
    return found.broker_datas[0].broker_addrs


def test_a_topic_leads_to_the_brokers_that_hold_it() -> None:
    talk = started()
    register(talk, talk.connect(), 0, body("TopicA", "TopicB"), broker=1)
    register(talk, talk.connect(), 2, body("TopicA", "TopicB"))
    register(talk, talk.connect(), 0, body("TopicB"), broker=7, name="broker-b")
    assert addresses(talk, "TopicA") == {0: conversation.address(1), 2: conversation.address(2)}
    both = route(talk, "TopicB")
    assert both is not None
    assert [each.broker_name for each in both.broker_datas or ()] == ["broker-a", "broker-b"]
    queues = [
        (each.broker_name, each.perm, each.read_queue_nums, each.write_queue_nums)
        for each in both.queue_datas or ()
    ]
    assert queues == [("broker-a", 6, 4, 4), ("broker-b", 6, 4, 4)]
    assert route(talk, "TopicC") is None


def test_a_route_has_the_bytes_of_java() -> None:
    talk = started()
    register(talk, talk.connect(), 0, body("TopicA"), broker=1)
    answer = talk.ask(talk.connect(), RequestCode.GET_ROUTEINFO_BY_TOPIC, GetRouteInfoRequest("TopicA"))
    assert answer.body == (
        b'{"brokerDatas":[{"brokerAddrs":{"0":"127.0.0.1:30910"},"brokerName":"broker-a",'
        b'"cluster":"DefaultCluster","enableActingMaster":false}],"filterServerTable":{},'
        b'"queueDatas":[{"brokerName":"broker-a","perm":6,"readQueueNums":4,"topicSysFlag":0,"writeQueueNums":4}]}'
    )


def test_the_first_registration_may_have_any_number_of_topics() -> None:
    for topics in ((), ("TopicA",), ("TopicA", "TopicB")):
        talk = started()
        assert register(talk, talk.connect(), 0, body(*topics), broker=1).header.code == ResponseCode.SUCCESS
        assert (route(talk, "TopicA") is not None) is bool(topics)


def test_a_replica_is_told_where_its_master_is_and_a_master_nothing() -> None:
    talk = started()
    early = register(talk, talk.connect(), 2, body())
    assert early.header.ext_fields is None
    told = register(talk, talk.connect(), 0, body(), broker=1).header.ext_fields
    assert RegisterBrokerResponse.from_ext_fields(told or {}) == RegisterBrokerResponse(changes_suffice=True)
    received = RegisterBrokerResponse.from_ext_fields(
        register(talk, talk.connect(), 2, body()).header.ext_fields or {}
    )
    assert (received.master_addr, received.ha_server_addr) == (
        conversation.address(1),
        conversation.address(1) + "1",
    )


def test_a_replica_that_becomes_master_leaves_its_old_id() -> None:
    talk = started()
    replica = talk.connect()
    register(talk, talk.connect(), 0, body("TopicA"), broker=1)
    register(talk, replica, 2, body("TopicA"))
    register(talk, replica, 0, body("TopicA", state=2), broker=2)
    assert addresses(talk, "TopicA") == {0: conversation.address(2)}


def test_a_master_of_an_older_epoch_does_not_take_the_route_back() -> None:
    talk = started()
    old = talk.connect()
    register(talk, old, 0, body("TopicA", state=1), broker=1)
    register(talk, talk.connect(), 0, body("TopicA", state=2), broker=2)
    register(talk, old, 0, body("TopicA", state=1), broker=1)
    assert addresses(talk, "TopicA") == {0: conversation.address(2)}
    register(talk, old, 0, body("TopicA", state=3), broker=1)
    assert addresses(talk, "TopicA") == {0: conversation.address(1)}


def test_of_two_masters_of_one_epoch_the_last_to_register_counts() -> None:
    talk = started()
    for broker in (1, 2):
        register(talk, talk.connect(), 0, body("TopicA", state=2), broker=broker)
    assert addresses(talk, "TopicA") == {0: conversation.address(2)}


def test_who_is_passed_over_does_not_keep_its_former_id_either() -> None:
    talk = started()
    late = talk.connect()
    register(talk, talk.connect(), 0, body("TopicA", state=2), broker=1)
    register(talk, late, 2, body("TopicA", state=1))
    register(talk, late, 0, body("TopicA", state=1), broker=2)
    assert addresses(talk, "TopicA") == {0: conversation.address(1)}
    talk.close(late)
    assert addresses(talk, "TopicA") == {0: conversation.address(1)}


def test_a_topic_changes_with_the_version_that_says_so() -> None:
    talk = started()
    connection = talk.connect()
    for data, queues in (
        (body("TopicA"), 4),
        (body("TopicA", queues=8), 4),
        (body("TopicA", queues=8, counter=2), 8),
    ):
        register(talk, connection, 0, data, broker=1)
        found = route(talk, "TopicA")
        assert found is not None
        assert [each.write_queue_nums for each in found.queue_datas or ()] == [queues]


def test_once_the_newer_master_is_gone_any_may_take_the_route() -> None:
    talk = started()
    newer = talk.connect()
    register(talk, newer, 0, body("TopicA", state=2), broker=2)
    talk.close(newer)
    register(talk, talk.connect(), 0, body("TopicA", state=1), broker=1)
    assert addresses(talk, "TopicA") == {0: conversation.address(1)}


def test_topics_are_those_of_the_newest_registration_of_the_master() -> None:
    talk = started()
    connection = talk.connect()
    register(talk, connection, 0, body("TopicA"), broker=1)
    register(talk, connection, 0, body("TopicA", "TopicB", counter=2), broker=1)
    assert route(talk, "TopicB") is not None
    register(talk, talk.connect(), 2, body("TopicC"))
    assert route(talk, "TopicC") is None


def test_the_end_of_a_connection_ends_what_was_registered_on_it_last() -> None:
    talk = started()
    first, second = talk.connect(), talk.connect()
    register(talk, first, 0, body("TopicA"), broker=1)
    register(talk, second, 0, body("TopicA"), broker=1)
    talk.close(first)
    assert addresses(talk, "TopicA") == {0: conversation.address(1)}
    talk.close(second)
    assert addresses(talk, "TopicA") is None
    cluster = ClusterInfo.decode(talk.ask(talk.connect(), RequestCode.GET_BROKER_CLUSTER_INFO).body)
    assert (cluster.broker_addr_table, cluster.cluster_addr_table) == ({}, {})


def test_a_replica_stays_when_its_master_goes() -> None:
    talk = started()
    master = talk.connect()
    register(talk, master, 0, body("TopicA"), broker=1)
    register(talk, talk.connect(), 2, body("TopicA"))
    talk.close(master)
    assert addresses(talk, "TopicA") == {2: conversation.address(2)}


def test_who_is_not_heard_in_time_is_forgotten_and_hung_up_on() -> None:
    talk = started()
    silent, alive = talk.connect(), talk.connect()
    register(talk, silent, 0, body("TopicA"), broker=1, timeout_ms=12_000)
    register(talk, alive, 2, body("TopicA"), timeout_ms=12_000)
    talk.wait(9_000)
    beat = BrokerHeartbeatRequest(conversation.CLUSTER, conversation.address(2), conversation.SET)
    assert talk.ask(alive, RequestCode.BROKER_HEARTBEAT, beat).header.code == ResponseCode.SUCCESS
    talk.wait(7_000)
    assert addresses(talk, "TopicA") == {2: conversation.address(2)}
    assert talk.closed() == [silent]


def test_a_broker_that_stops_says_so() -> None:
    talk = started()
    connection = talk.connect()
    register(talk, connection, 0, body("TopicA"), broker=1)
    header = UnregisterBrokerRequest(conversation.SET, conversation.address(1), conversation.CLUSTER, 0)
    assert talk.ask(connection, RequestCode.UNREGISTER_BROKER, header).header.code == ResponseCode.SUCCESS
    assert route(talk, "TopicA") is None
    assert talk.ask(connection, RequestCode.UNREGISTER_BROKER, header).header.code == ResponseCode.SUCCESS
    talk.close(connection)


def test_a_broker_that_moves_to_another_set_leaves_the_first() -> None:
    talk = started()
    connection = talk.connect()
    register(talk, connection, 0, body("TopicA"), broker=1)
    register(talk, connection, 0, body("TopicB"), broker=1, name="broker-b")
    assert route(talk, "TopicA") is None
    assert addresses(talk, "TopicB") == {0: conversation.address(1)}


def test_all_brokers_are_shown_by_cluster_with_quoted_ids() -> None:
    talk = started()
    register(talk, talk.connect(), 0, body(), broker=1)
    register(talk, talk.connect(), 2, body())
    answer = talk.ask(talk.connect(), RequestCode.GET_BROKER_CLUSTER_INFO)
    assert answer.body == (
        b'{"brokerAddrTable":{"broker-a":{"brokerAddrs":{"0":"127.0.0.1:30910","2":"127.0.0.1:30920"},'
        b'"brokerName":"broker-a","cluster":"DefaultCluster","enableActingMaster":false}},'
        b'"clusterAddrTable":{"DefaultCluster":["broker-a"]}}'
    )


def test_a_broker_asks_whether_its_topics_are_known() -> None:
    talk = started()
    connection = talk.connect()
    header = QueryDataVersionRequest(conversation.SET, conversation.address(1), conversation.CLUSTER, 0)

    def changed(version: DataVersion) -> bool | None:
        answer = talk.ask(connection, RequestCode.QUERY_DATA_VERSION, header, version.encode())
        return QueryDataVersionResponse.from_ext_fields(answer.header.ext_fields or {}).changed

    known = DataVersion(1, 1, 1_700_000_000_000)
    assert changed(known) is True
    register(talk, connection, 0, body("TopicA"), broker=1)
    assert changed(known) is False
    assert changed(DataVersion(2, 1, 1_700_000_000_000)) is True


@pytest.mark.parametrize("crc", [1, 0x7FFFFFFE])
def test_a_body_that_is_not_what_its_checksum_says_is_refused(crc: int) -> None:
    talk = started()
    answer = register(talk, talk.connect(), 0, body("TopicA"), broker=1, crc=crc)
    assert answer.header.code == ResponseCode.SYSTEM_ERROR
    assert route(talk, "TopicA") is None
    assert (
        register(talk, talk.connect(), 0, body("TopicA"), broker=1, crc=0).header.code == ResponseCode.SUCCESS
    )


def test_a_compressed_registration_is_refused_whatever_its_bytes_are() -> None:
    talk = started()
    header = RegisterBrokerRequest(conversation.SET, "a:1", "c", broker_id=0, compressed=True)
    answer = talk.ask(talk.connect(), RequestCode.REGISTER_BROKER, header, b"\x78\x9c")
    assert answer.header.code == ResponseCode.SYSTEM_ERROR
    assert "compressedRegister=false" in (answer.header.remark or "")


def test_what_brokers_register_is_bounded() -> None:
    talk = started(Limits(brokers=2, topics=3))
    first, second = talk.connect(), talk.connect()

    def code(connection: int, broker: int, data: bytes, name: str = conversation.SET) -> int:
        return register(talk, connection, 0, data, broker=broker, name=name).header.code

    assert code(first, 1, body("A", "B", "C", "D")) == ResponseCode.SYSTEM_ERROR
    assert code(first, 1, body("A", "B")) == ResponseCode.SUCCESS
    assert code(second, 2, body("C", "D"), "broker-b") == ResponseCode.SUCCESS
    assert route(talk, "D") is None
    assert code(talk.connect(), 3, body(), "broker-c") == ResponseCode.SYSTEM_ERROR
    talk.close(first)
    assert code(second, 2, body("C", "D", counter=2), "broker-b") == ResponseCode.SUCCESS
    assert route(talk, "D") is not None


def test_requests_that_are_not_whole_are_refused() -> None:
    talk = started()
    connection = talk.connect()
    for header, data in (
        (RegisterBrokerRequest(broker_addr="a:1", cluster_name="c", broker_id=0), b""),
        (RegisterBrokerRequest(conversation.SET, "a:1", "c", broker_id=0), b"{"),
        (RegisterBrokerRequest(conversation.SET, "a:1", "c", broker_id=0, compressed=True), b""),
    ):
        assert (
            talk.ask(connection, RequestCode.REGISTER_BROKER, header, data).header.code
            != ResponseCode.SUCCESS
        )
    for code in (RequestCode.CONTROLLER_GET_METADATA_INFO, RequestCode.SEND_MESSAGE):
        answer = talk.ask(connection, code)
        assert answer.header.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED
    shown = talk.ask(connection, RequestCode.GET_NAMESRV_CONFIG)
    assert f"listenPort={conversation.ADDRESS.rpartition(':')[2]}".encode() in shown.body.splitlines()


def test_whatever_the_order_of_registrations_and_ends_nothing_is_left_of_those_that_ended() -> None:
    """Brokers take ids from each other, change their set, are heard no longer, and go in any order."""
    for seed in range(300):
        rng = random.Random(seed)
        routes = Routes(Limits())
        open_now: set[int] = set()
        for now_ms in range(0, 40_000, 1000):
            connection = rng.randrange(5)
            if rng.random() < 0.7:
                open_now.add(connection)
                version = DataVersion(rng.randrange(3), rng.randrange(3), 0)
                topics = {name: topic(name) for name in rng.sample(("a", "b", "c"), 2)}
                broker_set, at = f"set{rng.randrange(2)}", f"127.0.0.1:{rng.randrange(1, 4)}"
                routes.register(
                    RouteRegistration("cluster", broker_set, rng.randrange(2), at, at, version, topics, 9000),
                    connection,
                    "127.0.0.1",
                    now_ms,
                )
            elif rng.random() < 0.5:
                routes.closed(connection)
                open_now.discard(connection)
            else:
                routes.expired(now_ms)
        for connection in rng.sample(sorted(open_now), len(open_now)):
            routes.closed(connection)
        assert routes.clusters().message == ClusterInfo({}, {})
        assert [routes.route(name) for name in ("a", "b", "c")] == [None] * 3
