"""The page of who does what: clause by implementation, every failure, and the clauses without a case."""

from pathlib import Path

import pytest

from replispec.conformance.compliance import compliance_page
from replispec.conformance.coverage import Covered, counted, coverage
from replispec.conformance.defects import Defect
from replispec.conformance.families import clauses, kinds
from replispec.conformance.results import CaseVerdict, RunResult, Standing
from replispec.conformance.trace import TraceEntry
from tests.conformance.case_files import METADATA, read
from tests.conformance.sample_results import a_result, a_run

ALTER = "controller/alter/RIP44-ALTER-1/{}"
ELECT = "controller/elect/RIP44-ELECT-1/{}"


def _page(*runs: RunResult, covered: list[Covered] | None = None) -> list[str]:
    return compliance_page(runs, covered or []).splitlines()


def _row(page: list[str], start: str) -> list[str]:
    (line,) = (line for line in page if line.startswith(f"| {start}"))
    return [cell.strip() for cell in line.strip("|").split(" | ")]


def _cells(*verdicts: CaseVerdict) -> str:
    results = (a_result(ALTER.format(at), verdict) for at, verdict in enumerate(verdicts, start=1))
    passing = a_result(ELECT.format(1), CaseVerdict.PASS)
    page = _page(
        a_run(*results), a_run(a_result(ALTER.format(1), CaseVerdict.PASS), passing, release="5.5.0")
    )
    return _row(page, "[RIP44-ALTER-1]")[1]


PASS, FAIL, SKIPPED, UNSUPPORTED = (
    CaseVerdict.PASS,
    CaseVerdict.FAIL,
    CaseVerdict.SKIPPED,
    CaseVerdict.UNSUPPORTED,
)


@pytest.mark.parametrize(
    ("verdicts", "cell"),
    [
        ((PASS, PASS), "2/2"),
        ((PASS, SKIPPED), "1/1"),
        ((PASS, FAIL), "**1/2**"),
        ((FAIL, CaseVerdict.ERROR), "**0/2**"),
        ((UNSUPPORTED, UNSUPPORTED), "unsupported"),
        ((UNSUPPORTED, PASS), "**1/2**"),
        ((SKIPPED,), "-"),
    ],
)
def test_a_cell_counts_the_cases_that_passed_of_those_that_were_judged(
    verdicts: tuple[CaseVerdict, ...], cell: str
) -> None:
    assert _cells(*verdicts) == cell


def test_runs_stand_in_the_order_of_their_releases_and_not_of_their_letters() -> None:
    result = a_result(ALTER.format(1), PASS)
    page = _page(*(a_run(result, release=release) for release in ("5.10.0", "5.4.0", "5.1.4")))
    assert _row(page, "clause | apache")[1:] == ["apache 5.1.4", "apache 5.4.0", "apache 5.10.0"]


def test_the_page_says_when_and_by_what_it_was_played() -> None:
    page = _page(a_run(a_result(ALTER.format(1), PASS)))
    assert "Played 2026-01-01 by replispec 0.1; each run names its seed." in page
    assert _row(page, "controller | apache 5.4.0")[-1] == "a seed"


def test_every_failure_is_told_with_its_symptom_and_what_is_known_of_it() -> None:
    came = [TraceEntry(0.1, "main", "<", "", "0041", 2), TraceEntry(0.2, "main", "<", "SUCCESS")]
    known: dict[str, object] = {"standing": Standing.EXPECTED, "bugs": ["B1", "B2"], "trace": came}
    known["symptom"] = "step 1: a - b"
    known["expected"] = "step 2: d (Another one.) | step 1: a - b (It is lost (again).)"
    run = a_run(a_result(ALTER.format(1), FAIL, known), a_result(ALTER.format(2), FAIL))
    defects = {"B1": Defect("B1", "It is wrong", ("a/b#7",)), "B2": Defect("B2", "It is wrong too", ())}
    page = compliance_page([run], [], defects).splitlines()
    (line,) = (line for line in page if line.startswith("| `controller/alter/RIP44-ALTER-1/1`"))
    known_as = "B1 (a/b#7), B2 | It is lost (again)."
    assert line.endswith(f"| Something holds. | step 1: a - b | {known_as} | `\\x00A` |")
    assert "RIP44-ALTER-1](../generated/docs/rocketmq/clauses.md#rip44-alter-1): RIP-44, " in line
    assert _row(page, "`controller/alter/RIP44-ALTER-1/2`")[-3:] == ["failure", "", ""]
    assert _row(page, "controller | apache 5.4.0")[2:5] == ["0", "2", "1"]


def test_text_of_a_subject_does_not_break_a_row() -> None:
    page = _page(a_run(a_result(ALTER.format(1), FAIL, {"symptom": "step 1: a | b\nc"})))
    assert _row(page, "`controller/alter/RIP44-ALTER-1/1`")[4] == "step 1: a \\| b c"


def test_who_could_not_be_played_is_a_line_with_the_reason() -> None:
    run = a_run(a_result(ALTER.format(1), PASS))
    page = compliance_page([run], [], not_played=[("ha-master", "apache 5.0.0", "it ended | at once")])
    assert "| ha-master | apache 5.0.0 | it ended \\| at once |" in page.splitlines()
    assert "could not be played" not in "\n".join(_page(run))


def test_what_could_not_be_prepared_is_told_by_cause_and_not_case_by_case() -> None:
    left: dict[str, object] = {
        "standing": Standing.NOT_JUDGED,
        "symptom": "given: body.set [1, 23] instead of [1]",
    }
    left["reason"] = "could not be prepared: given (ha/given.yaml:101): body.set [1, 23] instead of [1]"
    failed: dict[str, object] = {"standing": Standing.OTHER_SYMPTOM, "bugs": ["B1"], "symptom": "it stays"}
    lost = [a_result(ELECT.format(at), SKIPPED, left) for at in (1, 2)]
    page = _page(a_run(a_result(ALTER.format(1), FAIL, failed), a_result(ALTER.format(2), SKIPPED), *lost))
    at = page.index("## Cases that were not judged, by cause")
    (row,) = (line for line in page[at:] if line.startswith("| controller"))
    assert "| 2 | `controller/elect/RIP44-ELECT-1/1`, `controller/elect/RIP44-ELECT-1/2` |" in row
    assert _row(page, "`controller/alter/RIP44-ALTER-1/1`")[-3] == "another symptom, like B1"
    assert "## Cases that were not judged, by cause" not in _page(a_run(a_result(ALTER.format(1), PASS)))


def test_a_clause_has_cases_or_says_what_stands_for_them(tmp_path: Path) -> None:
    case = read(tmp_path, METADATA)
    covered = coverage([case])
    judged = {family.name for family in kinds().values()}
    every = [name for name, known in clauses().items() if known.family in judged]
    assert [row.clause.id for row in covered] == every
    rows = {row.clause.id: row for row in covered}
    assert rows["RIP44-ALTER-1"].cases == (case.id,)
    assert rows["RIP44-ALTER-1"].otherwise == ""
    assert [row.clause.id for row in covered if not row.cases and not row.otherwise] == []
    counts = counted(covered)
    assert counts["cases"] == 1
    assert sum(counts.values()) == len(every)
    page = _page(a_run(), covered=covered)
    assert f"1 clauses have cases, {counts['elsewhere']} are checked" in "\n".join(page)
    assert len([line for line in page if line.startswith("| [")]) == len(every) - 1
