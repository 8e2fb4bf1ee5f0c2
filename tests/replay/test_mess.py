"""Whatever happened between wire and file: nothing is invented, and nothing is hidden without a reason.

Every capture of the project meets every defect, in `make test` with one seed, in `make test-full` with 20.
No violation and no loss that the sound capture lacks; where nothing is missing, the same verdicts and losses;
a loss that is not told any more has a reason: a hole, a verdict `unknown`, or an answer that was not there.
"""

from __future__ import annotations

import os
import random
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from replispec.replay.engines.local import LocalEngine
from replispec.replay.engines.results import CaptureResult, Options
from tests.replay import mess
from tests.replay.defects import (
    DEFECTS,
    missing_parts,
    offloaded,
    sound,
    with_damaged_copies,
    with_wrong_numbers,
)
from tests.replay.envelopes import payload_at, torn

ROOT = Path(__file__).parents[2]
FILES = {
    path.stem: path
    for path in sorted([*ROOT.glob("spark_replay/captures/*.pcap"), *ROOT.glob("tests/replay/data/*.pcapng")])
}
SEEDS = int(os.environ.get("REPLISPEC_MESS", "1"))
FULL_SEEDS, FEW_PARTS = 20, 4
SURVIVES = "acknowledged-send-survives"
CONTROLLER = (39_871).to_bytes(2, "big")
LIFE = re.compile(r"#\d+$")
Rules = set[tuple[str, str]]


@cache
def header_and_packets(name: str) -> tuple[bytes, list[mess.Seen]]:
    header, packets = mess.read(FILES[name].read_bytes())
    return header, sound(packets)


