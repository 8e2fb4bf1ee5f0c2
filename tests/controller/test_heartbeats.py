"""Whose heartbeats count, at a member of a group that has registered nobody: the registration, and with it
the host of the broker, was the leader's."""

from __future__ import annotations

import pytest

from replispec.controller.rocketmq.core.heartbeats import Heartbeats
from replispec.wire.rocketmq.controller import BrokerHeartbeatRequest

SET, BROKER = "broker-a", 1
RECORDED, TRANSLATED, ELSEWHERE = "10.0.0.1:10911", "192.0.2.1:4000", "192.0.2.2:4000"


def said() -> BrokerHeartbeatRequest:
    """A heartbeat that counts for long."""
    return BrokerHeartbeatRequest(broker_id=BROKER, heartbeat_timeout_mills=60_000)


@pytest.fixture
def follower() -> Heartbeats:
    """A member that knows of the broker what the log says, and heard it first from a translated address."""
    found = Heartbeats(lambda *_: True, lambda *_: RECORDED)
    assert found.heartbeat_received(1, TRANSLATED, SET, BROKER, said())
    return found


def test_a_member_that_registered_nobody_follows_a_broker_to_its_next_connection(
    follower: Heartbeats,
) -> None:
    assert follower.heartbeat_received(2, "192.0.2.1:4001", SET, BROKER, said())
    assert follower.closed(1) == []
    assert follower.is_alive(SET, BROKER)
    assert not follower.has_left(SET, BROKER)


def test_whoever_speaks_for_it_from_another_host_meanwhile_is_a_stranger(follower: Heartbeats) -> None:
    assert not follower.heartbeat_received(2, ELSEWHERE, SET, BROKER, said())
    assert follower.closed(1) == [(SET, BROKER)]


def test_once_it_was_heard_from_where_it_is_on_record_a_translated_address_is_a_strangers(
    follower: Heartbeats,
) -> None:
    assert follower.heartbeat_received(2, RECORDED, SET, BROKER, said())
    assert not follower.heartbeat_received(3, TRANSLATED, SET, BROKER, said())
