"""A controller that dies inside any change of its disk comes back with all that it said."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import pytest

from replispec.controller.node import ControllerNode
from replispec.controller.options import Options
from replispec.runtime.sim import Left, World
from replispec.runtime.storage import Storage
from replispec.runtime.world import Member
from replispec.wire.rocketmq.codes import RequestCode, ResponseCode
from replispec.wire.rocketmq.controller import (
    AlterSyncStateSetRequest,
    ApplyBrokerIdRequest,
    BrokerHeartbeatRequest,
    BrokerNames,
    BrokerReplicasInfo,
    CleanBrokerDataRequest,
    ElectMasterRequest,
    GetNextBrokerIdRequest,
    GetSyncStateDataRequest,
    RegisterBrokerToControllerRequest,
    ReplicasInfo,
    SyncStateSet,
)
from tests.sim.asker import Asker, Question

CONTROLLER = "127.0.0.1:9878"
CLUSTER, NAME = "c", "set"
IDS = (1, 2, 3)


class Header(Protocol):
    def to_ext_fields(self) -> dict[str, str | None]: ...


def address(broker: int) -> str:
    return f"127.0.0.1{broker}:10911"


def question(code: RequestCode, header: Header, body: bytes = b"") -> Question:
    return Question(code, header.to_ext_fields(), body)


def heartbeat(broker: int) -> Question:
    header = BrokerHeartbeatRequest(
        CLUSTER, address(broker), NAME, broker, epoch=1, max_offset=100, heartbeat_timeout_mills=60_000
    )
    return question(RequestCode.BROKER_HEARTBEAT, header)


def alteration(epoch: int, members: list[int]) -> Question:
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


@dataclass
class Lived:
    """One life of a controller, or two."""

    asker: Asker
    changes: list[str]
    starts: int

    def state(self) -> ReplicasInfo | None:
        """What the controller says of the set at the end; None when it knows none."""
        table = BrokerReplicasInfo.decode(self.asker.answers[-1].body).replicas_info_table or {}
        return table.get(NAME)


def live(*crashes: tuple[int, Left], keeps_flushes: bool = True) -> Lived:
    """Ask everything, with crashes inside changes of the disk, each counted from the one before."""
    world = World(7)

    def make(storage: Storage) -> list[Member]:
        return [Member("controller", ControllerNode(Options(CONTROLLER), storage.journal("log")))]

    asker = Asker(CONTROLLER, script(), [heartbeat(broker) for broker in IDS])
    process = world.add("controller", "127.0.0.1", make)
    world.add("asker", "127.0.0.2", lambda _: [Member("asker", asker)])
    process.disk.keeps_flushes = keeps_flushes
    waiting = list(crashes)
    if waiting:
        process.disk.crash_at(*waiting.pop(0))
    world.start("controller")
    world.start("asker")
    for _ in range(100):
        world.run_for(100)
        if not process.is_alive:
            if waiting:
                process.disk.crash_at(*waiting.pop(0))
            world.start("controller")
        if asker.is_done:
            return Lived(asker, process.disk.changes, process.starts)
    raise AssertionError(f"question {len(asker.answers)} is not answered")


WHOLE = live()


def test_the_script_changes_the_disk_with_each_decision() -> None:
    assert WHOLE.starts == 1
    assert len(WHOLE.changes) == 10
    told = WHOLE.state()
    assert told is not None
    assert (told.master_broker_id, told.master_epoch, told.sync_state_set_epoch) == (3, 2, 5)
    assert {answer.header.code for answer in WHOLE.asker.answers} == {ResponseCode.SUCCESS}


@pytest.mark.parametrize("left", [Left.NOTHING, Left.ALL], ids=lambda left: left.value)
@pytest.mark.parametrize("number", range(1, len(WHOLE.changes) + 1))
def test_a_crash_inside_any_change_costs_nothing_that_was_said(number: int, left: Left) -> None:
    lived = live((number, left))
    assert lived.starts == 2
    assert lived.state() == WHOLE.state()


@pytest.mark.parametrize("number", range(1, len(WHOLE.changes) + 1))
def test_a_second_crash_soon_after_the_first_costs_nothing_either(number: int) -> None:
    for left in (Left.NOTHING, Left.ALL):
        for later in (1, 2, 3):
            lived = live((number, left), (later, Left.ALL), (1, Left.NOTHING))
            assert lived.state() == WHOLE.state()


def test_a_disk_that_lies_is_noticed() -> None:
    """What these tests would show if the controller answered before its log was on the disk."""
    wrong = 0
    for number in range(2, len(WHOLE.changes) + 1):
        for left in (Left.NOTHING, Left.ALL):
            wrong += live((number, left), keeps_flushes=False).state() != WHOLE.state()
    assert wrong >= 3
