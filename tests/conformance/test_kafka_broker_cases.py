"""Kind kafka-broker: a scripted one that does it right passes every case, so do others that the proposal
allows; each wrong one is failed by the case that names its fault."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace

import trio

from replispec.conformance.cases import load
from replispec.conformance.model import PROPOSAL, Case
from replispec.conformance.results import RunResult
from replispec.conformance.run import run_on_trio
from tests.conformance.subjects.against import Outcome, judged, plan
from tests.conformance.subjects.kafka_alternatives import ALTERNATIVES
from tests.conformance.subjects.kafka_broker import GoodBroker
from tests.conformance.subjects.kafka_faults import CAUGHT
from tests.conformance.subjects.kafka_server import KafkaServer

KIND, RELEASE = "kafka-broker", (2, 8, 2)
CASES = {case.id.removeprefix(f"{KIND}/"): case for case in load(KIND)}
CASES_MINIMUM, FAULTS_MINIMUM, ALTERNATIVES_MINIMUM = 120, 25, 6
# What only a broker does that cuts its log to its high watermark.
BY_WATERMARK = {"follow/KV3-FOLLOWER-1/1"}


class CutsToTheWatermark(GoodBroker):
    """As generations up to 0.11 do."""

    by_epoch = False


PLAYED = ALTERNATIVES if os.environ.get("REPLISPEC_FAULTS") == "all" else ALTERNATIVES[:ALTERNATIVES_MINIMUM]
"""A usual run plays a few of them, with REPLISPEC_FAULTS=all in the environment (`make test-full`) all."""
Subjects = Mapping[str, tuple[type[GoodBroker], Sequence[Case]]]


def found(subjects: Subjects, *, bases: tuple[str, ...] = ()) -> Mapping[str, Outcome]:
    """What the suite says of each."""

    async def judge(make: type[GoodBroker], cases: Sequence[Case]) -> RunResult:
        async with trio.open_nursery() as nursery:
            addresses: dict[str, str] = await nursery.start(KafkaServer(make).serve)
            asked = replace(plan(KIND, addresses), release=RELEASE, bases=bases)
            result = await run_on_trio(asked, cases, (), None)
            nursery.cancel_scope.cancel()
        return result

    return judged(subjects, judge)


def not_passed(outcome: Outcome) -> Mapping[str, str]:
    """The cases that something is said about, with what."""
    assert isinstance(outcome, RunResult), outcome
    assert outcome.results
    bad = [each for each in outcome.results if each.verdict.value != "pass"]
    return {each.id.removeprefix(f"{KIND}/"): each.symptom or each.reason for each in bad}


def test_a_broker_that_does_it_right_passes_every_case() -> None:
    assert len(CASES) >= CASES_MINIMUM
    bad = not_passed(found({"good": (GoodBroker, tuple(CASES.values()))})["good"])
    assert {name: why for name, why in bad.items() if name not in BY_WATERMARK} == {}


def test_one_that_cuts_to_its_watermark_passes_what_is_for_it() -> None:
    cases = [case for name, case in CASES.items() if name.startswith("follow/KV3-FOLLOWER")]
    assert not_passed(found({"by watermark": (CutsToTheWatermark, cases)})["by watermark"]) == {}


def test_nothing_is_found_in_what_the_proposal_allows() -> None:
    assert len(ALTERNATIVES) >= ALTERNATIVES_MINIMUM
    outcomes = found({make.__name__: (make, tuple(CASES.values())) for make in PLAYED}, bases=(PROPOSAL,))
    odd = {name: not_passed(outcome) for name, outcome in outcomes.items()}
    assert {name: rest for name, bad in odd.items() if (rest := bad.keys() - BY_WATERMARK)} == {}


def test_each_that_does_it_wrong_is_failed_by_the_case_that_names_its_fault() -> None:
    assert len(CAUGHT) >= FAULTS_MINIMUM
    outcomes = found({f"{make.__name__} {name}": (make, (CASES[name],)) for make, name in CAUGHT.items()})
    missed = {
        name: outcome if isinstance(outcome, str) else [str(each.reason) for each in outcome.results]
        for name, outcome in outcomes.items()
        if isinstance(outcome, str) or [each.verdict.value for each in outcome.results] != ["fail"]
    }
    assert missed == {}
