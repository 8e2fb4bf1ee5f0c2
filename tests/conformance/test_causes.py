"""Findings are put together by what is behind them, and what stands on nothing comes first."""

from replispec.conformance.cases import load
from replispec.conformance.causes import causes
from replispec.conformance.results import CaseVerdict, RunResult, Standing
from replispec.runtime.rocketmq.framing import Command
from tests.conformance.sample_results import a_result
from tests.conformance.subjects.against import applicable, judge_controller, judged
from tests.conformance.subjects.controller_admin import GoodController
from tests.conformance.subjects.records import Answer

NOT_PREPARED = {
    "standing": Standing.NOT_JUDGED,
    "reason": "could not be prepared: given (given.yaml:7): code A instead of SUCCESS",
    "symptom": "given: code A instead of SUCCESS",
}
SOME = 60


class _CountsOneTooMany(GoodController):
    """Every answer has a masterEpoch that is one too large, as behind a proxy that changes it."""

    def answer_command(self, request: Command, answer: Answer) -> Command:
        command = super().answer_command(request, answer)
        fields = command.header.ext_fields
        if fields and fields.get("masterEpoch"):
            fields["masterEpoch"] = str(int(fields["masterEpoch"] or 0) + 1)
        return command


def test_a_field_that_is_wrong_everywhere_is_one_cause() -> None:
    cases = [case for case in load("controller") if applicable(case) and "masterEpoch" in str(case.prepared)]
    first = [case for case in load("controller") if case.id == "controller/elect/RIP44-ELECT-5/1"]
    outcome = judged({"proxy": (_CountsOneTooMany, [*cases, *first])}, judge_controller)["proxy"]
    assert isinstance(outcome, RunResult)
    findings = outcome.findings(strict=False)
    assert len(findings) > SOME
    (cause,) = causes(findings)
    assert cause.says.startswith("masterEpoch ")
    assert cause.findings[0].id == first[0].id
    assert len(cause.findings) == len(findings)


def test_cases_that_one_step_keeps_from_being_prepared_are_one_cause_after_what_failed() -> None:
    lacking = [
        a_result(f"controller/alter/RIP44-ALTER-1/{at}", CaseVerdict.SKIPPED, NOT_PREPARED) for at in (1, 2)
    ]
    failed = a_result("controller/elect/RIP44-ELECT-1/1", CaseVerdict.FAIL, {"symptom": "step 1: no answer"})
    found = causes([*lacking, failed])
    assert [[each.id for each in cause.findings] for cause in found] == [
        [failed.id],
        [each.id for each in lacking],
    ]
    assert found[1].says == "cases cannot be prepared: given.yaml:7: code A instead of SUCCESS"


def test_what_went_on_with_another_field_is_a_cause_of_its_own() -> None:
    root: dict[str, object] = {"symptom": "step 1: header.masterEpoch 2 instead of 1"}
    on_it: dict[str, object] = {"symptom": "step 2: code A instead of B", "built_on": ["masterEpoch"]}
    beside: dict[str, object] = {"symptom": "step 2: code A instead of B", "built_on": ["nextBrokerId"]}
    found = causes(
        a_result(f"controller/elect/RIP44-ELECT-1/{at}", CaseVerdict.FAIL, changes)
        for at, changes in enumerate((beside, on_it, root), start=1)
    )
    assert [[each.id[-1] for each in cause.findings] for cause in found] == [["3", "2"], ["1"]]
