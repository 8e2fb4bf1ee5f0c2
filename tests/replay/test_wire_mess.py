"""Damaged copies, fragments and lost fragments of every shipped capture: nothing is invented, nothing hidden.

No violation and no loss that the clean capture lacks, but for rules that break on holes as such: then the
capture without those packets breaks the same rule. No loss of the clean capture turns into silence without a
hole that says why. `make test-full` takes ten times as many seeds.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from replispec.replay.engines.decoding import decode_capture
from replispec.replay.engines.local import capture_row
from replispec.replay.engines.results import Options, judged
from replispec.replay.events.observe import observe
from tests.replay.envelopes import Seen, filled, in_fragments, put_into, read, torn, with_copies, written
from tests.replay.test_envelopes import CAPTURES

NAMES = sorted(path.stem for path in CAPTURES.glob("*.pcap"))
SEEDS = 20 if "REPLISPEC_FLIPS" in os.environ else 2
Outcome = tuple[set[tuple[str, str]], int, Counter[Any]]


def outcome(frames: Sequence[Seen]) -> Outcome:
    """What is violated, how many acknowledged messages are lost, and the holes by reason."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "made.pcap"
        path.write_bytes(written(frames))
        found = decode_capture(path)
    observations = observe(found.frames, found.holes, found.streams)
    result = judged(capture_row("made.pcap", found), observations, Options())
    violated = {(each.group, each.invariant) for each in result.findings if each.verdict.value == "violated"}
    lost = sum(loss.acknowledged for loss in result.losses)
    return violated, lost, Counter(found.holes["kind"].to_pylist())


@cache
def sound(name: str) -> tuple[Seen, ...]:
    return tuple(put_into(read(CAPTURES / f"{name}.pcap"), filled))


@cache
def known(name: str) -> Outcome:
    return outcome(sound(name))


def judge(name: str, frames: Sequence[Seen], left: Sequence[Seen] = ()) -> Outcome:
    """The outcome, which invents nothing and hides no loss without a hole.

    `left`: what is left of the clean capture without the packets that were damaged.
    """
    violated, lost, holes = found = outcome(frames)
    assert violated <= known(name)[0] or (left and violated <= outcome(left)[0])
    assert lost <= known(name)[1]
    assert lost == known(name)[1] or holes
    return found


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("name", NAMES)
def test_damaged_copies_change_nothing_where_checksums_are_filled_in(name: str, seed: int) -> None:
    share = random.Random(seed).uniform(0.001, 0.05)
    assert judge(name, with_copies(sound(name), seed, share, ["before", "after"])) == known(name)


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("name", NAMES)
def test_damaged_copies_without_checksums_invent_nothing(name: str, seed: int) -> None:
    share = random.Random(seed).uniform(0.001, 0.05)
    clean = read(CAPTURES / f"{name}.pcap")
    frames = with_copies(clean, seed, share, ["before", "after"])
    bad = {each.frame[:54] for each in set(frames) - set(clean)}
    judge(name, frames, [each for each in clean if each.frame[:54] not in bad])


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("name", NAMES)
def test_fragments_that_come_in_any_order_change_nothing(name: str, seed: int) -> None:
    chance = random.Random(seed)
    size = 8 * chance.randrange(4, 180)
    shuffled = in_fragments(sound(name), size, lambda parts: chance.sample(parts, len(parts)))
    assert judge(name, shuffled) == known(name)


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("name", NAMES)
def test_damaged_packets_and_lost_fragments_invent_nothing(name: str, seed: int) -> None:
    chance = random.Random(seed)
    damaged = with_copies(sound(name), seed, 0.005, ["instead"])
    frames: list[Seen] = []
    left: list[Seen] = []
    for number, (packet, own) in enumerate(zip(sound(name), damaged, strict=True)):
        parts = torn(own.frame, 512, number + 1)
        kept = [own.framed(part) for part in parts if chance.random() > 0.002]
        frames += kept
        left += [packet] if len(kept) == len(parts) and own == packet else []
    judge(name, frames, left)
