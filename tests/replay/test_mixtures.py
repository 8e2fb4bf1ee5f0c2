"""Any mixture of damage on the way to the capture gives the rows of the sound traffic, or a reported hole.

Reordered, lost and repeated packets, sequence numbers that wrap, connections seen from their middle,
captures inside message bodies, and any size of the splits: all in one generator.
"""

from __future__ import annotations

import os
import random
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from replispec.replay.engines.by_splits import decode_by_splits
from replispec.replay.engines.decoding import DecodedCapture, decode_capture
from tests.replay.pcap_writer import SYN, Conversation, Packet, pcap, pcapng, with_times
from tests.replay.random_traffic import command, remoting_talk, replication_talk

MIXTURES = int(os.environ.get("REPLISPEC_MIXTURES", "12"))
SERVER = ("10.0.0.2", 10_911)
# What says where and when a frame was found, or in which file, is not what the frame says.
PLACES = {"capture", "record_offset", "acknowledged", "time_ns", "index", "from_start"}


@dataclass(frozen=True, slots=True)
class Mixture:
    """How much of each damage (0 to 1 a packet), and the first packets of each connection left out."""

    seed: int
    lost: float
    repeated: float
    reordered: float
    left_out: int
    split_bytes: int
    blocks: bool


mixtures = st.builds(
    Mixture,
    seed=st.integers(0, 2**32),
    lost=st.sampled_from([0.0, 0.01, 0.1]),
    repeated=st.sampled_from([0.0, 0.2]),
    reordered=st.sampled_from([0.0, 0.3]),
    left_out=st.sampled_from([0, 0, 1, 4, 9]),
    split_bytes=st.integers(500, 60_000),
    blocks=st.booleans(),
)


def traffic(seed: int) -> list[Packet]:
    """Three connections, mixed: each wraps its sequence numbers, one carries captures in its messages."""
    rng = random.Random(seed)
    queues: list[list[Packet]] = []
    for at, kind in enumerate((remoting_talk, replication_talk, remoting_talk)):
        wraps = [2**32 - rng.randrange(1, 2000) for _ in range(2)]
        talk = Conversation(
            (f"10.0.{at}.9", 40_000), SERVER, client_initial=wraps[0], server_initial=wraps[1]
        ).open()
        kind(rng, talk)
        if at == 0:
            inner = Conversation(("10.9.9.9", 99), ("10.9.9.8", 98)).open()
            inner.send(b"".join(command(number) for number in range(9)), from_client=True)
            talk.send(command(77, body=pcap(inner.packets) * 2), from_client=True, mss=500)
            talk.send(command(78, answer=True), from_client=False)
        queues.append(talk.packets)
    mixed: list[Packet] = []
    while queues := [queue for queue in queues if queue]:
        mixed.append(rng.choice(queues).pop(0))
    return mixed


