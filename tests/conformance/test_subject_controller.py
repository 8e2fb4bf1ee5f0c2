"""The controller that the suite is tested against, without a socket: a story of two brokers."""

from replispec.runtime.primitives.headers import Header
from replispec.runtime.rocketmq.framing import Command, decode_command
from replispec.wire.rocketmq.codes import RemotingFlag, RequestCode, ResponseCode
from replispec.wire.rocketmq.controller import (
    AlterSyncStateSetRequest,
    ApplyBrokerIdRequest,
    BrokerHeartbeatRequest,
    ElectMasterRequest,
    ElectMasterResponse,
    GetReplicaInfoRequest,
    GetReplicaInfoResponse,
    SyncStateSet,
)
from replispec.wire.rocketmq.remoting import RemotingHeader
from tests.conformance.subjects.controller_admin import GoodController
from tests.conformance.subjects.records import Effect, Reply, Tell

ADDRESSES = {1: "127.0.0.1:10001", 2: "127.0.0.1:10002"}
TIMEOUT_MS = 1_000


class World:
    """One controller, a clock that is set by hand, and a connection per broker."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.controller = GoodController(lambda: self.now_s, "127.0.0.1:9878")
        self.effects: list[Effect] = []

    def ask(self, header: Header, body: bytes = b"", channel: int = 0) -> Command:
        """The answer to one request; what else is to be done is in `effects`."""
        request = RemotingHeader(code=header.CODES[0], opaque=7, ext_fields=header.to_ext_fields())
        reply, *self.effects = self.controller.receive(Command(request, body), channel)
        assert isinstance(reply, Reply)
        answer = decode_command(reply.data)
        assert answer.is_answer
        assert answer.header.opaque == 7
        return answer

    def beat(self, broker: int) -> None:
        """A heartbeat of a broker on its own connection."""
        header = BrokerHeartbeatRequest(
            "c", ADDRESSES[broker], "b", broker, heartbeat_timeout_mills=TIMEOUT_MS
        )
        assert self.ask(header, channel=broker).header.code == ResponseCode.SUCCESS

    def alter(self, members: list[int], master_epoch: int, set_epoch: int) -> int:
        """The code that answers a change of the SyncStateSet by broker 1."""
        body = SyncStateSet(broker_ids=members, sync_state_set_epoch=set_epoch).encode()
        header = AlterSyncStateSetRequest("b", master_broker_id=1, master_epoch=master_epoch)
        return self.ask(header, body).header.code

    def replica_info(self) -> GetReplicaInfoResponse:
        """Who is master."""
        return GetReplicaInfoResponse.from_ext_fields(
            self.ask(GetReplicaInfoRequest("b")).header.ext_fields or {}
        )


def notified(effects: list[Effect]) -> list[str]:
    """The addresses that are told who is master."""
    return [effect.address for effect in effects if isinstance(effect, Tell)]


def a_set_with_both() -> World:
    """Broker 1 is master, both are alive and in sync."""
    world = World()
    for broker, address in ADDRESSES.items():
        applied = world.ask(ApplyBrokerIdRequest("c", "b", broker, f"{address};1"))
        assert applied.header.code == ResponseCode.SUCCESS
        world.beat(broker)
    elected = world.ask(ElectMasterRequest("c", "b", broker_id=1))
    header = ElectMasterResponse.from_ext_fields(elected.header.ext_fields or {})
    assert (header.master_broker_id, header.master_epoch, header.sync_state_set_epoch) == (1, 1, 1)
    assert notified(world.effects) == [*ADDRESSES.values()]
    assert world.alter([1, 2], 1, 1) == ResponseCode.SUCCESS
    return world


def test_a_set_is_altered_by_its_master_in_its_epoch_alone() -> None:
    world = a_set_with_both()
    assert world.alter([1], 0, 2) == ResponseCode.CONTROLLER_FENCED_MASTER_EPOCH
    assert world.alter([1], 1, 1) == ResponseCode.CONTROLLER_FENCED_SYNC_STATE_SET_EPOCH
    assert world.alter([1, 3], 1, 2) == ResponseCode.CONTROLLER_INVALID_REPLICAS
    assert world.alter([2], 1, 2) == ResponseCode.CONTROLLER_ALTER_SYNC_STATE_SET_FAILED
    assert world.alter([1], 1, 2) == ResponseCode.SUCCESS


def test_a_master_whose_connection_breaks_is_replaced_at_once() -> None:
    world = a_set_with_both()
    assert notified(world.controller.connection_ended(0, 1)) == [ADDRESSES[2]]
    assert (world.replica_info().master_broker_id, world.replica_info().master_epoch) == (2, 2)


def test_a_master_whose_heartbeats_stop_is_replaced_after_their_timeout() -> None:
    world = a_set_with_both()
    world.now_s = TIMEOUT_MS / 1000
    assert world.controller.tick() == []
    world.beat(2)
    world.now_s += 0.001
    assert [effect.address for effect in world.controller.tick() if isinstance(effect, Tell)] == [
        ADDRESSES[2]
    ]


def test_what_wants_no_answer_gets_none() -> None:
    header = RemotingHeader(code=RequestCode.CONTROLLER_GET_METADATA_INFO, flag=RemotingFlag.ONEWAY)
    assert World().controller.receive(Command(header), 0) == []
    header.flag = RemotingFlag.RESPONSE
    assert World().controller.receive(Command(header), 0) == []
