"""A capture in several files gives the rows of the one file that would have been without rotation."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replispec.replay.capture.files import open_capture
from replispec.replay.capture.records import CaptureError
from replispec.replay.engines import results, run
from replispec.replay.engines.by_splits import decode_by_splits
from replispec.replay.engines.decoding import DecodedCapture, decode_capture
from replispec.replay.events.tables import SCHEMAS, SORTED_BY
from replispec.replay.frames.tables import FRAMES_ORDER
from replispec.replay.tcp.rotation import look_rotated, natural, open_rotation
from tests.replay.pcap_writer import START_NS, Packet, interface, pcap, pcapng, section
from tests.replay.random_traffic import HARMLESS, Harm, random_capture

CAPTURES = Path(__file__).parents[2] / "spark_replay/captures"
HARMS = (HARMLESS, Harm(lost=0.02, repeated=0.1, reordered=0.1, cut=0.1, headless=0.3))
ORDERS = {
    results.FRAMES_NAME: FRAMES_ORDER,
    **{f"{results.EVENTS_NAME}/{kind}.parquet": SORTED_BY for kind in SCHEMAS},
    results.FINDINGS_NAME: ("group", "invariant"),
}
MINUTE_NS = 60 * 10**9


def rotate(path: Path, folder: Path, count: int) -> list[Path]:
    """The capture as `tcpdump -C` writes it, in `count` files: NAME, NAME1, NAME2 and so on."""
    data = path.read_bytes()
    with open_capture(path) as capture:
        places = [*capture.records().record_offset.tolist(), len(data)]
    borders = [places[len(places) * at // count] for at in range(count)] + [len(data)]
    files = []
    for at in range(count):
        file = folder / f"{path.name}{at or ''}"
        file.write_bytes(data[:24] + data[borders[at] : borders[at + 1]])
        files.append(file)
    return files


def assert_same(left: DecodedCapture, right: DecodedCapture) -> None:
    assert left.frames.to_pylist() == right.frames.to_pylist()
    assert left.holes.to_pylist() == right.holes.to_pylist()
    assert left.streams.to_pylist() == right.streams.to_pylist()


def written(folder: Path, *parts: bytes) -> list[Path]:
    files = [folder / f"made.pcap{at or ''}" for at in range(len(parts))]
    for file, data in zip(files, parts, strict=True):
        file.write_bytes(data)
    return files


def in_parts(packets: Sequence[Packet], rng: random.Random) -> list[Sequence[Packet]]:
    """The packets in up to six runs, none empty."""
    borders = sorted(rng.sample(range(1, len(packets)), min(5, len(packets) - 1)))
    return [packets[start:end] for start, end in zip([0, *borders], [*borders, len(packets)], strict=True)]


@settings(max_examples=20)
@given(st.integers(0, 2**32), st.sampled_from(HARMS), st.integers(500, 40_000))
def test_rotation_anywhere_changes_no_row(seed: int, harm: Harm, split_bytes: int) -> None:
    packets = random_capture(seed, harm, talks=3)
    with TemporaryDirectory() as folder:
        (whole,) = written(Path(folder), pcap(packets))
        expected = decode_capture(whole)
        parts = [pcap(part) for part in in_parts(packets, random.Random(seed))]
        files = written(Path(folder), *parts)
        assert_same(decode_capture(files), expected)
        assert_same(decode_by_splits(files, split_bytes), expected)


@pytest.mark.parametrize("byte_order", ["<", ">"])
def test_sections_of_rotated_pcapng_files_are_stepped_over(tmp_path: Path, byte_order: str) -> None:
    packets = random_capture(3, HARMS[1], talks=3)
    (whole,) = written(tmp_path, pcapng(packets, byte_order=byte_order))
    expected = decode_capture(whole)
    parts = in_parts(packets, random.Random(3))
    files = written(tmp_path, *(pcapng(part, byte_order=byte_order) for part in parts))
    assert_same(decode_capture(files), expected)
    assert_same(decode_by_splits(files, 2000), expected)


def test_files_may_be_compressed_and_given_in_any_order(tmp_path: Path) -> None:
    expected = decode_capture(CAPTURES / "t_binary_header.pcap")
    files = rotate(CAPTURES / "t_binary_header.pcap", tmp_path, 4)
    files[2].write_bytes(gzip.compress(files[2].read_bytes(), mtime=0))
    assert_same(decode_capture([files[0], files[3], files[1], files[2]]), expected)


def test_a_file_without_packets_changes_nothing(tmp_path: Path) -> None:
    packets = random_capture(4, talks=2)
    files = written(tmp_path, pcap(packets), pcap([]))
    assert_same(decode_capture(files), decode_capture(files[0]))
    assert decode_capture([files[1], files[1]]).frames.num_rows == 0


def broken(part: Sequence[Packet]) -> bytes:
    """A file whose first record claims more than can be."""
    data = bytearray(pcap(part))
    data[32:36] = (2**31 - 1).to_bytes(4, "little")
    return bytes(data)


@pytest.mark.parametrize("at", [0, 1, 2])
@pytest.mark.parametrize("packed", [False, True])
def test_a_file_of_which_no_packet_can_be_read_is_named(tmp_path: Path, at: int, packed: bool) -> None:
    parts = in_parts(random_capture(4, talks=2), random.Random(4))[:3]
    contents = [broken(part) if number == at else pcap(part) for number, part in enumerate(parts)]
    if packed:
        # The compressed stream ends in the header of the first record.
        contents[at] = gzip.compress(contents[at][:30], mtime=0)[:-8]
    found = decode_capture(written(tmp_path, *contents)).warnings
    assert [each.file for each in found if each.unread] == [f"made.pcap{at or ''}"] * len(found)
    assert found


def test_where_no_file_has_a_packet_that_can_be_read_each_is_named_once(tmp_path: Path) -> None:
    part = random_capture(4, talks=1)
    found = decode_capture(written(tmp_path, broken(part), broken(part))).warnings
    assert sorted(each.file for each in found) == ["made.pcap", "made.pcap1"]


@pytest.mark.parametrize("at", [0, 1, 2])
def test_a_file_to_which_nothing_was_written_yet_is_passed_over_and_said(tmp_path: Path, at: int) -> None:
    packets = random_capture(4, talks=2)
    first, second = in_parts(packets, random.Random(4))[:2]
    contents = [pcap(first), pcap(second)]
    expected = decode_capture(written(tmp_path, *contents))
    found = decode_capture(written(tmp_path, *contents[:at], b"", *contents[at:]))
    assert found.frames.num_rows == expected.frames.num_rows > 0
    assert [(each.reason, each.unread) for each in found.warnings] == [("the file is empty", False)]


def test_files_taken_side_by_side_are_refused_by_name(tmp_path: Path) -> None:
    packets = [
        Packet(("10.0.0.1", 1), ("10.0.0.2", 2), at, b"x", time_ns=START_NS + at * 10**9) for at in range(9)
    ]
    files = written(tmp_path, pcap(packets[:6]), pcap(packets[3:]))
    for decode in (decode_capture, lambda files: decode_by_splits(files, 1000)):
        with pytest.raises(CaptureError, match=r"made\.pcap1: begins 2\.000 s before made\.pcap ends"):
            decode(files)


@pytest.mark.parametrize(
    ("after_ns", "said"),
    [
        (2 * MINUTE_NS, "begins 120.000 s after made.pcap ends: a file between them may be missing"),
        (-(10**9) // 2, "begins 0.500 s before made.pcap ends; taken as its continuation"),
        (MINUTE_NS, None),
        (0, None),
    ],
)
def test_what_is_odd_between_two_files_is_said_by_name(
    tmp_path: Path, after_ns: int, said: str | None
) -> None:
    first = [
        Packet(("10.0.0.1", 1), ("10.0.0.2", 2), at, b"x", time_ns=START_NS + at * 10**9) for at in (0, 1)
    ]
    later = replace(first[1], sequence=2, time_ns=first[1].time_ns + after_ns)
    files = written(tmp_path, pcap(first), pcap([later]))
    for decoded in (decode_capture(files), decode_by_splits(files, 1)):
        assert [str(warning) for warning in decoded.warnings] == (
            [] if said is None else [f"made.pcap1: {said} (at byte 24)"]
        )


def test_damage_is_said_of_the_file_that_has_it(tmp_path: Path) -> None:
    files = rotate(CAPTURES / "t_binary_header.pcap", tmp_path, 3)
    files[1].write_bytes(files[1].read_bytes()[:-1])
    for decoded in (decode_capture(files), decode_by_splits(files, 10_000)):
        (warning,) = decoded.warnings
        assert str(warning).startswith("t_binary_header.pcap1: the file ends inside a packet")
        assert set(decoded.frames.column("capture").to_pylist()) == {"t_binary_header.pcap"}


@pytest.mark.parametrize("engine", run.EngineName)
def test_a_replay_of_rotated_files_comes_to_the_same(tmp_path: Path, engine: run.EngineName) -> None:
    whole = [
        CAPTURES / "failover_lost.pcap",
        CAPTURES / "hung_master.pcap",
        CAPTURES / "n_learner_alone.pcap",
    ]
    sources = [rotate(path, tmp_path, count) for path, count in zip(whole[:2], (5, 2), strict=True)]
    options = results.Options(split_bytes=256 << 10)
    run.replay(whole, tmp_path / "whole", run.EngineName.LOCAL, options)
    run.replay([*sources, whole[2]], tmp_path / "parts", engine, options)
    for name, order in ORDERS.items():
        keys = [(column, "ascending") for column in order]
        expected, found = (pq.read_table(tmp_path / out / name).sort_by(keys) for out in ("whole", "parts"))
        assert found.to_pylist() == expected.to_pylist(), name
    summaries = [
        json.loads((tmp_path / out / results.SUMMARY_NAME).read_text()) for out in ("whole", "parts")
    ]
    files = [[row.pop("files") for row in summary["captures"]] for summary in summaries]
    assert files[0] == [[path.name] for path in whole]
    assert files[1] == [
        [f"failover_lost.pcap{at or ''}" for at in range(5)],
        ["hung_master.pcap", "hung_master.pcap1"],
        ["n_learner_alone.pcap"],
    ]
    assert summaries[0].pop("engine") == "local"
    assert summaries[1].pop("engine") == engine.value
    names = [[row["file"] for row in each.pop("provenance")["inputs"]] for each in summaries]
    assert names == [[path.name for path in whole], [*files[1][0], *files[1][1], whole[2].name]]
    assert summaries[1] == summaries[0]


@pytest.mark.parametrize("engine", run.EngineName)
def test_one_bad_part_makes_the_capture_unusable_and_is_named(tmp_path: Path, engine: run.EngineName) -> None:
    files = rotate(CAPTURES / "t_binary_header.pcap", tmp_path, 3)
    files[1].write_text("notes")
    gone = [CAPTURES / "a_first_start.pcap", tmp_path / "gone.pcap"]
    summary = run.replay([files, gone], tmp_path / "out", engine, results.Options())
    assert [row.error for row in summary.captures] == [
        "t_binary_header.pcap1: no packet capture: the file starts with 6e6f7465 (at byte 0)",
        "gone.pcap: No such file or directory",
    ]
    assert summary.exit_code == 2


def test_names_that_differ_in_digits_only_look_rotated() -> None:
    def look(*names: str) -> bool:
        return look_rotated([Path(name) for name in names])

    assert look("a.pcap", "a.pcap1", "a.pcap2.gz")
    assert look("a_00001_20240101120000.pcapng", "a_00002_20240101130000.pcapng")
    assert not look("monday.pcap", "tuesday.pcap")
    assert not look("a.pcap")
    assert sorted(["a.pcap10", "a.pcap", "a.pcap2"], key=natural) == ["a.pcap", "a.pcap2", "a.pcap10"]


def test_the_first_packet_of_a_pcapng_part_follows_the_part_before(tmp_path: Path) -> None:
    packets = [
        Packet(("10.0.0.1", 1), ("10.0.0.2", 2), 10 * at, b"0123456789", time_ns=START_NS + at)
        for at in (0, 1)
    ]
    head = len(section() + interface())
    files = written(tmp_path, pcapng(packets[:1]), pcapng(packets[1:]))
    with open_capture(files[0]) as capture:
        size = len(capture.data)
    with open_rotation(files) as rotation:
        found = rotation.packets()
        assert found.record_offset.tolist() == [head, size]
        assert [rotation.data[at : at + 10] for at in found.payload_offset.tolist()] == [b"0123456789"] * 2
