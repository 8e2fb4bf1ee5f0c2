"""What clients may do with a topic that has logical queues: an administrator's word is a record."""

from __future__ import annotations

from typing import Any

import pytest

from replispec.runtime.rocketmq.framing import Command
from replispec.wire.rocketmq.client import CreateTopicRequest, GetTopicConfigRequest
from replispec.wire.rocketmq.codes import Permission, RequestCode, ResponseCode
from replispec.wire.rocketmq.constants import SINGLE_TAG, TEMPLATE_TOPIC
from replispec.wire.rocketmq.static_topic import TopicConfigAndQueueMapping
from tests.broker.simulated_set import OK, BrokerSet
from tests.queues.logical_sets import LogicalSet, LogicalSets, Said, said
from tests.queues.test_static_topics import FIRST, put

READ, WRITE, BOTH = int(Permission.READ), int(Permission.WRITE), int(Permission.READ | Permission.WRITE)


def permit(brokers: BrokerSet, address: str, perm: int, topic: str = "L", queues: int = 1) -> Said:
    """17, with as many message queues as there are."""
    header = CreateTopicRequest(topic, TEMPLATE_TOPIC, queues, queues, perm, SINGLE_TAG, 0, False)
    return said(brokers.ask(address, RequestCode.UPDATE_AND_CREATE_TOPIC, header))


def permitted(brokers: BrokerSet, address: str, topic: str = "L") -> int | None:
    """What 351 says."""
    header = GetTopicConfigRequest(topic, True)
    answer = brokers.ask(address, RequestCode.GET_TOPIC_CONFIG, header)
    return TopicConfigAndQueueMapping.decode(answer.body).perm


def mapped_pair(**more: Any) -> tuple[LogicalSet, str, str]:
    """A set of two with logical queue 0 of L."""
    brokers = LogicalSet()
    first, second = brokers.pair(**more)
    brokers.mapped(first, 1)
    return brokers, first, second


def test_a_topic_with_logical_queues_is_closed_to_producers_and_opened_again() -> None:
    brokers, first, _ = mapped_pair()
    assert brokers.send(first, b"m", topic="L")[0] == OK
    assert permit(brokers, first, READ) == (OK, "")
    assert permitted(brokers, first) == READ
    assert brokers.send(first, b"m", topic="L")[0] == ResponseCode.NO_PERMISSION
    assert brokers.pull(first, 0, topic="L")[0] == OK
    assert list(brokers.told(first)) == [0]
    assert permit(brokers, first, WRITE) == (OK, "")
    assert brokers.pull(first, 0, topic="L")[0] == ResponseCode.NO_PERMISSION
    assert brokers.send(first, b"m", topic="L")[0] == OK


def test_what_was_permitted_survives_its_master_like_a_message() -> None:
    brokers, first, second = mapped_pair()
    assert permit(brokers, first, READ) == (OK, "")
    brokers.world.kill("broker1", power=True)
    brokers.until(lambda: brokers.broker(2).serves)
    brokers.world.run_for(3_000)
    assert permitted(brokers, second) == READ
    assert brokers.send(second, b"m", topic="L")[0] == ResponseCode.NO_PERMISSION
    # What it holds is changed behind that, and the permission stays.
    assert brokers.seal(second, 0, 0)[0] == (OK, "")
    assert permitted(brokers, second) == READ


def test_it_is_acknowledged_when_the_set_has_it() -> None:
    brokers, first, _ = mapped_pair()
    brokers.world.pause("broker2")
    header = CreateTopicRequest("L", TEMPLATE_TOPIC, 1, 1, READ, SINGLE_TAG, 0, False)
    asked = brokers.asked(first, RequestCode.UPDATE_AND_CREATE_TOPIC, header)
    brokers.world.run_for(1_000)
    assert brokers.members(1) == {1, 2}
    assert not asked
    brokers.world.go_on("broker2")
    brokers.until(lambda: bool(asked))
    assert [each.header.code for each in asked if isinstance(each, Command)] == [OK]


def test_name_servers_tell_it() -> None:
    brokers, first, _ = mapped_pair()
    assert brokers.commit(first, 1, 1) == (OK, "")
    assert permit(brokers, first, READ) == (OK, "")
    brokers.world.run_for(3_000)
    route = brokers.route()
    assert route is not None
    assert [each.perm for each in route.queue_datas or ()] == [READ]


@pytest.mark.parametrize("queues", [1, 3])
def test_how_many_message_queues_there_are_stays(queues: int) -> None:
    brokers = LogicalSet()
    address = brokers.alone()
    brokers.mapped(address, 2)
    code, remark = permit(brokers, address, READ, queues=queues)
    assert (code, "416" in remark) == (ResponseCode.INVALID_PARAMETER, True)
    assert permitted(brokers, address) == BOTH


def test_of_a_static_topic_it_is_refused_and_the_way_is_named() -> None:
    brokers = BrokerSet()
    address = brokers.alone()
    assert put(brokers, address, FIRST)[0] == OK
    code, remark = permit(brokers, address, READ, "S")
    assert code == ResponseCode.INVALID_PARAMETER
    way = "updateTopicPerm of replispec admin does"
    assert remark == f"a static topic is changed with its mapping (513): {way}"


def test_an_administrator_makes_no_topic_plain_that_has_logical_queues_elsewhere() -> None:
    sets = LogicalSets()
    first, second = sets.at["broker-a"], sets.at["broker-b"]
    sets.mapped(first, 1)
    assert sets.commit(first, 1, 1) == (OK, "")
    sets.world.run_for(3_000)
    code, remark = permit(sets, second, BOTH)
    assert (code, "416" in remark) == (ResponseCode.INVALID_PARAMETER, True)
    assert sets.broker(2)._topics.get("L") is None
    # It is no word about topics that nobody has, nor about plain ones.
    assert permit(sets, second, BOTH, "NEW") == (OK, "")
    assert permit(sets, second, BOTH, "NEW", 2) == (OK, "")


def test_where_no_name_server_says_what_a_topic_is_no_administrator_makes_it() -> None:
    sets = LogicalSets()
    second = sets.at["broker-b"]
    assert permit(sets, second, BOTH, "OLD") == (OK, "")
    sets.world.kill("nameserver")
    assert permit(sets, second, BOTH, "NEW")[0] == ResponseCode.SERVICE_NOT_AVAILABLE
    assert sets.broker(2)._topics.get("NEW") is None
    # Topics that are there are changed, and those of a group's retries made, whoever is silent.
    assert permit(sets, second, READ, "OLD") == (OK, "")
    assert permit(sets, second, BOTH, "%RETRY%g") == (OK, "")


def test_what_became_mapped_while_a_name_server_was_asked_is_not_made_plain() -> None:
    sets = LogicalSets()
    address = sets.at["broker-a"]
    header = CreateTopicRequest("L", TEMPLATE_TOPIC, 4, 4, BOTH, SINGLE_TAG, 0, False)
    asked = sets.asked(address, RequestCode.UPDATE_AND_CREATE_TOPIC, header)
    assert sets.create(address, 0, "Normal")[0][0] == OK
    sets.until(lambda: bool(asked))
    codes = [each.header.code for each in asked if isinstance(each, Command)]
    assert codes == [ResponseCode.INVALID_PARAMETER]
    config = sets.broker(1)._topics.get("L")
    assert config is not None
    assert (config.read_queue_nums, config.write_queue_nums) == (1, 1)
