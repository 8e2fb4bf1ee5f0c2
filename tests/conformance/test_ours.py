"""Our brokers, learner and name server pass every case for them, in the process of the test."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import trio

from replispec.conformance.cases import load
from replispec.conformance.model import Case
from replispec.conformance.results import RunResult
from replispec.conformance.run import run_on_trio
from tests.conformance.subjects.against import applicable, judged, plan
from tests.conformance.subjects.catching import not_applicable
from tests.conformance.subjects.ours import SET, OurAdapter, serve_master, serve_name_server
from tests.conformance.subjects.played import played_out

NAME_SERVER, MASTER = "name-server", "ha-master"
# Longer than the longest pause of a master that was refused.
PAUSE_S = 10.0
# As Java since 5.2.0, a master of ours confirms what it has, unless allAckInSyncStateSet is set.
KNOWN = ("ha-master/corners/RIP44-CONFIRM-1/1",)


NOT_HERE = (
    # Nobody stands still here: all processes are one.
    *("controller-group/follower/RIP44-GROUP-2/9", "controller-group/follower/RIP44-GROUP-2/10"),
    # Two minutes without a majority are thousands of elections, each of which the clock waits for.
    *("controller-group/metadata/RIP44-METADATA-1/4", "controller-group/restart/RIP44-STATE-3/2"),
)


@pytest.mark.parametrize("kind", ["static-topic", "logical-queues"])
def test_ours_passes_every_case_of_mapped_topics(kind: str) -> None:
    cases = load(kind)
    found = played_out(((kind, case) for case in cases), lambda _, nursery, taken: OurAdapter(nursery, taken))
    assert len(found) == len(cases)
    assert {name: each.symptom or each.reason for (_, name), each in found.items() if each.reason} == {}


@pytest.mark.parametrize("kind", ["registering-broker", "ha-replica", "learner", "controller-group"])
def test_ours_passes_every_case_of_a_kind_that_is_started(kind: str) -> None:
    cases = [case for case in load(kind) if case.id not in NOT_HERE]
    found = played_out(((kind, case) for case in cases), lambda _, nursery, taken: OurAdapter(nursery, taken))
    assert len(found) == len(cases)
    assert {name: each.symptom or each.reason for (_, name), each in found.items() if each.reason} == {}


def test_our_name_server_passes_every_case() -> None:
    async def judge(_: str, cases: Sequence[Case]) -> RunResult:
        async with trio.open_nursery() as nursery:
            target = await nursery.start(serve_name_server)
            result = await run_on_trio(plan(NAME_SERVER, {"target": target}), cases, (), None)
            nursery.cancel_scope.cancel()
        return result

    cases = load(NAME_SERVER)
    result = judged({"ours": ("ours", cases)}, judge)["ours"]
    assert isinstance(result, RunResult)
    assert len(result.results) == len(cases)
    bad = [each for each in result.results if each.verdict.value != "pass"]
    assert [f"{each.id}: {each.verdict} {each.symptom or each.reason}" for each in bad] == []


def test_our_master_passes_every_case_with_its_broker_and_its_controller() -> None:
    async def judge(_: str, cases: Sequence[Case]) -> RunResult:
        async with trio.open_nursery() as nursery:
            asked = plan(MASTER, await nursery.start(serve_master), {"set": SET})
            result = await run_on_trio(asked, [case for case in cases if not case.alone], (), None)
            for case in (case for case in cases if case.alone):
                # Who was asked in for nothing, as a stranger is, makes a master wait before it asks again.
                await trio.sleep(PAUSE_S)
                result.results += (await run_on_trio(asked, [case], (), None)).results
            nursery.cancel_scope.cancel()
        return result

    cases = tuple(case for case in load(MASTER) if applicable(case) and case.id not in KNOWN)
    result = judged({"ours": ("ours", cases)}, judge)["ours"]
    assert isinstance(result, RunResult)
    assert len(result.results) == len(cases)
    bad = [each for each in result.results if each.verdict.value != "pass" and not not_applicable(each)]
    assert [f"{each.id}: {each.verdict} {each.symptom or each.reason}" for each in bad] == []
