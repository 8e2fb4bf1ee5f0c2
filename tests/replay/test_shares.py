"""A connection observed in shares tells what it tells as a whole, whatever happened to its packets.

A few connections of each capture; all of them with REPLISPEC_SPREAD=all, as in `make test-full`.
"""

from __future__ import annotations

import os
import random
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from replispec.replay.capture import long_columns
from replispec.replay.engines.decoding import DecodedCapture, decode_capture
from replispec.replay.events.family import observe_guests, shared_observers
from replispec.replay.events.observation import ObservationKind
from replispec.replay.events.observe import gathered, observe
from replispec.replay.events.rocketmq import durations, long_latencies
from replispec.replay.events.shares import Long, Share, SharedObserver
from replispec.replay.events.tables import Events
from replispec.replay.frames.tables import FRAMES, HOLES, STREAMS
from replispec.replay.pairing import long_delivery, long_pairs
from tests.replay import mess
from tests.replay.defects import DEFECTS, sound
from tests.replay.pcap_writer import pcap
from tests.replay.random_traffic import Harm, random_capture

AGREEMENT = Path(__file__).parent / "data/agreement.pcap"
CAPTURES = Path(__file__).parents[2] / "spark_replay/captures"
NAMES = sorted(path.stem for path in CAPTURES.glob("*.pcap"))
MESSY = sorted(DEFECTS)
# So many connections of a capture are tried.
CONNECTIONS = 1000 if os.environ.get("REPLISPEC_SPREAD") == "all" else 4
HARM = Harm(lost=0.02, repeated=0.02, reordered=0.02)


@cache
def seen(name: str) -> DecodedCapture:
    return decode_capture(CAPTURES / f"{name}.pcap")


def commands() -> SharedObserver:
    (found,) = (each for each in shared_observers() if "remoting" in each.kinds)
    return found


def assert_same(decoded: DecodedCapture, chance: random.Random) -> int:
    """Connections that can be shared tell the same; how many shares there were."""
    return sum(assert_same_by(each, decoded, chance) for each in shared_observers())


def assert_same_by(observer: SharedObserver, decoded: DecodedCapture, chance: random.Random) -> int:
    tables = decoded.frames, decoded.holes, decoded.streams
    own = pc.is_in(decoded.frames.column("protocol"), pa.array(sorted(observer.kinds)))
    shares = 0
    names = pc.unique(decoded.frames.column("connection").filter(own)).to_pylist()
    for name in names if len(names) <= CONNECTIONS else chance.sample(names, CONNECTIONS):
        frames, holes, streams = (each.filter(pc.field("connection") == name) for each in tables)
        found, count = in_shares(observer, frames, holes, streams, chance)
        shares += count
        for kind, table in observe(frames, holes, streams).items():
            assert found[kind].equals(table), (name, kind)
    return shares


def in_shares(
    observer: SharedObserver,
    frames: pa.Table,
    holes: pa.Table,
    streams: pa.Table,
    chance: random.Random,
) -> tuple[Events, int]:
    """What one connection tells: its frames are dealt out in any order, each to where it is asked for."""
    few = frames.select(list(observer.columns)).take(pa.array(order_of(frames, chance), pa.int64()))
    size = chance.choice((3, 10_000))
    pieces = [few.slice(at, size) for at in range(0, few.num_rows, size)]
    together = chance.choice((2, 7, 50, 10_000))
    with tempfile.TemporaryDirectory() as folder:
        laid = [*observer.lay(Long(pieces, holes, streams, together, Path(folder)))]
    assert sorted(each.number for each in laid) == [*range(len(laid))]
    assert len(laid) <= 1 - -frames.num_rows // together
    numbers = dealt({each.number: each.share for each in laid})
    sides, places = (frames.column(name).to_pylist() for name in ("direction", "index"))
    owner = np.array([numbers.get((side, at), -1) for side, at in zip(sides, places, strict=True)])
    parts = []
    for each in laid:
        own = frames.take(pa.array(np.flatnonzero(owner == each.number)))
        own = own.take(pa.array(order_of(own, chance), pa.int64()))
        first = each.number == 0
        parts += [each.told, observer.look(own, streams if first else streams.slice(0, 0), each.share)]
        parts += observe_guests(own, holes, streams) if first else []
    return gathered(parts), len(laid)


