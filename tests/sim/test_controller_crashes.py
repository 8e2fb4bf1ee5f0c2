"""A controller that dies inside any change of its disk comes back with all that it said."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from replispec.runtime.sim import Left, World
from replispec.runtime.world import Member
from replispec.wire.rocketmq.codes import ResponseCode
from replispec.wire.rocketmq.controller import BrokerReplicasInfo, ReplicasInfo
from tests.sim.asker import Asker
from tests.sim.controller_script import CONTROLLER, IDS, NAME, controller, heartbeat, script


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
    asker = Asker(CONTROLLER, script(), [heartbeat(broker) for broker in IDS])
    process = world.add("controller", "127.0.0.1", controller)
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
    assert [each for each in WHOLE.changes if each.startswith("replace")] != []
    assert len([each for each in WHOLE.changes if each.startswith("append")]) == 10
    known = WHOLE.state()
    assert known is not None
    assert (known.master_broker_id, known.master_epoch, known.sync_state_set_epoch) == (3, 2, 5)
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
