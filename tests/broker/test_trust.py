"""Whoever reaches a port can speak for nobody else: of a set its brokers alone are believed."""

from __future__ import annotations

from replispec.runtime.world import Member
from replispec.wire.rocketmq.broker import (
    DataVersion,
    GetRouteInfoRequest,
    RegisterBrokerBody,
    RegisterBrokerRequest,
    TopicConfig,
    TopicConfigTable,
    TopicRouteData,
    UnregisterBrokerRequest,
)
from replispec.wire.rocketmq.codes import RequestCode
from replispec.wire.rocketmq.controller import (
    BrokerHeartbeatRequest,
    NotifyBrokerRoleChangedRequest,
    SyncStateSet,
)
from tests.broker.simulated_set import CONTROLLER, NAME_SERVER, BrokerSet, Client, Header

HUGE = 2_000_000_000


class Stranger:
    """A machine of its own that asks whatever it likes, and can be turned off."""

    def __init__(self, brokers: BrokerSet) -> None:
        self._brokers = brokers
        self._client = Client()
        brokers.world.add("stranger", "10.0.0.66", lambda _: [Member("client", self._client)])
        brokers.world.start("stranger")

    def ask(self, address: str, code: int, header: Header, body: bytes = b"") -> None:
        """Ask, and wait for an answer."""
        found = self._client.ask(address, code, header.to_ext_fields(), body)
        self._brokers.until(lambda: bool(found))

    def end(self) -> None:
        """End, connections and all."""
        self._brokers.world.kill("stranger")
        self._brokers.world.run_for(1_500)


def test_a_heartbeat_in_the_name_of_the_master_and_the_end_of_its_connection_change_nothing() -> None:
    brokers = BrokerSet()
    brokers.pair()
    before = brokers.master()
    stranger = Stranger(brokers)
    for broker in (1, 2):
        said = BrokerHeartbeatRequest("C", "x", "broker-a", broker, HUGE, HUGE, HUGE, 1, 1)
        stranger.ask(CONTROLLER, RequestCode.BROKER_HEARTBEAT, said)
    stranger.end()
    assert brokers.master() == before


def test_a_notification_of_anybody_takes_no_masters_office() -> None:
    brokers = BrokerSet()
    first, second = brokers.pair()
    stranger = Stranger(brokers)
    said = NotifyBrokerRoleChangedRequest(
        master_address="10.0.0.66:1", master_broker_id=99, master_epoch=HUGE, sync_state_set_epoch=HUGE
    )
    body = SyncStateSet(broker_ids=[99], sync_state_set_epoch=HUGE).encode()
    for address in (first, second):
        stranger.ask(address, RequestCode.NOTIFY_BROKER_ROLE_CHANGED, said, body)
    brokers.world.run_for(5_000)
    assert brokers.send(first, b"m")[0] == 0
    brokers.world.kill("broker1")
    brokers.until(lambda: brokers.broker(2).serves)
    assert brokers.send(second, b"m")[0] == 0


def routed(brokers: BrokerSet) -> dict[int, str]:
    """Where the name server says that the brokers of the set are."""
    answer = brokers.ask(NAME_SERVER, RequestCode.GET_ROUTEINFO_BY_TOPIC, GetRouteInfoRequest("TBW102"))
    (data,) = TopicRouteData.decode(answer.body).broker_datas or []
    return data.broker_addrs or {}


def test_a_stranger_neither_takes_nor_ends_the_route_to_a_broker() -> None:
    brokers = BrokerSet()
    first, second = brokers.pair()
    brokers.until(lambda: routed(brokers) == {0: first, 2: second})
    stranger = Stranger(brokers)
    topics = {"TBW102": TopicConfig(perm=6, read_queue_nums=1, write_queue_nums=1)}
    table = TopicConfigTable(DataVersion(9, HUGE, HUGE), None, topics, None, None)
    body = RegisterBrokerBody([], table).encode()
    for address in ("10.0.0.66:1", first, second):
        said = RegisterBrokerRequest("broker-a", address, "C", "10.0.0.66:2", 0)
        stranger.ask(NAME_SERVER, RequestCode.REGISTER_BROKER, said, body)
        leaves = UnregisterBrokerRequest("broker-a", address, "C", 0)
        stranger.ask(NAME_SERVER, RequestCode.UNREGISTER_BROKER, leaves)
    assert routed(brokers) == {0: first, 2: second}
    # A broker of the set that follows its master is believed.
    brokers.world.kill("broker1")
    brokers.until(lambda: routed(brokers) == {0: second})
