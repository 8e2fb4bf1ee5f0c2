"""A subject that hangs, floods, resets, answers garbage or dies costs its case, never the run."""

import subprocess
from collections.abc import Mapping

import pytest
import trio

from replispec.conformance.cases import load
from replispec.conformance.model import Case
from replispec.conformance.results import CaseResult, CaseVerdict, RunResult, Standing
from tests.cli.command import command
from tests.conformance.subjects.against import Outcome, applicable, judge_controller, judge_master, judged
from tests.conformance.subjects.controller_admin import GoodController
from tests.conformance.subjects.ha_replica_faults import ROUGH_MASTERS
from tests.conformance.subjects.remoting_server import RemotingServer
from tests.conformance.subjects.wire_faults import ROUGH

DEADLY = "dies"
HURT = {"controller": "alter", "ha-master": "transfer"}
"""The topics whose cases meet the rough behaviour, by kind."""
UNHURT = {"controller": ("metadata", "replica-info", "identity"), "ha-master": ("handshake", "epochs")}
STEPS_MAXIMUM = 3


def some(kind: str) -> list[Case]:
    """Short cases that meet the rough behaviour, and others that do not."""
    fitting = [case for case in load(kind) if applicable(case) and len(case.steps) <= STEPS_MAXIMUM]
    by_topic = {
        topic: [case for case in fitting if case.topic == topic and not case.needs]
        for topic in (HURT[kind], *UNHURT[kind])
    }
    return [case for found in by_topic.values() for case in found[:2]]


@pytest.fixture(scope="module")
def controllers() -> Mapping[str, Outcome]:
    """What the suite says about rough controllers."""
    cases = some("controller")
    return judged({name: (rough, cases) for name, rough in ROUGH.items()}, judge_controller)


@pytest.fixture(scope="module")
def masters() -> Mapping[str, Outcome]:
    """What the suite says about rough HA masters."""
    cases = some("ha-master")
    return judged({name: (rough, cases) for name, rough in ROUGH_MASTERS.items()}, judge_master)


def check(kind: str, name: str, outcome: Outcome) -> None:
    """Every case has its verdict, and a good one unless it met the rough behaviour or the subject died."""
    assert isinstance(outcome, RunResult)
    assert [each.id for each in outcome.results] == [case.id for case in some(kind)]
    hurt = [each for each in outcome.results if each.topic == HURT[kind]]
    # Where the subject dies it may take along what a case takes for given.
    assert name == DEADLY or any(each.verdict is CaseVerdict.FAIL for each in hurt)
    assert [each.id for each in hurt if not costs_its_case(each)] == []
    unhurt = [each for each in outcome.results if each.topic != HURT[kind]]
    allowed = set(CaseVerdict) - {CaseVerdict.ERROR} if name == DEADLY else {CaseVerdict.PASS}
    assert [each.id for each in unhurt if each.verdict not in allowed] == []
    assert outcome.findings(strict=False)


def costs_its_case(result: CaseResult) -> bool:
    """Whether the case failed, or could not be prepared and counts as not judged."""
    if result.verdict is CaseVerdict.FAIL:
        return bool(result.symptom)
    return result.verdict is CaseVerdict.SKIPPED and result.standing is Standing.NOT_JUDGED


@pytest.mark.parametrize("name", ROUGH)
def test_a_rough_controller_costs_the_cases_that_meet_it(
    name: str, controllers: Mapping[str, Outcome]
) -> None:
    check("controller", name, controllers[name])


@pytest.mark.parametrize("name", ROUGH_MASTERS)
def test_a_rough_master_costs_the_cases_that_meet_it(name: str, masters: Mapping[str, Outcome]) -> None:
    check("ha-master", name, masters[name])


@pytest.mark.parametrize(
    ("subject", "patterns", "status"),
    [
        (GoodController, ["controller/metadata/*", "controller/replica-info/*"], 0),
        (ROUGH["resets"], ["controller/metadata/*", "controller/alter/RIP44-ALTER-1/1"], 1),
        (ROUGH[DEADLY], ["controller/metadata/*", "controller/alter/RIP44-ALTER-1/1"], 1),
    ],
    ids=["good", "resets", DEADLY],
)
def test_the_exit_code_tells_a_good_subject_from_a_rough_one(
    subject: type[GoodController], patterns: list[str], status: int
) -> None:
    async def run() -> subprocess.CompletedProcess[bytes]:
        async with trio.open_nursery() as nursery:
            address = await nursery.start(RemotingServer(subject).serve)
            cases = [part for pattern in patterns for part in ("--case", pattern)]
            arguments = command(
                "conformance", "run", "--kind", "controller", "--target", address, "--jobs", "1", *cases
            )
            done = await trio.run_process(arguments, capture_stdout=True, capture_stderr=True, check=False)
            nursery.cancel_scope.cancel()
        return done

    done = trio.run(run)
    assert done.returncode == status, (done.stdout + done.stderr).decode()
    assert b"Traceback" not in done.stderr
