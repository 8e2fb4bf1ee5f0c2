"""The suite finds every fault of an HA master, by the case that is meant to, and blames no other clause."""

from collections.abc import Mapping

import pytest

from replispec.conformance.cases import load
from replispec.conformance.results import CaseVerdict, RunResult
from tests.conformance.subjects import ha_replica_faults, sharp_ha_faults
from tests.conformance.subjects.against import Outcome, applicable, judge_master, judged
from tests.conformance.subjects.catching import complaints, differing_names, not_applicable, played, table
from tests.conformance.subjects.ha_faults import MASTER_FAULTS
from tests.conformance.subjects.ha_master import GoodHaMaster

KIND = "ha-master"
CASES = load(KIND)
TABLE = table(KIND)
FAULTS_MINIMUM = 50
ENTERED_BY = (ha_replica_faults, sharp_ha_faults)
"""Imported so that their faults are in the table of names."""


@pytest.fixture(scope="module")
def outcomes() -> Mapping[str, Outcome]:
    """What the suite says about every faulty subject."""
    subjects = {name: (MASTER_FAULTS[name], played(CASES, name, catch)) for name, catch in TABLE.items()}
    return judged(subjects, judge_master)


def test_every_case_passes_on_the_good_master() -> None:
    cases = [case for case in CASES if applicable(case)]
    result = judged({"good": (GoodHaMaster, cases)}, judge_master)["good"]
    assert isinstance(result, RunResult)
    assert len(result.results) == len(cases)
    bad = [
        each for each in result.results if each.verdict is not CaseVerdict.PASS and not not_applicable(each)
    ]
    assert [f"{each.id}: {each.verdict} {each.symptom or each.reason}" for each in bad] == []


def test_every_fault_has_its_line() -> None:
    assert differing_names(TABLE, MASTER_FAULTS) == set()
    assert len(TABLE) >= FAULTS_MINIMUM
    assert all(catch.caught_by or catch.at_the_door for catch in TABLE.values())


@pytest.mark.parametrize("fault", TABLE)
def test_a_fault_is_caught_where_it_should_be_and_nowhere_else(
    fault: str, outcomes: Mapping[str, Outcome]
) -> None:
    outcome = outcomes[fault]
    assert isinstance(outcome, str) == TABLE[fault].at_the_door, outcome
    if isinstance(outcome, RunResult):
        assert complaints(outcome, TABLE[fault]) == []
