"""A master that begins again in its epoch lets nobody into its set who lacks what it had acknowledged."""

from __future__ import annotations

import pytest

from replispec.runtime.sim import NetworkConditions
from replispec.wire.rocketmq.codes import RequestCode
from tests.sim.cluster import BROKERS, CONTROLLER, HOSTS
from tests.sim.test_late_requests import gated

MASTER, MEMBER, NEW = BROKERS
# The log takes longer to copy than a request takes.
NARROW = NetworkConditions(latency_us=5_000, spike_per_mille=0, slow_per_mille=0, kernel_bytes=2_000)
ALTER = RequestCode.CONTROLLER_ALTER_SYNC_STATE_SET


@pytest.mark.parametrize("seed", range(3))
def test_who_asks_a_master_that_began_again_first_joins_with_all_that_it_may_have_acknowledged(
    seed: int,
) -> None:
    """All end at once, and one member does not come back: nobody can say what is confirmed."""
    cluster, gate = gated(seed, NARROW)
    world, history = cluster.world, cluster.history
    gate.open_wide()
    world.start(MEMBER)
    assert world.run_until(lambda: cluster.members() == (1, 2), at_most_ms=30_000)
    sent = len(history.acknowledged)
    assert world.run_until(lambda: len(history.acknowledged) > sent + 50, at_most_ms=60_000)
    cluster.client.is_sending = False
    world.run_for(500)
    epoch = history.views[-1].epoch
    for name in (CONTROLLER, MASTER, MEMBER):
        world.kill(name)
    gate.is_wide_open = False
    for name in (CONTROLLER, MASTER, NEW):
        world.start(name)
    asked = (HOSTS[MASTER], ALTER)
    assert world.run_until(
        lambda: gate.find(*asked, is_answer=False) is not None, at_most_ms=60_000, step_ms=1
    )
    assert history.views[-1].epoch == epoch, "it goes on in its epoch"
    # Whom it asks in may be elected as soon as it is in the set.
    held = cluster.messages(NEW)
    missing = [number for number, place in history.acknowledged.items() if held.get(place) != number]
    assert missing == []
