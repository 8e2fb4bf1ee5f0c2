"""Kinds where the suite listens: what it plays around a subject that an adapter starts."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest
import trio

from replispec.conformance.adapter_requests import AdapterFault, AdapterRefused
from replispec.conformance.cases import load
from replispec.conformance.encoding import Unsendable
from replispec.conformance.families import family_of
from replispec.conformance.judged import JudgedSubject
from replispec.conformance.model import Answered, Case, CaseStep, Serve
from replispec.conformance.planning import PlanError, make_plan
from replispec.conformance.play import play
from replispec.conformance.received import Breach, Received, ReceivedRequest
from replispec.conformance.results import CaseResult, CaseVerdict
from replispec.conformance.staging import Service, Unread
from tests.conformance.subjects.registering import InsideAdapter, Wrong

KIND = "registering-broker"
SHORT_S = 0.5


@cache
def cases() -> dict[str, Case]:
    """The cases of the kind, with little time for what a wrong subject never does."""
    short = {
        case.id: replace(case, prepared=_short(case.prepared), steps=_short(case.steps))
        for case in load(KIND)
    }
    return {name.removeprefix(f"{KIND}/"): case for name, case in short.items()}


def _short(steps: tuple[CaseStep, ...]) -> tuple[CaseStep, ...]:
    return tuple(replace(step, within_s=SHORT_S) for step in steps)


def played(
    name: str, wrong: Wrong | None = None, *, lacks: str = "", case: Case | None = None
) -> tuple[CaseResult, InsideAdapter]:
    """One case with a broker that lives inside of the test."""

    async def run() -> tuple[CaseResult, InsideAdapter]:
        async with trio.open_nursery() as nursery:
            adapter = InsideAdapter(nursery, wrong or Wrong())
            abilities = adapter.described.abilities - {lacks}
            adapter.described = replace(adapter.described, abilities=abilities)
            family = family_of(KIND)
            kind, release = family.kind(KIND), (5, 5, 0)
            subject = JudgedSubject({}, family, kind, release, adapter=adapter)  # type: ignore[arg-type]
            result = await play(case or cases()[name], subject, "seed", 1)
            nursery.cancel_scope.cancel()
        return result, adapter

    return trio.run(run)


@pytest.mark.parametrize(
    "name",
    [
        "register/BID-NEXT-1/1",
        "register/BID-APPLY-1/1",
        "crash/BID-STATE-2/1",
        "crash/BID-STATE-3/1",
        "crash/BID-STATE-4/2",
        "crash/BID-STATE-4/3",
        "crash/BID-STATE-1/1",
        "crash/BID-KEY-1/1",
    ],
)
def test_a_broker_that_does_it_right_passes_and_nothing_of_it_stays(name: str) -> None:
    result, adapter = played(name)
    assert (result.verdict, result.reason) == (CaseVerdict.PASS, "")
    assert adapter.living == {}
    assert adapter.stores == {}


@pytest.mark.parametrize(
    ("name", "wrong", "symptom"),
    [
        (
            "register/BID-APPLY-1/1",
            Wrong(applies_for_more=1),
            "step 2: header.appliedBrokerId 8 instead of 7",
        ),
        (
            "crash/BID-STATE-4/2",
            Wrong(forgets=True),
            "step 3: CONTROLLER_GET_NEXT_BROKER_ID instead of CONTROLLER_REGISTER_BROKER",
        ),
        (
            "crash/BID-STATE-2/1",
            Wrong(new_code=True),
            "step 3: header.registerCheckCode code 2 instead of $check",
        ),
        (
            "crash/BID-KEY-1/1",
            Wrong(keeps_address=True),
            "step 4: header.brokerAddress 127.0.0.1:40001 instead of $member",
        ),
        ("register/BID-NEXT-1/1", Wrong(dies=True), "step 2: no answer"),
    ],
)
def test_a_broker_that_does_it_wrong_fails_with_the_difference(name: str, wrong: Wrong, symptom: str) -> None:
    result, _ = played(name, wrong)
    assert (result.verdict, result.symptom) == (CaseVerdict.FAIL, symptom)


def test_bytes_that_are_no_frame_fail_whatever_is_expected() -> None:
    result, _ = played("register/BID-NEXT-1/1", Wrong(garbage=True))
    assert result.verdict is CaseVerdict.FAIL
    assert "no frame" in result.symptom


def test_a_broker_that_dies_is_told_with_how_it_ended() -> None:
    result, _ = played("register/BID-NEXT-1/1", Wrong(dies=True))
    assert "it ended by itself with status 9" in result.reason


def test_what_an_adapter_cannot_do_is_unsupported() -> None:
    assert played("register/BID-NEXT-1/1", lacks="start_at_once")[0].verdict is CaseVerdict.UNSUPPORTED
    assert played("crash/BID-STATE-3/1", lacks="crash")[0].verdict is CaseVerdict.UNSUPPORTED


def test_a_kind_that_is_played_has_no_target() -> None:
    with pytest.raises(PlanError, match=r"has its subject started: --adapter, not --target"):
        make_plan(KIND, {"target": "127.0.0.1:1"})


def test_a_subject_that_leaves_answers_unread_has_broken_the_protocol_and_not_the_run() -> None:
    class Asking:
        async def next(self) -> Received:
            return ReceivedRequest(1, {}, None)

    async def unread(*_: object) -> None:
        raise Unread("the subject does not read")

    async def run() -> Received:
        service = Service({"ASKED": Answered("SUCCESS")}, lambda _: "ASKED", unread, tells_ends=False)
        await service.pump(Asking())  # type: ignore[arg-type]
        return await service.next()

    assert trio.run(run) == Breach("the subject does not read")


def test_an_answer_of_a_rule_that_cannot_be_written_is_the_cases_fault_and_ends_no_run() -> None:
    class Asking:
        async def next(self) -> Received:
            return ReceivedRequest(1, {}, None)

    async def unsendable(*_: object) -> None:
        raise Unsendable("NO_SUCH_CODE is no code of this release")

    async def run() -> str:
        service = Service(
            {"ASKED": Answered("NO_SUCH_CODE")}, lambda _: "ASKED", unsendable, tells_ends=False
        )
        await service.pump(Asking())  # type: ignore[arg-type]
        return service.fault

    assert trio.run(run) == "the answer to ASKED: NO_SUCH_CODE is no code of this release"


def test_a_case_whose_rule_cannot_be_carried_out_is_an_error_of_the_suite() -> None:
    name = "register/BID-APPLY-1/1"
    rules = {"CONTROLLER_GET_NEXT_BROKER_ID": Answered("NO_SUCH_CODE")}
    prepared = tuple(
        replace(step, action=replace(step.action, rules=rules)) if isinstance(step.action, Serve) else step
        for step in cases()[name].prepared
    )
    result, _ = played(name, case=replace(cases()[name], prepared=prepared))
    assert result.verdict is CaseVerdict.ERROR
    assert "NO_SUCH_CODE" in result.reason


def test_a_seed_is_printable_text() -> None:
    with pytest.raises(PlanError, match="a seed is printable text"):
        make_plan("controller", {"target": "127.0.0.1:1"}, seed="\udcff")


def test_a_verdict_is_told_before_an_adapter_fails_at_ending_what_it_started() -> None:
    class Clings(InsideAdapter):
        async def crash(self, name: str) -> None:
            raise AdapterFault(f"it says that {name} is gone, and somebody listens there")

    told: list[CaseResult] = []

    async def run() -> None:
        async with trio.open_nursery() as nursery:
            family, release = family_of(KIND), (5, 5, 0)
            adapter = Clings(nursery, Wrong())
            subject = JudgedSubject({}, family, family.kind(KIND), release, adapter=adapter)  # type: ignore[arg-type]
            with pytest.raises(AdapterFault):
                await play(cases()["register/BID-NEXT-1/1"], subject, "seed", 1, told.append)
            nursery.cancel_scope.cancel()

    trio.run(run)
    assert [each.verdict for each in told] == [CaseVerdict.PASS]


class _Reluctant(InsideAdapter):
    """Ends nothing at once; perhaps not even in order. Keeps what it was asked."""

    refuses = ""

    def __init__(self, nursery: trio.Nursery, wrong: Wrong) -> None:
        super().__init__(nursery, wrong)
        self.asked: list[str] = []

    async def crash(self, name: str) -> None:  # noqa: ARG002  whichever
        """It cannot: nobody shall ask."""
        self.asked.append("crash")
        raise AdapterRefused("UNSUPPORTED", "")

    async def stop(self, name: str) -> None:
        """In order, or not at all."""
        self.asked.append("stop")
        if self.refuses:
            raise AdapterRefused(self.refuses, "")
        self.living.pop(name).cancel()

    async def reset(self, name: str) -> None:
        """What lives still writes: to ask for that is against the protocol."""
        self.asked.append("reset while it lives" if self.lives(name) else "reset")


@pytest.mark.parametrize(("refuses", "asked"), [("", ["stop", "reset"]), ("FAILED", ["stop"])])
def test_what_a_case_started_is_ended_as_the_adapter_can(
    refuses: str, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_Reluctant, "refuses", refuses)
    monkeypatch.setattr(f"{__name__}.InsideAdapter", _Reluctant)
    result, adapter = played("register/BID-NEXT-1/1", lacks="crash")
    assert result.verdict is CaseVerdict.PASS
    assert isinstance(adapter, _Reluctant)
    assert adapter.asked == asked
