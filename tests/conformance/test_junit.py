"""A run as JUnit XML, as continuous integration reads it."""

from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replispec.conformance.report_junit import junit_xml
from replispec.conformance.results import CaseResult, CaseVerdict, Standing
from tests.conformance.sample_results import a_result, a_run

ALTER = "controller/alter/RIP44-ALTER-1/1"
OTHER = "controller/metadata/RIP44-METADATA-1/1"
HOSTILE = "\x00\x1b[2J</failure>&amp;\"']]>\ud800\ufffe\uffff\x7f\x85\u202e"


def _tests(*results: CaseResult) -> list[ET.Element]:
    """The tests that stand for these cases, of a run that is about one more."""
    suites = ET.fromstring(junit_xml(a_run(*results, a_result(OTHER, CaseVerdict.PASS))))
    return [each for each in suites.iter("testcase") if each.get("name") != OTHER]


@pytest.mark.parametrize(
    ("verdict", "standing", "tag"),
    [
        (CaseVerdict.PASS, Standing.AS_IT_SHOULD, None),
        (CaseVerdict.FAIL, Standing.UNEXPECTED, "failure"),
        (CaseVerdict.FAIL, Standing.OTHER_SYMPTOM, "failure"),
        (CaseVerdict.PASS, Standing.UNEXPECTED_PASS, "failure"),
        (CaseVerdict.FAIL, Standing.EXPECTED, "skipped"),
        (CaseVerdict.FAIL, Standing.WARNING, "skipped"),
        (CaseVerdict.UNSUPPORTED, Standing.AS_IT_SHOULD, "skipped"),
        (CaseVerdict.SKIPPED, Standing.AS_IT_SHOULD, "skipped"),
        (CaseVerdict.SKIPPED, Standing.NOT_JUDGED, "error"),
        (CaseVerdict.ERROR, Standing.NOT_JUDGED, "error"),
    ],
)
def test_a_case_is_what_its_verdict_means_beside_the_list(
    verdict: CaseVerdict, standing: Standing, tag: str | None
) -> None:
    result = a_result(ALTER, verdict, {"standing": standing, "reason": "why"})
    (test,) = _tests(result)
    assert [child.tag for child in test] == ([] if tag is None else [tag])
    suite = next(ET.fromstring(junit_xml(a_run(result))).iter("testsuite"))
    counted = {"failure": "failures", "error": "errors", "skipped": "skipped"}
    assert {name: suite.get(name) for name in counted.values()} == {
        name: "1" if each == tag else "0" for each, name in counted.items()
    }


def test_a_failure_tells_its_reason_and_its_bytes() -> None:
    (test,) = _tests(a_result(ALTER, CaseVerdict.FAIL, {"reason": "code X instead of Y"}))
    assert (test.get("classname"), test.get("name"), test.get("time")) == ("RIP44-ALTER-1", ALTER, "0.250")
    assert test[0].get("message") == "code X instead of Y"
    assert "> ASKED 00ff" in (test[0].text or "")


def test_cases_stand_under_their_topics() -> None:
    elect = "controller/elect/RIP44-ELECT-1/{}"
    names = [elect.format(1), ALTER, elect.format(2)]
    suites = ET.fromstring(junit_xml(a_run(*(a_result(name, CaseVerdict.PASS) for name in names))))
    found = {suite.get("name"): [test.get("name") for test in suite] for suite in suites}
    assert found == {"controller/alter": [ALTER], "controller/elect": [elect.format(1), elect.format(2)]}
    assert [suite.get("tests") for suite in suites] == ["1", "2"]


@pytest.mark.parametrize("verdict", [CaseVerdict.FAIL, CaseVerdict.SKIPPED, CaseVerdict.ERROR])
def test_whatever_a_subject_sent_the_xml_is_well_formed(verdict: CaseVerdict) -> None:
    (test,) = _tests(
        a_result(ALTER, verdict, {"reason": HOSTILE, "expected": HOSTILE, "requirement": HOSTILE})
    )
    assert "[2J" in (test[0].get("message") or "")


@given(st.text(st.characters(exclude_categories=())))
def test_no_text_breaks_the_xml(text: str) -> None:
    assert _tests(a_result(ALTER, CaseVerdict.FAIL, {"reason": text, "requirement": text}))