def replayed(name: str, packets: Sequence[mess.Seen]) -> CaptureResult:
    """What a replay of these packets finds."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"{name}.pcap"
        path.write_bytes(mess.written(header_and_packets(name)[0], packets))
        (found,) = LocalEngine().results([path], Path(folder), Options(), lambda *_: None)
    return found


@cache
def clean(name: str) -> CaptureResult:
    return replayed(name, header_and_packets(name)[1])


def told(found: CaptureResult) -> tuple[object, object]:
    """Verdicts with their counts, and losses."""
    rows = found.findings
    shown = sorted((each.group, each.invariant, each.verdict, sorted(each.counts.items())) for each in rows)
    return shown, sorted(map(repr, found.losses))


def violated(found: CaptureResult) -> Rules:
    """Rules that are broken, each with its group, whichever life of it."""
    rows = [each for each in found.findings if each.verdict.value == "violated"]
    return {(LIFE.sub("", each.group), each.invariant) for each in rows}


def invented(found: CaptureResult, *others: CaptureResult) -> Rules:
    """Violations that none of the others has. A group that nothing names may be any."""
    known = {rule for other in others for rule in violated(other)}
    rules = {rule for _, rule in known}
    return {
        (group, rule)
        for group, rule in violated(found) - known
        if not (group.startswith("unknown") and rule in rules)
    }


def lost(found: CaptureResult) -> int:
    return sum(loss.acknowledged for loss in found.losses)


def assert_no_loss_is_invented(found: CaptureResult, truth: CaptureResult) -> None:
    assert lost(found) <= lost(truth)
    for loss in found.losses:
        ranges = [(each.from_offset, each.to_offset) for each in truth.losses if each.epoch == loss.epoch]
        assert any(first <= loss.from_offset <= loss.to_offset <= last for first, last in ranges)


def assert_no_loss_is_hidden(found: CaptureResult, truth: CaptureResult) -> None:
    """Where no hole gives a reason, no message that was lost is judged to survive."""
    if found.capture.holes == 0:
        survived = [
            sum(each.counts.get("ok", 0) for each in result.findings if each.invariant == SURVIVES)
            for result in (found, truth)
        ]
        assert survived[0] <= survived[1]


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("defect", DEFECTS)
def test_a_messed_capture_invents_nothing_and_hides_nothing(defect: str, name: str, seed: int) -> None:
    made = DEFECTS[defect]
    rng = random.Random(f"{name} {defect} {seed}")
    found = replayed(name, made.make(header_and_packets(name)[1], rng))
    if made.keeps:
        assert told(found) == told(clean(name))
    assert invented(found, clean(name)) == set()
    assert_no_loss_is_invented(found, clean(name))
    assert_no_loss_is_hidden(found, clean(name))


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("name", FILES)
def test_damaged_copies_that_no_checksum_tells_apart_invent_nothing(name: str, seed: int) -> None:
    """Rules that break on holes as such break too where the packets in question are missing altogether."""
    packets = offloaded(header_and_packets(name)[1])
    messed = with_damaged_copies(packets, random.Random(f"{name} {seed}"))
    found = replayed(name, messed)
    bad = {(each.time_ns, each.data[:54]) for each in set(messed) - set(packets)}
    left = [each for each in packets if (each.time_ns, each.data[:54]) not in bad]
    assert invented(found, clean(name), replayed(name, left)) == set()
    assert_no_loss_is_invented(found, clean(name))
    assert_no_loss_is_hidden(found, clean(name))


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("name", FILES)
def test_copies_with_wrong_numbers_that_no_checksum_tells_apart_invent_nothing(name: str, seed: int) -> None:
    packets = offloaded(header_and_packets(name)[1])
    found = replayed(name, with_wrong_numbers(packets, random.Random(f"{name} {seed}")))
    assert invented(found, clean(name)) == set()
    assert_no_loss_is_invented(found, clean(name))
    assert_no_loss_is_hidden(found, clean(name))


@pytest.mark.parametrize("name", FILES)
def test_whatever_part_of_a_capture_is_missing_nothing_is_invented(name: str) -> None:
    """Every connection, every direction of one, and what was captured before one began; in `make test` some
    of them."""
    packets = header_and_packets(name)[1]
    parts = [*missing_parts(packets)]
    if SEEDS < FULL_SEEDS:
        parts = random.Random(name).sample(parts, min(FEW_PARTS, len(parts)))
    for what, left in parts:
        found = replayed(name, left)
        assert invented(found, clean(name)) == set(), what
        assert_no_loss_is_invented(found, clean(name))
        assert_no_loss_is_hidden(found, clean(name))


@pytest.mark.parametrize("seed", [12, 14])
def test_a_request_that_was_lost_with_its_answer_leaves_open_how_its_broker_started(seed: int) -> None:
    name, defect = "older_copy", "damaged packets"
    messed = DEFECTS[defect].make(header_and_packets(name)[1], random.Random(f"{name} {defect} {seed}"))
    found = replayed(name, messed)
    assert ("lab/broker-a", "replicas-manager-machine") not in violated(found)
    assert violated(found) <= violated(clean(name))
    assert_no_loss_is_hidden(found, clean(name))


@pytest.mark.parametrize(("name", "seed"), [("a_first_start", 14), ("failover_lost", 17)])
def test_two_damaged_numbers_do_not_bear_each_other_out(name: str, seed: int) -> None:
    """A packet that claims to lie far behind, and an acknowledgment of less than that; and an acknowledgment
    of what lies before the first byte."""
    packets = offloaded(header_and_packets(name)[1])
    found = replayed(name, with_wrong_numbers(packets, random.Random(f"{name} {seed}")))
    assert violated(found) <= violated(clean(name))
    assert_no_loss_is_invented(found, clean(name))


@pytest.mark.parametrize("name", ["m_mtu1500", "older_copy"])
def test_attempts_that_nobody_answered_and_a_late_direction_invent_nothing(name: str) -> None:
    rng = random.Random(f"{name} attempts")
    packets = DEFECTS["one direction late"].make(
        DEFECTS["everything again"].make(header_and_packets(name)[1], rng), rng
    )
    assert told(replayed(name, packets)) == told(clean(name))


def test_a_damaged_number_of_a_packet_in_fragments_is_borne_out_by_none_of_them() -> None:
    name = "a_first_start"
    packets = offloaded(header_and_packets(name)[1])
    answer = next(
        each for each in packets if each.ends and each.ends[0].endswith(CONTROLLER) and _carries(each)
    )
    data = bytearray(answer.data)
    data[14 + (data[14] & 15) * 4 + 4] ^= 1 << 5
    astray = [replace(answer, data=part, wire_size=len(part)) for part in torn(bytes(data), 40, 1)]
    found = replayed(name, [*packets, *astray])
    assert (violated(found), found.capture.datagrams_joined) == (set(), 1)


def _carries(each: mess.Seen) -> bool:
    return len(each.data) > payload_at(each.data)
