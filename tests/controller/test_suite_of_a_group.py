"""Three controllers of ours as one subject: every case for a controller, while another one of them leads
again and again in the middle of the cases. On a clock that jumps, in the process of the test."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace

import trio

from replispec.conformance.model import Case
from replispec.conformance.results import CaseResult
from replispec.conformance.run import run_on_trio
from replispec.controller.rocketmq.process import controller
from replispec.runtime.adapting.instances_shell import free_port
from replispec.runtime.net.clock import Clock
from replispec.runtime.net.host_shell import Process, serve
from replispec.runtime.net.log_shell import Log
from replispec.runtime.sim import Disk, Rng, SimulatedStorage
from replispec.runtime.world import Level, Member
from replispec.wire.rocketmq.options import ControllerOptions
from tests.conformance.subjects.against import plan, run_jumping
from tests.controller.group_front import HOST, GroupFront
from tests.controller.test_suite import CASES, ONE_GENERATION

IDS = ("n1", "n2", "n3")
ANSWERS_BETWEEN = 11
AT_ONCE = 4
"""So few cases, so that all of them last for more than a few leaders."""
OF_ONE_LEADER = (
    "controller/generations/",
    "controller/first-generation/",
    "controller/metadata/RIP44-METADATA-1/4",
    # Who is heard before an election is asked by one leader, and asked anew by the next.
    "controller/hearing/RIP44-ELECT-17",
)
"""Played while one leads: that a broker lives is said there by a registration alone, which the others do not
hear before its heartbeats; and a case that asks twice who leads wants one answer."""
SCAN_MS = 1_000
OPTIONS = ControllerOptions(
    scan_not_active_broker_interval_ms=SCAN_MS,
    elected_listening_period_ms=SCAN_MS,
)
ELECTS_MS = (
    OPTIONS.elected_listening_period_ms
    + OPTIONS.scan_not_active_broker_interval_ms
    + OPTIONS.election_hearing_timeout_ms
    + OPTIONS.election_letting_go_timeout_ms
)
"""What a new leader takes at most until it has elected: one that never leads for so long elects nobody."""


def member(own: str, ports: dict[str, int]) -> Member:
    """One of the three. All of them hear every heartbeat, so that a new leader needs not listen for long."""
    options = replace(
        OPTIONS,
        controller_d_leger_peers=tuple((each, f"{HOST}:{port}") for each, port in ports.items()),
        controller_d_leger_self_id=own,
    )
    seed = 1 + IDS.index(own)
    return controller(options, SimulatedStorage(Disk(Rng(seed))), seed, ends_process=False)


async def judged(cases: Sequence[Case]) -> tuple[list[CaseResult], int]:
    """What the suite says about our group, and how often another one led."""
    chosen = {each: free_port("127.0.0.1") for each in IDS}
    ports = {each: port for each, (port, _) in chosen.items()}
    clock, stop = Clock(), trio.Event()
    log = Log(io.StringIO(), Level.ERROR, clock.now_us)
    front = GroupFront(ports, ANSWERS_BETWEEN, ELECTS_MS / 1_000)

    async def start(each: Member, *, task_status: trio.TaskStatus[object]) -> None:
        await serve([each], Process(), log, clock=clock, stop=stop, task_status=task_status)

    async with trio.open_nursery() as nursery:
        for own in IDS:
            await nursery.start(start, member(own, ports))
        target = await nursery.start(front.serve)
        asked = replace(plan("controller", {"target": target}), jobs=AT_ONCE)
        still = [each for each in cases if each.id.startswith(OF_ONE_LEADER)]
        result = await run_on_trio(asked, still, (), None)
        front.is_moving = True
        moved = await run_on_trio(asked, [each for each in cases if each not in still], (), None)
        stop.set()
        nursery.cancel_scope.cancel()
    for _, claimed in chosen.values():
        claimed.end()
    return [*result.results, *moved.results], front.moves


def test_a_group_of_three_passes_the_whole_suite_whoever_leads_and_while_that_changes() -> None:
    results, moves = run_jumping(judged, CASES)
    wrong = [each for each in results if each.verdict.value != "pass"]
    assert sorted(each.id for each in wrong) == ONE_GENERATION, [
        (each.id, each.verdict.value, each.symptom or each.reason) for each in wrong
    ]
    assert len(results) == len(CASES) >= 300
    assert moves >= 8
