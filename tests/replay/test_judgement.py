"""A replay finds what is there and nothing else, in real captures and in generated ones."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from replispec.replay.engines.decoding import DecodedCapture, decode_capture
from replispec.replay.events.observe import observe
from replispec.replay.judges.rocketmq.judge import Judgement, judge_capture
from tests.replay.expectations import SEND_SURVIVES, Row, Scenario
from tests.replay.pcap_writer import Packet, pcap, pcapng, with_times
from tests.replay.scenarios import FAULTS, half_message_cut_off, lost_messages, nothing_wrong

CAPTURES = Path(__file__).resolve().parents[2] / "spark_replay" / "captures"
NAMES = sorted(path.stem for path in CAPTURES.glob("*.pcap"))
REMOTING = "remoting"
SHARE_MOVED = 0.2
FILE_HEADER, RECORD_HEADER = 24, 16
BROKEN = ("violated", "diverged")

Rows = dict[str, dict[str, Row]]


def judged(decoded: DecodedCapture, file: str, *, all_ack: bool = False) -> Judgement:
    observations = observe(decoded.frames, decoded.holes, decoded.streams)
    return judge_capture(file, observations, all_ack=all_ack)


def rows_of(judgement: Judgement) -> Rows:
    rows: Rows = {}
    for finding in judgement.findings:
        row = Row(finding.verdict.value, finding.evaluated)
        assert rows.setdefault(finding.group, {}).setdefault(finding.invariant, row) is row
    return rows


def losses_of(judgement: Judgement) -> list[dict[str, Any]]:
    """What a judge tells of them: their places stand in the summary alone."""
    rows = [asdict(loss) for loss in judgement.losses]
    assert [row.pop("places") for row in rows] == [""] * len(rows)
    return rows


@pytest.mark.parametrize("name", NAMES)
def test_a_real_capture_is_judged_as_written_by_hand(name: str) -> None:
    expected = json.loads((CAPTURES / "expected" / f"{name}.json").read_text())
    decoded = decode_capture(CAPTURES / f"{name}.pcap")
    protocols = decoded.frames.column("protocol").to_pylist()
    assert expected["frames_remoting"] == protocols.count(REMOTING)
    assert expected["frames_ha"] == len(protocols) - protocols.count(REMOTING)
    assert expected["bytes_undecoded"] == sum(decoded.streams.column("bytes_undecoded").to_pylist())
    judgement = judged(decoded, expected["file"])
    assert losses_of(judgement) == expected["losses"]
    assert rows_of(judgement) == {
        group: {name: Row(**row) for name, row in rows.items()} for group, rows in expected["groups"].items()
    }


def replayed(
    packets: Sequence[Packet], path: Path, *, as_pcapng: bool = False, all_ack: bool = False
) -> Judgement:
    path.write_bytes(pcapng(packets) if as_pcapng else pcap(packets, nanoseconds=True))
    return judged(decode_capture(path), path.name, all_ack=all_ack)


def assert_found(judgement: Judgement, scenario: Scenario) -> None:
    """Exactly the rows and the losses that the scenario is made of."""
    assert rows_of(judgement) == scenario.rows
    found = [{key: value for key, value in loss.items() if key != "file"} for loss in losses_of(judgement)]
    assert found == [asdict(loss) for loss in scenario.losses]


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_found_with_the_frames_that_prove_it_and_nothing_else_is(
    name: str, tmp_path: Path
) -> None:
    scenario = FAULTS[name]()
    judgement = replayed(scenario.packets, tmp_path / "fault.pcap", all_ack=scenario.all_ack)
    assert_found(judgement, scenario)
    for finding in judgement.findings:
        assert bool(finding.proofs) == (finding.verdict.value != "ok" and finding.evaluated > 0)


@pytest.mark.parametrize("lost", [0, 1, 2, 33, 250])
def test_lost_messages_are_counted_exactly(lost: int, tmp_path: Path) -> None:
    scenario = lost_messages(lost)
    judgement = replayed(list(scenario.packets), tmp_path / "lost.pcap")
    assert sum(loss.acknowledged for loss in judgement.losses) == lost
    assert_found(judgement, scenario)


def shaken(packets: Sequence[Packet], rng: random.Random) -> list[Packet]:
    """Segments that overtook each other in their direction, and segments that came again later."""
    moved = list(packets)
    for at in range(len(moved) - 1):
        first, second = moved[at : at + 2]
        same = (first.source, first.destination) == (second.source, second.destination)
        if same and first.payload and second.payload and rng.random() < SHARE_MOVED:
            moved[at : at + 2] = [second, first]
    again = [(at + rng.random() * 9, moved[at]) for at in range(len(moved)) if rng.random() < SHARE_MOVED]
    again = [(at, packet) for at, packet in again if packet.payload]
    return with_times([packet for _, packet in sorted([*enumerate(moved), *again], key=lambda each: each[0])])


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_late_and_repeated_segments_change_nothing(
    seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    scenario = half_message_cut_off()
    packets = shaken(scenario.packets, random.Random(seed))
    assert_found(replayed(packets, tmp_path_factory.mktemp("late") / "late.pcap"), scenario)


def missing(packets: list[Packet], rng: random.Random, share: float) -> list[Packet]:
    """Some segments were not captured, of others only the first bytes."""
    kept = []
    for packet in packets:
        luck = rng.random()
        if not packet.payload or luck > share:
            kept.append(packet)
        elif luck > share / 2:
            cut = rng.randrange(len(packet.payload))
            kept.append(replace(packet, payload=packet.payload[:cut], payload_wire=len(packet.payload)))
    return kept


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), share=st.sampled_from([0.02, 0.1, 0.4]), start=st.integers(0, 120))
@example(seed=1945, share=0.1, start=0)  # no controller's answer names the second master, its handshake does
def test_what_was_not_captured_is_never_a_violation(
    seed: int, share: float, start: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    packets = missing(list(nothing_wrong().packets)[start:], random.Random(seed), share)
    judgement = replayed(packets, tmp_path_factory.mktemp("holes") / "holes.pcap")
    assert judgement.losses == []
    assert {finding.verdict.value for finding in judgement.findings} <= {"ok", "unknown"}


SETS_BEGUN_ANEW = ("two lives", "forgotten broker set", "broker removed from the set", "another leader")


@settings(max_examples=40, deadline=None)
@given(
    name=st.sampled_from(SETS_BEGUN_ANEW),
    seed=st.integers(0, 2**32 - 1),
    share=st.sampled_from([0.02, 0.1, 0.4]),
    start=st.sampled_from([0, 0, 51]),
)
@example(name="broker removed from the set", seed=31, share=0.02, start=0)  # the removal was not captured
@example(name="two lives", seed=1154, share=0.4, start=0)
def test_a_removal_that_was_not_captured_is_never_a_violation(
    name: str, seed: int, share: float, start: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    scenario = FAULTS[name]()
    packets = missing(list(scenario.packets)[start:], random.Random(seed), share)
    judgement = replayed(packets, tmp_path_factory.mktemp("removed") / "removed.pcap")
    assert judgement.losses == []
    usual = {rule for rows in scenario.rows.values() for rule, row in rows.items() if row.verdict in BROKEN}
    assert {each.invariant for each in judgement.findings if each.verdict.value in BROKEN} <= usual
    assert "violated" not in {each.verdict.value for each in judgement.findings}


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), share=st.sampled_from([0.02, 0.1, 0.4]))
def test_missing_segments_make_no_message_lost_that_survived(
    seed: int, share: float, tmp_path_factory: pytest.TempPathFactory
) -> None:
    scenario = lost_messages(6)
    packets = missing(list(scenario.packets), random.Random(seed), share)
    judgement = replayed(packets, tmp_path_factory.mktemp("fewer") / "fewer.pcap")
    (truth,) = scenario.losses
    for loss in judgement.losses:
        # Without the answer that names the controller group its name is unknown, and never guessed.
        assert loss.group == truth.group or loss.group.startswith("unknown")
        assert loss.epoch == truth.epoch
        assert truth.from_offset <= loss.from_offset <= loss.to_offset <= truth.to_offset
        assert loss.acknowledged <= truth.acknowledged
    violated = {each.invariant for each in judgement.findings if each.verdict.value == "violated"}
    assert violated <= {SEND_SURVIVES}


def thinned(data: bytes, rng: random.Random) -> bytes:
    """A classic pcap file, little endian, without some of its records."""
    kept, at = [data[:FILE_HEADER]], FILE_HEADER
    while at < len(data):
        size = RECORD_HEADER + int.from_bytes(data[at + 8 : at + 12], "little")
        if rng.random() > SHARE_MOVED / 2:
            kept.append(data[at : at + size])
        at += size
    return b"".join(kept)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", [6, 10, 33])
def test_holes_in_real_traffic_raise_no_alarm(name: str, seed: int, tmp_path: Path) -> None:
    path = tmp_path / f"{name}.pcap"
    path.write_bytes(thinned((CAPTURES / path.name).read_bytes(), random.Random(seed)))
    judgement = judged(decode_capture(path), path.name)
    expected = json.loads((CAPTURES / "expected" / f"{name}.json").read_text())
    assert len(judgement.losses) <= len(expected["losses"])
    for loss, truth in zip(losses_of(judgement), expected["losses"], strict=False):
        assert loss["acknowledged"] <= truth["acknowledged"]
    rows = [row for own in expected["groups"].values() for row in own.items()]
    usual = {name for name, row in rows if row["verdict"] in BROKEN}
    assert {each.invariant for each in judgement.findings if each.verdict.value in BROKEN} <= usual


def test_the_container_does_not_matter(tmp_path: Path) -> None:
    scenario = lost_messages(4)
    judgement = replayed(list(scenario.packets), tmp_path / "lost.pcapng", as_pcapng=True)
    assert_found(judgement, scenario)
