"""What a process asked for before it ended may be decided after it began again, and costs nothing."""

from __future__ import annotations

from unittest.mock import patch

import pytest

from replispec.runtime.sim import NetworkConditions, Pace
from replispec.runtime.world import Member
from replispec.wire.rocketmq.codes import RequestCode
from tests.sim import cluster as clusters
from tests.sim.cluster import BROKERS, CONTROLLER, HOSTS, Cluster, address, build, properties
from tests.sim.gate import Gate
from tests.sim.settings import Settings

GATE = "127.0.0.3:9878"
MASTER, JOINING = BROKERS[:2]
ALTER = RequestCode.CONTROLLER_ALTER_SYNC_STATE_SET


CALM = NetworkConditions(spike_per_mille=0, slow_per_mille=0)


def gated(seed: int, conditions: NetworkConditions = CALM) -> tuple[Cluster, Gate]:
    """A calm cluster of one broker, which is master; what brokers ask their controller passes a gate."""
    gate = Gate(GATE, address(CONTROLLER), {ALTER}, outlives=True)

    def through_the_gate(name: str, settings: Settings) -> dict[str, object]:
        given = dict(properties(name, settings))
        return {**given, "controllerAddr": GATE} if name in BROKERS else given

    with patch.object(clusters, "properties", through_the_gate):
        cluster = build(seed, conditions=conditions, pace=Pace())
    cluster.world.add("gate", GATE.rpartition(":")[0], lambda _: [Member("gate", gate)])
    for name in ("gate", CONTROLLER, "nameserver", MASTER, "client"):
        cluster.world.start(name)
    assert cluster.world.run_until(lambda: cluster.members() == (1,), at_most_ms=30_000)
    return cluster, gate


@pytest.mark.parametrize("seed", range(5))
def test_whom_a_master_asked_in_before_it_began_again_has_all_that_it_acknowledges(seed: int) -> None:
    """The set grows behind its back when the request of its life before arrives; then it ends for good."""
    cluster, gate = gated(seed)
    world, history = cluster.world, cluster.history
    world.start(JOINING)
    asked = (HOSTS[MASTER], ALTER)
    assert world.run_until(
        lambda: gate.find(*asked, is_answer=False) is not None, at_most_ms=30_000, step_ms=1
    )
    # Whatever the joining broker has now is all that it will ever get.
    for one, other in ((MASTER, JOINING), (JOINING, MASTER)):
        world.network.block(one, other)
    epoch = history.views[-1].epoch
    world.kill(MASTER)
    world.start(MASTER)
    world.run_for(3_000)
    assert (history.views[-1].members, history.views[-1].epoch) == ((1,), epoch), "it goes on in its epoch"
    gate.open_wide()
    assert world.run_until(lambda: cluster.members() == (1, 2), at_most_ms=5_000)
    world.kill(MASTER)
    assert world.run_until(lambda: cluster.client.master == address(JOINING), at_most_ms=30_000)
    sent = len(history.acknowledged)
    assert world.run_until(lambda: len(history.acknowledged) > sent, at_most_ms=30_000)
    cluster.client.is_sending = False
    world.run_for(3_000)
    assert history.judge(cluster.messages(JOINING)) == []
