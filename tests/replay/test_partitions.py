"""Captures of real brokers: every stream is read, losses are those of the clients, and nobody is blamed."""

from __future__ import annotations

import pytest

from replispec.wire.kafka.invariants import INVARIANTS
from tests.replay.partitions import (
    CAPTURES,
    FAULTS,
    decoded,
    judged_rows,
    rows_of_capture,
    truth_of,
    verdicts_of,
)

BROKEN = {
    "kafka_truncation_hw": {"acknowledged-by-all-survives": "violated", "committed-stays": "violated"},
    "kafka_unclean": {"acknowledged-by-all-survives": "diverged", "committed-stays": "diverged"},
    "kafka_acks_one": {"acknowledged-by-one-survives": "diverged"},
}
"""What is not kept in which capture; whatever else is judged is kept."""


@pytest.mark.parametrize("name", CAPTURES)
def test_every_stream_is_read(name: str) -> None:
    streams = decoded(name).streams.to_pylist()
    unread = [each for each in streams if each["bytes_undecoded"]]
    unknown = [each for each in streams if each["bytes_payload"] and each["protocol"] == "foreign"]
    assert (unread, unknown) == ([], [])


@pytest.mark.parametrize("name", CAPTURES)
def test_losses_are_those_of_the_clients(name: str) -> None:
    judgement, truth = judged_rows(rows_of_capture(name)), truth_of(name)
    lost = sum(len(each) for each in truth["lost"].values())
    assert sum(each.acknowledged for each in judgement.losses) == lost
    acknowledged = sum(truth["acknowledged"].values())
    assert max(each.acknowledged for each in judgement.sends) >= acknowledged


@pytest.mark.parametrize("name", CAPTURES)
def test_nobody_is_blamed_falsely(name: str) -> None:
    found = verdicts_of(judged_rows(rows_of_capture(name)))
    said = {rule: verdict for rule, verdict in found.items() if verdict not in ("ok", "unknown")}
    assert said == BROKEN.get(name, {})


def test_every_rule_is_asked_of_some_capture() -> None:
    judgements = [judged_rows(rows_of_capture(name)) for name in CAPTURES]
    asked = {each.invariant for found in judgements for each in found.findings if each.evaluated}
    assert asked == set(INVARIANTS)


@pytest.mark.parametrize("name", FAULTS)
def test_a_seeded_fault_breaks_its_rules(name: str) -> None:
    fault = FAULTS[name]
    clean = verdicts_of(judged_rows(rows_of_capture(fault.capture)))
    found = verdicts_of(judged_rows(fault.edit(rows_of_capture(fault.capture))))
    broken = {rule for rule, verdict in found.items() if verdict == "violated" and clean[rule] != "violated"}
    assert broken == set(fault.breaks)


def test_a_fault_is_seeded_for_every_rule_that_can_be_violated() -> None:
    assert {rule for fault in FAULTS.values() for rule in fault.breaks} == {*INVARIANTS} - {
        "acknowledged-by-one-survives"
    }


def test_a_topic_that_is_created_again_has_partitions_of_its_own() -> None:
    judgement = judged_rows(rows_of_capture("kafka_recreated"))
    assert [(each.group, each.acknowledged) for each in judgement.sends] == [("t-0", 10), ("t-0#2", 4)]
