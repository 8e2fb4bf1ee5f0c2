"""A capture whose judging is spread over parts of its connections comes to what it comes to as a whole."""

from __future__ import annotations

import os
import pickle
import random
import zlib
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable
from dataclasses import fields, replace
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from replispec.replay.engines.decoding import decode_capture
from replispec.replay.engines.family import judged
from replispec.replay.engines.local import capture_row
from replispec.replay.engines.results import CaptureResult, Options
from replispec.replay.engines.rocketmq.spread import SPREAD
from replispec.replay.engines.spread import Spread, judged_in_parts
from replispec.replay.events.observation import Acknowledged, Batch, Observation, ObservationKind
from replispec.replay.events.observe import observe
from replispec.replay.events.tables import Events, to_tables
from replispec.replay.report.summary import CaptureRow
from tests.replay import expectations as rule
from tests.replay.event_rows import from_tables
from tests.replay.faults import taken, written
from tests.replay.pcap_writer import pcap
from tests.replay.seeded import SEEDED, Fault
from tests.replay.test_confirms import falling
from tests.replay.test_late_lives import one_after_the_other
from tests.replay.test_losses_are_listed import elected_again, of_producers
from tests.replay.test_stream_tables import damaged

CAPTURES = Path(__file__).parents[2] / "spark_replay/captures"
NAMES = sorted(path.stem for path in CAPTURES.glob("*.pcap"))
DAMAGED = ("failover_lost", "hung_master", "older_copy", "power_cut", "g_mqadmin")
# Of them those in which one masterEpoch gave a place of the log to two messages.
GIVEN_AGAIN = ("older_copy", "power_cut")
PARTS = 4
STRETCHED = (
    *(ObservationKind.ACKNOWLEDGED, ObservationKind.REPORT),
    *(ObservationKind.BATCH, ObservationKind.HEARTBEAT),
)
"""Kinds of which the events of one connection may be in several parts."""
# Bytes of a log that are compared at once: so many that each is one block, and less than a record has.
BLOCKS = (1 << 12, 700, 1 << 25)
BETWEEN_CONNECTIONS = [
    fault
    for fault in SEEDED
    if {rule.BODY_STORED, rule.SAME_BYTES, rule.CONFIRM_HOLDS, rule.SEND_SURVIVES} & fault.breaks
]
"""Faults that break rules which compare what several connections tell."""


@cache
def seen(name: str) -> tuple[CaptureRow, Events]:
    decoded = decode_capture(CAPTURES / f"{name}.pcap")
    events = observe(decoded.frames, decoded.holes, decoded.streams)
    return capture_row(CAPTURES / f"{name}.pcap", decoded), events


def in_parts(events: Events, seed: int, parts: int) -> list[Events]:
    """The events of some connections each; a part may have none. The messages of a connection, and what there
    is much of on replication connections, are cut into stretches, in its part and those behind it."""

    def owner(connection: str) -> int:
        return zlib.crc32(f"{seed} {connection}".encode()) % parts

    cuts = cuts_of(events, seed, parts)
    found: list[Events] = []
    for part in range(parts):
        tables = {}
        for kind, table in events.items():
            names, orders = (table.column(name).to_pylist() for name in ("connection", "order"))
            behind = [
                bisect_right(cuts[name], order) if kind in STRETCHED else 0
                for name, order in zip(names, orders, strict=True)
            ]
            own = [(owner(name) + at) % parts == part for name, at in zip(names, behind, strict=True)]
            tables[kind] = table.filter(pa.array(own, pa.bool_()))
        found.append(tables)
    return found


def cuts_of(events: Events, seed: int, parts: int) -> dict[str, list[int]]:
    """By connection where it is cut: nowhere, or anywhere between two frames."""
    orders: dict[str, set[int]] = defaultdict(set)
    for kind in STRETCHED:
        table = events[kind]
        for name, order in zip(
            *(table.column(each).to_pylist() for each in ("connection", "order")), strict=True
        ):
            orders[name].add(order)
    found: dict[str, list[int]] = defaultdict(list)
    for name, own in orders.items():
        chance = random.Random(f"{seed} {name}")
        found[name] = sorted(chance.sample(sorted(own), min(chance.randrange(parts), len(own))))
    return found


def spread(capture: CaptureRow, events: Events, options: Options, seed: int, parts: int) -> CaptureResult:
    rare = {kind: table for kind, table in events.items() if kind not in SPREAD.frequent}
    options = replace(options, log_together_bytes=BLOCKS[seed % len(BLOCKS)])
    return judged_in_parts(passed_on(), capture, rare, in_parts(events, seed, parts), options)


