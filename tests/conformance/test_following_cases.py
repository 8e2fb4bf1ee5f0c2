"""Kinds ha-replica, learner and registering-broker: a scripted one that does it right passes every case,
however patient the suite is; each that does it wrong is failed by the case that names its fault.

A usual run plays every third of those that take a role wrongly, and every sixth case with a patience that is
not the usual one, with REPLISPEC_FAULTS=all in the environment
(`make test-full`) all."""

from __future__ import annotations

import os

import pytest

from replispec.conformance.cases import load
from replispec.conformance.model import PROPOSAL, Case
from tests.conformance.subjects.duty_faults import CAUGHT_AT_DUTIES
from tests.conformance.subjects.following import FollowingAdapter
from tests.conformance.subjects.following_faults import CAUGHT
from tests.conformance.subjects.late_faults import CAUGHT_LATE
from tests.conformance.subjects.office import GoodBroker
from tests.conformance.subjects.office_faults import CAUGHT_IN_OFFICE, OfAnotherMind
from tests.conformance.subjects.played import played_out

KINDS = ("ha-replica", "learner", "registering-broker")
EVERY = os.environ.get("REPLISPEC_FAULTS") == "all"
EACH, EACH_OTHERWISE = (1, 1) if EVERY else (3, 6)
CASES: dict[str, Case] = {case.id: case for kind in KINDS for case in load(kind)}


@pytest.mark.parametrize("patience", [0.5, 1.0, 3.0])
def test_who_does_it_right_passes_every_case(patience: float) -> None:
    cases = list(CASES.values())[:: 1 if patience == 1.0 else EACH_OTHERWISE]
    found = played_out(((GoodBroker, case) for case in cases), FollowingAdapter, patience=patience)
    bad = {name: each.symptom or each.reason for (_, name), each in found.items() if each.reason}
    assert bad == {}
    assert len(found) == len(cases)


def test_who_does_otherwise_what_the_proposals_leave_open_has_no_finding() -> None:
    of_masters = ("alteration", "duties", "late", "leaders", "office")
    cases = [each for each in CASES.values() if each.topic in of_masters and each.basis == PROPOSAL]
    found = played_out(((OfAnotherMind, case) for case in cases), FollowingAdapter)
    assert {name: each.symptom or each.reason for (_, name), each in found.items() if each.reason} == {}


def test_who_does_it_wrong_is_failed_by_the_cases_that_name_the_fault() -> None:
    in_office = [*CAUGHT_IN_OFFICE.items(), *CAUGHT_AT_DUTIES.items(), *CAUGHT_LATE.items()][::EACH]
    chosen = [(make, CASES[name]) for name, makes in (*CAUGHT.items(), *in_office) for make in makes]
    found = played_out(chosen, FollowingAdapter)
    missed = {
        (make.__name__, name): f"{each.verdict} {each.reason}"
        for (make, name), each in found.items()
        if each.verdict.value != "fail"
    }
    assert missed == {}
