"""A watch decodes anew what belongs to another connection than it seemed, and only that."""

from __future__ import annotations

import random
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replispec.replay.capture.records import Split
from replispec.replay.engines.decoding import decode_capture
from replispec.replay.engines.local import hints
from replispec.replay.engines.results import Options
from replispec.replay.engines.split import DecodedSplit, decode_split
from replispec.replay.tcp.rotation import open_rotation
from replispec.replay.watch.alone import decode_alone
from replispec.replay.watch.kept import KeptSegments
from replispec.replay.watch.stretches import observed
from replispec.replay.watch.watcher import Bounds
from tests.replay.pcap_writer import Packet, pcap, pcapng, with_times
from tests.replay.random_traffic import command, random_capture
from tests.replay.test_rotation import HARMS, in_parts, written
from tests.replay.test_turns import FIRST, SECOND, reused_ports, talk
from tests.replay.watching import Watched

ONE, TWO = talk(FIRST, command(1)), talk(SECOND, command(2))
THIRD = talk((4_000_000_000, 1_500_000_000), command(3))


@settings(max_examples=5, deadline=None)
@given(st.integers(0, 2**32), st.booleans())
def test_where_ports_were_used_again_a_watch_tells_the_rows_of_a_replay(seed: int, blocks: bool) -> None:
    rng = random.Random(seed)
    packets = [*reused_ports(seed), *random_capture(seed, rng.choice(HARMS), talks=1)]
    packets = with_times(packets)
    write = pcapng if blocks else pcap
    with TemporaryDirectory() as folder:
        sources = written(Path(folder), *(write(part) for part in in_parts(packets, rng)))
        bounds = Bounds(segment=rng.choice([2_000, 10_000]), stretch=rng.choice([6_000, 10**6]))
        watched = Watched(Path(folder) / "watched", bounds)
        for source in sources:
            (watched.folder / source.name).write_bytes(source.read_bytes())
            watched.step()
        watched.end()
        watched.assert_replayed(sources)


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of the segments that are decoded, one each time."""
    numbers: list[int] = []

    def counted(split: Split, *rest: Any) -> DecodedSplit:
        numbers.append(split.number)
        return decode_split(split, *rest)

    monkeypatch.setattr("replispec.replay.watch.kept.decode_split", counted)
    return numbers


def fed(root: Path, *parts: list[Packet], bounds: Bounds | None = None) -> tuple[Watched, list[Path]]:
    """A folder with a file for each part, none of which is judged yet."""
    whole = with_times([packet for part in parts for packet in part])
    cut, at = [], 0
    for part in parts:
        cut.append(pcap(whole[at : at + len(part)]))
        at += len(part)
    watched = Watched(root / "watched", bounds or Bounds())
    return watched, written(root, *cut)


def test_what_the_whole_capture_tells_apart_and_its_stretch_did_not_is_decoded_again(
    tmp_path: Path, decoded: list[int]
) -> None:
    """Alone, a copy of a packet of another connection is behind a gap as the first one goes on."""
    early = talk((FIRST[0] + 500_000_000, FIRST[1] + 500_000_000), command(1))
    (copy, *_) = [packet for packet in early if packet.payload]
    watched, sources = fed(tmp_path, early, [*ONE[:4], copy, *ONE[4:]], bounds=Bounds(stretch=1))
    for source in sources:
        (watched.folder / source.name).write_bytes(source.read_bytes())
        watched.step()
    assert decoded == [0, 1]
    watched.end()
    assert decoded == [0, 1, 1]
    watched.assert_replayed(sources)


def test_numbers_of_connections_that_change_with_the_stretch_have_nothing_decoded_again(
    tmp_path: Path, decoded: list[int]
) -> None:
    """A stretch that moves on forgets the first connections; at the end they count again."""
    size = max(len(part) for part in (ONE, TWO, THIRD)) * 100
    watched, sources = fed(tmp_path, ONE, TWO, THIRD, ONE, bounds=Bounds(stretch=size))
    for source in sources:
        (watched.folder / source.name).write_bytes(source.read_bytes())
        watched.step()
    watched.end()
    assert decoded == [0, 1, 2, 3]
    watched.assert_replayed(sources)


def test_what_a_worker_decoded_alone_is_not_decoded_again(tmp_path: Path, decoded: list[int]) -> None:
    watched, sources = fed(tmp_path, ONE, [*TWO, *ONE], [*THIRD, *ONE])
    for number, source in enumerate(sources):
        (watched.folder / source.name).write_bytes(source.read_bytes())
        watched.look()
        decode_alone(watched.checkpoint, number, watched.bounds.stretch)
    assert decoded == [0, 1, 2]
    watched.step()
    watched.end()
    assert decoded == [0, 1, 2]
    watched.assert_replayed(sources)


@settings(max_examples=5, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([1_000, 5_000]), st.sampled_from([1, 10**6]))
def test_where_ports_were_used_again_a_replay_with_bounded_memory_gives_the_rows(
    seed: int, segment_bytes: int, share_bytes: int
) -> None:
    with TemporaryDirectory() as folder:
        (source,) = written(Path(folder), pcap(reused_ports(seed)))
        kept_folder = Path(folder) / "kept"
        kept_folder.mkdir()
        found: list[pa.Table] = []
        with open_rotation(source) as capture:
            splits = {split.number: split for split in capture.cuts(segment_bytes)}
            kept = KeptSegments(kept_folder, hints(Options()))
            told = observed(splits, kept, found.append, share_bytes)
        whole = decode_capture(source)
        assert [row for table in found for row in table.to_pylist()] == whole.frames.to_pylist()
        assert told.streams.num_rows == whole.streams.num_rows
        assert told.wire == whole.wire
