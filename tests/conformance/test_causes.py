"""Findings are put together by what is behind them, and what stands on nothing comes first."""

from collections.abc import Mapping

import pytest

from replispec.conformance.cases import load
from replispec.conformance.causes import causes
from replispec.conformance.results import CaseVerdict, RunResult, Standing
from replispec.runtime.rocketmq.framing import Command
from replispec.wire.rocketmq.codes import RequestCode, ResponseCode
from tests.conformance.sample_results import a_result
from tests.conformance.subjects.against import Outcome, applicable, judge_controller, judged
from tests.conformance.subjects.controller_admin import GoodController
from tests.conformance.subjects.records import Answer

NOT_PREPARED = {
    "standing": Standing.NOT_JUDGED,
    "reason": "could not be prepared: given (given.yaml:7): code A instead of SUCCESS",
    "symptom": "given: code A instead of SUCCESS",
}
SOME = 60
TOPICS = ("alter", "elect", "identity", "metadata", "register", "replica-info", "sync-state-data")
CASES = [case for case in load("controller") if case.topic in TOPICS and applicable(case)]


class _Proxied(GoodController):
    """Answers to one command pass through a proxy that changes one field of them."""

    code = 0
    field = ""

    def answer_command(self, request: Command, answer: Answer) -> Command:
        command = super().answer_command(request, answer)
        if request.header.code != self.code or command.header.code != ResponseCode.SUCCESS:
            return command
        fields = command.header.ext_fields
        if fields and fields.get(self.field) is not None:
            fields[self.field] = self.changed(fields[self.field] or "")
        return Command(command.header, self.changed_body(command.body))

    def changed(self, value: str) -> str:
        return str(int(value) + 1)

    def changed_body(self, body: bytes) -> bytes:
        return body


def _numbered(code: RequestCode, field: str) -> type[_Proxied]:
    return type("Numbered", (_Proxied,), {"code": code, "field": field})


def _set_to(code: RequestCode, field: str, value: str) -> type[_Proxied]:
    return type("Set", (_Proxied,), {"code": code, "field": field, "changed": lambda *_: value})


def _lacking(code: RequestCode, field: str) -> type[_Proxied]:
    class Lacking(_Proxied):
        def answer_command(self, request: Command, answer: Answer) -> Command:
            command = super().answer_command(request, answer)
            if request.header.code == code and command.header.ext_fields:
                command.header.ext_fields.pop(field, None)
            return command

    return Lacking


def _in_the_body(code: RequestCode, before: bytes, after: bytes) -> type[_Proxied]:
    changes = {"code": code, "changed_body": lambda _, body: body.replace(before, after)}
    return type("Body", (_Proxied,), changes)


ALTER, ELECT = RequestCode.CONTROLLER_ALTER_SYNC_STATE_SET, RequestCode.CONTROLLER_ELECT_MASTER
INFO, REGISTER = RequestCode.CONTROLLER_GET_REPLICA_INFO, RequestCode.CONTROLLER_REGISTER_BROKER
METADATA, DATA = RequestCode.CONTROLLER_GET_METADATA_INFO, RequestCode.CONTROLLER_GET_SYNC_STATE_DATA
NEXT, APPLY = RequestCode.CONTROLLER_GET_NEXT_BROKER_ID, RequestCode.CONTROLLER_APPLY_BROKER_ID
NOWHERE = "127.0.0.1:1"
SET_EPOCH, MASTER_EPOCH = b'"syncStateSetEpoch":', b'"masterEpoch":'
PROXIES = {
    "elect masterEpoch": _numbered(ELECT, "masterEpoch"),
    "elect syncStateSetEpoch": _numbered(ELECT, "syncStateSetEpoch"),
    "elect masterAddress": _set_to(ELECT, "masterAddress", NOWHERE),
    "elect masterBrokerId": _numbered(ELECT, "masterBrokerId"),
    "alter newSyncStateSetEpoch": _numbered(ALTER, "newSyncStateSetEpoch"),
    "alter body syncStateSetEpoch": _in_the_body(ALTER, SET_EPOCH, SET_EPOCH + b"1"),
    "info masterEpoch": _numbered(INFO, "masterEpoch"),
    "info masterAddress": _set_to(INFO, "masterAddress", NOWHERE),
    "info without masterBrokerId": _lacking(INFO, "masterBrokerId"),
    "info body syncStateSetEpoch": _in_the_body(INFO, SET_EPOCH, SET_EPOCH + b"1"),
    "register masterEpoch": _numbered(REGISTER, "masterEpoch"),
    "register masterAddress": _set_to(REGISTER, "masterAddress", NOWHERE),
    "register syncStateSetEpoch": _numbered(REGISTER, "syncStateSetEpoch"),
    "next nextBrokerId": _numbered(NEXT, "nextBrokerId"),
    "next clusterName": _set_to(NEXT, "clusterName", "another"),
    "apply brokerName": _set_to(APPLY, "brokerName", "another"),
    "metadata isLeader": _set_to(METADATA, "isLeader", "false"),
    "metadata controllerLeaderAddress": _set_to(METADATA, "controllerLeaderAddress", NOWHERE),
    "data alive": _in_the_body(DATA, b'"alive":true', b'"alive":false'),
    "data masterEpoch": _in_the_body(DATA, MASTER_EPOCH, MASTER_EPOCH + b"1"),
}


@pytest.fixture(scope="module")
def behind_proxies() -> Mapping[str, Outcome]:
    """What the suite says of a good controller behind each of them."""
    return judged({name: (proxy, CASES) for name, proxy in PROXIES.items()}, judge_controller)


@pytest.mark.parametrize("name", PROXIES)
def test_a_proxy_that_changes_one_field_is_one_cause(
    name: str, behind_proxies: Mapping[str, Outcome]
) -> None:
    outcome = behind_proxies[name]
    assert isinstance(outcome, RunResult), outcome
    findings = outcome.findings(strict=False)
    assert findings
    assert [cause.says for cause in causes(findings)[1:]] == []


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
