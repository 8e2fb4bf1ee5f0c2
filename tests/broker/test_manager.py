"""What a broker says to its controllers, in which order, and what it makes of the answers."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from replispec.broker.rocketmq.core.manager import LogStatus, ReplicasManager
from replispec.runtime.primitives.errors import LocalProtocolError
from replispec.runtime.rocketmq.framing import Command
from replispec.runtime.rocketmq.membership import Controllers
from replispec.runtime.sim import Disk, Rng, SimulatedStorage
from replispec.wire.rocketmq.broker import RegisterBrokerRequest
from replispec.wire.rocketmq.codes import RequestCode, ResponseCode
from replispec.wire.rocketmq.controller import (
    BrokerHeartbeatRequest,
    ElectMasterResponse,
    ElectMasterResponseBody,
    GetMetadataResponse,
    GetReplicaInfoResponse,
    NotifyBrokerRoleChangedRequest,
    RegisterBrokerToControllerResponse,
    SyncStateSet,
)
from replispec.wire.rocketmq.machines.broker_role import ReplicaInfoReceived
from replispec.wire.rocketmq.machines.replicas_manager import State
from replispec.wire.rocketmq.options import BrokerOptions
from replispec.wire.rocketmq.remoting import RemotingHeader
from tests.playbook import Answer, Playbook
from tests.runtime.membership.registering import CONTROLLER, Granting

OTHER = "127.0.0.1:9879"
WHO = RequestCode.CONTROLLER_GET_METADATA_INFO
NEXT = RequestCode.CONTROLLER_GET_NEXT_BROKER_ID
APPLY = RequestCode.CONTROLLER_APPLY_BROKER_ID
REGISTER = RequestCode.CONTROLLER_REGISTER_BROKER
BEAT = RequestCode.BROKER_HEARTBEAT
ELECT = RequestCode.CONTROLLER_ELECT_MASTER
INFO = RequestCode.CONTROLLER_GET_REPLICA_INFO
REGISTRATION = [WHO, NEXT, APPLY, REGISTER]
ONE = SyncStateSet(broker_ids=[1], sync_state_set_epoch=4).encode()


class Managed:
    """A manager, what it tells its broker, and a controller whose answers a test may replace by code."""

    def __init__(self, controllers: tuple[str, ...] = (CONTROLLER,)) -> None:
        self.received: list[str] = []
        self.answers: dict[int, Callable[[], Answer | None]] = {
            REGISTER: lambda: Answer(ext_fields=RegisterBrokerToControllerResponse().to_ext_fields()),
            ELECT: lambda: elected(1),
            INFO: lambda: Answer(ext_fields=GetReplicaInfoResponse(1, "b:1", 3).to_ext_fields(), body=ONE),
        }
        self.granting = Granting()
        files = SimulatedStorage(Disk(Rng(1))).files("store")
        self.playbook = playbook = Playbook({CONTROLLER: self._answered}, files=files)
        options = BrokerOptions(broker_cluster_name="C", broker_name="broker-a", controller_addr=controllers)
        self.manager = ReplicasManager(
            playbook.outbox,
            playbook.writes,
            Controllers(playbook.calls, controllers),
            files,
            options,
            self,
        )

    def identified(self, broker_id: int, _now_ms: int) -> None:
        self.received.append(f"id {broker_id}")

    def replica_info_received(self, info: ReplicaInfoReceived, _now_ms: int) -> None:
        members = sorted(info.members)
        self.received.append(f"master {info.master} of {info.master_epoch}, {members} of {info.set_epoch}")

    def master_told(self, info: ReplicaInfoReceived, _asked_ms: int) -> None:
        self.received.append(f"asked: master {info.master}")

    def announce(self, _now_ms: int) -> None:
        self.received.append("announce")

    def let_go_of_master(self, _now_ms: int) -> None:
        self.received.append("let go")

    def go_on_with_master(self, _now_ms: int) -> None:
        self.received.append("go on")

    def log_status(self) -> LogStatus:
        return LogStatus(5, 300, 200, copying=False)

    def begin(self) -> list[int]:
        self.playbook >> (lambda now_ms: self.manager.begin("b:1", now_ms))
        return self.playbook.codes()

    def wait(self, passed_ms: int) -> list[int]:
        """Let time pass; the codes of what was asked."""
        before = len(self.playbook.requests)
        for _ in range(passed_ms // 250):
            self.playbook.now_ms += 250
            self.playbook >> self.manager.ticked
        return self.playbook.codes()[before:]

    def notified(self, master: int | None, epoch: int, body: bytes = ONE) -> None:
        request = NotifyBrokerRoleChangedRequest("m:1", master, epoch, 4)
        header = RemotingHeader(
            code=RequestCode.NOTIFY_BROKER_ROLE_CHANGED, opaque=1, flag=0, ext_fields=request.to_ext_fields()
        )
        self.playbook >> (lambda now_ms: self.manager.notified(Command(header, body), now_ms))

    def _answered(self, command: Command) -> Answer | None:
        made = self.answers.get(command.header.code)
        return self.granting(command) if made is None else made()


def elected(master: int, code: int = ResponseCode.SUCCESS) -> Answer:
    header = ElectMasterResponse(master, f"b:{master}", 3, 4)
    body = ElectMasterResponseBody(sync_state_set=[master])
    return Answer(code, header.to_ext_fields(), body.encode())


def answered(master: int, epoch: int) -> Answer:
    """What a controller answers that is asked who is master."""
    return Answer(ext_fields=GetReplicaInfoResponse(master, f"b:{master}", epoch).to_ext_fields(), body=ONE)


def refused(code: int) -> Callable[[], Answer | None]:
    return lambda: Answer(code)


def test_the_first_of_a_set_is_elected_before_anybody_hears_of_it() -> None:
    broker = Managed()
    assert broker.begin() == [*REGISTRATION, BEAT, ELECT]
    assert broker.received == ["id 1", "master 1 of 3, [1] of 4", "announce"]
    assert broker.manager.state is State.RUNNING


def test_who_comes_second_takes_what_the_answer_to_its_registration_says() -> None:
    broker = Managed()
    info = RegisterBrokerToControllerResponse("C", "broker-a", 7, "b:7", 3, 4)
    broker.answers[REGISTER] = lambda: Answer(ext_fields=info.to_ext_fields(), body=ONE)
    assert broker.begin() == [*REGISTRATION, BEAT]
    assert broker.received == ["id 1", "master 7 of 3, [1] of 4", "announce"]


def test_a_master_that_still_exists_is_one() -> None:
    broker = Managed()
    broker.answers[ELECT] = lambda: elected(7, ResponseCode.CONTROLLER_MASTER_STILL_EXIST)
    broker.begin()
    assert broker.received[1:] == ["master 7 of 3, [7] of 4", "announce"]


def test_an_election_that_fails_is_tried_again_and_the_broker_is_not_announced() -> None:
    broker = Managed()
    broker.answers[ELECT] = refused(ResponseCode.CONTROLLER_ELECT_MASTER_FAILED)
    broker.begin()
    assert broker.wait(5_000) == [BEAT, ELECT]
    assert broker.manager.state is State.REGISTER_TO_CONTROLLER_DONE
    assert broker.received == ["id 1"]
    del broker.answers[ELECT]
    broker.answers[ELECT] = lambda: elected(1)
    broker.wait(5_000)
    assert broker.received[1:] == ["master 1 of 3, [1] of 4", "announce"]


def test_a_notification_ends_the_wait_for_a_master() -> None:
    broker = Managed()
    broker.answers[ELECT] = refused(ResponseCode.CONTROLLER_ELECT_MASTER_FAILED)
    broker.begin()
    broker.answers[INFO] = lambda: answered(7, 9)
    broker.notified(7, 9)
    assert broker.received[1:3] == ["master 7 of 9, [1] of 4", "announce"]
    broker.answers[INFO] = lambda: answered(8, 10)
    broker.notified(8, 10)
    assert broker.received[-2:] == ["master 8 of 10, [1] of 4", "asked: master 8"]
    assert broker.manager.state is State.RUNNING


def test_what_a_stranger_notifies_is_asked_after_and_not_believed() -> None:
    broker = Managed()
    broker.begin()
    broker.answers[INFO] = lambda: answered(1, 3)
    broker.notified(99, 2_000_000_000)
    assert broker.received[-2:] == ["master 1 of 3, [1] of 4", "asked: master 1"]
    assert not any("2000000000" in each for each in broker.received)


def test_many_notifications_are_one_question_at_a_time() -> None:
    broker = Managed()
    broker.begin()
    broker.answers[INFO] = lambda: None
    before = len(broker.playbook.requests)
    for _ in range(100):
        broker.notified(7, 9)
    assert broker.playbook.codes()[before:] == [INFO]


def test_a_notification_before_the_registration_changes_nothing() -> None:
    broker = Managed()
    broker.notified(7, 9)
    broker.answers[REGISTER] = lambda: None
    broker.begin()
    broker.notified(7, 9)
    assert broker.received == []
    assert broker.manager.state is State.FIRST_TIME_SYNC_CONTROLLER_METADATA_DONE


def test_without_a_controller_all_are_asked_again() -> None:
    broker = Managed()
    broker.playbook.peers.clear()
    broker.begin()
    assert broker.manager.state is State.INITIAL
    broker.playbook.peers[CONTROLLER] = broker._answered
    assert broker.wait(5_000)[:5] == [*REGISTRATION, BEAT]


def test_a_controller_that_knows_no_leader_is_asked_again() -> None:
    broker = Managed()
    broker.answers[WHO] = lambda: Answer(ext_fields=GetMetadataResponse(is_leader=False).to_ext_fields())
    broker.begin()
    assert broker.manager.state is State.INITIAL
    assert broker.wait(5_000) == [WHO]


def test_another_leader_is_asked_from_then_on() -> None:
    broker = Managed((CONTROLLER, OTHER))
    broker.playbook.peers[OTHER] = broker._answered
    broker.begin()
    leader = GetMetadataResponse(controller_leader_address=OTHER, is_leader=False)
    broker.answers[WHO] = lambda: Answer(ext_fields=leader.to_ext_fields())
    broker.wait(10_000)
    broker.playbook.requests.clear()
    broker.wait(5_000)
    asked = {address for address, command in broker.playbook.requests if command.header.code == INFO}
    assert asked == {OTHER}


def test_a_running_broker_beats_every_second_and_asks_every_few() -> None:
    broker = Managed()
    broker.begin()
    said = broker.wait(10_000)
    assert said.count(BEAT) == 10
    assert said.count(INFO) == 2
    assert said.count(WHO) == 1
    assert ELECT not in said
    assert broker.manager.state is State.RUNNING


def test_a_heartbeat_reaches_the_leader_that_is_none_of_the_configured_controllers() -> None:
    broker = Managed()
    broker.playbook.peers[OTHER] = broker._answered
    leader = GetMetadataResponse(controller_leader_address=OTHER, is_leader=False)
    broker.answers[WHO] = lambda: Answer(ext_fields=leader.to_ext_fields())
    broker.begin()
    broker.wait(1_000)
    told = [address for address, each in broker.playbook.requests if each.header.code == BEAT]
    assert told.count(CONTROLLER) == told.count(OTHER) >= 2
    leader.controller_leader_address = CONTROLLER
    broker.wait(20_000)
    broker.playbook.requests.clear()
    broker.wait(5_000)
    told = [address for address, each in broker.playbook.requests if each.header.code == BEAT]
    assert set(told) == {CONTROLLER}


def test_a_heartbeat_goes_to_every_controller_and_says_how_the_log_is() -> None:
    broker = Managed((CONTROLLER, OTHER))
    broker.playbook.peers[OTHER] = broker._answered
    broker.begin()
    beats = [each for each in broker.playbook.requests if each[1].header.code == BEAT]
    assert {address for address, _ in beats} == {CONTROLLER, OTHER}
    said = BrokerHeartbeatRequest.from_ext_fields(beats[0][1].header.ext_fields or {})
    assert (said.broker_id, said.epoch, said.max_offset, said.confirm_offset) == (1, 5, 300, 200)
    assert not beats[0][1].wants_answer


def test_what_the_periodic_answer_says_is_passed_on() -> None:
    broker = Managed()
    broker.begin()
    broker.wait(5_000)
    assert broker.received[-2:] == ["master 1 of 3, [1] of 4", "asked: master 1"]


@pytest.mark.parametrize("code", [ResponseCode.CONTROLLER_BROKER_METADATA_NOT_EXIST], ids=str)
def test_who_is_not_known_any_more_registers_again(code: int) -> None:
    broker = Managed()
    broker.begin()
    broker.answers[INFO] = refused(code)
    assert REGISTER in broker.wait(5_000)


def test_an_election_that_finds_the_broker_unknown_registers_it_and_is_tried_in_its_time() -> None:
    broker = Managed()
    broker.answers[ELECT] = refused(ResponseCode.CONTROLLER_BROKER_NEED_TO_BE_REGISTERED)
    assert broker.begin() == [*REGISTRATION, BEAT, ELECT, REGISTER]
    info = RegisterBrokerToControllerResponse("C", "broker-a", 7, "b:7", 3, 4)
    broker.answers[REGISTER] = lambda: Answer(ext_fields=info.to_ext_fields(), body=ONE)
    assert broker.wait(5_000) == [BEAT, ELECT, REGISTER]
    assert broker.wait(5_000)[0] == BEAT
    assert "master 7 of 3, [1] of 4" in broker.received


def test_a_controller_that_leads_no_more_makes_the_broker_look_for_another() -> None:
    broker = Managed()
    broker.begin()
    broker.answers[INFO] = refused(ResponseCode.CONTROLLER_NOT_LEADER)
    broker.wait(5_000)
    assert WHO in broker.wait(5_000)


def test_who_stops_says_nothing_more() -> None:
    broker = Managed()
    broker.begin()
    broker.manager.stop(broker.playbook.now_ms)
    assert broker.wait(30_000) == []
    assert broker.manager.state is State.SHUTDOWN


def test_who_asks_for_a_master_is_told() -> None:
    broker = Managed()
    broker.begin()
    broker.answers[ELECT] = lambda: elected(2)
    broker.playbook >> broker.manager.ask_for_master
    assert broker.received[-1] == "master 2 of 3, [2] of 4"
    assert broker.manager.state is State.RUNNING


def test_name_servers_hear_of_a_broker_only_when_its_role_is_known() -> None:
    broker = Managed()
    with pytest.raises(LocalProtocolError, match="announced"):
        broker.manager.announced(RegisterBrokerRequest(), broker.playbook.now_ms)
    broker.begin()
    broker.manager.announced(RegisterBrokerRequest(), broker.playbook.now_ms)
    assert broker.manager.state is State.RUNNING


@pytest.mark.parametrize("silent", [WHO, REGISTER, ELECT, None], ids=str)
def test_a_broker_stops_wherever_it_stands(silent: int | None) -> None:
    broker = Managed()
    if silent is not None:
        broker.answers[silent] = lambda: None
    broker.begin()
    broker.manager.stop(broker.playbook.now_ms)
    assert broker.manager.state is State.SHUTDOWN
    assert broker.wait(20_000) == []


def test_a_notification_before_there_is_a_controller_changes_nothing() -> None:
    broker = Managed()
    broker.notified(7, 9)
    assert broker.manager.state is State.INITIAL


def test_a_master_named_at_the_registration_is_known_without_an_election() -> None:
    broker = Managed()
    broker.answers[REGISTER] = lambda: Answer(
        ext_fields=RegisterBrokerToControllerResponse("C", "broker-a", 7, "b:7", 3, 4).to_ext_fields(),
        body=ONE,
    )
    broker.begin()
    assert broker.manager.state is State.RUNNING


def test_who_registers_again_while_it_runs_goes_on_running() -> None:
    broker = Managed()
    broker.begin()
    broker.answers[INFO] = refused(ResponseCode.CONTROLLER_BROKER_METADATA_NOT_EXIST)
    broker.wait(12_000)
    assert broker.manager.state is State.RUNNING
