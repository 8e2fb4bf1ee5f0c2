"""What the file of a capture itself says to be missing or damaged takes the promise, and nothing else."""

from __future__ import annotations

import gzip
import random
import struct
from pathlib import Path

import pytest

from replispec.replay.capture.files import open_capture
from replispec.replay.capture.growing import grown
from replispec.replay.capture.records import ALL_TIME, CaptureError, Window
from replispec.replay.engines.results import Options
from replispec.replay.engines.run import EngineName, replay
from replispec.replay.hosts.merging import merge
from replispec.replay.redact.run import redact
from replispec.replay.report.fill import Story, fill
from replispec.replay.report.headline import Headline, headline
from tests.replay.pcap_writer import START_NS, Conversation, Packet, interface, pcap, pcapng, section
from tests.replay.scenarios import failed_over, two_brokers

SAYS = "dropped while it was captured, as the file itself says"


def kept() -> list[Packet]:
    """A fail-over in which nothing is lost."""
    return failed_over(two_brokers(messages=10)).traffic.packets()


def lossy() -> list[Packet]:
    world = two_brokers(messages=10)
    world.send(3)
    return failed_over(world).traffic.packets()


def option(code: int, value: int, order: str = "<") -> bytes:
    return struct.pack(order + "HHQ", code, 8, value)


def statistics(*options: bytes, number: int = 0, order: str = "<") -> bytes:
    """An interface statistics block."""
    body = struct.pack(order + "III", number, 0, 0) + b"".join(options) + bytes(4)
    return struct.pack(order + "II", 5, len(body) + 12) + body + struct.pack(order + "I", len(body) + 12)


def told(data: bytes, path: Path, window: Window = ALL_TIME) -> Headline:
    path.write_bytes(data)
    return headline(
        fill(replay([path], path.parent / "out", EngineName.LOCAL, Options(window=window)), Story())
    )


def with_dropped_before_packets(packets: list[Packet], *counts: int) -> bytes:
    """A capture whose first packets say how many were dropped before each."""
    data = pcapng([])
    for number, packet in enumerate(packets):
        block = pcapng([packet])[len(pcapng([])) :]
        if number < len(counts):
            body = block[8:-4] + option(4, counts[number]) + bytes(4)
            size = struct.pack("<I", len(body) + 12)
            block = block[:4] + size + body + size
        data += block
    return data


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("code", [5, 7])
def test_packets_that_an_interface_dropped_take_the_promise(code: int, order: str, tmp_path: Path) -> None:
    data = pcapng(kept(), byte_order=order) + statistics(option(code, 500, order), order=order)
    found = told(data, tmp_path / "a.pcapng")
    assert found.tone == "unjudged"
    assert any(f"500 packets were {SAYS}" in line for line in found.lines)


def test_packets_that_packets_say_were_dropped_before_them_take_the_promise(tmp_path: Path) -> None:
    found = told(with_dropped_before_packets(kept(), 0, 2, 1), tmp_path / "a.pcapng")
    assert found.tone == "unjudged"
    assert any(f"3 packets were {SAYS}" in line for line in found.lines)


def in_old_blocks(packets: list[Packet], dropped: int) -> bytes:
    """A capture of obsolete packet blocks, the second of which says how many were dropped before it."""
    data = pcapng([])
    for number, packet in enumerate(packets):
        block = pcapng([packet])[len(pcapng([])) :]
        fields = struct.unpack_from("<IIIII", block, 8)
        head = struct.pack("<HHIIII", fields[0], dropped if number == 1 else 0, *fields[1:])
        data += struct.pack("<II", 2, len(block)) + head + block[28:]
    return data


@pytest.mark.parametrize(("dropped", "tone"), [(0, "kept"), (7, "unjudged"), (0xFFFF, "kept")])
def test_obsolete_packet_blocks_say_what_was_dropped_too(dropped: int, tone: str, tmp_path: Path) -> None:
    """0xFFFF: who captured did not know."""
    assert told(in_old_blocks(kept(), dropped), tmp_path / "a.pcapng").tone == tone


def test_losses_beside_dropped_packets_are_at_least(tmp_path: Path) -> None:
    data = pcapng(lossy()) + statistics(option(5, 1), option(7, 0))
    found = told(data, tmp_path / "a.pcapng")
    assert found.text == "At least 3 acknowledged messages of Controllers/broker-a were lost"


def test_what_counts_no_dropped_packet_keeps_the_promise(tmp_path: Path) -> None:
    data = pcapng(kept()) + statistics(option(4, 900), option(5, 0), option(6, 900), option(7, 0))
    assert told(data, tmp_path / "a.pcapng").tone == "kept"


def test_each_dropped_packet_counts_once(tmp_path: Path) -> None:
    """Statistics go on from those before, and count what packets say, too; sections begin anew."""
    first = (
        section()
        + interface()
        + statistics(option(5, 2), option(7, 1))
        + statistics(option(5, 4), option(7, 1))
    )
    second = with_dropped_before_packets(kept(), 6) + statistics(option(7, 6))
    (tmp_path / "a.pcapng").write_bytes(first + second)
    with open_capture(tmp_path / "a.pcapng") as capture:
        splits = capture.cuts(1_000)
        assert len(splits) > 2
        assert [warning.reason for warning in capture.warnings] == [f"11 packets were {SAYS}"]


