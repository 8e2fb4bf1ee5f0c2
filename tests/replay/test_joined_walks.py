"""Stretches of a capture, walked side by side, give the splits of one walk, whatever seems to be a record."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from replispec.replay.capture import files, joined_walks
from replispec.replay.capture.files import Capture, cuts, open_capture, walk
from replispec.replay.capture.joined_walks import Walked, grid, walked
from replispec.replay.capture.records import CaptureWarning, Split
from tests.replay.pcap_writer import Conversation, pcap
from tests.replay.random_traffic import Harm, random_capture

CAPTURES = Path(__file__).parents[2] / "spark_replay/captures"
NAMES = sorted(path.stem for path in CAPTURES.glob("*.pcap"))
CLIENT, SERVER = ("10.0.0.9", 40_000), ("10.0.0.2", 10_911)
SIZES = (100, 3_000, 9_000)


def walks(capture: Capture, size: int) -> dict[int, Walked]:
    whole = capture.whole
    found = {low: walked(capture.data, whole, low, high) for low, high in grid(whole, size)}
    return {low: each for low, each in found.items() if each is not None}


def records(
    capture: Capture, splits: list[Split], said: list[CaptureWarning]
) -> tuple[list[int], list[CaptureWarning]]:
    parts = [walk(capture.data, split) for split in splits]
    assert [split.number for split in splits] == [*range(len(splits))]
    return [at for part, _ in parts for at in part.record_offset.tolist()], said


def check(path: Path, size: int) -> float:
    """Both ways to cut a file hold all records once; how many of the stretches counted."""
    with open_capture(path) as capture:
        known = walks(capture, size)
        expected, whole_said = walk(capture.data, capture.whole)
        splits, said = cuts(capture.data, capture.whole, size, known)
        assert records(capture, splits, said) == (expected.record_offset.tolist(), whole_said)
        begin = {split.start for split in splits}
        return sum(each.first in begin for each in known.values()) / len(splits)


@pytest.mark.parametrize("name", NAMES)
def test_records_of_captures_are_found_from_anywhere(name: str) -> None:
    assert check(CAPTURES / f"{name}.pcap", 20_000) == 1


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("order", "<>")
def test_captures_inside_messages_are_no_records(
    size: int, order: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(joined_walks, "ALIKE", 1)
    told = Conversation(CLIENT, SERVER).open().send(b"x" * 9_000, from_client=True)
    inner = pcap(told.packets, byte_order=order)
    talk = Conversation(CLIENT, SERVER).open()
    for _ in range(6):
        talk.send(inner * 3, from_client=True)
    path = tmp_path / "made.pcap"
    path.write_bytes(pcap(talk.packets, byte_order=order))
    assert check(path, size) < 1


@pytest.mark.parametrize("seed", range(8))
def test_a_damaged_capture_is_cut_where_one_walk_cuts_it(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    data = bytearray(pcap(random_capture(seed, Harm(lost=0.02))))
    for _ in range(seed % 4):
        data[chance.randrange(24, len(data))] = chance.randrange(256)
    path = tmp_path / "made.pcap"
    path.write_bytes(data[: chance.randrange(len(data) // 2, len(data))])
    for size in SIZES:
        check(path, size)


@pytest.mark.parametrize("name", NAMES[::4])
@pytest.mark.parametrize("size", [5_000, 70_000])
def test_a_file_whose_ends_were_looked_at_is_cut_as_well(
    name: str, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "LOOK_BYTES", 5_000)
    with open_capture(CAPTURES / f"{name}.pcap") as capture:
        expected, _ = walk(capture.data, capture.whole)
        first, last, stopped = capture.ends()
        assert (first.time_ns[0], last.time_ns[-1]) == (expected.time_ns[0], expected.time_ns[-1])
        monkeypatch.delattr(files, "cuts")
        splits = capture.cuts(size)
        assert len(splits) > 1 or len(capture.data) < size
        assert all(split.end - split.start >= size for split in splits[:-1])
        assert records(capture, splits, capture.warnings) == (expected.record_offset.tolist(), stopped)


def test_a_walk_from_elsewhere_is_made_again(tmp_path: Path) -> None:
    path = tmp_path / "made.pcap"
    path.write_bytes(pcap(random_capture(1, Harm())))
    with open_capture(path) as capture:
        known = {low: Walked(each.first + 1, each.behind + 1) for low, each in walks(capture, 3_000).items()}
        splits, said = cuts(capture.data, capture.whole, 3_000, known)
        assert (
            records(capture, splits, said)[0] == walk(capture.data, capture.whole)[0].record_offset.tolist()
        )
