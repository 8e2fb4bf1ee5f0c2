"""In which run of its broker a connection was is told by causes: whenever any of them was captured."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import product

import pytest

from replispec.replay.events.observation import Acknowledged, Alive, Observation, ObservationKind
from replispec.replay.events.rocketmq.groups import learn_groups
from replispec.replay.events.rocketmq.runs import connections_of_brokers
from replispec.replay.events.rocketmq.runs_by_cause import RECORDS_MIN, RUNS_MAX, runs_by_cause
from replispec.replay.judges.rocketmq.judge import Judgement
from tests.replay import mess
from tests.replay.expectations import SEND_SURVIVES
from tests.replay.pcap_writer import pcap
from tests.replay.test_mess import SEEDS
from tests.replay.test_order import LATE_MS, MILLISECOND, judged, lost, one_late, violated
from tests.replay.test_stream_events import FIRST, fact, named, seen
from tests.replay.test_within_an_epoch import STARTED_AGAIN, beat, registered, restarted, sent

RECORD = 100


def runs(*rows: Observation, record: int | None = RECORD) -> dict[str, int | None]:
    """The runs of the connections but for those of registrations."""
    told = [*named(FIRST), fact(10, 1, "1", FIRST), *rows]
    groups = learn_groups(told)
    known = [
        replace(row, group=groups.group(row), epoch=1)
        if isinstance(row, Acknowledged)
        else replace(row, group=groups.group(row))
        for row in told
    ]
    records = {} if record is None else dict.fromkeys("abcdefgh", record)
    found = runs_by_cause(connections_of_brokers(known, groups), records)
    return {name: run for name, run in found.items() if name not in ("c", "d", "connection")}


def unknown(found: Judgement) -> int:
    """How many messages may be lost."""
    counts = next(each.counts for each in found.findings if each.invariant == SEND_SURVIVES)
    return counts.get("unknown", 0)


def test_what_lies_before_the_end_that_a_run_begins_with_is_not_of_that_run() -> None:
    began = [*STARTED_AGAIN, beat(40, 150, "d")]
    assert runs(*began, *sent("a", 100, 200)) == {"a": 0}
    assert runs(*began, *sent("a", 150, 200)) == {"a": None}


def test_a_master_that_was_named_before_it_spoke_may_have_taken_messages_by_then() -> None:
    at_once = replace(fact(39, 1, "1", FIRST), connection="d", direction=1)
    assert runs(*STARTED_AGAIN, at_once, beat(40, 150, "d"), *sent("a", 100, 200)) == {"a": None}


def test_another_message_at_a_place_of_a_run_is_of_another_run() -> None:
    began = [*STARTED_AGAIN, beat(40, 150, "d")]
    assert runs(*began, *sent("a", 0, 200), *sent("b", 200, 300, first=42)) == {"a": 0, "b": 1}
    assert runs(*began, *sent("a", 200, 300), *sent("b", 200, 300, first=42)) == {"a": None, "b": None}


def test_connections_that_contradict_each_other_in_their_only_run_are_in_none() -> None:
    began = [*STARTED_AGAIN, beat(40, 150, "d")]
    assert runs(*began, *sent("a", 0, 200), *sent("b", 100, 200)) == {"a": None, "b": None}


def test_where_the_log_grew_in_a_run_somebody_was_acknowledged_in_it() -> None:
    grown = [*STARTED_AGAIN, beat(40, 100, "d"), beat(41, 1_500, "d")]
    far = 1_400 - RECORDS_MIN * RECORD
    assert runs(*grown, *sent("a", 200, far - 1), *sent("b", 300, 1_400, first=42))["b"] == 1
    assert runs(*grown, *sent("a", 200, far), *sent("b", 300, 1_400, first=42))["b"] is None
    assert runs(*grown, *sent("b", 300, 1_400, first=42), record=None) == {"b": None}


def test_where_not_all_was_seen_growth_tells_nothing() -> None:
    grown = [*STARTED_AGAIN, beat(40, 100, "d"), beat(41, 2_000, "d")]
    assert runs(*grown, *sent("b", 200, 1_900, first=42)) == {"b": 1}
    assert runs(*grown, *sent("b", 200, 1_400, first=42)) == {"b": None}


@pytest.mark.parametrize("side", ["requests", "answers"])
def test_where_a_client_was_not_seen_whole_growth_tells_nothing(side: str) -> None:
    """A hole stands nowhere in the order of frames. Without requests no answer is an acknowledgement."""
    grown = [*STARTED_AGAIN, beat(40, 100, "d"), beat(41, 2_000, "d"), *sent("b", 200, 1_900, first=42)]
    client = "10.0.0.9:40000"
    hole = seen(ObservationKind.UNSEEN, 0, address=client if side == "requests" else FIRST)
    hole = replace(hole, connection=f"{FIRST}<->{client}#1")
    assert runs(*grown)["b"] == 1
    assert runs(*grown, hole)["b"] is None


def test_what_the_capture_shows_in_another_run_is_in_none() -> None:
    """It may be late, or of a run of which no registration was captured."""
    began = [*STARTED_AGAIN, beat(40, 150, "d")]
    assert runs(*began, *sent("a", 0, 200, first=38)) == {"a": 0}
    assert runs(*began, *sent("a", 0, 200, first=42)) == {"a": None}
    early = [*sent("a", 0, 200), *sent("b", 200, 300, first=30)]
    assert runs(*began, *early) == {"a": 0, "b": None}


def test_who_begins_at_an_end_from_which_the_log_grew_was_in_that_run() -> None:
    grown = [*STARTED_AGAIN, beat(40, 100, "d"), beat(41, 250, "d")]
    assert runs(*grown, *sent("b", 100, 200, first=42)) == {"b": 1}
    assert runs(*grown, *sent("b", 101, 200, first=42)) == {"b": None}


def test_a_connection_that_was_there_before_the_capture_is_of_the_run_before() -> None:
    beaten = beat(40, 300, "old")
    assert isinstance(beaten, Alive)
    old = replace(beaten, from_start=False)
    again = [*registered(11, "d", 2), beat(12, 150, "d")]
    assert runs(old, *again, *sent("a", 100, 200, first=8)) == {"old": 0, "a": 0}
    young = replace(old, from_start=True)
    assert runs(young, *again, *sent("a", 100, 200)) == {"old": 0, "a": 0}


@pytest.mark.parametrize("again", [1, 2])
def test_registrations_that_tell_no_order_tell_no_runs(again: int) -> None:
    rows = [*registered(11, "c", 1), *registered(39, "d", again), beat(40, 150, "d")]
    assert runs(*rows, *sent("a", 100, 200)) == {"a": 0}
    assert runs(*rows, *sent("a", 150, 200)) == {"a": 0 if again == 1 else None}


def test_more_runs_than_can_be_told_apart_are_none() -> None:
    many = [row for at in range(RUNS_MAX + 1) for row in registered(20 + at, f"r{at}", at)]
    assert runs(*many, *sent("a", 0, 100))["a"] == 0
    assert runs(*many[:-3], *sent("a", 0, 100))["a"] is None


# ---- whole captures --------------------------------------------------------------------------------


@cache
def capture_of_a_restart(kept: int, afterwards: int) -> bytes:
    return pcap(restarted(kept, afterwards=afterwards).packets)


@pytest.mark.parametrize(
    ("kept", "afterwards"), [(7, 4), (29, 1)] if SEEDS < 20 else [*product([0, 7, 29], [1, 4])]
)
def test_what_a_restart_lost_is_never_called_kept_however_late_one_connection_is(
    kept: int, afterwards: int
) -> None:
    """What is told of one that is late against the next run is told of a run that nobody captured, too."""
    capture = capture_of_a_restart(kept, afterwards)
    whole = judged(capture)
    assert lost(whole) == 30 - kept
    header, packets = mess.read(capture)
    for connection, late in product(
        sorted({each.connection for each in packets if each.connection}), LATE_MS
    ):
        found = judged(mess.written(header, one_late(packets, connection, late * MILLISECOND)))
        assert lost(found) + unknown(found) >= 30 - kept >= lost(found), (connection, late)
        assert violated(found) <= violated(whole), (connection, late)