def test_a_capture_that_grows_goes_on_behind_dropped_packets(tmp_path: Path) -> None:
    (tmp_path / "a.pcapng").write_bytes(pcapng(kept()) + statistics(option(5, 2)))
    with open_capture(tmp_path / "a.pcapng") as capture:
        found = grown(capture.data, capture.whole)
        assert (found.damage, found.end) == ("", len(capture.data))


@pytest.mark.parametrize("counts", [(), (2, 1)])
def test_a_redacted_capture_says_as_many_packets_to_be_dropped(
    counts: tuple[int, ...], tmp_path: Path
) -> None:
    data = with_dropped_before_packets(kept(), *counts) if counts else pcapng(kept())
    path, shown = tmp_path / "a.pcapng", tmp_path / "shown.pcapng"
    path.write_bytes(data + (statistics(option(5, 7), option(7, 1)) if counts else b""))
    redact(path, shown, b"a key that is only good for tests")
    with open_capture(shown) as capture:
        assert capture.dropped() == (8 if counts else 0)
    one, other = (told(each.read_bytes(), tmp_path / "again.pcapng") for each in (path, shown))
    assert (one.tone, one.text) == (other.tone, other.text)
    assert any(f"8 packets were {SAYS}" in line for line in other.lines) is bool(counts)


def test_packets_dropped_at_one_of_several_places_take_the_promise_of_the_merged_capture(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.pcapng").write_bytes(pcapng(kept()) + statistics(option(5, 2)))
    (tmp_path / "b.pcap").write_bytes(pcap(kept()))
    made = merge([tmp_path / "a.pcapng", tmp_path / "b.pcap"], tmp_path / "story.pcapng")
    story = [tmp_path / "story.pcapng"]
    summary = replay(story, tmp_path / "out", EngineName.LOCAL, Options(), merged=made)
    found = headline(fill(summary, Story()))
    assert found.tone == "unjudged"
    assert any(SAYS in line for line in found.lines)


# ---- gzip ----------------------------------------------------------------------------------------


def wrong(packed: bytes, at: int) -> bytes:
    """One bit of it turned."""
    return (
        packed[:at] + bytes([packed[at] ^ 1]) + packed[at + 1 :]
        if at >= 0
        else wrong(packed, len(packed) + at)
    )


def large() -> bytes:
    """A capture of more than what is decompressed at a time, of bytes that compress a little."""
    said = Conversation(("10.0.0.1", 4_000), ("10.0.0.2", 10911)).open()
    rng = random.Random(1)
    for _ in range(2_400):
        said.send(rng.randbytes(1_000), from_client=True)
    return pcap(said.packets)


@pytest.mark.parametrize("at", [-6, -2], ids=["checksum", "length"])
def test_all_that_decompresses_is_read_though_the_trailer_is_wrong(at: int, tmp_path: Path) -> None:
    data = large()
    (tmp_path / "a.pcap").write_bytes(wrong(gzip.compress(data, mtime=0), at))
    with open_capture(tmp_path / "a.pcap") as capture:
        assert capture.data[:] == data
        (warning,) = capture.warnings
        assert "the gzip checksum is wrong" in warning.reason
        assert warning.unread


def test_losses_are_found_in_a_small_file_whose_gzip_checksum_is_wrong(tmp_path: Path) -> None:
    found = told(wrong(gzip.compress(pcap(lossy()), mtime=0), -6), tmp_path / "a.pcap")
    assert found.text == "At least 3 acknowledged messages of Controllers/broker-a were lost"
    promised = told(wrong(gzip.compress(pcap(kept()), mtime=0), -6), tmp_path / "b.pcap")
    assert promised.tone == "unjudged"
    assert any("the gzip checksum is wrong" in line for line in promised.lines)


@pytest.mark.parametrize("at", [-6, -2], ids=["checksum", "length"])
def test_what_follows_a_member_with_a_wrong_trailer_is_read(at: int, tmp_path: Path) -> None:
    data = pcap(kept())
    members = wrong(gzip.compress(data[:5_000], mtime=0), at) + gzip.compress(data[5_000:], mtime=0)
    (tmp_path / "a.pcap").write_bytes(members)
    with open_capture(tmp_path / "a.pcap") as capture:
        assert capture.data[:] == data
        assert ["the gzip checksum is wrong" in each.reason for each in capture.warnings] == [True]


def test_a_damaged_stream_is_read_up_to_its_damage(tmp_path: Path) -> None:
    data = large()
    (tmp_path / "a.pcap").write_bytes(gzip.compress(data, mtime=0)[:1_500_000] + b"\xff" * 1_000)
    with open_capture(tmp_path / "a.pcap") as capture:
        assert capture.data[:1_400_000] == data[:1_400_000]
        assert [each.unread for each in capture.warnings] == [True]


def test_of_what_does_not_decompress_at_all_the_reason_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.pcap").write_bytes(b"\x1f\x8b\x08\x00" + bytes(6) + b"\xff" * 40)
    with pytest.raises(CaptureError, match="compressed stream is damaged"):
        open_capture(tmp_path / "a.pcap")


# ---- a stretch of time ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("window", "said"),
    [(Window(0, 2 * START_NS), 0), (Window(START_NS + 10**6, None), 1), (Window(None, START_NS + 10**8), 1)],
)
def test_packets_are_called_passed_over_where_some_were(window: Window, said: int, tmp_path: Path) -> None:
    (tmp_path / "a.pcap").write_bytes(pcap(kept()))
    summary = replay([tmp_path / "a.pcap"], tmp_path / "out", EngineName.LOCAL, Options(window=window))
    warnings = [each for row in summary.captures for each in row.warnings if "passed over" in each]
    assert len(warnings) == said
