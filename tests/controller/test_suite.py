"""The conformance suite is the judge: our controller passes every case for it, on a clock that jumps.

It is served by the shell that serves it in production, over loopback, in the process of the test.
"""

from __future__ import annotations

import io
from collections.abc import Sequence

import trio

from replispec.conformance.cases import load
from replispec.conformance.model import Case
from replispec.conformance.results import RunResult
from replispec.conformance.run import run_on_trio
from replispec.controller.rocketmq.node import ControllerNode
from replispec.runtime.net.clock import Clock
from replispec.runtime.net.host_shell import Process, serve
from replispec.runtime.net.log_shell import Log
from replispec.runtime.storage import Stores
from replispec.runtime.world import Level, Member
from replispec.wire.rocketmq.options import ControllerOptions
from tests.conformance.subjects.against import applicable, plan, run_jumping
from tests.controller.conversation import StoredJournal

ONE_GENERATION = ["controller/register/BID-COMPAT-2/1", "controller/register/BID-COMPAT-2/2"]
"""They do not apply: what a controller refuses that serves the later generation alone."""
CASES = [case for case in load("controller") if applicable(case)]


async def judged(cases: Sequence[Case]) -> RunResult:
    """What the suite says about our controller."""
    options = ControllerOptions(listen_port=0, scan_not_active_broker_interval_ms=1_000)
    journal = StoredJournal()
    members = [Member("controller", ControllerNode(options, journal), Stores(journal=journal))]
    clock, stop = Clock(), trio.Event()
    log = Log(io.StringIO(), Level.ERROR, clock.now_us)

    async def start(*, task_status: trio.TaskStatus[object]) -> None:
        await serve(members, Process(), log, clock=clock, stop=stop, task_status=task_status)

    async with trio.open_nursery() as nursery:
        addresses = await nursery.start(start)
        target = addresses["controller"]["controller"]
        result = await run_on_trio(plan("controller", {"target": target}), cases, (), None)
        stop.set()
    return result


def test_our_controller_passes_the_whole_suite_without_an_expected_failure() -> None:
    result = run_jumping(judged, CASES)
    assert len(result.results) >= 300
    wrong = [each for each in result.results if each.verdict.value != "pass"]
    assert sorted(each.id for each in wrong) == ONE_GENERATION, [(each.id, each.symptom) for each in wrong]
