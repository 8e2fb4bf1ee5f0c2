"""Nothing is called kept that was not compared: with every later master, by where its log truly starts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from replispec.replay.events.observation import Observation, ObservationKind
from replispec.replay.events.rocketmq.epoch_starts import Witnesses
from replispec.runtime.primitives.invariants import Verdict
from tests.replay.expectations import SEND_SURVIVES
from tests.replay.scenarios import two_brokers
from tests.replay.test_judgement import replayed
from tests.replay.test_stream_events import seen
from tests.replay.world import World

KEPT = 5


def fail_over(refused: int, told: Callable[[World], None]) -> World:
    """Broker 2 takes over without the last 5 of 10 messages, refuses some, and stores two."""
    world = two_brokers(messages=KEPT)
    world.send(5)
    world.die(1)
    world.take_over(2)
    world.announce(2)
    for _ in range(refused):
        world.send_in_vain()
    world.send(2)
    told(world)
    return world


def nobody(world: World) -> None:
    """Nothing tells where the epoch of the new master starts."""


def three_brokers() -> World:
    """Broker 2 holds all of 10 messages, broker 3 the first 4."""
    world = World()
    world.come_up(1)
    world.elect(1)
    world.announce(1)
    for number in (2, 3):
        world.come_up(number)
        world.announce(number)
        world.follow(number)
        world.heartbeat(number)
    world.alter((1, 2, 3))
    world.send(4)
    world.replicate(2)
    world.replicate(3)
    world.send(6)
    world.replicate(2)
    world.die(1)
    world.take_over(2)
    world.announce(2)
    return world


def judged(world: World, path: Path) -> tuple[Verdict, int, int, int]:
    """The verdict on acknowledged messages, how many are lost, not judged, and followed."""
    judgement = replayed(world.traffic.packets(), path)
    finding = next(each for each in judgement.findings if each.invariant == SEND_SURVIVES)
    lost = sum(each.acknowledged for each in judgement.losses)
    unknown = finding.counts.get(Verdict.UNKNOWN, 0)
    return finding.verdict, lost, unknown, sum(each.followed for each in judgement.sends)


@pytest.mark.parametrize(("refused", "lost"), [(0, 5), (3, 2), (5, 0), (7, 0)])
def test_behind_the_first_accepted_write_a_message_is_lost_and_before_it_nothing_is_told(
    refused: int, lost: int, tmp_path: Path
) -> None:
    found = judged(fail_over(refused, nobody), tmp_path / "first_write.pcap")
    assert found == (Verdict.VIOLATED if lost else Verdict.UNKNOWN, lost, KEPT + 5 - lost, 0)


@pytest.mark.parametrize("refused", [0, 3, 5])
def test_where_the_start_is_told_every_message_is_judged(refused: int, tmp_path: Path) -> None:
    world = fail_over(refused, lambda world: world.query_epochs(2))
    assert judged(world, tmp_path / "told.pcap") == (Verdict.VIOLATED, 5, 0, KEPT + 5)


def test_the_start_of_one_later_epoch_says_nothing_of_a_still_later_one(tmp_path: Path) -> None:
    world = three_brokers()
    world.follow(3)
    world.die(2)
    assert judged(world, tmp_path / "second.pcap") == (Verdict.OK, 0, 0, 10)
    world.take_over(3)
    world.announce(3)
    assert judged(world, tmp_path / "third.pcap") == (Verdict.UNKNOWN, 0, 10, 0)
    world.query_epochs(3)
    assert judged(world, tmp_path / "told.pcap") == (Verdict.VIOLATED, 6, 0, 10)


def history(*starts: tuple[int, int]) -> Observation:
    """A handshake answer with these epochs and their starts."""
    epochs = [{"epoch": epoch, "start_offset": start} for epoch, start in starts]
    return seen(ObservationKind.ANSWER, 0, epochs=epochs)


@pytest.mark.parametrize(
    ("histories", "named", "unseen"),
    [
        ([], [], -1),
        ([], [1], 1),
        ([[(1, 0)]], [1], -1),
        ([[(1, 0)]], [1, 2], 2),
        ([[(1, 0)], [(1, 0), (3, 50)]], [1, 2, 3], -1),
        ([[(1, 0)], [(3, 50)]], [1, 3], 2),
        ([[(1, 0), (3, 50)]], [1, 2, 3, 4], 4),
        ([[(1, 0), (3, 50)], [(1, 0), (4, 60)]], [1, 2, 3, 4], -1),
        ([[(1, 0), (3, 50)], [(4, 60)]], [1, 2, 3, 4], 2),
        ([[(1, 0), (2**31 - 1, 50)]], [1], -1),
    ],
)
def test_an_epoch_is_seen_when_its_start_is_told_or_the_latest_log_leaves_it_out(
    histories: list[list[tuple[int, int]]], named: list[int], unseen: int
) -> None:
    witnesses = Witnesses()
    for each in histories:
        witnesses.hear(history(*each))
    assert witnesses.unseen(named) == unseen
