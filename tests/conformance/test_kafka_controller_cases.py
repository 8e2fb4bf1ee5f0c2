"""Kind kafka-controller: a scripted one that does it right passes every case, and each wrong one is failed by
the case that names its fault."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import trio

from replispec.conformance.cases import load
from replispec.conformance.model import Case
from replispec.conformance.results import RunResult
from replispec.conformance.run import run_on_trio
from tests.conformance.subjects.against import Outcome, judged, plan
from tests.conformance.subjects.kafka_controller import GoodController
from tests.conformance.subjects.kafka_controller_faults import CAUGHT_CONTROLLERS
from tests.conformance.subjects.kafka_controller_server import ControllerServer

KIND, RELEASE = "kafka-controller", (2, 8, 2)
CASES = {case.id.removeprefix(f"{KIND}/"): case for case in load(KIND)}
CASES_MINIMUM, FAULTS_MINIMUM = 60, 10
Subjects = Mapping[str, tuple[type[GoodController], Sequence[Case]]]


def found(subjects: Subjects) -> Mapping[str, Outcome]:
    """What the suite says of each."""

    async def judge(make: type[GoodController], cases: Sequence[Case]) -> RunResult:
        async with trio.open_nursery() as nursery:
            target: str = await nursery.start(ControllerServer(make).serve)
            asked = replace(plan(KIND, {"target": target}), release=RELEASE, jobs=8)
            result = await run_on_trio(asked, cases, (), None)
            nursery.cancel_scope.cancel()
        return result

    return judged(subjects, judge)


def test_a_controller_that_does_it_right_passes_every_case() -> None:
    assert len(CASES) >= CASES_MINIMUM
    outcome = found({"good": (GoodController, tuple(CASES.values()))})["good"]
    assert isinstance(outcome, RunResult), outcome
    bad = [each for each in outcome.results if each.verdict.value != "pass"]
    assert {each.id: each.symptom or each.reason for each in bad} == {}


def test_each_controller_that_does_it_wrong_is_failed_by_the_case_that_names_its_fault() -> None:
    assert len(CAUGHT_CONTROLLERS) >= FAULTS_MINIMUM
    outcomes = found(
        {f"{make.__name__} {name}": (make, (CASES[name],)) for make, name in CAUGHT_CONTROLLERS.items()}
    )
    missed = {
        name: outcome if isinstance(outcome, str) else [str(each.reason) for each in outcome.results]
        for name, outcome in outcomes.items()
        if isinstance(outcome, str) or [each.verdict.value for each in outcome.results] != ["fail"]
    }
    assert missed == {}
