"""Captures of right traffic of which much is missing, or otherwise than it was: nobody is blamed.

Traffic that was written for the rules, that of Java's brokers, and of our nodes, simulated under faults.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import pytest

from replispec.replay.events.observation import ends_of
from tests.replay.faults import written
from tests.replay.logical_queue_faults import LOGICAL_FAULTS
from tests.replay.logical_queues import logical_queues
from tests.replay.partial import some_of
from tests.replay.pcap_writer import Packet, pcap
from tests.replay.queue_faults import STATIC_FAULTS, Fault
from tests.replay.queues import ADMIN, CONSUMER, FIRST_EPOCH, PRODUCER, SECOND_EPOCH, World, static_topic
from tests.replay.test_queue_lives import deleted, frames_of, made_again
from tests.replay.test_queues import clean, judged, judged_packets
from tests.sim.logical_run import LogicalRun
from tests.sim.queue_run import StaticRun
from tests.sim.queue_world import drawn
from tests.sim.wiretap import Wiretap

WAYS = int(os.environ.get("REPLISPEC_PARTIAL_CAPTURES", "4"))
"""How many captures are made of each story; of each world of nodes a third."""
RAW_IP, ETHERNET = 101, 1
OF_THE_ORDER_ALONE = ("routes-are-the-newest",)
"""What is said to be known of Java where only the order of connections tells it."""


def blamed(packets: Sequence[Packet], path: Path, link_type: int = ETHERNET) -> list[tuple[str, str]]:
    """The rules that are broken, each with what is said of it."""
    path.write_bytes(pcap(packets, nanoseconds=True, link_type=link_type))
    return [
        (each.invariant, each.says)
        for each in judged(path)
        if each.verdict.value in ("violated", "diverged") and each.invariant not in OF_THE_ORDER_ALONE
    ]


def remade(epoch: int, *, captured: bool) -> World:
    """A topic that was deleted, seen or not, and made again."""
    world = static_topic()
    return made_again(deleted(world) if captured else world, epoch)


STORIES: dict[str, Callable[[], World]] = {
    "static": static_topic,
    "logical": logical_queues,
    "made again": lambda: remade(SECOND_EPOCH + 50, captured=True),
    "made again unseen": lambda: remade(SECOND_EPOCH + 50, captured=False),
    "made again unseen by a slow clock": lambda: remade(FIRST_EPOCH + 50, captured=False),
}


@pytest.mark.parametrize("seed", range(WAYS))
@pytest.mark.parametrize("story", STORIES)
def test_what_is_left_of_a_capture_of_a_story_blames_nobody(story: str, seed: int, tmp_path: Path) -> None:
    packets = written(frames_of(STORIES[story](), tmp_path))
    left = some_of(packets, random.Random(seed))
    if "again" in story:
        # Without what was set nothing tells two topics from one that gives an offset twice.
        told = [each for each in packets if ADMIN in (each.source[0], each.destination[0])]
        left = sorted([*(each for each in left if each not in told), *told], key=lambda each: each.time_ns)
    assert blamed(left, tmp_path / "left.pcap") == [] if left else True


@cache
def of_nodes(seed: int, *, logical: bool) -> Sequence[Packet]:
    """The traffic of a simulated world in which all promises are kept."""
    run = (LogicalRun if logical else StaticRun)(seed, drawn(seed, logical=logical))
    tap = Wiretap()
    run.world.network.tap = tap
    assert run.play().wrong == []
    return tap.packets


@pytest.mark.parametrize("seed", range(max(1, WAYS // 3)))
@pytest.mark.parametrize("logical", [False, True])
def test_what_is_left_of_a_capture_of_nodes_blames_nobody(
    *, logical: bool, seed: int, tmp_path: Path
) -> None:
    left = some_of(of_nodes(1, logical=logical), random.Random(seed))
    assert blamed(left, tmp_path / "left.pcap", RAW_IP) == [] if left else True


FAULTS = [
    *((fault, static_topic) for fault in STATIC_FAULTS if fault.breaks),
    *((fault, logical_queues) for fault in LOGICAL_FAULTS if fault.breaks),
]


@pytest.mark.parametrize("seed", range(max(1, WAYS // 4)))
@pytest.mark.parametrize(("fault", "story"), FAULTS, ids=[each.edit.__name__ for each, _ in FAULTS])
def test_what_is_wrong_does_not_become_right_where_other_connections_are_missing(
    fault: Fault, story: Callable[[], World], seed: int, tmp_path: Path
) -> None:
    """What clients were told is there, and what proves the fault; one other is not: none says ok."""
    path = tmp_path / "whole.pcap"
    packets = written(fault.edit([*clean(story, tmp_path)]))
    found = judged_packets(packets, path)
    broken = [each for each in found if each.invariant in fault.breaks]
    chance = random.Random(seed)
    proved = {frozenset(ends_of(proof.connection)) for each in broken for proof in each.proofs}
    every = sorted({*map(_ends, packets)} - proved, key=sorted)
    gone = chance.sample(every, 1)
    left = [each for each in packets if _ends(each) not in gone or _is_of_clients(each)]
    after = {each.invariant: each.verdict.value for each in judged_packets(left, path)}
    assert {rule for rule in fault.breaks if after.get(rule) == "ok"} == set()


def _ends(packet: Packet) -> frozenset[str]:
    return frozenset(f"{host}:{port}" for host, port in (packet.source, packet.destination))


def _is_of_clients(packet: Packet) -> bool:
    return bool({PRODUCER, CONSUMER} & {packet.source[0], packet.destination[0]})
