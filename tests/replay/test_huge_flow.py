"""One huge flow is shared out: every split decodes its part of it, and the rows are those of one pass."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from replispec.replay.capture.files import open_capture
from replispec.replay.engines.by_splits import SplitReader, decode_by_splits, ground_of_splits
from replispec.replay.engines.decoding import DecodedCapture, decode_capture
from replispec.replay.engines.split import decode_split
from replispec.replay.frames.hints import Hints
from replispec.wire.rocketmq import ha
from tests.replay.pcap_writer import START_NS, Conversation, Packet, frame, pcap
from tests.replay.random_traffic import batch, command

REPLICA, MASTER, CLIENT = ("10.0.0.3", 40_000), ("10.0.0.2", 10_912), ("10.0.0.9", 50_000)
# What a loopback interface carries in one packet, and what a master sends in one run, in bytes.
SEGMENT, RUN = 60_000, 256 << 10
MEGABYTES = 36


def flow() -> Iterator[Packet]:
    """A handshake and then one long transfer, whose sequence numbers wrap."""
    talk = Conversation(REPLICA, MASTER, server_initial=2**32 - (5 << 20), mss=SEGMENT).open()
    talk.send(ha.HaHandshakeId(broker_id=2).encode(), from_client=True)
    entries = [ha.HaEpochEntry(epoch=1, start_offset=0)]
    talk.send(ha.HaHandshakeAnswer(max_offset=0, last_epoch=1, entries=entries).encode(), from_client=False)
    for number in range((MEGABYTES << 20) // RUN):
        talk.send(batch(number * RUN, RUN, fill=number % 251), from_client=False)
    return iter(talk.packets)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("huge") / "one-flow.pcap"
    with path.open("wb") as file:
        file.write(pcap([]))
        for number, packet in enumerate(flow()):
            data, wire = frame(packet)
            second, rest = divmod(START_NS + number * 10**6, 10**9)
            file.write(struct.pack("<IIII", second, rest // 1000, len(data), wire) + data)
    return path


@pytest.fixture(scope="module")
def in_one_pass(path: Path) -> DecodedCapture:
    return decode_capture(path)


def test_the_flow_is_one_connection_of_many_frames(in_one_pass: DecodedCapture) -> None:
    assert in_one_pass.streams.num_rows == 2
    assert in_one_pass.holes.num_rows == 0
    assert in_one_pass.frames.num_rows == 2 + (MEGABYTES << 20) // RUN


@pytest.mark.parametrize("split_bytes", [64 << 10, 1 << 20, 32 << 20], ids=["64 kB", "1 MB", "32 MB"])
def test_any_size_of_the_splits_gives_the_rows_of_one_pass(
    path: Path, in_one_pass: DecodedCapture, split_bytes: int
) -> None:
    found = decode_by_splits(path, split_bytes)
    for name in ("frames", "holes", "streams"):
        assert getattr(found, name).equals(getattr(in_one_pass, name)), name


def test_each_split_decodes_its_part_of_the_flow_alone(path: Path, in_one_pass: DecodedCapture) -> None:
    with open_capture(path) as capture:
        splits = {split.number: split for split in capture.cuts(4 << 20)}
        assert len(splits) == 9
        known = ground_of_splits(capture.data, splits)
        reader = SplitReader(splits, {0: known.ground}, known.turns)
        parts = [
            decode_split(split, reader.data(number), reader.packets(number), reader.turns(number), Hints())
            for number, split in splits.items()
        ]
    decoded = [sum(batch.num_rows for batch in part.frames) for part in parts]
    # Only the frames over a border, and those that prove a start, are left to the stitch.
    assert min(decoded) >= 12
    assert sum(decoded) >= 0.9 * in_one_pass.frames.num_rows


def test_several_files_each_give_the_rows_of_one_pass(path: Path, tmp_path: Path) -> None:
    talk = Conversation(CLIENT, MASTER).open()
    for opaque in range(40):
        talk.send(command(opaque, body=b"b" * 900), from_client=True)
    other = tmp_path / "other.pcap"
    other.write_bytes(pcap(talk.packets))
    files = [other, path]
    for file in files:
        whole, by_splits = decode_capture(file), decode_by_splits(file, 10_000 if file is other else 8 << 20)
        assert by_splits.frames.equals(whole.frames)
        assert set(whole.frames.column("capture").to_pylist()) == {file.name}
