"""HA masters that the proposals allow: asked for the proposals alone, the suite finds nothing in them.

A usual run plays two of them, with REPLISPEC_FAULTS=all in the environment (`make test-full`) all.
"""

import os
from collections.abc import Mapping
from functools import partial

import pytest

from replispec.conformance.cases import load
from replispec.conformance.model import PROPOSAL
from replispec.conformance.results import RunResult
from tests.conformance.subjects.against import Outcome, applicable, judge_master, judged
from tests.conformance.subjects.ha_alternatives import HA_ALTERNATIVES
from tests.conformance.subjects.ha_replica_faults import ConfirmsAlone

ALTERNATIVES_MINIMUM = 8
PLAYED_MINIMUM = 45
USUAL = ("ClosesASecondHandshake", "ExpandsAtItsExamination")
CASES = [case for case in load("ha-master") if applicable(case)]
NAMES = tuple(HA_ALTERNATIVES) if os.environ.get("REPLISPEC_FAULTS") == "all" else USUAL
judge = partial(judge_master, bases=(PROPOSAL,))


@pytest.fixture(scope="module")
def outcomes() -> Mapping[str, Outcome]:
    """What the suite says about each alternative, asked for the proposals alone."""
    return judged({name: (HA_ALTERNATIVES[name], CASES) for name in NAMES}, judge)


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_found_in_a_master_that_the_proposals_allow(
    name: str, outcomes: Mapping[str, Outcome]
) -> None:
    outcome = outcomes[name]
    assert isinstance(outcome, RunResult), outcome
    assert {each.basis for each in outcome.results} == {PROPOSAL}
    assert [f"{each.id}: {each.symptom}" for each in outcome.findings(strict=True)] == []
    assert outcome.counts()["pass"] >= PLAYED_MINIMUM


def test_there_are_enough_alternatives() -> None:
    assert len(HA_ALTERNATIVES) >= ALTERNATIVES_MINIMUM
    assert set(USUAL) <= set(HA_ALTERNATIVES)


def test_what_the_proposals_forbid_a_master_is_found_by_them_alone() -> None:
    cases = [case for case in CASES if "CONFIRM-1" in case.id]
    outcome = judged({"alone": (ConfirmsAlone, cases)}, judge)["alone"]
    assert isinstance(outcome, RunResult)
    assert {each.clause for each in outcome.findings(strict=False)} == {"RIP44-CONFIRM-1"}
