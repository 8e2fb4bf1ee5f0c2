"""What brokers ask a controller in the life of one broker set, one question after the other."""

from __future__ import annotations

from typing import Protocol

from replispec.controller.rocketmq.node import ControllerNode
from replispec.runtime.storage import Storage, Stores
from replispec.runtime.world import Member
from replispec.wire.rocketmq.codes import RequestCode
from replispec.wire.rocketmq.controller import (
    AlterSyncStateSetRequest,
    ApplyBrokerIdRequest,
    BrokerHeartbeatRequest,
    BrokerNames,
    CleanBrokerDataRequest,
    ElectMasterRequest,
    GetNextBrokerIdRequest,
    GetSyncStateDataRequest,
    RegisterBrokerToControllerRequest,
    SyncStateSet,
)
from replispec.wire.rocketmq.options import ControllerOptions
from tests.sim.asker import Question

CONTROLLER = "127.0.0.1:9878"
CLUSTER, NAME = "c", "set"
IDS = (1, 2, 3)


class Header(Protocol):
    """A typed header of a request."""

    def to_ext_fields(self) -> dict[str, str | None]:
        """The ext fields."""
        ...


def address(broker: int) -> str:
    """Where a broker is reached."""
    return f"127.0.0.1{broker}:10911"


def question(code: RequestCode, header: Header, body: bytes = b"") -> Question:
    """A question with a typed header."""
    return Question(code, header.to_ext_fields(), body)


def heartbeat(broker: int) -> Question:
    """904."""
    header = BrokerHeartbeatRequest(
        CLUSTER, address(broker), NAME, broker, epoch=1, max_offset=100, heartbeat_timeout_mills=60_000
    )
    return question(RequestCode.BROKER_HEARTBEAT, header)


def alteration(epoch: int, members: list[int]) -> Question:
    """1001, of master 1 in masterEpoch 1."""
    body = SyncStateSet(broker_ids=members, sync_state_set_epoch=epoch).encode()
    header = AlterSyncStateSetRequest(NAME, master_broker_id=1, master_epoch=1)
    return question(RequestCode.CONTROLLER_ALTER_SYNC_STATE_SET, header, body)


def script() -> list[Question]:
    """Three brokers get an identity, one becomes master, the set grows and shrinks, another is elected,
    and one is removed."""
    found = []
    for broker in IDS:
        code = f"{address(broker)};{broker}"
        found += [
            question(RequestCode.CONTROLLER_GET_NEXT_BROKER_ID, GetNextBrokerIdRequest(CLUSTER, NAME)),
            question(
                RequestCode.CONTROLLER_APPLY_BROKER_ID, ApplyBrokerIdRequest(CLUSTER, NAME, broker, code)
            ),
            question(
                RequestCode.CONTROLLER_REGISTER_BROKER,
                RegisterBrokerToControllerRequest(CLUSTER, NAME, broker, address(broker)),
            ),
            heartbeat(broker),
        ]
    wish = ElectMasterRequest(CLUSTER, NAME, broker_id=3, designate_elect=True)
    cleaning = CleanBrokerDataRequest(CLUSTER, NAME, broker_controller_ids_to_clean="2")
    cleaning.is_clean_living_broker = True
    return [
        *found,
        question(RequestCode.CONTROLLER_ELECT_MASTER, ElectMasterRequest(CLUSTER, NAME, broker_id=1)),
        alteration(1, [1, 2]),
        alteration(2, [1, 2, 3]),
        alteration(3, [1, 3]),
        question(RequestCode.CONTROLLER_ELECT_MASTER, wish),
        question(RequestCode.CLEAN_BROKER_DATA, cleaning),
        question(
            RequestCode.CONTROLLER_GET_SYNC_STATE_DATA,
            GetSyncStateDataRequest(),
            BrokerNames(names=[NAME]).encode(),
        ),
    ]


def controller(storage: Storage) -> list[Member]:
    """What a controller's process holds."""
    journal = storage.journal("log")
    node = ControllerNode(ControllerOptions(), journal, snapshot_records=4)
    return [Member("controller", node, Stores(journal=journal))]
