"""Results as data: counts, findings, and JSON that gives back what was written."""

import orjson
import pytest

from replispec.conformance.results import (
    CaseVerdict,
    ResultError,
    RunResult,
    Standing,
    by_clause,
    from_json,
    to_json,
    worst,
)
from tests.conformance.sample_results import a_result, a_run

ALTER, ELECT = "controller/alter/RIP44-ALTER-1/1", "controller/elect/RIP44-ELECT-1/1"


def _run() -> RunResult:
    failed = {"reason": "step 1: \x00 “x”", "symptom": "step 1", "bugs": ["B1"]}
    run = a_run(a_result(ALTER, CaseVerdict.PASS), a_result(ELECT, CaseVerdict.FAIL, failed))
    run.stale.append("expected_failures.yaml:3")
    return run


def test_json_gives_back_the_run_it_was_made_of() -> None:
    assert from_json(to_json(_run()), "x.json") == _run()


def test_equal_runs_give_equal_bytes() -> None:
    assert to_json(_run()) == to_json(_run())


def _changed(**changes: object) -> bytes:
    return orjson.dumps({**orjson.loads(to_json(_run())), **changes})


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[]",
        b'"text"',
        b"null",
        b"{}",
        _changed(format=2),
        _changed(results=None),
        _changed(results=[{}]),
        _changed(results=[None]),
        _changed(surplus=1),
        to_json(_run()).replace(b'"pass"', b'"passed"'),
        to_json(_run()).replace(b'"way"', b'"direction"'),
    ],
)
def test_what_is_no_result_of_this_suite_is_one_line_with_the_name_of_the_file(data: bytes) -> None:
    with pytest.raises(ResultError, match=r"^x\.json: ") as fault:
        from_json(data, "x.json")
    assert "\n" not in str(fault.value)


def test_every_verdict_is_counted() -> None:
    assert _run().counts() == {"pass": 1, "fail": 1, "unsupported": 0, "skipped": 0, "error": 0}


@pytest.mark.parametrize(
    ("standing", "plain", "strict"),
    [
        (Standing.AS_IT_SHOULD, False, False),
        (Standing.EXPECTED, False, False),
        (Standing.WARNING, False, True),
        (Standing.UNEXPECTED, True, True),
        (Standing.UNEXPECTED_PASS, True, True),
        (Standing.OTHER_SYMPTOM, True, True),
        (Standing.NOT_JUDGED, True, True),
    ],
)
def test_a_finding_is_what_nobody_expected(standing: Standing, plain: bool, strict: bool) -> None:
    run = a_run(a_result(ALTER, CaseVerdict.FAIL, {"standing": standing}))
    assert (bool(run.findings(strict=False)), bool(run.findings(strict=True))) == (plain, strict)


@pytest.mark.parametrize(
    ("core", "admin", "judged"),
    [
        (CaseVerdict.PASS, CaseVerdict.UNSUPPORTED, True),
        (CaseVerdict.FAIL, CaseVerdict.UNSUPPORTED, True),
        (CaseVerdict.UNSUPPORTED, CaseVerdict.PASS, False),
        (CaseVerdict.ERROR, CaseVerdict.PASS, False),
        (CaseVerdict.SKIPPED, CaseVerdict.PASS, True),
        (CaseVerdict.SKIPPED, CaseVerdict.UNSUPPORTED, False),
    ],
)
def test_a_run_has_judged_something_when_a_case_of_the_core_came_to_a_verdict(
    core: CaseVerdict, admin: CaseVerdict, judged: bool
) -> None:
    run = a_run(a_result(ALTER, core), a_result(ELECT, admin, {"profile": "admin"}))
    assert run.judged() is judged


def test_a_core_that_could_not_be_prepared_is_not_judged() -> None:
    missed = a_result(ALTER, CaseVerdict.SKIPPED, {"symptom": "given: no answer"})
    assert not a_run(missed, a_result(ELECT, CaseVerdict.PASS, {"profile": "admin"})).judged()


def test_results_of_several_runs_meet_under_their_clauses() -> None:
    found = by_clause([_run(), a_run(a_result(ALTER, CaseVerdict.FAIL))])
    assert {name: [result.verdict.value for _, result in pairs] for name, pairs in found.items()} == {
        "RIP44-ALTER-1": ["pass", "fail"],
        "RIP44-ELECT-1": ["fail"],
    }


def test_the_worst_verdict_stands_for_several() -> None:
    order = (
        CaseVerdict.ERROR,
        CaseVerdict.FAIL,
        CaseVerdict.PASS,
        CaseVerdict.UNSUPPORTED,
        CaseVerdict.SKIPPED,
    )
    for at, verdict in enumerate(order):
        assert worst([a_result(ALTER, each) for each in reversed(order[at:])]) is verdict
