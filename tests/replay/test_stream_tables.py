"""What columns tell of messages and frames is what each of them tells by itself, in damaged captures too."""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from replispec.replay.engines.decoding import decode_capture
from replispec.replay.events.capture_events import CaptureEvents
from replispec.replay.events.capture_order import in_capture_order
from replispec.replay.events.event_tables import INT64_MAX, Counted
from replispec.replay.events.observation import (
    Acknowledged,
    Answer,
    Batch,
    Broker,
    Heartbeat,
    Observation,
    ObservationKind,
    ends_of,
)
from replispec.replay.events.observe import observe
from replispec.replay.events.rocketmq.epoch_starts import ToldStarts, Witnesses, knows_epoch
from replispec.replay.events.rocketmq.relays import told_once
from replispec.replay.events.rocketmq.stream_events import Judged, join
from replispec.replay.events.rocketmq.stream_tables import longest_records, witnesses_of
from replispec.replay.events.rocketmq.told_falls import ToldFalls
from replispec.replay.events.rocketmq.wholeness import host_of
from replispec.replay.events.tables import to_tables
from replispec.runtime.primitives.unknown import UNKNOWN
from tests.replay.event_rows import from_tables
from tests.replay.test_stream_events import FIRST, acknowledged, fact, named

CAPTURES = Path(__file__).parents[2] / "spark_replay/captures"
NAMES = ("failover_lost", "hung_master", "older_copy", "power_cut", "g_mqadmin")
SEEDS = range(4)


@cache
def observed(name: str) -> list[Observation]:
    decoded = decode_capture(CAPTURES / f"{name}.pcap")
    return from_tables(observe(decoded.frames, decoded.holes, decoded.streams))


def damaged(row: Observation, chance: random.Random) -> list[Observation]:
    """Now and then it is not there, there twice, elsewhere in the capture, or tells something else."""
    if chance.random() < 0.8 or isinstance(row, Broker):
        return [row]
    number = chance.choice((-1, 0, 700, 1 << 61))
    told: dict[str, Any] = {}
    if isinstance(row, Batch | Heartbeat):
        name = chance.choice(("offset", "epoch_start_offset", "confirm_offset", "epoch", "address"))
        told = {name: {"epoch": number % 4, "address": None}.get(name, number)}
    elif isinstance(row, Answer):
        told = {"epochs": chance.choice((None, [], [{"epoch": 2, "start_offset": 300}]))}
    elif isinstance(row, Acknowledged):
        told = chance.choice(({"offset": abs(number)}, {"text": None}, {"address": "10.9.9.9:1"}))
    moved = max(0, row.order + chance.choice((0, 0, -10_000, 10_000, 10**6)))
    other = replace(row, order=moved, **told)
    return chance.choice(([], [other], [other], [row, other]))


def joined(name: str, seed: int) -> tuple[Judged, list[Observation]]:
    """A damaged capture, and all its rows with their groups, in its order."""
    chance = random.Random(f"{name} {seed}")
    return told_of([other for row in observed(name) for other in damaged(row, chance)])


def told_of(rows: list[Observation]) -> tuple[Judged, list[Observation]]:
    """What rows are joined to, and the rows with their groups."""
    found = join(to_tables(rows))
    sends = told_once(CaptureEvents(to_tables(rows)).columns(ObservationKind.ACKNOWLEDGED))
    once = [*(row for row in rows if not isinstance(row, Acknowledged)), *sends.rows(np.arange(len(sends)))]
    own = [replace(row, group=found.groups.group(row)) for row in in_capture_order(once)]
    return found, [row for row in own if row.kind not in (ObservationKind.LATENCY, ObservationKind.PAIRED)]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", NAMES)
def test_each_batch_is_compared_with_what_its_connection_told_before(name: str, seed: int) -> None:
    found, rows = joined(name, seed)
    told: dict[str, ToldStarts] = defaultdict(ToldStarts)
    starts: dict[str, set[int | None]] = defaultdict(set)
    expected = []
    for row in rows:
        if isinstance(row, Answer):
            told[row.connection].answered(row)
            starts[row.connection].update(each["start_offset"] for each in row.epochs or ())
        elif isinstance(row, Batch | Heartbeat):
            before = told[row.connection].header(row)
            starts[row.connection].update([row.epoch_start_offset] if knows_epoch(row) else [])
            if isinstance(row, Batch):
                expected.append({**before, "known_starts": sorted(map(int, starts[row.connection]))})  # type: ignore[arg-type]
    table = found.replication
    batches = [table.event(at) for at in range(len(table)) if table.name(at) == ObservationKind.BATCH]
    assert [{key: vars(event)[key] for key in one} for event, one in zip(batches, expected, strict=True)] == (
        expected
    )


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", NAMES)
def test_each_message_has_the_epoch_and_the_fate_that_it_has_alone(name: str, seed: int) -> None:
    assert_messages_are_told_alone(*joined(name, seed))


