"""Whatever the bytes are, the dissector shows what it can and never fails."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from pathlib import Path

from replispec.replay.capture.files import open_capture
from tests.replay.pcap_writer import Packet, pcap
from tests.replay.random_traffic import Harm, random_capture
from tests.wireshark.samples import all_frames, talk, write
from tests.wireshark.tshark_run import PROTOCOLS, ROOT, run_tshark

CAPTURE = ROOT / "spark_replay/captures/n_learner_alone.pcap"
# Bytes of Ethernet, IPv4 and TCP headers with time stamps: what is behind them is the protocol's.
HEADERS = 14 + 20 + 32
ADDRESSES = 14 + 12
HEADER_OF_A_FILE = len(pcap([]))
# Every bit of the head of each frame is flipped; its tail holds texts and bodies.
HEAD = 44
TREES = ("-V", "-O", ",".join(PROTOCOLS))


def test_random_bytes(tmp_path: Path, tshark_home: Path) -> None:
    rng = random.Random(3)
    packets: list[Packet] = []
    for number in range(300):
        # Half of the streams start like a frame, so that somebody looks at the rest.
        start = rng.choice(all_frames())[0][: rng.randrange(24)] if number % 2 else b""
        data = start + rng.randbytes(rng.randrange(1, 400))
        packets += talk(number, [(data, bool(rng.randrange(2))), (rng.randbytes(40), True)])
    run_tshark(write(tmp_path / "random.pcap", packets), tshark_home, *TREES)


def test_every_cut_and_every_flipped_bit_of_a_frame(tmp_path: Path, tshark_home: Path) -> None:
    broken: list[tuple[bytes, bool]] = []
    for data, way in all_frames():
        broken += [(data[:size], way) for size in range(1, min(len(data), 3 * HEAD))]
        for bit in range(8 * min(len(data), HEAD)):
            flipped = bytearray(data)
            flipped[bit // 8] ^= 1 << bit % 8
            broken.append((bytes(flipped), way))
    # A sound frame after it: who takes the broken one must cope with what follows.
    packets = [
        packet
        for number, (data, way) in enumerate(broken)
        for packet in talk(number, [(data, way), (all_frames()[number % 10][0], way)])
    ]
    run_tshark(write(tmp_path / "broken.pcap", packets), tshark_home, *TREES)


def records(path: Path) -> Iterator[bytes]:
    """Each packet of a capture."""
    with open_capture(path) as capture:
        found = capture.records()
        for at, size in zip(found.data_offset.tolist(), found.captured.tolist(), strict=True):
            yield capture.data[at : at + size]


def test_a_real_capture_with_flipped_bits_and_cut_packets(tmp_path: Path, tshark_home: Path) -> None:
    """Copies of one capture, each between hosts of its own."""
    rng = random.Random(5)
    parts = [CAPTURE.read_bytes()[:HEADER_OF_A_FILE]]
    for copy in range(1, 7):
        for number, packet in enumerate(records(CAPTURE)):
            data = bytearray(packet)
            data[ADDRESSES : ADDRESSES + 8] = bytes((127, 0, copy, 1, 127, 0, copy, 1))
            wire = len(data)
            if wire > HEADERS and rng.random() < 0.3:
                place = rng.randrange(HEADERS, wire)
                data[place] ^= 1 << rng.randrange(8)
            if wire > HEADERS and copy > 4 and rng.random() < 0.2:
                del data[rng.randrange(HEADERS, wire) :]
            parts.append(struct.pack("<IIII", number, copy, len(data), wire) + data)
    path = tmp_path / "harmed.pcap"
    path.write_bytes(b"".join(parts))
    run_tshark(path, tshark_home, *TREES, "-2")


def test_streams_with_losses_repetitions_and_missing_starts(tmp_path: Path, tshark_home: Path) -> None:
    harm = Harm(lost=0.05, repeated=0.1, reordered=0.1, cut=0.05, headless=0.3)
    path = write(tmp_path / "losses.pcap", random_capture(11, harm, talks=40))
    run_tshark(path, tshark_home, *TREES, "-2")