def passed_on() -> Spread:
    """The rounds as on a cluster: what is known and said gets there as bytes."""

    def through(call: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *given: pickle.loads(pickle.dumps(call(*given)))

    rounds = [
        replace(
            each,
            of_part=through(each.of_part),
            together=through(each.together),
            meet=each.meet and through(each.meet),
            cut=each.cut and through(each.cut),
        )
        for each in SPREAD.rounds
    ]
    return replace(SPREAD, begin=through(SPREAD.begin), rounds=rounds)


def plain(result: CaptureResult) -> dict[str, Any]:
    return {each.name: getattr(result, each.name) for each in fields(result) if each.name != "capture"}


def assert_same(capture: CaptureRow, events: Events, options: Options, seed: int, parts: int) -> None:
    whole = plain(judged(capture, events, options))
    told = plain(spread(capture, events, options, seed, parts))
    for name, value in whole.items():
        assert told[name] == value, name


# All of them in `make test-full`.
CUTS = 2 if os.environ.get("REPLISPEC_SPREAD") == "all" else 1


@pytest.mark.parametrize("seed", range(CUTS))
@pytest.mark.parametrize("name", NAMES)
def test_parts_come_to_what_the_whole_comes_to(name: str, seed: int) -> None:
    assert_same(*seen(name), Options(), seed, (PARTS, 23)[seed])


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", DAMAGED)
def test_parts_of_a_damaged_capture_come_to_what_it_comes_to(name: str, seed: int) -> None:
    chance = random.Random(f"{name} {seed}")
    capture, events = seen(name)
    rows = [other for row in from_tables(events) for other in damaged(row, chance)]
    options = Options(all_ack=seed == 1, learners=("2",) if seed == 2 else ())
    assert_same(capture, to_tables(rows), options, seed, PARTS)


@pytest.mark.parametrize(
    "fault", BETWEEN_CONNECTIONS, ids=lambda fault: f"{fault.edit.__name__}-{fault.capture}"
)
def test_a_seeded_fault_is_told_by_parts_as_by_the_whole(fault: Fault, tmp_path: Path) -> None:
    path = tmp_path / f"{fault.capture}.pcap"
    path.write_bytes(pcap(written(fault.edit(taken(CAPTURES / path.name)))))
    decoded = decode_capture(path)
    events = observe(decoded.frames, decoded.holes, decoded.streams)
    assert_same(capture_row(path, decoded), events, Options(all_ack=fault.all_ack), 1, PARTS)


@pytest.mark.parametrize("seed", range(3))
def test_a_report_in_another_part_explains_what_a_master_takes_back(seed: int, tmp_path: Path) -> None:
    """It is neither the first one of its connection, nor the last, nor the least."""
    path = tmp_path / "taken_back.pcap"
    path.write_bytes(pcap(falling(around=(1, 1))))
    decoded = decode_capture(path)
    events = observe(decoded.frames, decoded.holes, decoded.streams)
    capture = capture_row(path, decoded)
    findings = judged(capture, events, Options()).findings
    assert [each.verdict.value for each in findings if each.invariant == rule.CONFIRM_HOLDS] == ["unknown"]
    assert_same(capture, events, Options(), seed, 23)


@pytest.mark.parametrize("seed", range(4))
def test_bodies_that_differ_are_told_with_the_same_frames(seed: int) -> None:
    """Several messages of one transfer, of several epochs and connections, some in missing bytes."""
    chance = random.Random(seed)
    name = DAMAGED[seed % len(DAMAGED)]
    capture, events = seen(name)
    rows = [altered(row, chance) for row in from_tables(events)]
    whole = judged(capture, to_tables(rows), Options())
    (found,) = {each.verdict.value for each in whole.findings if each.invariant == rule.BODY_STORED}
    # Where places were given again, other bodies may be those of messages that were not captured.
    assert found == ("unknown" if name in GIVEN_AGAIN else "violated")
    assert_same(capture, to_tables(rows), Options(), seed, PARTS)


def altered(row: Observation, chance: random.Random) -> Observation:
    """Now and then a message had another body, or bytes of a transfer are missing."""
    if isinstance(row, Acknowledged) and chance.random() < 0.3:
        return replace(row, body_crc=chance.choice((None, 1)))
    if isinstance(row, Batch) and chance.random() < 0.2:
        return replace(row, body_digest=None, records=None)
    return row


def test_the_captures_have_what_has_to_meet() -> None:
    """Messages at one place of a log, and transfers of one epoch, are on several connections somewhere."""
    _, events = seen("failover_lost")
    stored = pc.value_counts(events["acknowledged"].column("offset"))  # type: ignore[index]
    assert pc.max(stored.field("counts")).as_py() > 1


@pytest.mark.parametrize("seed", range(2))
def test_messages_that_were_passed_on_count_once_whichever_part_tells_them(seed: int) -> None:
    capture, events = seen("failover_lost")
    rows = from_tables(events)
    passed = [
        replace(row, connection=f"10.7.7.{at % 5}:4000<->10.7.8.1:10911#1", order=row.order + 1)
        for at, row in enumerate(rows)
        if isinstance(row, Acknowledged)
    ]
    assert passed
    twice = to_tables([*rows, *passed])
    assert_same(capture, twice, Options(), seed, PARTS)
    once = judged(capture, events, Options())
    assert spread(capture, twice, Options(), seed, PARTS).losses == once.losses


@pytest.mark.parametrize("seed", range(4))
def test_what_is_of_several_lives_or_of_no_epoch_is_the_same_in_parts(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    made = [of_producers(elected_again(rng)), pcap(one_after_the_other(rng)[0].traffic.packets())]
    for number, data in enumerate(made):
        path = tmp_path / f"{number}.pcap"
        path.write_bytes(data)
        decoded = decode_capture(path)
        events = observe(decoded.frames, decoded.holes, decoded.streams)
        assert_same(capture_row(path, decoded), events, Options(), seed, 2 + seed)
