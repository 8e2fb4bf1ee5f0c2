"""Controllers that the proposals allow: asked for the proposals alone, the suite finds nothing in them.

A usual run plays a few of them, with REPLISPEC_FAULTS=all in the environment (`make test-full`) all.
"""

import os
import re
from collections.abc import Mapping

import pytest

from replispec.conformance.cases import load
from replispec.conformance.model import PROPOSAL
from replispec.conformance.results import RunResult
from tests.conformance.subjects import more_alternatives, unnamed_alternatives
from tests.conformance.subjects.against import Outcome, applicable, judge_proposal, judged
from tests.conformance.subjects.alternatives import ALTERNATIVES
from tests.conformance.subjects.controller_admin import GoodController
from tests.conformance.subjects.records import BrokerSet

ENTERED_BY = (more_alternatives, unnamed_alternatives)
"""Imported so that its subjects are in the table."""
ALTERNATIVES_MINIMUM = 25
PLAYED_MINIMUM = 60
DESIGNATES = re.compile(r"designateElect\W+true", re.IGNORECASE)
USUAL = (
    "LivenessByHeartbeatOnly",
    "NoUnsignedAdministration",
    "RegistrationElectsTheFirst",
    "OneCodeForEveryRefusal",
    "ScansEveryTwentySeconds",
    "NotificationIsItsHeaderAlone",
)
CASES = [case for case in load("controller") if applicable(case)]
NAMES = tuple(ALTERNATIVES) if os.environ.get("REPLISPEC_FAULTS") == "all" else USUAL


@pytest.fixture(scope="module")
def outcomes() -> Mapping[str, Outcome]:
    """What the suite says about each alternative, asked for the proposals alone."""
    return judged({name: (ALTERNATIVES[name], CASES) for name in NAMES}, judge_proposal)


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_found_in_what_the_proposals_allow(name: str, outcomes: Mapping[str, Outcome]) -> None:
    outcome = outcomes[name]
    assert isinstance(outcome, RunResult), outcome
    assert {each.basis for each in outcome.results} == {PROPOSAL}
    assert [f"{each.id}: {each.symptom}" for each in outcome.findings(strict=True)] == []
    assert outcome.counts()["pass"] >= PLAYED_MINIMUM


def test_no_case_of_the_proposals_needs_what_they_do_not_name() -> None:
    """Neither removing brokers nor electing who is named is in their words."""
    rests = [each for each in load("controller") if each.basis == PROPOSAL]
    steps = {each.id: repr(each.steps) for each in rests}
    assert [each for each, said in steps.items() if "CLEAN_BROKER_DATA" in said] == []
    assert [each for each, said in steps.items() if DESIGNATES.search(said)] == []


def test_there_are_enough_alternatives() -> None:
    assert len(ALTERNATIVES) >= ALTERNATIVES_MINIMUM
    assert set(USUAL) <= set(ALTERNATIVES)


class _ElectsAnybody(GoodController):
    """A fault that the proposals forbid in so many words."""

    def candidates(self, broker_set: BrokerSet) -> list[int]:
        return [broker for broker in broker_set.members if self.is_alive(broker_set, broker)]


def test_what_the_proposals_forbid_is_found_by_them_alone() -> None:
    outcome = judged({"anybody": (_ElectsAnybody, CASES)}, judge_proposal)["anybody"]
    assert isinstance(outcome, RunResult)
    assert {"RIP44-ELECT-3"} <= {each.clause for each in outcome.findings(strict=False)}
