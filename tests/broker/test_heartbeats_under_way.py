"""A heartbeat that was sent before a master was lost, and arrives after it, makes no shorter log win."""

from __future__ import annotations

import pytest

from tests.broker.simulated_set import OK
from tests.broker.test_promises import texts, trio


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_what_was_said_before_the_loss_is_not_what_is_heard_after_it(seed: int) -> None:
    """Both are as long in their last heartbeats, of which one is still on its way when the master is lost:
    the one of who has more by then."""
    brokers, addresses = trio(seed)
    network = brokers.world.network
    network.block("broker3", "controller")
    brokers.world.run_for(1_100)
    network.block("broker1", "broker2")
    acknowledged = [b"old-%d" % number for number in range(5)]
    assert [brokers.send(addresses[0], text)[0] for text in acknowledged] == [OK] * 5
    brokers.world.kill("broker1")
    brokers.world.run_for(1_100)
    network.unblock("broker3", "controller")
    brokers.until(lambda: any(brokers.broker(number).serves for number in (2, 3)))
    network.heal()
    brokers.until(lambda: brokers.broker(3).serves and brokers.members(3) == {2, 3})
    assert texts(brokers, addresses[2]) == acknowledged
