"""Whoever sends damaged requests ends its own connection at most: the broker goes on, and serves others."""

from __future__ import annotations

import random

import pytest

from replispec.wire.kafka.clients import (
    ApacheOffsetForLeaderEpochPartition,
    ApacheOffsetForLeaderEpochRequest,
    ApacheOffsetForLeaderEpochTopic,
)
from replispec.wire.kafka.codes import ApiKey, ErrorCode
from tests.broker_kafka.led import LedCluster, fetch, list_offsets, only, produce, values_in
from tests.wire_kafka.written import WRITTEN

COMMANDS = (ApiKey.LEADER_AND_ISR, ApiKey.STOP_REPLICA, ApiKey.UPDATE_METADATA)
ASKED = 60
NUMBERS = (b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff", b"\x80\0\0\0", b"\0\0\0\x01")
Sound = tuple[int, int, bytes]
"""Key, version and body of a request."""


def _about_a_topic_that_is_there() -> list[Sound]:
    epoch = ApacheOffsetForLeaderEpochPartition(0, current_leader_epoch=0, leader_epoch=0)
    of_epoch = ApacheOffsetForLeaderEpochRequest(
        replica_id=-1, topics=[ApacheOffsetForLeaderEpochTopic("t", [epoch])]
    )
    return [
        *((ApiKey.PRODUCE, version, produce("x").encode(version=version)) for version in (3, 5, 8)),
        *((ApiKey.FETCH, 4, fetch(0, max_wait=wait).encode(version=4)) for wait in (0, 500, -5, 2**31 - 1)),
        (ApiKey.FETCH, 9, fetch(0, epoch=0).encode(version=9)),
        *((ApiKey.OFFSETS, 1, list_offsets(time).encode(version=1)) for time in (-1, -2, 5, 2**63 - 1)),
        (ApiKey.OFFSET_FOR_LEADER_EPOCH, 3, of_epoch.encode(version=3)),
    ]


def _sound() -> list[Sound]:
    """Requests of Kafka's own classes, and as many about a partition that the broker leads."""
    apart = [(each.key, each.version, each.data) for each in WRITTEN if "Request" in each.kind.__name__]
    assert len({key for key, _, _ in apart}) > 8
    return [*apart, *_about_a_topic_that_is_there() * (len(apart) // 10)]


def damaged(rng: random.Random, data: bytes) -> bytes:
    """Some bytes are others, missing, or too many; lengths and counts are those that hurt most."""
    found = bytearray(data)
    for _ in range(rng.choice([0, 1, 1, 2, 5])):
        place = rng.randrange(len(found) + 1)
        how = rng.choice(["byte", "number", "less", "more"])
        if how == "byte" and place < len(found):
            found[place] = rng.choice([0, 1, 0x7F, 0x80, 0xFF])
        elif how == "number":
            found[place : place + 4] = rng.choice(NUMBERS)
        elif how == "less":
            del found[place : place + rng.randint(1, 8)]
        else:
            found[place:place] = rng.randbytes(rng.randint(1, 8))
    return bytes(found)


def _attacked(seed: int, *, commands: bool) -> LedCluster:
    rng = random.Random(seed)
    cluster = LedCluster()
    cluster.administrator.create("t", [1])
    cluster.run(3_000)
    assert only(cluster.ask(produce("a", "b"), 3)).error == ErrorCode.NONE
    sound = [each for each in _sound() if commands or each[0] not in COMMANDS]
    for _ in range(ASKED):
        key, version, data = rng.choice(sound)
        cluster.client.connections.clear()
        cluster.send(damaged(rng, data), version, key=key)
        cluster.run(rng.choice([1, 50, 2_000]))
    return cluster


@pytest.mark.parametrize("seed", range(6))
def test_damaged_requests_cost_others_nothing(seed: int) -> None:
    cluster = _attacked(seed, commands=False)
    askers = cluster.node().askers
    assert 0 < askers.dropped < askers.served
    cluster.client.connections.clear()
    assert only(cluster.ask(produce("last"), 3)).error == ErrorCode.NONE
    found = values_in(only(cluster.ask(fetch(0), 4)).records)
    assert found[:2] == ["a", "b"]
    assert found[-1] == "last"


@pytest.mark.parametrize("seed", range(6))
def test_damaged_commands_end_no_broker(seed: int) -> None:
    """Nobody is asked who he is: a command that can be read is carried out, whatever it says."""
    cluster = _attacked(seed, commands=True)
    assert cluster.world.processes["broker-1"].lives
    cluster.client.connections.clear()
    assert cluster.ask(list_offsets(-1), 1).topics
