"""A run of the suite: which cases, in which order, side by side where they may, and what came out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import trio

from replispec.conformance.expectations import Expected, apply
from replispec.conformance.families import family_of
from replispec.conformance.family import Family
from replispec.conformance.model import PROPOSAL, TARGET, Case
from replispec.conformance.play import JudgedSubject, play
from replispec.conformance.probe import probe
from replispec.conformance.results import CaseResult, CaseVerdict, RunResult
from replispec.conformance.trace import Trace
from replispec.conformance.vocabulary import Release, fits, release_text

JOBS = 8
ResultListener = Callable[[CaseResult, int, int], None]
"""Called after every case: its result, how many are done, of how many."""


@dataclass(frozen=True, slots=True)
class RunPlan:
    """What a run shall do.

    `patterns` choose cases by id, with * and ?, `bases` by what they rest on; none means all.
    """

    kind: str
    addresses: Mapping[str, str]
    implementation: str
    release: Release
    seed: str
    suite: str
    began: str
    now_ms: int
    profiles: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    bases: tuple[str, ...] = ()
    jobs: int = JOBS
    patience: float = 1.0
    known: Mapping[str, object] = field(default_factory=dict)

    def family(self) -> Family:
        """The family of the kind. Raises FamilyError."""
        return family_of(self.kind)

    def chosen_profiles(self) -> tuple[str, ...]:
        """The profiles that were asked for; all of the kind when none was."""
        return self.profiles or self.family().kind(self.kind).profiles

    def subject(self) -> JudgedSubject:
        """The subject as cases see it."""
        family = self.family()
        kind = family.kind(self.kind)
        return JudgedSubject(
            self.addresses,
            family,
            kind,
            self.release,
            self.known,
            self.patience,
            lenient=self.bases == (PROPOSAL,),
        )

    def chooses(self, case: Case) -> bool:
        """Whether a case is part of this run."""
        asked = not self.patterns or any(fits(case.id, each) for each in self.patterns)
        return asked and (not self.bases or case.basis in self.bases)


def run_suite(
    plan: RunPlan,
    cases: Sequence[Case],
    expected: Sequence[Expected],
    on_result: ResultListener | None = None,
) -> RunResult:
    """Play the chosen cases, several at a time, those that must be alone at the end, one by one.

    Raises NoSubject when nothing at the target can be judged.
    """
    try:
        return trio.run(run_on_trio, plan, cases, expected, on_result)
    except BaseExceptionGroup as group:
        # Whichever case the signal came to: it is meant for all of them.
        if group.subgroup(KeyboardInterrupt) is not None:
            raise KeyboardInterrupt from None
        raise


async def run_on_trio(
    plan: RunPlan, cases: Sequence[Case], expected: Sequence[Expected], on_result: ResultListener | None
) -> RunResult:
    """The same inside of trio."""
    subject = plan.subject()
    await probe(subject, plan.addresses[TARGET])
    began_s = trio.current_time()
    selected = [case for case in cases if plan.chooses(case)]
    found: dict[str, CaseResult] = {}

    def done(result: CaseResult) -> None:
        found[result.id] = result
        if on_result is not None:
            on_result(result, len(found), len(selected))

    limit = trio.CapacityLimiter(plan.jobs)

    async def one(case: Case) -> None:
        async with limit:
            done(await play(case, subject, plan.seed, plan.now_ms))

    playing = []
    for case in selected:
        reason = _left_out(case, plan)
        if reason:
            done(CaseResult.of(case, CaseVerdict.SKIPPED, reason, "", 0.0, Trace()))
        else:
            playing.append(case)
    async with trio.open_nursery() as nursery:
        for case in playing:
            if not case.alone:
                nursery.start_soon(one, case)
    for case in playing:
        if case.alone:
            await one(case)
    result = RunResult(
        kind=plan.kind,
        target=plan.addresses[TARGET],
        implementation=plan.implementation,
        release=release_text(plan.release),
        profiles=list(plan.chosen_profiles()),
        bases=list(plan.bases),
        seed=plan.seed,
        suite=plan.suite,
        began=plan.began,
        took_s=round(trio.current_time() - began_s, 2),
        results=[found[case.id] for case in selected],
    )
    apply(result, expected, plan.family().vocabulary, plan.release)
    return result


def _left_out(case: Case, plan: RunPlan) -> str:
    if not plan.family().vocabulary.holds(case.releases, plan.release):
        first, _, last = str(case.releases).rpartition("@")[2].partition("..")
        spoken = release_text(plan.release)
        return f"release {spoken}: the case is for {first or 'the first'} to {last or 'now'}"
    if case.profile not in plan.chosen_profiles():
        return f"profile {case.profile} was not asked for"
    missing = [name for name in case.needs if name not in plan.addresses]
    return f"needs the address of: {', '.join(missing)}" if missing else ""
