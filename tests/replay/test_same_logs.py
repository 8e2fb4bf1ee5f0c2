"""Two bodies at one place of a log are a fault where one run of its master must have written both."""

from __future__ import annotations

import random
from dataclasses import replace
from types import SimpleNamespace

from replispec.replay.events.observation import Acknowledged, Observation
from replispec.replay.events.rocketmq.same_logs import OneLog
from tests.replay import expectations as rule
from tests.replay.defects import DEFECTS
from tests.replay.mess import Seen
from tests.replay.test_mess import header_and_packets, replayed
from tests.replay.test_stored import compared, run, sent

PLACES = (100, 200, 300)


def message(order: int, offset: int, connection: str = "producer", body: bytes | None = None) -> Acknowledged:
    made = sent(order, offset, b"%d" % offset if body is None else body)
    return replace(made, connection=connection)


def carried(order: int, *places: int, other: int = -1, connection: str = "ha") -> Observation:
    """A run with the messages at these places, one of them with another body."""
    held = [(place, b"else" if place == other else b"%d" % place) for place in places]
    return run(order, *held, connection=connection)


def of_one_log(*rows: Observation, **begins: int) -> list[bool]:
    """Of the bodies that differ, whether both are surely of one log."""
    found: list[SimpleNamespace] = compared(*rows, one=OneLog(begins, ()))
    return [each.same_log for each in found if each.crc != each.sent_crc]


def test_another_body_proves_nothing_where_no_message_is_known_in_both() -> None:
    sends = [message(at, place) for at, place in enumerate(PLACES)]
    assert of_one_log(*sends, run(9, *((place, b"else") for place in PLACES)), ha=0) == [False] * 3


def test_a_message_behind_it_proves_that_both_are_of_one_log() -> None:
    sends = [message(at, place) for at, place in enumerate(PLACES)]
    assert of_one_log(*sends, carried(9, *PLACES, other=200)) == [True]


def test_a_message_before_it_proves_that_only_where_it_was_written_while_the_replica_was_there() -> None:
    """Else the log may have been cut between them before it was carried."""
    sends = [message(at, place) for at, place in enumerate(PLACES)]
    assert of_one_log(*sends, carried(9, *PLACES, other=300)) == [False]
    assert of_one_log(*sends, carried(9, *PLACES, other=300), ha=201) == [False]
    assert of_one_log(*sends, carried(9, *PLACES, other=300), ha=200) == [True]


def test_a_message_of_another_connection_proves_nothing_unless_both_share_one() -> None:
    sends = [message(0, 100), message(1, 200, "other"), message(2, 300, "other")]
    assert of_one_log(*sends, carried(9, *PLACES, other=100), ha=0) == [False]
    shared = carried(10, 100, 200, connection="second")
    assert of_one_log(*sends, carried(9, *PLACES, other=100), shared, ha=0) == [False]
    assert of_one_log(*sends, carried(9, *PLACES, other=100), shared, ha=0, second=0) == [True]


def test_a_body_that_several_messages_have_tells_none_of_them() -> None:
    sends = [message(0, 100), message(1, 200, body=b"again"), message(2, 300, body=b"again")]
    carries = run(9, (100, b"else"), (200, b"again"), (300, b"again"))
    assert of_one_log(*sends, carries, ha=0) == [False]


def test_a_master_whose_start_would_have_been_seen_wrote_one_log() -> None:
    rows = message(0, 100), carried(9, 100, other=100)
    for watched, expected in (([("g", 1)], True), ([("g", 2)], False), ([("other", 1)], False)):
        (found,) = compared(*rows, one=OneLog({}, watched))
        assert found.same_log is expected


def verdicts(name: str, packets: list[Seen]) -> set[str]:
    findings = replayed(name, packets).findings
    return {each.verdict.value for each in findings if each.invariant == rule.BODY_STORED}


def test_bytes_of_a_run_whose_end_nobody_saw_are_no_fault_of_the_next_one() -> None:
    """A learner got 40 messages at whose places the master acknowledged others when its disk had been put
    back. What was acknowledged before, and how the master registered, was captured in one direction alone."""
    name, defect = "older_copy", "one direction missing"
    packets = header_and_packets(name)[1]
    assert verdicts(name, DEFECTS[defect].make(packets, random.Random(f"{name} {defect} 12"))) == {"unknown"}
