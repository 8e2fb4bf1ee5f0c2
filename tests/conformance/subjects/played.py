"""Plays cases of kinds whose subjects an adapter starts, many at once, on a clock that jumps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import trio

from replispec.conformance.families import family_of
from replispec.conformance.judged import JudgedSubject
from replispec.conformance.model import PROPOSAL, Case
from replispec.conformance.play import play
from replispec.conformance.results import CaseResult
from tests.conformance.subjects.against import run_jumping

RELEASE = (5, 5, 0)
CASES_AT_ONCE = 32

S = TypeVar("S")
MakeAdapter = Callable[[S, trio.Nursery, set[str]], Any]
"""Who stands in for an adapter: of a subject, a nursery for its tasks, the addresses that cases chose."""


def played_out(
    chosen: Iterable[tuple[S, Case]], make: MakeAdapter[S], *, patience: float = 1.0
) -> Mapping[tuple[S, str], CaseResult]:
    """Each subject with one case; a case of the proposals is judged by them alone."""
    found: dict[tuple[S, str], CaseResult] = {}
    reserved: set[str] = set()

    async def one(subject: S, case: Case, limit: trio.CapacityLimiter) -> None:
        async with limit, trio.open_nursery() as nursery:
            kind, lenient = case.id.partition("/")[0], case.basis == PROPOSAL
            family = family_of(kind)
            adapter = make(subject, nursery, reserved)
            judged = JudgedSubject(
                {}, family, family.kind(kind), RELEASE, {}, patience, adapter=adapter, lenient=lenient
            )
            found[subject, case.id] = await play(case, judged, f"{subject} {case.id}", 1_700_000_000_000)
            nursery.cancel_scope.cancel()

    async def everybody() -> None:
        limit = trio.CapacityLimiter(CASES_AT_ONCE)
        async with trio.open_nursery() as nursery:
            for subject, case in chosen:
                nursery.start_soon(one, subject, case, limit)

    run_jumping(everybody)
    return found