@pytest.mark.parametrize("seed", range(20))
def test_logs_of_several_runs_are_cut_where_all_messages_say_so(seed: int) -> None:
    """Messages of runs that follow each other, each with two connections, at places of one log."""
    chance = random.Random(seed)
    sent = [(run, run % 2, 50) for run in range(3)]
    sent += [(chance.randrange(3), chance.randrange(2), chance.randrange(60)) for _ in range(30)]
    rows = [
        replace(
            acknowledged(20 + 100 * run + at, FIRST, place, f"{at}", asked), connection=f"{run} {connection}"
        )
        for at, (run, connection, place) in enumerate(sent)
        for asked in [chance.choice((None, 20 + 100 * run + at - chance.randrange(1, 20)))]
    ]
    assert_messages_are_told_alone(*told_of([*named(FIRST), fact(10, 1, "1", FIRST), *rows]))


def shown(value: Any) -> Any:
    """What can be compared."""
    return "unknown" if value is UNKNOWN else value


def cut_in_order(row: Acknowledged, sends: list[Acknowledged], otherwise: Any) -> Any:
    """What messages tell that were requested on its connection after a message had been acknowledged."""
    behind: dict[int, int] = {}
    if row.epoch is None and host_of(row.address or "") not in map(host_of, ends_of(row.connection)):
        return otherwise
    own = (row.group, row.address, row.epoch, row.connection, row.direction)
    for each in sends:
        asked = each.request_order
        if own != (each.group, each.address, each.epoch, each.connection, each.direction):
            continue
        if asked is not None and asked > row.order and each.offset is not None:
            behind[asked] = min(each.offset, behind.get(asked, each.offset))
    assert row.offset is not None
    before = sorted(place for place in behind.values() if place < row.offset)
    if len(before) < 2:
        return otherwise if not before or isinstance(otherwise, int) else UNKNOWN
    return before[0]


def assert_messages_are_told_alone(found: Judged, rows: list[Observation]) -> None:
    tenures, offices = found.history.tenures, found.history.offices

    def with_epoch(row: Acknowledged) -> Acknowledged:
        epoch = offices[str(row.group)].epoch_of(row) if row.group in offices else None
        return replace(row, epoch=None if epoch is UNKNOWN else epoch)

    ready = [with_epoch(row) if isinstance(row, Acknowledged) else row for row in rows]
    starts, unseen = found.history.starts, found.history.unseen
    falls = ToldFalls(ready, found.groups, tenures, starts, unseen, longest_records(found.sends))
    sends = [row for row in ready if isinstance(row, Acknowledged)]
    expected = [
        (row.offset, row.epoch, shown(cut_in_order(row, sends, falls.cut_to(row))), falls.is_given_again(row))
        for row in sends
    ]
    tables = [each for each in found.tables if each.stream == "sends" and "offset" in each.numbers]
    events = [each.event(at) for each in tables for at in range(len(each)) if each.event(at).is_message]
    assert [
        (each.offset, None if each.epoch is UNKNOWN else each.epoch, shown(each.cut_to), each.given_again)
        for each in events
    ] == expected
    ends = [{key: shown(value) for key, value in vars(each).items()} for each in falls.ends()]
    logs = [each.table() for each in found.few if each.stream == "logs"]
    events = [each.event(at) for each in logs for at in range(len(each))]
    told = [{key: shown(value) for key, value in vars(each).items()} for each in events]
    assert told == [{key: one[key] for key in each} for each, one in zip(told, ends, strict=True)]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", NAMES)
def test_some_headers_tell_the_starts_of_epochs_that_all_tell(name: str, seed: int) -> None:
    found, rows = joined(name, seed)
    every: dict[str, Witnesses] = defaultdict(Witnesses)
    some: dict[str, Witnesses] = defaultdict(Witnesses)
    for row in rows:
        every[str(row.group)].hear(row)
    few = [row for row in rows if not isinstance(row, Batch | Heartbeat)]
    for row in (*few, *witnesses_of(found.frames)):
        some[str(row.group)].hear(row)
    tenures = found.history.tenures
    assert {group: some[group].believed(tenures[group]) for group in every} == {
        group: each.believed(tenures[group]) for group, each in every.items()
    }


def test_an_end_beyond_all_numbers_is_the_largest_one() -> None:
    offsets = Counted(np.array([INT64_MAX - 1, 5, -3]), np.zeros(3, np.int64))
    assert offsets.plus(np.array([700, 7, -1])).numbers.tolist() == [INT64_MAX, 12, -4]
