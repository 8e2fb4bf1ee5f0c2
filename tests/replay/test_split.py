"""Splits and their stitch give what decoding in one go gives, whatever the size of the splits."""

from __future__ import annotations

import contextlib
import random
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from replispec.replay.capture.records import CaptureError
from replispec.replay.engines import split
from replispec.replay.engines.by_splits import decode_by_splits
from replispec.replay.engines.decoding import DecodedCapture, decode_capture
from tests.replay.pcap_writer import RST, SYN, Conversation, Packet, pcap, pcapng, with_times
from tests.replay.random_traffic import HARMLESS, Harm, batch, command, random_capture

CLIENT, SERVER = ("10.0.0.9", 40_000), ("10.0.0.2", 10_911)
HARMS = (
    HARMLESS,
    Harm(lost=0.05, headless=0.5),
    Harm(repeated=0.2, reordered=0.3),
    Harm(lost=0.02, repeated=0.1, reordered=0.1, cut=0.1, headless=0.3),
)


def assert_same(left: DecodedCapture, right: DecodedCapture) -> None:
    assert left.frames.to_pylist() == right.frames.to_pylist()
    assert left.holes.to_pylist() == right.holes.to_pylist()
    assert left.streams.to_pylist() == right.streams.to_pylist()
    assert left.warnings == right.warnings


def check(data: bytes, *sizes: int) -> DecodedCapture:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "made.pcap"
        path.write_bytes(data)
        whole = decode_capture(path)
        for size in sizes:
            # One of many is read either way; of few each is.
            ways = (-1, split.PIECES_LEFT) if len(sizes) > 1 else ((-1, split.PIECES_LEFT)[size % 2],)
            for left in ways:
                with patch.object(split, "PIECES_LEFT", left):
                    assert_same(whole, decode_by_splits(path, size))
        return whole


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from(HARMS), st.integers(1000, 40_000), st.booleans())
# The last two packets of a side stand behind a hole, nobody acknowledged them, and they bear each other out.
@example(seed=1666697543, harm=HARMS[-1], split_bytes=5042, blocks=False)
# Two connections of the same ports are taken for one, and most of it lies before its SYN.
@example(seed=2044, harm=HARMS[-1], split_bytes=1000, blocks=False)
def test_any_split_size_gives_the_same_rows(seed: int, harm: Harm, split_bytes: int, blocks: bool) -> None:
    packets = random_capture(seed, harm, talks=3)
    check(pcapng(packets) if blocks else pcap(packets), split_bytes)


@pytest.mark.parametrize("harm", HARMS)
def test_a_split_for_each_packet_gives_the_same_rows(harm: Harm) -> None:
    check(pcap(random_capture(5, harm, talks=2)), 1)


def test_a_capture_inside_messages_does_not_mislead_the_splits() -> None:
    inner = pcap(Conversation(CLIENT, SERVER).open().send(command(1) * 40, from_client=True).packets)
    talk = Conversation(CLIENT, SERVER).open()
    for opaque in range(6):
        talk.send(command(opaque, body=inner * 3), from_client=True)
    whole = check(pcap(talk.packets), 2000, 9000)
    assert whole.frames["opaque"].to_pylist() == list(range(6))


def test_one_long_flow_with_bodies_over_several_splits() -> None:
    talk = Conversation(CLIENT, SERVER, client_initial=2**32 - 5000).open()
    offset = 0
    for size in (30_000, 100, 0, 32_768, 5, 60_000, 36) * 3:
        talk.send(batch(offset, size), from_client=False)
        offset += size
    whole = check(pcap(talk.packets), 4000, 20_000, 50_000)
    assert whole.frames.num_rows == 21


def test_ports_used_again_at_a_border() -> None:
    packets: list[Packet] = []
    for at in range(12):
        talk = Conversation(CLIENT, SERVER, client_initial=at * 1000, server_initial=at * 77_777).open()
        talk.send(command(at) * 3, from_client=True).send(command(at, answer=True), from_client=False)
        packets += talk.packets
    whole = check(pcap(with_times(packets)), 100, 200, 300, 1000)
    assert whole.streams.num_rows == 24


def test_a_late_copy_in_another_split_changes_nothing() -> None:
    talk = (
        Conversation(CLIENT, SERVER, mss=400).open().send(command(1, body=b"b" * 900) * 9, from_client=True)
    )
    again = talk.packets[4:20]
    check(pcap(with_times([*talk.packets, *again])), 1500, 4000)
    check(pcap(with_times([*talk.packets[:12], *again, *talk.packets[12:]])), 1500, 4000)


@pytest.mark.parametrize("data", [pcap([]), pcapng([])])
def test_a_capture_without_packets_is_one_empty_split(data: bytes) -> None:
    assert check(data, 1, 1000).streams.num_rows == 0


def damaged(seed: int) -> bytes:
    """A capture file with some bytes overwritten, put in or taken out."""
    rng = random.Random(seed)
    packets = random_capture(seed % 7, HARMS[3], talks=3)
    data = bytearray((pcapng if seed % 2 else pcap)(packets, link_type=rng.choice([0, 1, 101, 113, 276])))
    for _ in range(rng.choice([1, 5, 50, 500])):
        at = rng.randrange(len(data))
        match rng.randrange(4):
            case 0:
                data[at] = rng.randrange(256)
            case 1:
                data[at : at + 4] = rng.choice(
                    [b"\xff" * 4, b"\x7f\xff\xff\xff", bytes(4), b"\x00\x00\x00\x02"]
                )
            case 2:
                data[at:at] = rng.randbytes(rng.randrange(8))
            case _:
                del data[at : at + rng.randrange(8)]
    return bytes(data)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32), st.integers(2000, 30_000))
def test_a_damaged_file_is_refused_or_gives_the_same_rows_either_way(seed: int, split_bytes: int) -> None:
    with contextlib.suppress(CaptureError):
        check(damaged(seed), split_bytes)


def test_a_late_syn_stays_in_its_connection_wherever_the_capture_is_cut() -> None:
    talk = Conversation(CLIENT, SERVER).open().send(command(1) * 1_500, from_client=True, mss=1_000)
    assert len(talk.packets) > 150
    whole = check(pcap([*talk.packets[100:], *talk.packets[:100]]), 20_000, 60_000)
    assert whole.streams.num_rows == 2
    assert whole.frames.num_rows == 1_500


def test_a_reset_that_also_says_syn_opens_nothing() -> None:
    talk = Conversation(CLIENT, SERVER).open().send(command(1) * 3, from_client=True)
    odd = Packet(CLIENT, SERVER, 77, flags=SYN | RST)
    whole = check(pcap(with_times([*talk.packets, odd])), 1, 500)
    assert whole.streams.num_rows == 2
