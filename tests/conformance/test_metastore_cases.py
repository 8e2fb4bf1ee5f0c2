"""Kind metastore: a scripted one that does it right passes every case, however patient the suite is, so do
others that the protocol allows, and ours; each wrong one is failed by the case that names its fault."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
import trio

from replispec.conformance.cases import load
from replispec.conformance.model import Case
from replispec.conformance.results import RunResult
from replispec.conformance.run import run_on_trio
from tests.conformance.subjects.against import Outcome, judged, plan
from tests.conformance.subjects.metastore import GoodMetastore
from tests.conformance.subjects.metastore_alternatives import ALTERNATIVES
from tests.conformance.subjects.metastore_faults import CAUGHT
from tests.conformance.subjects.metastore_server import MetastoreServer
from tests.conformance.subjects.node_faults import CAUGHT_ON_TREES, metastore_on
from tests.conformance.subjects.our_metastore import serve_metastore

KIND, RELEASE = "metastore", (3, 6, 4)
CASES = {case.id.removeprefix(f"{KIND}/"): case for case in load(KIND)}
CASES_MINIMUM, FAULTS_MINIMUM, ALTERNATIVES_MINIMUM = 80, 25, 8
PLAYED = ALTERNATIVES if os.environ.get("REPLISPEC_FAULTS") == "all" else ALTERNATIVES[:ALTERNATIVES_MINIMUM]
"""A usual run plays a few of them, with REPLISPEC_FAULTS=all in the environment (`make test-full`) all."""


async def played(target: str, cases: Sequence[Case], patience: float = 1.0) -> RunResult:
    """What the suite says of who listens there."""
    asked = replace(plan(KIND, {"target": target}), patience=patience, release=RELEASE)
    return await run_on_trio(asked, cases, (), None)


def found(
    subjects: Mapping[str, tuple[type[GoodMetastore], Sequence[Case]]], patience: float = 1.0
) -> Mapping[str, Outcome]:
    """What the suite says of each."""

    async def judge(make: type[GoodMetastore], cases: Sequence[Case]) -> RunResult:
        async with trio.open_nursery() as nursery:
            target: str = await nursery.start(MetastoreServer(make).serve)
            result = await played(target, cases, patience)
            nursery.cancel_scope.cancel()
        return result

    return judged(subjects, judge)


def not_passed(outcome: Outcome) -> Mapping[str, str]:
    """The cases that something is said about, with what."""
    assert isinstance(outcome, RunResult), outcome
    assert len(outcome.results) == len(CASES)
    bad = [each for each in outcome.results if each.verdict.value != "pass"]
    return {each.id: each.symptom or each.reason for each in bad}


@pytest.mark.parametrize("patience", [0.5, 1.0, 3.0])
def test_a_metastore_that_does_it_right_passes_every_case(patience: float) -> None:
    assert len(CASES) >= CASES_MINIMUM
    assert not_passed(found({"good": (GoodMetastore, tuple(CASES.values()))}, patience)["good"]) == {}


def test_nothing_is_found_in_what_the_protocol_allows() -> None:
    assert len(ALTERNATIVES) >= ALTERNATIVES_MINIMUM
    outcomes = found({make.__name__: (make, tuple(CASES.values())) for make in PLAYED})
    assert {name: bad for name, outcome in outcomes.items() if (bad := not_passed(outcome))} == {}


def test_each_that_does_it_wrong_is_failed_by_the_case_that_names_its_fault() -> None:
    every = {**CAUGHT, **{metastore_on(kind): name for kind, name in CAUGHT_ON_TREES.items()}}
    assert len(every) >= FAULTS_MINIMUM
    outcomes = found({f"{make.__name__} {name}": (make, (CASES[name],)) for make, name in every.items()})
    missed = {
        name: outcome if isinstance(outcome, str) else [str(each.reason) for each in outcome.results]
        for name, outcome in outcomes.items()
        if isinstance(outcome, str) or [each.verdict.value for each in outcome.results] != ["fail"]
    }
    assert missed == {}


def test_ours_passes_every_case() -> None:
    async def judge(_: str, cases: Sequence[Case]) -> RunResult:
        async with trio.open_nursery() as nursery:
            target: str = await nursery.start(serve_metastore)
            result = await played(target, cases)
            nursery.cancel_scope.cancel()
        return result

    assert not_passed(judged({"ours": ("ours", tuple(CASES.values()))}, judge)["ours"]) == {}
