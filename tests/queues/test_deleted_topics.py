"""A topic that an administrator deletes is forgotten with its mapping, and stays so."""

from __future__ import annotations

import pytest

from replispec.wire.rocketmq import constants
from replispec.wire.rocketmq.broker import GetRouteInfoRequest, TopicConfigTable
from replispec.wire.rocketmq.client import CreateTopicRequest, GetTopicConfigRequest
from replispec.wire.rocketmq.codes import RequestCode, ResponseCode
from replispec.wire.rocketmq.static_topic import DeleteTopicRequest
from tests.broker.simulated_set import NAME_SERVER, OK, BrokerSet
from tests.queues.test_static_queues import A0, sent
from tests.queues.test_static_topics import FIRST, detail, put, told

GONE = ResponseCode.TOPIC_NOT_EXIST
NO_TOPICS_BY_ITSELF = {"auto_create_topic_enable": False}


def deleted(brokers: BrokerSet, address: str, topic: str = "S") -> int:
    """Delete a topic: the code."""
    return brokers.ask(address, RequestCode.DELETE_TOPIC_IN_BROKER, DeleteTopicRequest(topic)).header.code


def is_there(brokers: BrokerSet, address: str, topic: str = "S") -> bool:
    """Whether a broker has a topic, and tells replicas of it."""
    header = GetTopicConfigRequest(topic, True)
    before = brokers.ask(address, RequestCode.GET_TOPIC_CONFIG, header).header.code
    table = TopicConfigTable.decode(brokers.ask(address, RequestCode.GET_ALL_TOPIC_CONFIG).body)
    code = brokers.ask(address, RequestCode.GET_TOPIC_CONFIG, header).header.code
    names = {*(table.topic_config_table or {}), *(table.topic_queue_mapping_detail_map or {})}
    assert code != before or (code == OK) == (topic in names)
    return code == OK


def made(brokers: BrokerSet, address: str, topic: str = "P") -> None:
    """Make a plain topic."""
    plain = CreateTopicRequest(topic, constants.TEMPLATE_TOPIC, 4, 4, 6, constants.SINGLE_TAG, 0, False)
    assert brokers.ask(address, RequestCode.UPDATE_AND_CREATE_TOPIC, plain).header.code == OK


def test_a_deleted_topic_is_gone_at_once_and_may_be_made_again_in_a_smaller_epoch() -> None:
    brokers = BrokerSet()
    address = brokers.alone(**NO_TOPICS_BY_ITSELF)
    assert put(brokers, address, FIRST)[0] == OK
    assert sent(brokers, address)[0] == OK
    assert deleted(brokers, address) == OK
    assert not is_there(brokers, address)
    assert sent(brokers, address)[0] == GONE
    assert deleted(brokers, address) == OK, "who asks again is answered as before"
    assert put(brokers, address, detail(1, [A0]))[0] == OK
    assert sent(brokers, address) == (OK, 0, 1), "a queue goes on behind what it has"


@pytest.mark.parametrize("power", [False, True])
@pytest.mark.parametrize("topic", ["S", "P"])
def test_it_is_not_there_when_the_broker_is_back_though_the_log_has_its_messages(
    power: bool, topic: str
) -> None:
    brokers = BrokerSet()
    address = brokers.alone(**NO_TOPICS_BY_ITSELF)
    assert put(brokers, address, FIRST)[0] == OK
    made(brokers, address)
    made(brokers, address, "Other")
    assert brokers.send(address, b"m", topic=topic, broker_name="broker-a")[0] == OK
    assert deleted(brokers, address, topic) == OK
    brokers.world.kill("broker1", power=power)
    brokers.start("broker1")
    brokers.until(lambda: brokers.broker(1).serves)
    brokers.until(lambda: is_there(brokers, address, "Other"))
    assert not is_there(brokers, address, topic)


@pytest.mark.parametrize("topic", ["S", "P"])
def test_it_is_not_there_after_a_fail_over(topic: str) -> None:
    brokers = BrokerSet()
    first, second = brokers.pair(**NO_TOPICS_BY_ITSELF)
    assert put(brokers, first, FIRST)[0] == OK
    made(brokers, first)
    made(brokers, first, "Other")
    assert brokers.send(first, b"m", topic=topic, broker_name="broker-a")[0] == OK
    brokers.until(lambda: is_there(brokers, second, topic) and is_there(brokers, second, "Other"))
    assert deleted(brokers, first, topic) == OK
    brokers.world.kill("broker1", power=True)
    brokers.until(lambda: brokers.broker(2).serves)
    brokers.world.run_for(1_000)
    assert not is_there(brokers, second, topic)
    assert is_there(brokers, second, "Other")


def test_one_that_was_made_again_stays_when_the_broker_is_back() -> None:
    brokers = BrokerSet()
    address = brokers.alone(**NO_TOPICS_BY_ITSELF)
    assert put(brokers, address, FIRST)[0] == OK
    assert deleted(brokers, address) == OK
    made(brokers, address, "S")
    for _ in range(2):
        brokers.world.kill("broker1", power=True)
        brokers.start("broker1")
        brokers.until(lambda: brokers.broker(1).serves)
        brokers.world.run_for(1_000)
        assert is_there(brokers, address)
        found = told(brokers, address)
        assert found is not None
        assert found.mapping_detail is None


def test_one_that_was_made_again_is_told_to_name_servers() -> None:
    brokers = BrokerSet()
    address = brokers.alone(**NO_TOPICS_BY_ITSELF)
    assert put(brokers, address, FIRST)[0] == OK
    assert deleted(brokers, address) == OK
    made(brokers, address, "S")
    brokers.world.run_for(2_000)
    route = brokers.ask(NAME_SERVER, RequestCode.GET_ROUTEINFO_BY_TOPIC, GetRouteInfoRequest(topic="S"))
    assert route.header.code == OK


def test_a_replica_and_topics_of_the_broker_itself_are_left_alone() -> None:
    brokers = BrokerSet()
    first, second = brokers.pair()
    assert put(brokers, first, FIRST)[0] == OK
    assert deleted(brokers, second) == ResponseCode.SERVICE_NOT_AVAILABLE
    for name in (constants.TEMPLATE_TOPIC, constants.SELF_TEST_TOPIC, constants.MAPPING_TOPIC, "a b", ""):
        assert deleted(brokers, first, name) == ResponseCode.INVALID_PARAMETER
    assert is_there(brokers, first)


def test_a_deletion_that_nobody_else_has_is_undone_where_it_is_cut() -> None:
    brokers = BrokerSet()
    first, second = brokers.pair(**NO_TOPICS_BY_ITSELF)
    assert put(brokers, first, FIRST)[0] == OK
    brokers.world.kill("controller")
    brokers.world.kill("broker2")
    waiting = brokers.asked(first, RequestCode.DELETE_TOPIC_IN_BROKER, DeleteTopicRequest("S"))
    brokers.world.run_for(500)
    assert not waiting
    brokers.world.kill("broker1")
    brokers.start("controller")
    brokers.start("broker2")
    brokers.until(lambda: brokers.broker(2).serves)
    brokers.start("broker1")
    brokers.until(lambda: brokers.members(2) == {1, 2})
    for address in (first, second):
        brokers.until(lambda address=address: told(brokers, address) is not None)  # type: ignore[misc]
        found = told(brokers, address)
        assert found is not None
        assert found.mapping_detail == FIRST
