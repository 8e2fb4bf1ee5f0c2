"""Runs the whole suite against subjects, many at once, in one process and on a clock that jumps.

Nobody waits long: when every task of the process waits, the clock jumps to the next deadline. The
bytes go over real loopback connections.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar
from unittest.mock import patch

import trio

from replispec.conformance.model import PROPOSAL, Case
from replispec.conformance.probe import NoSubject
from replispec.conformance.results import RunResult
from replispec.conformance.rocketmq.names import VOCABULARY
from replispec.conformance.run import RunPlan, run_on_trio
from tests.conformance.subjects.controller_admin import GoodController
from tests.conformance.subjects.ha_master import BROKER_SET, GoodHaMaster
from tests.conformance.subjects.ha_server import HaServer
from tests.conformance.subjects.remoting_server import RemotingServer
from tests.jumping import jumping_clock

SUBJECTS_AT_ONCE = 8
CASES_AT_ONCE = 64
RELEASE = (5, 4, 0)

S = TypeVar("S")
R = TypeVar("R")
Judge = Callable[[S, Sequence[Case]], Awaitable[RunResult]]
Outcome = RunResult | str
"""What a run found, or why there was nothing to judge."""


def plan(kind: str, addresses: Mapping[str, str], known: Mapping[str, object] | None = None) -> RunPlan:
    """All cases of a kind, against these addresses."""
    return RunPlan(
        kind=kind,
        addresses=addresses,
        implementation="scripted",
        release=RELEASE,
        seed="subjects",
        suite="tests",
        began="",
        now_ms=1_700_000_000_000,
        jobs=CASES_AT_ONCE,
        known=known or {},
    )


def applicable(case: Case) -> bool:
    """Whether a case is for the release that the subjects speak."""
    return VOCABULARY.holds(case.releases, RELEASE)


async def judge_controller(
    make: type[GoodController],
    cases: Sequence[Case],
    *,
    bases: tuple[str, ...] = (),
    patience: float = 1.0,
) -> RunResult:
    """What the suite says about this controller."""
    async with trio.open_nursery() as nursery:
        address = await nursery.start(RemotingServer(make).serve)
        asked = replace(plan("controller", {"target": address}), bases=bases, patience=patience)
        result = await run_on_trio(asked, cases, (), None)
        nursery.cancel_scope.cancel()
    return result


async def judge_proposal(make: type[GoodController], cases: Sequence[Case]) -> RunResult:
    """What the proposals alone say about this controller."""
    return await judge_controller(make, cases, bases=(PROPOSAL,))


async def judge_master(
    make: type[GoodHaMaster],
    cases: Sequence[Case],
    *,
    bases: tuple[str, ...] = (),
    patience: float = 1.0,
) -> RunResult:
    """What the suite says about this HA master; it is told of its controller and its broker too."""
    async with trio.open_nursery() as nursery:
        found = await nursery.start(HaServer(make).serve)
        addresses = {"target": found.replicas, "controller": found.controller, "broker": found.broker}
        asked = replace(plan("ha-master", addresses, {"set": BROKER_SET}), bases=bases, patience=patience)
        result = await run_on_trio(asked, cases, (), None)
        nursery.cancel_scope.cancel()
    return result


def run_jumping(main: Callable[..., Awaitable[R]], *args: object) -> R:
    """Run this on a clock that jumps when every task waits.

    Our nodes write in place meanwhile: what a write takes is none of the case's time.
    """
    persistence = "replispec.runtime.net.persistence"
    with patch.multiple(persistence, IN_PLACE_SECONDS_MAX=math.inf, _is_small_append=lambda _: True):
        return trio.run(main, *args, clock=jumping_clock())


def judged(subjects: Mapping[str, tuple[S, Sequence[Case]]], judge: Judge[S]) -> dict[str, Outcome]:
    """What the suite says about each subject, by its name; each is played its own cases."""
    outcomes: dict[str, Outcome] = {}

    async def one(name: str, subject: S, cases: Sequence[Case], limit: trio.CapacityLimiter) -> None:
        async with limit:
            try:
                outcomes[name] = await judge(subject, cases)
            except* NoSubject as nobody:
                outcomes[name] = " ".join(str(each) for each in nobody.exceptions)

    async def everybody() -> None:
        limit = trio.CapacityLimiter(SUBJECTS_AT_ONCE)
        async with trio.open_nursery() as nursery:
            for name, (subject, cases) in subjects.items():
                nursery.start_soon(one, name, subject, cases, limit)

    run_jumping(everybody)
    return {name: outcomes[name] for name in subjects}
