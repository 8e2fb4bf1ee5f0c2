"""Whom a master asks into its SyncStateSet still keeps up when the question leaves."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from replispec.runtime.sim.world import World
from replispec.wire.rocketmq.constants import ASKED_SET_FILE, IDENTITY_FILE
from tests.broker.simulated_set import OK, BrokerSet

SENT = 20


class StandingDisk:
    """The first broker's disk stands still from when it is to note whom its master asks in, until it is let
    go."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.goes_on: list[Callable[[], None]] = []
        real = World._persist_next

        def next_write(world: World, life: object) -> None:
            waiting = getattr(life, "to_persist")  # noqa: B009
            name = getattr(life, "process").name  # noqa: B009
            is_note = bool(waiting) and ASKED_SET_FILE in str(waiting[0].operations)
            if name == "broker1" and is_note and not self.goes_on:
                self.goes_on.append(lambda: real(world, life))  # type: ignore[arg-type]
                return
            if name != "broker1" or len(self.goes_on) != 1:
                real(world, life)  # type: ignore[arg-type]

        monkeypatch.setattr(World, "_persist_next", next_write)

    def let_go(self) -> None:
        """Go on where it stands."""
        self.goes_on.append(lambda: None)
        self.goes_on[0]()


def test_a_member_that_was_emptied_meanwhile_is_not_asked_in(monkeypatch: pytest.MonkeyPatch) -> None:
    brokers = BrokerSet(3)
    first, _ = brokers.pair()
    brokers.world.kill("broker2")
    brokers.until(lambda: brokers.members(1) == {1})
    assert [brokers.send(first, bytes(400))[0] for _ in range(SENT)] == [OK] * SENT
    brokers.world.run_for(2_000)
    disk = StandingDisk(monkeypatch)
    brokers.world.start("broker2")
    brokers.until(lambda: bool(disk.goes_on))
    brokers.world.kill("broker2")
    contents = brokers.world.processes["broker2"].disk.contents
    for name in [each for each in contents if each != f"store/{IDENTITY_FILE}"]:
        del contents[name]
    # What it copies takes longer than all that follows.
    brokers.world.network.block("broker1", "broker2")
    brokers.world.start("broker2")
    brokers.world.run_for(45_000)
    disk.let_go()
    brokers.world.run_for(5_000)
    assert brokers.members(1) == {1}
    assert brokers.broker(1)._role.counted == {1}
    brokers.world.network.heal()
    brokers.until(lambda: brokers.members(1) == {1, 2})
    assert brokers.broker(2)._log.store.log.end == brokers.broker(1)._log.store.log.end > SENT * 400