def dealt(shares: Mapping[int, Share]) -> dict[tuple[int, int], int]:
    """By direction and index of a frame the number of the share that has it."""
    found: dict[tuple[int, int], int] = {}
    for number, share in shares.items():
        for key in zip(share.direction.tolist(), share.index.tolist(), strict=True):
            assert key not in found, "a frame is in one share"
            found[key] = number
    return found


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Windows, blocks and what is paired together are as small as a test's connections need."""
    chance = random.Random(request.node.name)
    monkeypatch.setattr(long_columns, "BLOCK", chance.choice((2, 16, 64)))
    monkeypatch.setattr(long_delivery, "WINDOW", chance.choice((3, 16, 64)))
    monkeypatch.setattr(long_pairs, "TOGETHER", chance.choice((4, 50)))
    monkeypatch.setattr(long_pairs, "NUMBERS_IN_A_ROW", chance.choice((1, 8)))
    maximum = chance.choice((2, 5))
    monkeypatch.setattr(durations, "DURATIONS_MAXIMUM", maximum)
    monkeypatch.setattr(long_latencies, "DURATIONS_MAXIMUM", maximum)


def order_of(frames: pa.Table, chance: random.Random) -> list[int]:
    return chance.sample(range(frames.num_rows), frames.num_rows)


def test_shares_tell_what_members_of_a_group_say_on_a_connection() -> None:
    decoded = decode_capture(AGREEMENT)
    assert observe(decoded.frames, decoded.holes, decoded.streams)[ObservationKind.MEMBER].num_rows
    assert assert_same(decoded, random.Random(AGREEMENT.name)) > 1


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


@pytest.mark.parametrize("count", [400, 4_000])
def test_no_more_is_held_of_a_longer_connection(
    count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module, name, size in (
        (long_columns, "BLOCK", 64),
        (long_delivery, "WINDOW", 64),
        (long_pairs, "TOGETHER", 128),
        (long_pairs, "NUMBERS_IN_A_ROW", 8),
    ):
        monkeypatch.setattr(module, name, size)
    held = []
    read = long_columns.LongColumn.read

    def noted(column: long_columns.LongColumn, first: int, behind: int) -> Any:
        found = read(column, first, behind)
        held.append(len(found))
        return found

    monkeypatch.setattr(long_columns.LongColumn, "read", noted)
    frames, streams = talk(count)
    pieces = [frames.slice(at, 50) for at in range(0, count, 50)]
    shares = [
        len(each.share) for each in commands().lay(Long(pieces, HOLES.empty_table(), streams, 32, tmp_path))
    ]
    # Of each frame that is paired six numbers are read; numbers are not dealt out evenly.
    assert max(held) <= 6 * 2 * 128
    assert max(shares) <= 32 + 1
    assert sum(shares) == count


def talk(count: int) -> tuple[pa.Table, pa.Table]:
    """Messages of one producer, of which eight are on their way at a time, and the two rows of STREAMS."""
    rows = []
    for at in range(count // 2):
        plain = {
            "index": at,
            "sequence": 10 * at,
            "size": 10,
            "time_ns": at,
            "from_start": True,
            "opaque": at,
        }
        begun = max(at - 8, 0)
        rows += [
            {
                **plain,
                "direction": 0,
                "record_offset": 20 * at,
                "acknowledged": 10 * begun,
                "code": 310,
                "flag": 0,
            },
            {
                **plain,
                "direction": 1,
                "record_offset": 20 * at + 170,
                "acknowledged": 10 * at + 10,
                "code": 0,
                "flag": 1,
            },
        ]
    table = pa.Table.from_pylist(rows, pa.schema([FRAMES.field(name) for name in commands().columns]))
    place = {"capture": "c", "connection": "a<->b", "protocol": "remoting", "from_start": True}
    sides = [{**place, "direction": side, "first_number": 0, "accepted": side == 1} for side in (0, 1)]
    return table, pa.Table.from_pylist(sides, STREAMS)
