"""Kind logical-queues: a scripted broker that does it right passes every case, however patient the suite is.
Those that do otherwise what the clauses leave open have no finding; each that does it wrong is failed by the
case that names its fault, and no case is without one."""

from __future__ import annotations

import pytest

from replispec.conformance.cases import load
from replispec.conformance.model import OURS, PROPOSAL, Case
from tests.conformance.subjects.logical_alternatives import ALTERNATIVES, OF_PROPOSALS
from tests.conformance.subjects.logical_caught import CAUGHT
from tests.conformance.subjects.logical_clients import GoodLogicalBroker
from tests.conformance.subjects.played import played_out
from tests.conformance.subjects.static_topic_shell import StaticTopicAdapter

KIND = "logical-queues"
EACH_OTHERWISE = 6
CASES: dict[str, Case] = {case.id.removeprefix(f"{KIND}/"): case for case in load(KIND)}


@pytest.mark.parametrize("patience", [0.5, 1.0, 3.0])
def test_who_does_it_right_passes_every_case(patience: float) -> None:
    cases = list(CASES.values())[:: 1 if patience == 1.0 else EACH_OTHERWISE]
    found = played_out(((GoodLogicalBroker, case) for case in cases), StaticTopicAdapter, patience=patience)
    bad = {name: each.symptom or each.reason for (_, name), each in found.items() if each.reason}
    assert bad == {}
    assert len(found) == len(cases)


@pytest.mark.parametrize("make", ALTERNATIVES)
def test_who_does_otherwise_what_the_clauses_leave_open_has_no_finding(make: type[GoodLogicalBroker]) -> None:
    cases = [case for case in CASES.values() if case.basis != OURS]
    found = played_out(((make, case) for case in cases), StaticTopicAdapter)
    assert {name: each.symptom or each.reason for (_, name), each in found.items() if each.reason} == {}


@pytest.mark.parametrize("make", OF_PROPOSALS)
def test_who_does_otherwise_what_the_proposals_leave_open_has_no_finding_by_them(
    make: type[GoodLogicalBroker],
) -> None:
    cases = [case for case in CASES.values() if case.basis == PROPOSAL]
    found = played_out(((make, case) for case in cases), StaticTopicAdapter)
    assert {name: each.symptom or each.reason for (_, name), each in found.items() if each.reason} == {}


def test_who_does_it_wrong_is_failed_by_the_cases_that_name_the_fault() -> None:
    chosen = [(make, CASES[name]) for name, makes in CAUGHT.items() for make in makes]
    found = played_out(chosen, StaticTopicAdapter)
    missed = {
        (make.__name__, name): f"{each.verdict} {each.reason}"
        for (make, name), each in found.items()
        if each.verdict.value != "fail"
    }
    assert missed == {}


def test_every_case_fails_somebody() -> None:
    assert CASES.keys() - CAUGHT.keys() == set()
