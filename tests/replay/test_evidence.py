"""A finding leads to its packets: by number and filter in the capture, and as a capture of their own."""

from __future__ import annotations

import mmap
import os
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from replispec.replay.capture.files import open_capture, walk
from replispec.replay.capture.records import CaptureWarning, Records, Split
from replispec.replay.engines.decoding import decode_capture
from replispec.replay.engines.results import FRAMES_NAME, Options
from replispec.replay.engines.run import EngineName, replay
from replispec.replay.report import evidence
from replispec.replay.report.evidence import connection_filter, frames_filter, locate, numbered_splits
from replispec.replay.report.evidence_file import write_evidence
from replispec.replay.report.frame_rows import PLACE
from replispec.replay.tcp.rotation import open_rotation
from tests.house.tree import ROOT

CAPTURES = ROOT / "spark_replay" / "captures"
LOSING = CAPTURES / "hung_master.pcap"
TSHARK = "tshark"


@pytest.fixture(scope="module")
def replayed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("replayed")
    replay([LOSING], out, EngineName.LOCAL, Options(), None, out / "evidence.pcapng")
    return out


def tshark(capture: Path, display_filter: str, *fields: str) -> list[list[str]]:
    """Fields of the packets that a filter shows. Skips without tshark; fails where changes are checked."""
    if shutil.which(TSHARK) is None:
        missing = f"{TSHARK} is not installed (Debian: apt-get install {TSHARK})"
        if os.environ.get("CI") == "true":
            pytest.fail(missing)
        pytest.skip(missing)
    command = [TSHARK, "-r", str(capture), "-Y", display_filter, "-T", "fields"]
    command += [part for field in fields for part in ("-e", field)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    return [line.split("\t") for line in done.stdout.splitlines()]


def filters(out: Path) -> list[str]:
    """What the report offers to be copied."""
    found = re.findall(r"<code>([^<]*)</code>", (out / "report.html").read_text())
    return [unescape(each) for each in found if "frame.number" in each or "tcp.port" in each]


def test_the_filter_of_a_finding_shows_its_frames_in_wireshark(replayed: Path) -> None:
    (frames, *whole) = filters(replayed)
    shown = tshark(LOSING, frames, "frame.time_epoch", "tcp.srcport", "tcp.dstport")
    assert shown == [
        ["1795223537.282047000", "30910", "56566"],
        ["1795223547.691607000", "30910", "39992"],
    ]
    assert len(whole) == 2
    numbers = [int(number) for (number,) in tshark(LOSING, whole[0], "frame.number")]
    assert 611 in numbers
    assert 778 not in numbers


def test_the_evidence_is_the_packets_of_the_findings_and_says_what_they_prove(replayed: Path) -> None:
    shown = tshark(replayed / "evidence.pcapng", "tcp", "frame.time_epoch", "frame.len", "frame.comment")
    assert [packet[0] for packet in shown] == ["1795223537.282047000", "1795223547.691607000"]
    assert shown[0][2].startswith("frame 611 of hung_master.pcap; acknowledged-send-survives, violated: ")


def test_a_frame_of_many_packets_can_be_read_from_its_evidence(tmp_path: Path) -> None:
    """Bytes, link type and lengths are those of the capture: our own decoder finds the same frame again."""
    capture = CAPTURES / "m_mtu1500.pcap"
    replay([capture], tmp_path, EngineName.LOCAL, Options())
    rows = pq.read_table(tmp_path / FRAMES_NAME).to_pylist()
    largest = max((row for row in rows if row["protocol"] == "remoting"), key=lambda row: row["size"])
    assert largest["size"] > 3 * 1448
    place = tuple(largest[name] for name in PLACE)
    located = locate([capture], [place], tmp_path / FRAMES_NAME)
    count = write_evidence([capture], located, {place: "why"}, tmp_path / "evidence.pcapng")
    assert count >= 4
    again = decode_capture(tmp_path / "evidence.pcapng").frames.to_pylist()
    (found,) = [row for row in again if row["size"] == largest["size"]]
    for name in ("time_ns", "code", "flag", "opaque", "ext_fields", "json_body", "complete", "source"):
        assert found[name] == largest[name]


def test_packets_of_a_rotated_capture_are_counted_in_their_own_file(tmp_path: Path) -> None:
    with open_capture(LOSING) as capture:
        border = int(capture.records().record_offset[700])
    data = LOSING.read_bytes()
    parts = [tmp_path / "trace.pcap", tmp_path / "trace.pcap1"]
    parts[0].write_bytes(data[:border])
    parts[1].write_bytes(data[:24] + data[border:])
    replay([parts], tmp_path, EngineName.LOCAL, Options(), None, tmp_path / "evidence.pcapng")
    shown = tshark(tmp_path / "evidence.pcapng", "tcp", "frame.comment")
    assert [each[0].split(";")[0] for each in shown] == ["frame 611 of trace.pcap", "frame 78 of trace.pcap1"]
    text = re.sub(r"<[^>]+>", " ", (tmp_path / "report.html").read_text())
    assert "78 of trace.pcap1" in text


@pytest.mark.parametrize("split_bytes", [1, 20_000, 1 << 20])
def test_packets_counted_by_splits_have_the_numbers_of_their_files(
    split_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_capture(LOSING) as capture:
        border = int(capture.records().record_offset[700])
    data = LOSING.read_bytes()
    parts = [tmp_path / "trace.pcap", tmp_path / "trace.pcap1"]
    parts[0].write_bytes(data[:border])
    parts[1].write_bytes(data[:24] + data[border:])
    decoded = decode_capture(parts)
    pq.write_table(decoded.frames, tmp_path / FRAMES_NAME)
    rows = decoded.frames.select([*PLACE]).to_pylist()[:: 1 if split_bytes > 1 else 40]
    places = [tuple(row[name] for name in PLACE) for row in rows]
    with open_rotation(parts) as rotation:
        splits = rotation.cuts(split_bytes)
        files = {file.whole.base: file.data for file in rotation.files}
        counts = {each.number: len(walk(files[each.base], each)[0].record_offset) for each in splits}
    numbered = numbered_splits(splits, counts)
    expected = locate([parts], places, tmp_path / FRAMES_NAME)
    assert len({each.file for each in expected.values()}) == 2
    read: list[int] = []

    def counted(data: mmap.mmap, split: Split) -> tuple[Records, list[CaptureWarning]]:
        read.append(split.number)
        return walk(data, split)

    monkeypatch.setattr(evidence, "walk", counted)
    assert locate([parts], places, tmp_path / FRAMES_NAME, numbered) == expected
    read.clear()
    assert locate([parts], places[:1], tmp_path / FRAMES_NAME, numbered) == {places[0]: expected[places[0]]}
    assert len(read) == 1, "of one packet only its split is read"


def test_a_place_that_is_no_frame_is_not_looked_up(replayed: Path) -> None:
    nowhere = ("hung_master.pcap", "1.1.1.1:1<->1.1.1.1:2#1", 0, 0)
    assert locate([LOSING], [nowhere], replayed / FRAMES_NAME) == {}


def test_filters_name_both_ends_of_either_family_and_never_what_is_no_address() -> None:
    assert connection_filter("10.0.0.1:80<->10.0.0.2:4711#2") == (
        "ip.addr == 10.0.0.1 && tcp.port == 80 && ip.addr == 10.0.0.2 && tcp.port == 4711"
    )
    six = connection_filter("[fe80::1]:80<->[fe80::2]:4711#1")
    assert six.startswith("ipv6.addr == fe80::1 && tcp.port == 80")
    assert connection_filter("nobody") == ""
    assert frames_filter([3, 1, 3]) == "frame.number in {1, 3}"
    assert frames_filter([]) == ""
