"""A controller that grants ids, and a broker that registers with it; each step in memory."""

from __future__ import annotations

from replispec.runtime.rocketmq.framing import Command
from replispec.runtime.rocketmq.membership import Controllers, IdentityFiles, Registration
from replispec.runtime.sim import Disk, SimulatedFiles
from replispec.wire.rocketmq.codes import RequestCode, ResponseCode
from replispec.wire.rocketmq.controller import (
    ApplyBrokerIdRequest,
    GetMetadataResponse,
    GetNextBrokerIdResponse,
    RegisterBrokerToControllerRequest,
    RegisterBrokerToControllerResponse,
    SyncStateSet,
)
from replispec.wire.rocketmq.options import BrokerOptions
from tests.playbook import Answer, Playbook

CONTROLLER = "127.0.0.1:9878"
CLUSTER, BROKER = "C", "broker-a"
MASTER = 7
OPTIONS = BrokerOptions(broker_name=BROKER)


class Granting:
    """Grants ids as the proposal says. Answers to codes in `lost` never arrive; `names_free` is whether a
    refusal names the next id; `rival`: another broker takes the next id that is applied for, just before."""

    def __init__(self, *, names_free: bool = False) -> None:
        self.codes: dict[int, str] = {}
        self.addresses: dict[int, str] = {}
        self.lost: set[int] = set()
        self.names_free = names_free
        self.rival = False

    @property
    def next_id(self) -> int:
        return max(self.codes, default=0) + 1

    def __call__(self, command: Command) -> Answer | None:
        fields = command.header.ext_fields or {}
        answer = self._answer(command.header.code, fields)
        return None if command.header.code in self.lost else answer

    def _answer(self, code: int, fields: dict[str, str | None]) -> Answer:
        match code:
            case RequestCode.CONTROLLER_GET_METADATA_INFO:
                received = GetMetadataResponse(controller_leader_address=CONTROLLER, is_leader=True)
                return Answer(ext_fields=received.to_ext_fields())
            case RequestCode.CONTROLLER_GET_NEXT_BROKER_ID:
                return Answer(
                    ext_fields=GetNextBrokerIdResponse(CLUSTER, BROKER, self.next_id).to_ext_fields()
                )
            case RequestCode.CONTROLLER_APPLY_BROKER_ID:
                return self._applied(ApplyBrokerIdRequest.from_ext_fields(fields))
            case _:
                return self._registered(RegisterBrokerToControllerRequest.from_ext_fields(fields))

    def _applied(self, request: ApplyBrokerIdRequest) -> Answer:
        broker_id, code = request.applied_broker_id or 0, request.register_check_code or ""
        if self.rival:
            self.codes[broker_id] = "another;1"
            self.rival = False
        if self.codes.get(broker_id) != code and broker_id != self.next_id:
            free = GetNextBrokerIdResponse(next_broker_id=self.next_id).to_ext_fields()
            return Answer(ResponseCode.CONTROLLER_BROKER_ID_INVALID, free if self.names_free else {})
        self.codes[broker_id] = code
        return Answer()

    def _registered(self, request: RegisterBrokerToControllerRequest) -> Answer:
        broker_id = request.broker_id or 0
        if broker_id not in self.codes:
            return Answer(ResponseCode.CONTROLLER_BROKER_NEED_TO_BE_REGISTERED)
        self.addresses[broker_id] = request.broker_address or ""
        received = RegisterBrokerToControllerResponse(CLUSTER, BROKER, MASTER, "127.0.0.1:1", 3, 4)
        return Answer(ext_fields=received.to_ext_fields(), body=b'{"syncStateSet":[7],"syncStateSetEpoch":4}')


class Registering:
    """One life of a broker that registers: a process on a disk."""

    def __init__(
        self, disk: Disk, controller: Granting, *, cluster: str = CLUSTER, at_ms: int = 1_000
    ) -> None:
        files = SimulatedFiles(disk)
        self.playbook = Playbook({CONTROLLER: controller}, files=files, now_ms=at_ms)
        self.received: list[tuple[int | None, int | None]] = []
        self._controllers = Controllers(self.playbook.calls, [CONTROLLER])
        self.registration = Registration(
            self.playbook.outbox,
            self.playbook.writes,
            self._controllers,
            IdentityFiles(files, cluster, BROKER),
            cluster_name=cluster,
            broker_name=BROKER,
            options=OPTIONS,
            registered=self._registered,
            failed=lambda _now_ms: None,
        )

    def begin(self, address: str = "127.0.0.1:10911") -> None:
        """Find the controller and register."""
        self.playbook >> (lambda now_ms: self._controllers.find_leader(lambda _leader, _now_ms: None, now_ms))
        self.playbook >> (lambda now_ms: self.registration.begin(address, now_ms))

    def wait(self, passed_ms: int) -> None:
        """Let time pass."""
        self.playbook.now_ms += passed_ms
        self.playbook >> self.registration.ticked

    def _registered(self, answer: Command, _now_ms: int) -> None:
        header = RegisterBrokerToControllerResponse.from_ext_fields(answer.header.ext_fields or {})
        members = SyncStateSet.decode(answer.body)
        self.received.append((header.master_broker_id, members.sync_state_set_epoch))
