"""A crash inside any write while members come and go: the change is made in the end, or was never asked."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from replispec.runtime.sim import Left
from replispec.wire.rocketmq.codes import ResponseCode
from tests.sim.changing import FOUNDERS, addition, are_members, comes, member, removal, voters
from tests.sim.controllers import Controllers, asking_the_group
from tests.sim.test_controllers import application, served

NEW = "controller-4"
STEP = 1 if os.environ.get("REPLISPEC_CRASHES") == "all" else 3
"""Of all changes of a disk, every so many one is one that a crash interrupts."""
WAIT_MS = 30_000


def lived(victim: str = "", number: int = 0, left: Left = Left.NOTHING) -> tuple[Controllers, str]:
    """A group gets a fourth member and loses one of the first, its leader, while one of them ends inside a
    change of its disk and is started again soon; who was removed."""
    group = Controllers(20, is_short=True).start()
    served(group)
    leader = group.leader()
    comes(group, NEW)
    if victim:
        group.world.processes[victim].disk.crash_at(number, left)

    def look() -> None:
        process = group.world.processes[victim]
        if not process.is_alive and "was removed" not in (process.failure or ""):
            group.world.start(victim)
        group.world.after(300_000, look)

    if victim:
        group.world.after(300_000, look)
    asker = asking_the_group(group, [addition(NEW)], [])
    assert group.world.run_until(lambda: asker.is_done, at_most_ms=WAIT_MS)
    everybody = FOUNDERS | {NEW}
    assert group.world.run_until(lambda: are_members(group, everybody), at_most_ms=WAIT_MS)
    asker = asking_the_group(group, [removal(leader), application(4)], [])
    assert group.world.run_until(lambda: asker.is_done, at_most_ms=WAIT_MS)
    assert {each.header.code for each in asker.answers} == {ResponseCode.SUCCESS}
    stay = everybody - {leader}
    assert group.world.run_until(lambda: are_members(group, stay), at_most_ms=WAIT_MS), {
        each: voters(group, each) for each in group.living()
    }
    group.world.run_for(5_000)
    return group, leader


def changes() -> Iterator[tuple[str, int]]:
    group, _ = lived()
    for name in group.hosts:
        made = group.world.processes[name].disk.changes
        before = 0 if name == NEW else len(served_before(name))
        assert len(made) > before
        yield from ((name, number) for number in range(1, len(made) - before + 1, STEP))


def served_before(name: str) -> list[str]:
    """The changes of a disk before anybody was to join."""
    group = Controllers(20, is_short=True).start()
    served(group)
    return group.world.processes[name].disk.changes


@pytest.mark.parametrize(("victim", "number"), list(changes()))
def test_a_crash_inside_a_write_while_members_change_costs_nothing(victim: str, number: int) -> None:
    for left in (Left.NOTHING, Left.ALL):
        group, gone = lived(victim, number, left)
        assert group.world.processes[victim].starts > 1
        assert group.records() == 1
        assert gone not in group.living()
        failure = group.world.processes[gone].failure or ""
        assert f"{member(gone)} was removed" in failure
