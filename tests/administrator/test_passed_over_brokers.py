"""A broker that was passed over comes back while whoever went on is silent, and name servers know nothing."""

from __future__ import annotations

import pytest

from replispec.administrator.rocketmq import NotAsWantedError
from replispec.cli.rocketmq.admin import logical_queues
from tests.administrator.own_brokers import TOPIC, OwnBrokers
from tests.administrator.test_logical_queues_of_ours import EPOCHS, NAMES, _told, made, move


def test_an_empty_name_server_believes_nobody_who_was_passed_over_while_his_successor_is_silent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every broker that has the topic says which offsets are gone."""
    brokers = OwnBrokers(2)
    made(brokers, queues=1)
    brokers.joins(3)
    brokers.writes(1, 0, 10)
    move(brokers, 0, 2)
    brokers.world.kill("broker2")
    brokers.world.run_for(5_000)
    monkeypatch.setattr(logical_queues, "ask", brokers.carried_out)
    monkeypatch.setattr(logical_queues, "wall_ms", lambda: next(EPOCHS))
    logical_queues.migrate(NAMES, TOPIC, 0, "broker3", 100)
    for name in ("broker3", "nameserver"):
        brokers.world.kill(name)
    brokers.world.start("nameserver")
    brokers.start("broker2")
    brokers.until(lambda: brokers.broker(2).serves, at_most_ms=180_000)
    brokers.world.run_for(40_000)
    with pytest.raises(NotAsWantedError, match="broker2 was passed over at offset 100 of queue 0"):
        brokers.carried_out(_told())
    brokers.start("broker3")
    brokers.until(lambda: brokers.broker(3).serves, at_most_ms=180_000)
    logical_queues.migrate(NAMES, TOPIC, 0, "broker3")
    brokers.world.run_for(3_000)
    assert sorted(brokers.carried_out(_told())[0]) == [0, 1]
