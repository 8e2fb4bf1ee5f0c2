"""A capture file that is cut anywhere, or has any bit turned, is never misread without a word.

What counts as a word: a CaptureError; a warning, a hole, undecoded or foreign bytes in the summary; a
frame that says it is not complete, a stream that says it was not seen from its start. A bit of a payload
may also show as the value that it carries, and as nothing else: on a loopback interface no checksum
covers it. A bit of a TCP header whose packet is the last with payload of its direction may also show in
the frames of that packet alone: nothing else in the file tells of its bytes.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from tests.replay.damage import (
    COVERED,
    FILE_HEADER,
    MEANINGLESS,
    Byte,
    Outcome,
    meanings,
    outcome,
    records,
    small_capture,
    without,
)

SEED = 20_261_121
# `make test-full` turns more bits and judges every outcome; here every third one is judged.
FLIPS = int(os.environ.get("REPLISPEC_FLIPS", "600"))
JUDGED_EVERY = 1 if "REPLISPEC_FLIPS" in os.environ else 3
# Between two borders of records every fourth byte is a place to cut; in `make test-full` every byte.
CUT_EVERY = 1 if "REPLISPEC_FLIPS" in os.environ else 4
TIMES = ("time_ns", "first_time_ns", "last_time_ns")


@pytest.fixture(scope="module")
def data() -> bytes:
    return small_capture()


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("damage") / "small.pcap"


@pytest.fixture(scope="module")
def clean(path: Path, data: bytes) -> Outcome:
    return outcome(path, data)


def test_the_small_capture_is_worth_damaging(clean: Outcome) -> None:
    protocols = [row["protocol"] for row in clean.frames]
    assert {name: protocols.count(name) for name in protocols} == {
        "ha_master": 3,
        "ha_replica": 3,
        "remoting": 9,
    }
    assert not clean.reported
    assert {verdict for _, _, verdict, evaluated in clean.judge() if evaluated} == {"ok"}


def test_a_file_cut_at_any_byte_gives_the_frames_before_the_cut_and_says_so(
    path: Path, data: bytes, clean: Outcome
) -> None:
    borders = {FILE_HEADER, *(end for _, end in records(data))}
    known = meanings(data)
    verdicts = 0
    for size in sorted({*range(CUT_EVERY, len(data), CUT_EVERY), *(borders - {len(data)})}):
        found = outcome(path, data[:size])
        if size < FILE_HEADER:
            assert found.error is not None, size
            continue
        # A file that ends between two records is a sound, shorter capture.
        assert bool(found.figures.warnings) == (size not in borders), size
        assert (
            known[size].field == "payload" and size not in borders and known[size - 1].field == "payload"
        ) <= ("truncated" in [hole["kind"] for hole in found.holes]), size
        whole = [row for row in found.frames if row["complete"]]
        ended = max(end for end in borders if end <= size)
        assert whole == [row for row in clean.frames if row["record_offset"] < ended], size
        if size % 16 == 0:
            found.judge()
            verdicts += 1
    assert verdicts > 150


def complaint(byte: Byte, found: Outcome, clean: Outcome) -> str:
    """What is wrong with the outcome of a file in which a bit of this byte was turned; empty: nothing."""
    same_rows = found.frames == clean.frames and found.holes == clean.holes
    if byte.field in COVERED:
        return "" if found.reported else "a packet that its header's checksum contradicts, and no word"
    if byte.field in MEANINGLESS:
        if not same_rows or found.streams != clean.streams:
            return "rows differ"
        return "reported" if found.reported else ""
    if byte.field == "time" and not found.reported:
        return "" if without(found.frames, *TIMES) == without(clean.frames, *TIMES) else "more than times"
    if same_rows or found.reported:
        return ""
    if byte.field == "payload":
        holder = [
            row["source"] == byte.source and 0 <= byte.position - row["sequence"] < row["size"]
            for row in clean.frames
        ]
        if len(holder) != len(found.frames):
            return "frames came or went"
        changed = [new != old for new, old in zip(found.frames, clean.frames, strict=True)]
        return "" if changed <= holder else "another frame changed"
    if byte.field in ("acknowledgment", "tcp flags") and without(found.frames, "acknowledged") == without(
        clean.frames, "acknowledged"
    ):
        return "" if found.judge() == clean.judge() else "findings differ"
    if byte.is_last:
        others = [
            [row for row in rows if row["record_offset"] != byte.record]
            for rows in (found.frames, clean.frames)
        ]
        return "" if others[0] == others[1] else "frames of other packets changed"
    return "frames differ without a word"


def test_a_turned_bit_is_reported_or_shows_as_the_value_that_it_carries(
    path: Path, data: bytes, clean: Outcome
) -> None:
    known = meanings(data)
    verdicts = clean.judge()
    bits = random.Random(SEED).sample(range(len(data) * 8), min(FLIPS, len(data) * 8))
    wrong = []
    for number, bit in enumerate(bits):
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        byte = known[bit // 8]
        found = outcome(path, bytes(damaged))
        says = complaint(byte, found, clean)
        if not says and number % JUDGED_EVERY == 0 and found.error is None:
            judged_same = found.judge() == verdicts
            if not judged_same and byte.field in MEANINGLESS:
                says = "findings differ"
        if says:
            wrong.append((bit, byte, says))
    assert wrong == []
