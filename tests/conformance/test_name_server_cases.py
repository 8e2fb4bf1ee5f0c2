"""Kind name-server: a scripted one that does it right passes every case, however patient the suite is; each
that does it wrong is failed by the case that names its fault."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
import trio

from replispec.conformance.cases import load
from replispec.conformance.model import Case
from replispec.conformance.results import RunResult
from replispec.conformance.run import run_on_trio
from tests.conformance.subjects.against import Outcome, judged, plan
from tests.conformance.subjects.changes_faults import CAUGHT as CAUGHT_WITH_CHANGES
from tests.conformance.subjects.mapping_faults import CAUGHT as CAUGHT_WITH_MAPPINGS
from tests.conformance.subjects.name_server import GoodNameServer
from tests.conformance.subjects.name_server_faults import CAUGHT
from tests.conformance.subjects.remoting_server import RemotingServer

KIND = "name-server"
CASES = {case.id.removeprefix(f"{KIND}/"): case for case in load(KIND)}


def found(
    subjects: Mapping[str, tuple[type[GoodNameServer], Sequence[Case]]], patience: float = 1.0
) -> Mapping[str, Outcome]:
    """What the suite says of each."""

    async def judge(make: type[GoodNameServer], cases: Sequence[Case]) -> RunResult:
        async with trio.open_nursery() as nursery:
            target = await nursery.start(RemotingServer(make).serve)
            asked = replace(plan(KIND, {"target": target}), patience=patience)
            result = await run_on_trio(asked, cases, (), None)
            nursery.cancel_scope.cancel()
        return result

    return judged(subjects, judge)


@pytest.mark.parametrize("patience", [0.5, 1.0, 3.0])
def test_a_name_server_that_does_it_right_passes_every_case(patience: float) -> None:
    result = found({"good": (GoodNameServer, tuple(CASES.values()))}, patience)["good"]
    assert isinstance(result, RunResult)
    assert {each.id: each.symptom for each in result.results if each.verdict.value != "pass"} == {}
    assert len(result.results) == len(CASES)


def test_each_that_does_it_wrong_is_failed_by_the_case_that_names_its_fault() -> None:
    every = [*CAUGHT.items(), *CAUGHT_WITH_MAPPINGS, *CAUGHT_WITH_CHANGES]
    outcomes = found({f"{make.__name__} {name}": (make, (CASES[name],)) for make, name in every})
    missed = {
        name: outcome
        for name, outcome in outcomes.items()
        if isinstance(outcome, str) or [each.verdict.value for each in outcome.results] != ["fail"]
    }
    assert missed == {}