def damaged(packets: list[Packet], mixture: Mixture) -> list[Packet]:
    """The packets as the capture has them."""
    rng = random.Random(mixture.seed + 1)
    seen: dict[frozenset[tuple[str, int]], int] = {}
    kept: list[Packet] = []
    for packet in packets:
        talk = frozenset((packet.source, packet.destination))
        seen[talk] = seen.get(talk, 0) + 1
        if seen[talk] <= mixture.left_out or rng.random() < mixture.lost:
            continue
        kept.append(packet)
        if rng.random() < mixture.repeated:
            again = rng.choice(kept[-20:])
            kept.append(rng.choice([again, replace(again, payload=again.payload[: len(again.payload) // 2])]))
    for at in range(len(kept) - 1):
        if rng.random() < mixture.reordered:
            other = min(len(kept) - 1, at + rng.randrange(1, 6))
            kept[at], kept[other] = kept[other], kept[at]
    return kept


def decoded(folder: Path, packets: list[Packet], mixture: Mixture) -> tuple[DecodedCapture, DecodedCapture]:
    """The capture of these packets, decoded in one go and by splits."""
    path = folder / "mixed.pcap"
    path.write_bytes((pcapng if mixture.blocks else pcap)(with_times(packets)))
    return decode_capture(path), decode_by_splits(path, mixture.split_bytes)


def by_source(rows: list[dict[str, Any]], end: str = "source") -> dict[tuple[str, str], list[dict[str, Any]]]:
    """Rows by what says their direction, which is (connection, `end`)."""
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        found.setdefault((row["connection"], str(row[end])), []).append(row)
    return found


def compared(sound: DecodedCapture, found: DecodedCapture, kept: list[Packet]) -> tuple[int, int]:
    """Compare direction by direction; how many had to be equal to their end, and how many to a hole."""
    holes = by_source(found.holes.to_pylist(), "direction")
    expected = by_source(sound.frames.to_pylist())
    frames = by_source(found.frames.to_pylist())
    whole = broken = 0
    for stream in found.streams.to_pylist():
        if not stream["from_start"]:
            continue  # the report says so: nothing places its bytes
        key = (stream["connection"], stream["source"])
        mine = holes.get((stream["connection"], str(stream["direction"])), [])
        limit = min((hole["start"] for hole in mine), default=stream_end(stream["source"], key[0], kept))
        whole, broken = whole + (not mine), broken + bool(mine)
        pair = [
            [
                {name: value for name, value in row.items() if name not in PLACES}
                for row in rows.get(key, [])
                if row["sequence"] + row["size"] <= limit
            ]
            for rows in (expected, frames)
        ]
        assert pair[0] == pair[1], key
        if not mine:
            assert stream["bytes_undecoded"] == 0, key
    return whole, broken


def stream_end(source: str, connection: str, kept: list[Packet]) -> int:
    """The position after the last byte that the capture has of a direction that was seen from its SYN."""
    own = [
        packet
        for packet in kept
        if f"{packet.source[0]}:{packet.source[1]}" == source
        and f"{packet.destination[0]}:{packet.destination[1]}" in connection
    ]
    first = next(packet.sequence for packet in own if packet.flags & SYN) + 1
    ends = [packet.sequence + len(packet.payload) for packet in own if not packet.flags & SYN]
    return max(ends, default=first) - first


@settings(max_examples=MIXTURES, deadline=None)
@given(mixture=mixtures)
def test_any_mixture_gives_the_rows_of_the_sound_traffic_or_a_reported_hole(
    tmp_path_factory: Any, mixture: Mixture
) -> None:
    folder = tmp_path_factory.mktemp("mixture")
    packets = traffic(mixture.seed)
    sound = decoded(folder, packets, mixture)[0]
    assert sound.holes.num_rows == 0
    kept = damaged(packets, mixture)
    found, by_splits = decoded(folder, kept, mixture)
    for name in ("frames", "holes", "streams"):
        assert getattr(by_splits, name).to_pylist() == getattr(found, name).to_pylist()
    compared(sound, found, kept)


def test_the_mixtures_have_all_seven_kinds_of_damage(tmp_path: Path) -> None:
    whole = broken = headless = 0
    for seed in range(3):
        mixture = Mixture(seed, 0.02, 0.2, 0.3, left_out=0, split_bytes=2000, blocks=False)
        packets = traffic(seed)
        kept = damaged(packets, mixture)
        sound, found = decoded(tmp_path, packets, mixture)[0], decoded(tmp_path, kept, mixture)[0]
        counts = compared(sound, found, kept)
        whole, broken = whole + counts[0], broken + counts[1]
        late = damaged(packets, replace(mixture, left_out=4))
        cut = decoded(tmp_path, late, mixture)[0].streams.to_pylist()
        headless += sum(not stream["from_start"] for stream in cut)
        assert any(b"\xd4\xc3\xb2\xa1" in packet.payload for packet in packets)
        assert max(packet.sequence for packet in packets) >= 2**32 > min(p.sequence for p in packets)
        assert kept != sorted(kept, key=lambda packet: packet.time_ns)
        assert len(kept) != len({id(packet) for packet in kept})
    assert whole > 2
    assert broken > 2
    assert headless > 5
