"""A connection observed in shares tells what it tells as a whole, whatever happened to its packets."""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from replispec.replay.engines.decoding import DecodedCapture, decode_capture
from replispec.replay.events.family import shared_observer
from replispec.replay.events.observe import gathered, observe
from replispec.replay.events.shares import SharedObserver, dealt
from replispec.replay.events.tables import Events
from tests.replay import mess
from tests.replay.defects import DEFECTS, sound
from tests.replay.pcap_writer import pcap
from tests.replay.random_traffic import Harm, random_capture

CAPTURES = Path(__file__).parents[2] / "spark_replay/captures"
NAMES = sorted(path.stem for path in CAPTURES.glob("*.pcap"))
MESSY = sorted(DEFECTS)
HARM = Harm(lost=0.02, repeated=0.02, reordered=0.02)


@cache
def seen(name: str) -> DecodedCapture:
    return decode_capture(CAPTURES / f"{name}.pcap")


def shared() -> SharedObserver:
    found = shared_observer()
    assert found is not None
    return found


def assert_same(decoded: DecodedCapture, chance: random.Random) -> int:
    """Every connection that can be shared tells the same; how many shares there were."""
    tables = decoded.frames, decoded.holes, decoded.streams
    own = pc.is_in(decoded.frames.column("protocol"), pa.array(sorted(shared().kinds)))
    shares = 0
    for name in pc.unique(decoded.frames.column("connection").filter(own)).to_pylist():
        frames, holes, streams = (each.filter(pc.field("connection") == name) for each in tables)
        found, count = in_shares(frames, holes, streams, chance)
        shares += count
        for kind, table in observe(frames, holes, streams).items():
            assert found[kind].equals(table), (name, kind)
    return shares


def in_shares(
    frames: pa.Table, holes: pa.Table, streams: pa.Table, chance: random.Random
) -> tuple[Events, int]:
    """What one connection tells: its frames are dealt out in any order, each to where it is asked for."""
    few = frames.select(list(shared().columns)).take(pa.array(order_of(frames, chance), pa.int64()))
    laid = shared().lay(few, holes, streams, chance.choice((2, 7, 50, 10_000)))
    numbers = dealt(laid.shares)
    sides, places = (frames.column(name).to_pylist() for name in ("direction", "index"))
    owner = np.array(
        [numbers[side][at] if at < len(numbers[side]) else -1 for side, at in zip(sides, places, strict=True)]
    )
    parts = [laid.told]
    for number, share in enumerate(laid.shares):
        own = frames.take(pa.array(np.flatnonzero(owner == number)))
        own = own.take(pa.array(order_of(own, chance), pa.int64()))
        parts.append(shared().look(own, streams if number == 0 else streams.slice(0, 0), share))
    return gathered(parts), len(laid.shares)


def order_of(frames: pa.Table, chance: random.Random) -> list[int]:
    return chance.sample(range(frames.num_rows), frames.num_rows)


@pytest.mark.parametrize("name", NAMES)
def test_shares_tell_what_the_connection_tells(name: str) -> None:
    assert assert_same(seen(name), random.Random(name)) > 1


@pytest.mark.parametrize("defect", MESSY)
def test_shares_of_a_messed_capture_tell_what_it_tells(defect: str, tmp_path: Path) -> None:
    name = NAMES[MESSY.index(defect) % len(NAMES)]
    header, packets = mess.read((CAPTURES / f"{name}.pcap").read_bytes())
    chance = random.Random(defect)
    path = tmp_path / "messed.pcap"
    path.write_bytes(mess.written(header, DEFECTS[defect].make(sound(packets), chance)))
    assert_same(decode_capture(path), chance)


@pytest.mark.parametrize("seed", range(6))
def test_shares_of_any_talk_tell_what_it_tells(seed: int, tmp_path: Path) -> None:
    path = tmp_path / "random.pcap"
    path.write_bytes(pcap(random_capture(seed, HARM)))
    assert_same(decode_capture(path), random.Random(seed))
