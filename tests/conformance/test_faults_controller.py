"""The suite finds every fault of a controller, by the case that is meant to, and blames no other clause."""

from collections.abc import Mapping

import pytest

from replispec.conformance.cases import load
from replispec.conformance.results import CaseVerdict, RunResult
from tests.conformance.subjects import (
    election_faults,
    identity_faults,
    member_faults,
    overlooked_faults,
    sharp_faults,
    standing_faults,
    wire_faults,
)
from tests.conformance.subjects.against import Outcome, applicable, judge_controller, judged
from tests.conformance.subjects.catching import (
    GONE,
    complaints,
    differing_names,
    not_applicable,
    played,
    table,
)
from tests.conformance.subjects.controller_admin import GoodController
from tests.conformance.subjects.controller_faults import FAULTS

KIND = "controller"
CASES = load(KIND)
TABLE = table(KIND)
FAULTS_MINIMUM = 100
ENTERED_BY = (
    election_faults,
    identity_faults,
    member_faults,
    overlooked_faults,
    sharp_faults,
    standing_faults,
    wire_faults,
)
"""Imported so that their faults are in the table of names."""


@pytest.fixture(scope="module")
def outcomes() -> Mapping[str, Outcome]:
    """What the suite says about every faulty subject."""
    subjects = {name: (FAULTS[name], played(CASES, name, catch)) for name, catch in TABLE.items()}
    return judged(subjects, judge_controller)


def test_every_case_passes_on_the_good_controller() -> None:
    cases = [case for case in CASES if applicable(case)]
    result = judged({"good": (GoodController, cases)}, judge_controller)["good"]
    assert isinstance(result, RunResult)
    assert len(result.results) == len(cases)
    bad = [
        each for each in result.results if each.verdict is not CaseVerdict.PASS and not not_applicable(each)
    ]
    assert [f"{each.id}: {each.verdict} {each.symptom or each.reason}" for each in bad] == []


def test_every_fault_has_its_line() -> None:
    assert differing_names(TABLE, FAULTS) == set()
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


def test_a_subject_that_dies_beside_other_cases_fails_the_case_that_had_no_answer_to_its_last_words() -> None:
    deadly = "controller/corners/WIRE-FRAME-5/1"
    others = [case for case in CASES if case.topic == "alter"]
    cases = [*others, *(case for case in CASES if case.id == deadly)]
    outcome = judged({"dies": (FAULTS["dies-of-a-garbled-body"], cases)}, judge_controller)["dies"]
    assert isinstance(outcome, RunResult)
    [result] = [each for each in outcome.results if each.id == deadly]
    assert (result.verdict, result.symptom) == (CaseVerdict.FAIL, GONE)
