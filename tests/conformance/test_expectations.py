"""The list of known failures: what a run makes of it, what is refused in it, and the exit codes."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from replispec.conformance.expectations import Expected, apply, load_expected
from replispec.conformance.model import CaseError
from replispec.conformance.results import CaseResult, CaseVerdict, RunResult, Standing
from replispec.conformance.rocketmq.family import FAMILY
from tests.conformance.sample_results import a_result, a_run

ALTER = "controller/alter/RIP44-ALTER-1/1"
CASES = (ALTER,)
LIST = f"""\
implementations:
  apache:
    - case: {ALTER}
      releases: 5.2.0..5.4.0
      symptom: 'step 1: code SUCCESS'
      why: It never
        looks.
      bug: B1
  other: []
"""


def _load(folder: Path, text: str = LIST, kind: str = "controller") -> dict[str, tuple[Expected, ...]]:
    (folder / "expected_failures.yaml").write_text(text, encoding="utf-8")
    return load_expected(folder / "expected_failures.yaml", FAMILY, kind, CASES)


def _applied(folder: Path, result: CaseResult, release: tuple[int, ...] = (5, 4, 0)) -> RunResult:
    run = a_run(result)
    apply(run, _load(folder)["apache"], FAMILY.vocabulary, release)
    return run


def _fail(symptom: str) -> CaseResult:
    return a_result(ALTER, CaseVerdict.FAIL, {"symptom": symptom})


def test_an_entry_says_which_case_in_which_releases_how_and_why(tmp_path: Path) -> None:
    (entry,) = _load(tmp_path)["apache"]
    assert (entry.case, entry.symptom, entry.why, entry.bug) == (
        ALTER,
        "step 1: code SUCCESS",
        "It never looks.",
        "B1",
    )
    assert _load(tmp_path)["other"] == ()


def test_a_race_that_is_known_is_no_finding_whoever_wins_it(tmp_path: Path) -> None:
    race = LIST.replace("      bug: B1", "      sometimes: true").replace("code SUCCESS", "code * instead")
    for result, standing in (
        (_fail("step 1: code SYSTEM_BUSY instead"), Standing.EXPECTED),
        (_fail("step 2: code SYSTEM_BUSY instead"), Standing.OTHER_SYMPTOM),
        (a_result(ALTER, CaseVerdict.PASS, {}), Standing.AS_IT_SHOULD),
    ):
        run = a_run(result)
        apply(run, _load(tmp_path, race)["apache"], FAMILY.vocabulary, (5, 4, 0))
        assert run.results[0].standing is standing


def test_a_known_failure_with_its_symptom_is_no_finding(tmp_path: Path) -> None:
    run = _applied(tmp_path, _fail("step 1: code SUCCESS"))
    assert run.results[0].standing is Standing.EXPECTED
    assert run.results[0].expected == "step 1: code SUCCESS (It never looks.)"
    assert run.findings(strict=True) == []


@pytest.mark.parametrize("symptom", ["step 2: code SUCCESS", "step 1: code SUCCESS!", ""])
def test_another_symptom_is_a_finding(tmp_path: Path, symptom: str) -> None:
    run = _applied(tmp_path, _fail(symptom))
    assert run.results[0].standing is Standing.OTHER_SYMPTOM
    assert run.findings(strict=False) == run.results


def test_an_unexpected_pass_is_a_finding(tmp_path: Path) -> None:
    run = _applied(tmp_path, a_result(ALTER, CaseVerdict.PASS))
    assert run.results[0].standing is Standing.UNEXPECTED_PASS
    assert run.findings(strict=False) == run.results


@pytest.mark.parametrize(
    ("release", "standing"),
    [
        ((5, 1, 4), Standing.UNEXPECTED),
        ((5, 2, 0), Standing.EXPECTED),
        ((5, 4, 0), Standing.EXPECTED),
        ((5, 5, 0), Standing.UNEXPECTED),
    ],
)
def test_an_entry_counts_in_its_releases_only(
    tmp_path: Path, release: tuple[int, ...], standing: Standing
) -> None:
    assert _applied(tmp_path, _fail("step 1: code SUCCESS"), release).results[0].standing is standing


def test_a_case_may_fail_in_more_than_one_known_way(tmp_path: Path) -> None:
    first = LIST.split("implementations:\n  apache:\n")[1].split("  other", maxsplit=1)[0]
    text = LIST.replace("  other", first.replace("step 1", "step 2") + "  other")
    for symptom in ("step 1: code SUCCESS", "step 2: code SUCCESS"):
        run = a_run(_fail(symptom))
        apply(run, _load(tmp_path, text)["apache"], FAMILY.vocabulary, (5, 4, 0))
        assert run.results[0].standing is Standing.EXPECTED


def test_an_entry_is_stale_when_its_case_is_not_for_the_release_it_names(tmp_path: Path) -> None:
    left_out = a_result(ALTER, CaseVerdict.SKIPPED, {"reason": "release 5.4.0: the case is for 5.5.0 to now"})
    assert _applied(tmp_path, left_out).stale == ["expected_failures.yaml:3"]


@pytest.mark.parametrize("reason", ["profile core was not asked for", "needs the address of: broker"])
def test_an_entry_is_not_stale_because_its_case_was_not_asked_for(tmp_path: Path, reason: str) -> None:
    assert _applied(tmp_path, a_result(ALTER, CaseVerdict.SKIPPED, {"reason": reason})).stale == []


def test_a_case_that_could_not_be_judged_stays_a_finding_though_it_is_listed(tmp_path: Path) -> None:
    unclear = a_result(ALTER, CaseVerdict.SKIPPED, {"symptom": "given: x", "standing": Standing.NOT_JUDGED})
    run = _applied(tmp_path, unclear)
    assert run.findings(strict=False) == run.results
    assert run.stale == []


REFUSED: Sequence[tuple[tuple[str, str], int, str]] = (
    ((ALTER, ALTER[:-1] + "2"), 3, "no case 'controller/alter/RIP44-ALTER-1/2' exists: the entry is stale"),
    ((ALTER, "contoller/alter/RIP44-ALTER-1/1"), 3, "no case 'contoller/"),
    (("      why: It never\n        looks.\n", ""), 3, "an expected failure needs `why`"),
    (("      symptom: 'step 1: code SUCCESS'\n", ""), 3, "an expected failure needs `symptom`"),
    (("5.2.0..5.4.0", "5.2.0"), 4, "releases are FIRST..LAST"),
    (("bug: B1", "bugs: B1"), 8, "unknown key 'bugs'"),
    (("  other: []", "  other: none"), 9, "other: a list is expected"),
    (("implementations:", "implementation:"), 2, "unknown key 'implementation'"),
)


@pytest.mark.parametrize(("change", "line", "why"), REFUSED)
def test_a_list_that_does_not_fit_its_form_is_refused_with_its_line(
    tmp_path: Path, change: tuple[str, str], line: int, why: str
) -> None:
    with pytest.raises(CaseError) as fault:
        _load(tmp_path, LIST.replace(*change))
    assert str(fault.value).startswith(f"expected_failures.yaml:{line}: ")
    assert why in str(fault.value)


def test_a_list_holds_entries_of_both_kinds_and_each_run_takes_its_own(tmp_path: Path) -> None:
    assert _load(tmp_path, kind="ha-master")["apache"] == ()
