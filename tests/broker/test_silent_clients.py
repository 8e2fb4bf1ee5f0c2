"""Clients that have gone silent leave their groups; those that live find the topic of their retries."""

from replispec.runtime.world import Member
from replispec.wire.rocketmq.client import ConsumerData, ConsumerList, GetConsumerListRequest, HeartbeatData
from replispec.wire.rocketmq.codes import RequestCode
from replispec.wire.rocketmq.constants import CLIENT_EXPIRY_MS
from tests.broker.simulated_set import BrokerSet, Client, wanted

PERIOD_MS = 30_000
"""How often a client of Apache RocketMQ says that it lives."""


def heartbeat(client: str, *groups: str) -> bytes:
    return HeartbeatData(client, [ConsumerData(group_name=group) for group in groups], None, []).encode()


def members(brokers: BrokerSet, address: str) -> list[str]:
    answer = brokers.ask(address, RequestCode.GET_CONSUMER_LIST_BY_GROUP, GetConsumerListRequest("g"))
    return (ConsumerList.decode(answer.body).consumer_id_list or []) if answer.body else []


def test_a_consumer_of_which_nothing_is_heard_leaves_its_group_and_its_connection_ends() -> None:
    brokers = BrokerSet()
    address = brokers.alone()
    consumer = Client()
    brokers.world.add("consumer", "10.0.0.9", lambda _storage: [Member("client", consumer)])
    brokers.world.start("consumer")
    brokers.send(address, b"so that there is a topic")
    consumer.ask(address, RequestCode.HEART_BEAT, {}, heartbeat("silent", "g"))
    held = wanted("T", 0, 1, wait_ms=10 * CLIENT_EXPIRY_MS).to_ext_fields()
    consumer.ask(address, RequestCode.PULL_MESSAGE, held, b"")
    brokers.ask(address, RequestCode.HEART_BEAT, body=heartbeat("living", "g"))
    brokers.until(lambda: members(brokers, address) == ["living", "silent"])
    assert brokers.broker(1)._server.connections > 1
    brokers.world.kill("consumer", power=True)
    for _ in range(CLIENT_EXPIRY_MS // PERIOD_MS + 1):
        assert "living" in members(brokers, address)
        brokers.world.run_for(PERIOD_MS)
        brokers.ask(address, RequestCode.HEART_BEAT, body=heartbeat("living", "g"))
    assert members(brokers, address) == ["living"]
    assert brokers.broker(1)._server.connections == 1, "that of the living one"


def test_a_group_has_the_topic_of_its_retries_from_its_first_heartbeat_on() -> None:
    brokers = BrokerSet()
    address = brokers.alone()
    brokers.ask(address, RequestCode.HEART_BEAT, body=heartbeat("consumer", "g", "", "no topic/name"))
    topics = brokers.broker(1)._topics
    brokers.until(lambda: topics.get("%RETRY%g") is not None)
    config = topics.get("%RETRY%g")
    assert config is not None
    assert (config.read_queue_nums, config.write_queue_nums) == (1, 1)
    table = topics.table(0).topic_config_table or {}
    assert [name for name in table if name.startswith("%RETRY%")] == ["%RETRY%g"]
