"""What is configured of groups of consumers is kept, told, copied, and gone by."""

from __future__ import annotations

from typing import Any

from replispec.wire.rocketmq import constants
from replispec.wire.rocketmq.client import (
    ConsumerSendMsgBackRequest,
    DeleteSubscriptionGroupRequest,
    GetSubscriptionGroupConfigRequest,
    SubscriptionGroup,
    SubscriptionGroupTable,
)
from replispec.wire.rocketmq.codes import RequestCode, ResponseCode
from tests.broker.simulated_set import OK, BrokerSet


def configure(brokers: BrokerSet, address: str, name: str = "g", **said: Any) -> int:
    body = SubscriptionGroup(group_name=name, **said).encode()
    return brokers.ask(address, RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=body).header.code


def told(brokers: BrokerSet, address: str, name: str = "g") -> SubscriptionGroup | int:
    asked = GetSubscriptionGroupConfigRequest(group=name)
    answer = brokers.ask(address, RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG, asked)
    return SubscriptionGroup.decode(answer.body) if answer.header.code == OK else answer.header.code


def all_told(brokers: BrokerSet, address: str) -> set[str]:
    answer = brokers.ask(address, RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG)
    if answer.header.code != OK:
        return set()
    return set(SubscriptionGroupTable.decode(answer.body).subscription_group_table or {})


def test_a_group_is_kept_over_a_start_and_by_who_is_master_next() -> None:
    brokers = BrokerSet()
    first, second = brokers.pair()
    assert told(brokers, first) == ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST
    assert configure(brokers, first, retry_max_times=3, attributes={"a": "b"}) == OK
    found = told(brokers, first)
    assert isinstance(found, SubscriptionGroup)
    assert (found.group_name, found.retry_max_times, found.attributes) == ("g", 3, {"a": "b"})
    brokers.until(lambda: told(brokers, second) == found)
    brokers.world.kill("broker1")
    brokers.until(lambda: brokers.broker(2).serves)
    brokers.start("broker1")
    assert told(brokers, second) == told(brokers, first) == found


def test_groups_that_are_configured_at_once_are_all_kept() -> None:
    brokers = BrokerSet()
    address = brokers.alone()
    code = RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP
    bodies = [SubscriptionGroup(group_name=f"g{number}").encode() for number in range(20)]
    answers = [brokers.asked(address, code, body=body) for body in bodies]
    brokers.until(lambda: all(answers))
    assert all_told(brokers, address) == {f"g{number}" for number in range(20)}


def test_a_group_is_forgotten_with_what_was_configured() -> None:
    brokers = BrokerSet()
    address = brokers.alone()
    configure(brokers, address, consume_enable=False)
    configure(brokers, address, "other")
    asked = DeleteSubscriptionGroupRequest(group_name="g")
    assert brokers.ask(address, RequestCode.DELETE_SUBSCRIPTIONGROUP, asked).header.code == OK
    assert told(brokers, address) == ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST
    assert all_told(brokers, address) == {"other"}
    asked.clean_offset = True
    code = brokers.ask(address, RequestCode.DELETE_SUBSCRIPTIONGROUP, asked).header.code
    assert code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED


def test_a_group_that_may_not_consume_is_given_nothing() -> None:
    brokers = BrokerSet()
    address = brokers.alone()
    brokers.send(address, b"m")
    assert brokers.pull(address, 0)[0] == OK
    configure(brokers, address, consume_enable=False)
    assert brokers.pull(address, 0)[0] == ResponseCode.NO_PERMISSION
    configure(brokers, address, consume_enable=True)
    assert brokers.pull(address, 0)[0] == OK


def test_a_message_is_tried_as_often_as_its_group_says() -> None:
    brokers = BrokerSet()
    address = brokers.alone()
    configure(brokers, address, retry_max_times=0)
    brokers.send(address, b"bad")
    back = ConsumerSendMsgBackRequest(offset=0, group="g", delay_level=0)
    assert brokers.ask(address, RequestCode.CONSUMER_SEND_MSG_BACK, back).header.code == OK
    dead = constants.DEAD_TOPIC_PREFIX + "g"
    assert b"bad" in brokers.pull(address, 0, topic=dead)[2]
    brokers.send(address, b"sent", topic="%RETRY%g", reconsume_times=1)
    assert b"sent" in brokers.pull(address, 1, topic=dead)[2]


def test_names_that_are_none_and_who_is_no_master_are_refused() -> None:
    brokers = BrokerSet()
    first, second = brokers.pair()
    assert configure(brokers, first, "a b") == ResponseCode.INVALID_PARAMETER
    assert configure(brokers, first, "x" * 500) == ResponseCode.INVALID_PARAMETER
    assert configure(brokers, second) == ResponseCode.SERVICE_NOT_AVAILABLE
    assert told(brokers, first) == ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST
