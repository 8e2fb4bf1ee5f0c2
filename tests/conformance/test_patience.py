"""However patient a run is, a subject that does what it should has no finding."""

from collections.abc import Sequence
from functools import partial

import pytest

from replispec.conformance.cases import load
from replispec.conformance.model import PROPOSAL, Case
from replispec.conformance.results import RunResult
from tests.conformance.subjects.against import applicable, judge_controller, judge_master, judged
from tests.conformance.subjects.controller_admin import GoodController
from tests.conformance.subjects.ha_master import GoodHaMaster
from tests.conformance.subjects.unnamed_alternatives import SlowAnswers

PLAYED_MINIMUM = 60
PATIENCE = (0.5, 1.0, 3.0)


def _cases(kind: str) -> Sequence[Case]:
    return [case for case in load(kind) if applicable(case)]


def _found(result: RunResult | str) -> list[str]:
    assert isinstance(result, RunResult), result
    return [f"{each.id}: {each.symptom}" for each in result.findings(strict=True)]


@pytest.mark.parametrize("patience", PATIENCE)
def test_a_good_controller_has_no_finding(patience: float) -> None:
    subjects = {"good": (GoodController, _cases("controller"))}
    assert _found(judged(subjects, partial(judge_controller, patience=patience))["good"]) == []


def test_a_controller_that_takes_its_time_has_no_finding_in_an_impatient_run() -> None:
    """What a subject is given to answer never shrinks, nor does what it has meanwhile to keep up with."""
    subjects = {"slow": (SlowAnswers, _cases("controller"))}
    found = judged(subjects, partial(judge_controller, bases=(PROPOSAL,), patience=min(PATIENCE)))["slow"]
    assert _found(found) == []
    assert isinstance(found, RunResult)
    assert found.counts()["pass"] >= PLAYED_MINIMUM


@pytest.mark.parametrize("patience", PATIENCE)
def test_a_good_master_has_no_finding(patience: float) -> None:
    subjects = {"good": (GoodHaMaster, _cases("ha-master"))}
    assert _found(judged(subjects, partial(judge_master, patience=patience))["good"]) == []
